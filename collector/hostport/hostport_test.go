package hostport

import (
	"net"
	"net/url"
	"strings"
	"testing"
)

func TestBracketed(t *testing.T) {
	for given, want := range map[string]string{
		"":                                    "",
		":9420":                               ":9420",
		"localhost:8431":                      "localhost:8431",
		"10.1.2.3:5555":                       "10.1.2.3:5555",
		"10.1.2.3":                            "10.1.2.3",
		"[10.1.2.3]:5555":                     "10.1.2.3:5555",
		"http://[10.1.2.3]:80/x":              "http://10.1.2.3:80/x",
		"fd00::1:5555":                        "[fd00::1]:5555",
		"[fd00::1]:5555":                      "[fd00::1]:5555",
		"::1:0":                               "[::1]:0",
		":::9420":                             "[::]:9420",
		"::":                                  "[::]",
		"::1":                                 "[::1]",
		"fd00::1":                             "[fd00::1]",
		"fd00::1:80ff":                        "[fd00::1:80ff]",
		"fd00::1:99999":                       "fd00::1:99999",
		"fd00::1:0080":                        "[fd00::1:0080]",
		"fd00:1:2:3:4:5:6:7":                  "[fd00:1:2:3:4:5:6:7]",
		"fd00:1:2:3:4:5:6:7:8080":             "[fd00:1:2:3:4:5:6:7]:8080",
		"::ffff:10.1.2.3:8080":                "[::ffff:10.1.2.3]:8080",
		"fe80::1%eth0:8080":                   "[fe80::1%eth0]:8080",
		"http://fd00::1:8080/metrics":         "http://[fd00::1]:8080/metrics",
		"http://fd00::1/a:1":                  "http://[fd00::1]/a:1",
		"http://fd00::1:4317?x=::1":           "http://[fd00::1]:4317?x=::1",
		"https://me:secret@fd00::1:8080":      "https://me:secret@[fd00::1]:8080",
		"http://[fd00::1]:8080":               "http://[fd00::1]:8080",
		"http://collector.observability:4317": "http://collector.observability:4317",
		"unix:///run/fd00::1:80":              "unix:///run/fd00::1:80",
		"vsock://:9420":                       "vsock://:9420",
		"[":                                   "[",
		"[]":                                  "[]",
		"]":                                   "]",
		"a]b":                                 "a]b",
	} {
		if got := Bracketed(given); got != want {
			t.Errorf("%q: %q, want %q", given, got, want)
		}
	}
}

func TestRedacted(t *testing.T) {
	for given, want := range map[string]string{
		"": "", "localhost:8431": "localhost:8431", "https://grafana/a": "https://grafana/a",
		"https://me:secret@grafana/a":      "https://xxxxx@grafana/a",
		"https://me:sec/ret@grafana":       "https://xxxxx@grafana",
		"https://me:sec#ret?@grafana":      "https://xxxxx@grafana",
		"https://me:sec%zz@[::1":           "https://xxxxx@[::1",
		"me:secret@grafana:80":             "xxxxx@grafana:80",
		"secret@grafana":                   "xxxxx@grafana",
		"https://grafana/a?token=secret":   "https://grafana/a?…",
		"https://grafana/a#token=secret":   "https://grafana/a#…",
		"https://me:secret@grafana/?user=": "https://xxxxx@grafana/?…",
		"http://proxy/http://a:secret@b":   "http://xxxxx@b",
	} {
		if got := Redacted(given); got != want || HasUser(given) != strings.Contains(want, "@") && given != "http://proxy/http://a:secret@b" {
			t.Errorf("%q: %q, want %q", given, got, want)
		}
	}
	text := `--a=https://me:sec@ret@collector:4317 --x=y@z: get "http://u:p/w@host/x": refused`
	if got, want := RedactedText(text), `--a=https://xxxxx@collector:4317 --x=y@z: get "http://xxxxx@host/x": refused`; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// What has its brackets keeps them, and is parsed as it was meant.
func FuzzBracketed(f *testing.F) {
	for _, seed := range []string{"fd00::1:8080", "http://fd00::1:8080/x", "[10.0.0.1]:1", ":9420", "https://u:p@::1", "fe80::1%eth0:80"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		once := Bracketed(text)
		if twice := Bracketed(once); twice != once {
			t.Fatalf("%q: %q, then %q", text, once, twice)
		}
		if _, err := url.Parse(text); err == nil && strings.Contains(text, "://") {
			if _, err := url.Parse(once); err != nil {
				t.Fatalf("%q can be parsed, but not %q: %v", text, once, err)
			}
		}
		if isIPv6(text) && !strings.Contains(text, "%") {
			if host, port, err := net.SplitHostPort(Bracketed(text + ":65535")); err != nil || host != text || port != "65535" {
				t.Fatalf("%q with a port: %q %q %v", text, host, port, err)
			}
		}
	})
}
