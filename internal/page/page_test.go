package page

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"github.com/dra-exporter/dra-exporter/collector/metric"
	"github.com/dra-exporter/dra-exporter/collector/metric/metrictest"
)

func TestPage(t *testing.T) {
	status, text := get(t, handler(t, scene(t)), "/")
	if status != 200 {
		t.Fatal(status, text)
	}
	metrictest.CompareGolden(t, "testdata/page.html", text)
	if strings.Contains(text, " style=") || regexp.MustCompile(`(src|href)="(https?:)?//`).MatchString(text) {
		t.Error("the page needs something that its content policy forbids")
	}
}

func TestPageBeforeTheFirstSnapshot(t *testing.T) {
	site := handler(t, nil)
	if status, text := get(t, site, "/"); status != 200 || !strings.Contains(text, "Waiting for the first snapshot") || !strings.Contains(text, "node-a") {
		t.Errorf("the page answers %d %s", status, text)
	}
	if status, text := get(t, site, "/api/v1/claims"); status != 503 || !strings.Contains(text, `"error": "no snapshot yet"`) {
		t.Errorf("the JSON answers %d %s", status, text)
	}
}

func TestPageOfAnEmptyNode(t *testing.T) {
	site := handler(t, []metric.Row{row("dra_exporter_source_up", 0, "source", "nvml")})
	_, text := get(t, site, "/")
	for _, want := range []string{"no sample yet", "No source sees a device", "No pod of this node uses a claim", "<b>nvml</b> down"} {
		if !strings.Contains(text, want) {
			t.Errorf("the page does not say %q", want)
		}
	}
	if status, text := get(t, site, "/api/v1/claims"); status != 200 || text != "{\n  \"apiVersion\": \"v1\",\n  \"node\": \"node-a\",\n  \"deviceCount\": {\n    \"devices\": 0,\n    \"whole\": 0,\n    \"partitions\": 0,\n    \"held\": 0\n  },\n  \"claims\": []\n}\n" {
		t.Errorf("the JSON answers %d %s", status, text)
	}
}

func TestParts(t *testing.T) {
	site := handler(t, scene(t))
	for path, want := range map[string]string{"/page.css": "prefers-color-scheme", "/page.js": "fetch("} {
		if status, text := get(t, site, path); status != 200 || !strings.Contains(text, want) {
			t.Errorf("%s answers %d", path, status)
		}
	}
}

func TestClaims(t *testing.T) {
	status, text := get(t, handler(t, scene(t)), "/api/v1/claims")
	if status != 200 {
		t.Fatal(status, text)
	}
	metrictest.CompareGolden(t, "testdata/claims.json", text)
}

func TestClaimsOfNamespaces(t *testing.T) {
	for query, want := range map[string]string{
		"?namespace=team-ml":                      "team-ml/debug-session",
		"?namespace=monitoring&namespace=team-ml": "monitoring/gpu-inspector team-ml/debug-session",
		"?namespace=nobody":                       "",
		"?namespace=":                             "",
	} {
		_, text := get(t, handler(t, scene(t)), "/api/v1/claims"+query)
		var got ClaimsAnswer
		if err := json.Unmarshal([]byte(text), &got); err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, claim := range got.Claims {
			names = append(names, claim.Namespace+"/"+claim.Name)
		}
		if strings.Join(names, " ") != want || got.Claims == nil {
			t.Errorf("%s gives %q, want %q", query, names, want)
		}
	}
}

// marked are the scene's rows with something appended to every label value,
// so that what belongs together still does.
func marked(rows []metric.Row, mark string) []metric.Row {
	changed := make([]metric.Row, len(rows))
	for i, row := range rows {
		var names, values []string
		for name, value := range row.Labels.Each {
			if value != "" {
				value += mark
			}
			names, values = append(names, name), append(values, value)
		}
		changed[i] = row
		changed[i].Labels = metric.NewLabels(names, values...)
	}
	return changed
}

// elements counts the elements of a document by name, with the names of their
// attributes.
func elements(t testing.TB, text string) map[string]int {
	t.Helper()
	document, err := html.Parse(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	counts := map[string]int{}
	for node := range document.Descendants() {
		if node.Type != html.ElementNode {
			continue
		}
		name := node.Data
		for _, attribute := range node.Attr {
			name += " " + attribute.Key
		}
		counts[name]++
	}
	return counts
}

// FuzzEscaping shows that no label value can add an element or an attribute
// to the page, or break the JSON.
func FuzzEscaping(f *testing.F) {
	for _, mark := range []string{
		`<script>alert(1)</script>`, `" onmouseover="alert(1)`, `'><img src=x onerror=alert(1)>`, "\n\r\t\x00",
		`</style></title></noscript>`, `javascript:alert(1)`, `{{.}}`, "\xff\xfe", `\u003c`, "<!--", "&lt;b&gt;",
	} {
		f.Add(mark)
	}
	rows, others := scene(f), sharing(f)
	plain := func(rows []metric.Row) map[string]int {
		_, page := get(f, handler(f, marked(rows, "x")), "/")
		return elements(f, page)
	}
	want, wantOthers := plain(rows), plain(others)
	f.Fuzz(func(t *testing.T, mark string) {
		unchanged(t, mark, others, wantOthers)
		unchanged(t, mark, rows, want)
		_, text := get(t, handler(t, marked(rows, "x"+mark)), "/api/v1/claims")
		var read ClaimsAnswer
		if err := json.Unmarshal([]byte(text), &read); err != nil {
			t.Errorf("with %q the JSON is broken: %v", mark, err)
		}
		if want := "inference" + "x" + strings.ToValidUTF8(mark, "\uFFFD"); len(read.Claims) != 9 || read.Claims[0].Namespace != want {
			t.Errorf("with %q the JSON has %d claims, the first in %q", mark, len(read.Claims), read.Claims[0].Namespace)
		}
	})
}

// unchanged checks that the page of marked rows has the elements that it is to
// have.
func unchanged(t *testing.T, mark string, rows []metric.Row, want map[string]int) {
	t.Helper()
	_, page := get(t, handler(t, marked(rows, "x"+mark)), "/")
	for name, n := range elements(t, page) {
		if want[name] != n {
			t.Errorf("with %q there are %d elements <%s>, without %d", mark, n, name, want[name])
		}
	}
}

func BenchmarkPage(b *testing.B) {
	site := handler(b, scene(b))
	b.ReportAllocs()
	for b.Loop() {
		get(b, site, "/")
	}
}
