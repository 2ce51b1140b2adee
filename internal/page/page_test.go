package page

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"github.com/dra-exporter/dra-exporter/collector/metric"
	"github.com/dra-exporter/dra-exporter/collector/model"
	"github.com/dra-exporter/dra-exporter/test/fakes/metrictest"
)

func TestPage(t *testing.T) {
	status, text := get(t, handler(t, testNodeRows(t)), "/")
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

func TestPageOfEmptyNode(t *testing.T) {
	site := handler(t, []metric.Row{row("dra_exporter_source_up", 0, "source", "nvml")})
	_, text := get(t, site, "/")
	for _, want := range []string{"no sample yet", "No source reports a device", "No pod of this node uses a claim", "<b>nvml</b> down"} {
		if !strings.Contains(text, want) {
			t.Errorf("the page does not say %q", want)
		}
	}
	if status, text := get(t, site, "/api/v1/claims"); status != 200 || text != "{\n  \"apiVersion\": \"v1\",\n  \"node\": \"node-a\",\n  \"deviceCount\": {\n    \"devices\": 0,\n    \"whole\": 0,\n    \"partitions\": 0,\n    \"held\": 0\n  },\n  \"claims\": []\n}\n" {
		t.Errorf("the JSON answers %d %s", status, text)
	}
}

func TestParts(t *testing.T) {
	site := handler(t, testNodeRows(t))
	for path, want := range map[string]string{"/page.css": "prefers-color-scheme", "/page.js": "fetch("} {
		if status, text := get(t, site, path); status != 200 || !strings.Contains(text, want) {
			t.Errorf("%s answers %d", path, status)
		}
	}
}

func TestClaims(t *testing.T) {
	status, text := get(t, handler(t, testNodeRows(t)), "/api/v1/claims")
	if status != 200 {
		t.Fatal(status, text)
	}
	metrictest.CompareGolden(t, "testdata/claims.json", text)
}

// With devices=all the document has each device as well: held ones, free ones, and
// those that a device plugin gave to a pod.
func TestDevicesOfNode(t *testing.T) {
	site := handler(t, testNodeRows(t))
	status, text := get(t, site, "/api/v1/claims?devices=all")
	if status != 200 {
		t.Fatal(status, text)
	}
	metrictest.CompareGolden(t, "testdata/devices.json", text)
	var document ClaimsAnswer
	if err := json.Unmarshal([]byte(text), &document); err != nil {
		t.Fatal(err)
	}
	if len(document.All) != document.Devices.Devices {
		t.Errorf("%d devices of %d", len(document.All), document.Devices.Devices)
	}
	_, some := get(t, site, "/api/v1/claims?devices=all&namespace=team-ml")
	if !strings.Contains(text, `"devicePluginPods"`) || strings.Contains(some, `"devicePluginPods"`) {
		t.Error("pods of device plugins are not those of the namespaces that the query names")
	}
}

func TestClaimsOfNamespaces(t *testing.T) {
	for query, want := range map[string]string{
		"?namespace=team-ml":                      "team-ml/debug-session",
		"?namespace=monitoring&namespace=team-ml": "monitoring/gpu-inspector team-ml/debug-session",
		"?namespace=unused":                       "",
		"?namespace=":                             "",
	} {
		_, text := get(t, handler(t, testNodeRows(t)), "/api/v1/claims"+query)
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

// withSuffix returns the rows with a suffix appended to every label value, so
// that related rows stay related.
func withSuffix(rows []metric.Row, mark string) []metric.Row {
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
	const shared = "GPU-6f1b2a90-0b2d-4a57-9d3e-000000000006" // a bar of several parts takes all of its rows
	shown := sampleRows(append(testNodeRows(f), sharing(f)...), shared)
	var now []metric.Row
	site := handlerOf(f, func() []metric.Row { return now }) // parsed once
	now = withSuffix(shown, "x")
	_, plain := get(f, site, "/")
	want := elements(f, plain)
	for _, rows := range [][]metric.Row{testNodeRows(f), sharing(f)} {
		now = withSuffix(rows, "x")
		_, whole := get(f, site, "/")
		allShown(f, elements(f, whole), want)
	}
	f.Fuzz(func(t *testing.T, mark string) {
		now = withSuffix(shown, "x"+mark)
		_, page := get(t, site, "/")
		unchanged(t, mark, page, want)
		_, text := get(t, site, "/api/v1/claims")
		var read ClaimsAnswer
		if err := json.Unmarshal([]byte(text), &read); err != nil {
			t.Errorf("with %q the JSON is broken: %v", mark, err)
		}
		if want := "x" + strings.ToValidUTF8(mark, "\uFFFD"); len(read.Claims) == 0 || !strings.HasSuffix(read.Claims[0].Namespace, want) {
			t.Errorf("with %q the JSON has %d claims", mark, len(read.Claims))
		}
	})
}

// sampleRows returns rows of each family and of each value of its labels that
// are kinds, as few as cover every place of the page that can contain a foreign
// string; for the given whole devices, all rows.
func sampleRows(rows []metric.Row, whole ...string) []metric.Row {
	kinds := []string{"attribution", "reason", "signal", "state", "sharing", "phase", "kind", "source", "stage", "up", "namespace"}
	seen, few := map[string]bool{}, []metric.Row{}
	for _, row := range rows {
		key := row.Family.Name
		for _, kind := range kinds {
			key += "," + row.Labels.Get(kind)
		}
		if !seen[key] || slices.Contains(whole, row.Labels.Get("uuid")) {
			few = append(few, row)
		}
		seen[key] = true
	}
	return few
}

// allShown checks that a few rows show every element of the whole page.
func allShown(t testing.TB, whole, few map[string]int) {
	t.Helper()
	for name := range whole {
		if few[name] == 0 {
			t.Errorf("the few rows show no <%s>", name)
		}
	}
}

// unchanged checks that the page has the elements that it is to have.
func unchanged(t *testing.T, mark, page string, want map[string]int) {
	t.Helper()
	for name, n := range elements(t, page) {
		if want[name] != n {
			t.Errorf("with %q there are %d elements <%s>, without %d", mark, n, name, want[name])
		}
	}
}

func BenchmarkPage(b *testing.B) {
	node := parseNode(testNodeRows(b))
	site := nodeSite(b, Config{}, func() *model.Node { return node })
	b.ReportAllocs()
	for b.Loop() {
		get(b, site, "/")
	}
}
