package runbook

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// Every alert has its runbook in the program, and nothing else is a runbook.
func TestNamesAreAlerts(t *testing.T) {
	data, err := os.ReadFile("../../alerts/alerts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var rules struct {
		Groups []struct{ Rules []struct{ Alert string } }
	}
	if err := yaml.Unmarshal(data, &rules); err != nil {
		t.Fatal(err)
	}
	var alerts []string
	for _, group := range rules.Groups {
		for _, rule := range group.Rules {
			alerts = append(alerts, rule.Alert)
		}
	}
	slices.Sort(alerts)
	names, err := Names()
	if alerts = slices.Compact(alerts); err != nil || !slices.Equal(names, alerts) {
		t.Errorf("the runbooks are %v, the alerts %v, %v", names, alerts, err)
	}
}

// Every link of a page leads to another page, to an anchor that it has, or to a document
// of the project that exists; a code block is as in the document.
func TestPages(t *testing.T) {
	handlers, err := Handlers()
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	for at, handler := range handlers {
		mux.Handle("GET "+at, handler)
	}
	page := func(at string) string {
		answer := httptest.NewRecorder()
		mux.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, at, nil))
		if answer.Code != http.StatusOK || answer.Header().Get("Content-Type") != "text/html; charset=utf-8" {
			t.Errorf("%s: %d, %s", at, answer.Code, answer.Header().Get("Content-Type"))
		}
		return answer.Body.String()
	}
	links := regexp.MustCompile(`<a href="([^"]+)"`)
	checked := 0
	for at := range handlers {
		body := page(at)
		for _, match := range links.FindAllStringSubmatch(body, -1) {
			link := match[1]
			if link == "../" {
				continue
			}
			checked++
			if document, ok := strings.CutPrefix(link, documents); ok {
				file, _, _ := strings.Cut(document, "#")
				if _, err := os.Stat("../../docs/" + file); err != nil {
					t.Errorf("%s: %s leads nowhere: %v", at, link, err)
				}
				continue
			}
			target, err := url.Parse(link)
			if err != nil || target.IsAbs() {
				t.Errorf("%s: %s leads to another server", at, link)
				continue
			}
			other := body
			if target.Path != "" {
				other = page(path.Join(Path, target.Path))
			}
			if target.Fragment != "" && !strings.Contains(other, `id="`+target.Fragment+`"`) {
				t.Errorf("%s: %s has no such anchor", at, link)
			}
		}
	}
	if checked < 100 {
		t.Errorf("%d links were checked", checked)
	}
	if body := page(Path + "DRAClaimPendingTooLong"); !strings.Contains(body, "dra-exporter explain pod &lt;namespace&gt;/&lt;pod&gt;") || !strings.Contains(body, "<td><code>insufficient_devices</code></td>") {
		t.Errorf("the page is\n%s", body)
	}
}

func TestText(t *testing.T) {
	if text, ok := Text("DRAClaimIdle"); !ok || !strings.HasPrefix(text, "# DRAClaimIdle\n") {
		t.Errorf("%q", text)
	}
	for _, name := range []string{"", "Nonsense", "../faq", "files.go", "README.md"} {
		if text, ok := Text(name); ok {
			t.Errorf("%q is %q", name, text)
		}
	}
}
