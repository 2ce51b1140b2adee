package web_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"
)

// A page of another site that points its name at our address reads no page of
// ours. Scrapes and probes are answered by any name.
func TestHosts(t *testing.T) {
	for name, test := range map[string]struct {
		allowed []string
		hosts   map[string]int
	}{
		"over the loopback interface": {nil, map[string]int{"127.0.0.1": 200, "localhost:9420": 200, "rebound.example:9420": 421}},
		"with a name of one's own":    {[]string{"dra.example"}, map[string]int{"dra.example": 200, "rebound.example": 421}},
		"with all names":              {[]string{"*"}, map[string]int{"rebound.example": 200}},
	} {
		t.Run(name, func(t *testing.T) {
			config := testConfig(t)
			config.AllowedHosts = test.allowed
			base, _ := serve(t, config)
			for host, want := range test.hosts {
				for path, status := range map[string]int{"/": want, "/metrics": 200, "/-/healthy": 200, "/-/ready": 200} {
					got, body := answered(t, base, "GET "+path+" HTTP/1.1\r\nHost: "+host+"\r\nConnection: close\r\n\r\n")
					if got != status {
						t.Errorf("%s by %s gets %d, want %d", path, host, got, status)
					}
					if got == http.StatusMisdirectedRequest && !strings.Contains(body, "--web.allowed-hosts") {
						t.Errorf("the refusal %q does not name the flag", body)
					}
				}
			}
		})
	}
}

// Pages of other sites may link here, and their scripts read nothing.
func TestOtherSites(t *testing.T) {
	base, _ := serve(t, testConfig(t))
	for _, test := range []struct {
		site, mode string
		status     int
	}{
		{"", "", 200}, {"none", "navigate", 200}, {"same-origin", "cors", 200},
		{"cross-site", "navigate", 200}, {"cross-site", "no-cors", 403}, {"cross-site", "cors", 403}, {"same-site", "cors", 403},
	} {
		got := get(t, base+"/", map[string]string{"Sec-Fetch-Site": test.site, "Sec-Fetch-Mode": test.mode})
		if got.status != test.status || slices.Contains(got.header["Access-Control-Allow-Origin"], "*") {
			t.Errorf("%s, %s gets %d, want %d", test.site, test.mode, got.status, test.status)
		}
	}
}
