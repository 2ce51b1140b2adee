package page

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/metric"
	"github.com/dra-exporter/dra-exporter/collector/model"
	"github.com/dra-exporter/dra-exporter/test/fakes/metrictest"
)

// testClusterRows returns the rows of a cluster with references that are
// pending for every kind of reason, and with all anomalies.
func testClusterRows(t testing.TB) []metric.Row {
	t.Helper()
	text, err := os.ReadFile("testdata/cluster.metrics.txt")
	if err != nil {
		t.Fatal(err)
	}
	return rowsOf(t, text)
}

// clusterHandler serves the rows at noon.
func clusterHandler(t testing.TB, rows []metric.Row) http.Handler {
	t.Helper()
	return clusterHandlerOf(t, func() []metric.Row { return rows })
}

// clusterHandlerOf serves the present rows at noon.
func clusterHandlerOf(t testing.TB, rows func() []metric.Row) http.Handler {
	t.Helper()
	return clusterSite(t, func() *model.Cluster { return parseCluster(rows()) })
}

// clusterSite serves the present model at noon.
func clusterSite(t testing.TB, present func() *model.Cluster) http.Handler {
	t.Helper()
	handlers, err := ClusterHandlers(Config{
		MetricsPath: "/metrics", Explain: "dra-exporter explain", Log: slog.New(slog.DiscardHandler),
		Cluster: present,
		Now:     func() time.Time { return noon },
		Messages: func() map[string]string {
			return map[string]string{"devicetaintrules": "The exporter may not list them: grant it."}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	for path, handler := range handlers {
		if path == "/" {
			path = "/{$}"
		}
		mux.Handle(path, handler)
	}
	return mux
}

func TestClusterPage(t *testing.T) {
	status, text := get(t, clusterHandler(t, testClusterRows(t)), "/")
	if status != 200 {
		t.Fatal(status, text)
	}
	metrictest.CompareGolden(t, "testdata/cluster.html", text)
	if strings.Contains(text, " style=") || regexp.MustCompile(`(src|href)="(https?:)?//`).MatchString(text) {
		t.Error("the page needs something that its content policy forbids")
	}
}

func TestClusterParts(t *testing.T) {
	site := clusterHandler(t, nil)
	for path, want := range map[string]string{
		"/page.css": "prefers-color-scheme", "/page.js": "fetch(", "/cluster.css": ".request", "/cluster.js": "clipboard",
	} {
		if status, text := get(t, site, path); status != 200 || !strings.Contains(text, want) {
			t.Errorf("%s answers %d", path, status)
		}
	}
}

func TestClusterBeforeTheFirstSnapshot(t *testing.T) {
	site := clusterHandler(t, nil)
	if status, text := get(t, site, "/"); status != 200 || !strings.Contains(text, "Waiting for the first snapshot") {
		t.Errorf("the page answers %d %s", status, text)
	}
	if status, text := get(t, site, "/api/v1/pending"); status != 503 || !strings.Contains(text, `"error": "no snapshot yet"`) {
		t.Errorf("the JSON answers %d %s", status, text)
	}
}

// sourceRows returns the rows of a source that was read, or never was.
func sourceRows(name string, read bool) []metric.Row {
	if !read {
		return []metric.Row{row("dra_exporter_source_up", 0, "source", name), row("dra_exporter_source_error_info", 1, "source", name, "reason", "permission_denied")}
	}
	return []metric.Row{row("dra_exporter_source_up", 1, "source", name), row("dra_exporter_source_last_success_timestamp_seconds", float64(noon.Unix()), "source", name)}
}

// Without rows nothing is pending only if the sources are known.
func TestNothingPendingOrUnknown(t *testing.T) {
	for name, test := range map[string]struct {
		pods, claims, slices bool
		wait, left           string // text of the page
	}{
		"all is known":     {true, true, true, "No claim is pending.", "No driver publishes devices."},
		"pods are not":     {false, true, true, "Which claims are pending is not known: pods: permission_denied.", "No driver publishes devices."},
		"claims are not":   {true, false, true, "Which claims are pending is not known: resourceclaims: permission_denied.", "The capacity is not known: resourceclaims: permission_denied."},
		"slices are not":   {true, true, false, "No claim is pending.", "The capacity is not known: resourceslices: permission_denied."},
		"nothing is known": {false, false, false, "Which claims are pending is not known: pods: permission_denied, resourceclaims: permission_denied.", "The capacity is not known: resourceslices: permission_denied, resourceclaims: permission_denied."},
	} {
		t.Run(name, func(t *testing.T) {
			rows := append(append(sourceRows("pods", test.pods), sourceRows("resourceclaims", test.claims)...), sourceRows("resourceslices", test.slices)...)
			site := clusterHandler(t, rows)
			_, text := get(t, site, "/")
			if got := strings.Count(text, "No claim is pending") + strings.Count(text, "Which claims are pending is not known"); got != 1 || !strings.Contains(text, test.wait) {
				t.Errorf("the page does not say %q", test.wait)
			}
			if got := strings.Count(text, "No driver publishes") + strings.Count(text, "The capacity is not known"); got != 1 || !strings.Contains(text, test.left) {
				t.Errorf("the page does not say %q", test.left)
			}
			var answer PendingAnswer
			_, text = get(t, site, "/api/v1/pending")
			if err := json.Unmarshal([]byte(text), &answer); err != nil {
				t.Fatal(err)
			}
			if known := test.pods && test.claims; known != (len(answer.Unread) == 0) {
				t.Errorf("the JSON says that %q are unread", answer.Unread)
			}
		})
	}
}

func TestPending(t *testing.T) {
	status, text := get(t, clusterHandler(t, testClusterRows(t)), "/api/v1/pending")
	if status != 200 {
		t.Fatal(status, text)
	}
	metrictest.CompareGolden(t, "testdata/pending.json", text)
}

func TestPendingOfNamespaces(t *testing.T) {
	for query, want := range map[string]string{
		"?namespace=llm":                   "pretrain-0 blackwell-7d9f8b6c5-qwlkz",
		"?namespace=kueue&namespace=batch": "etl-3 gated:sweep-11",
		"?namespace=unused":                "",
	} {
		_, text := get(t, clusterHandler(t, testClusterRows(t)), "/api/v1/pending"+query)
		var got PendingAnswer
		if err := json.Unmarshal([]byte(text), &got); err != nil {
			t.Fatal(err)
		}
		var pods []string
		for _, w := range got.Pending {
			pods = append(pods, w.Pod)
		}
		for _, w := range got.Gated {
			pods = append(pods, "gated:"+w.Pod)
		}
		if strings.Join(pods, " ") != want || got.Pending == nil || got.Gated == nil {
			t.Errorf("%s gives %q, want %q", query, pods, want)
		}
	}
}

// pendingRows returns this many references, each a second younger than the one
// before.
func pendingRows(count int) []metric.Row {
	var since, reasons, candidates []metric.Row
	for i := range count {
		pod := fmt.Sprintf("pod-%04d", i)
		began := float64(noon.Unix() - 3600 + int64(i))
		since = append(since, row("dra_claim_pending_since_timestamp_seconds", began,
			"namespace", "n", "pod", pod, "pod_claim", "gpu", "resourceclaim", pod+"-gpu", "deviceclass", "gpu.example.com"))
		reasons = append(reasons, row("dra_claim_pending_reason_info", 1, "namespace", "n", "pod", pod, "pod_claim", "gpu", "reason", "insufficient_devices"))
		for left, stage := range []string{"best_node", "free", "untainted", "selectors", "class", "published"} {
			candidates = append(candidates, row("dra_claim_pending_candidates", float64(left*left*1000),
				"namespace", "n", "pod", pod, "pod_claim", "gpu", "request", "gpu", "stage", stage))
		}
	}
	return append(append(since, reasons...), candidates...)
}

func TestThousandPendingRefs(t *testing.T) {
	site := clusterHandler(t, append(pendingRows(1000), append(sourceRows("pods", true), sourceRows("resourceclaims", true)...)...))
	_, text := get(t, site, "/")
	if n := strings.Count(text, `class="wait"`); n != 100 {
		t.Errorf("%d references are shown", n)
	}
	for _, want := range []string{"pod-0000", "pod-0099", "and 900 more", `data-field="pending" data-value="1000"`, "<b>1000</b> insufficient_devices"} {
		if !strings.Contains(text, want) {
			t.Errorf("the page does not say %q", want)
		}
	}
	if strings.Contains(text, "pod-0100") {
		t.Error("a younger reference is shown")
	}
	var answer PendingAnswer
	_, text = get(t, site, "/api/v1/pending")
	if err := json.Unmarshal([]byte(text), &answer); err != nil || len(answer.Pending) != 1000 || answer.Pending[999].Pod != "pod-0999" {
		t.Errorf("the JSON has %d references: %v", len(answer.Pending), err)
	}
}

// FuzzClusterEscaping is FuzzEscaping for the cluster's page.
func FuzzClusterEscaping(f *testing.F) {
	for _, mark := range []string{
		`<script>alert(1)</script>`, `" onmouseover="alert(1)`, `'><img src=x onerror=alert(1)>`, "\n\r\t\x00",
		`javascript:alert(1)`, `{{.}}`, "\xff\xfe", "<!--", "&lt;b&gt;",
	} {
		f.Add(mark)
	}
	shown := sampleRows(testClusterRows(f))
	var now []metric.Row
	site := clusterHandlerOf(f, func() []metric.Row { return now }) // parsed once
	now = withSuffix(shown, "x")
	_, plain := get(f, site, "/")
	want := elements(f, plain)
	now = withSuffix(testClusterRows(f), "x")
	_, whole := get(f, site, "/")
	allShown(f, elements(f, whole), want)
	f.Fuzz(func(t *testing.T, mark string) {
		now = withSuffix(shown, "x"+mark)
		_, page := get(t, site, "/")
		unchanged(t, mark, page, want)
		_, text := get(t, site, "/api/v1/pending")
		var read PendingAnswer
		if err := json.Unmarshal([]byte(text), &read); err != nil {
			t.Errorf("with %q the JSON is broken: %v", mark, err)
		}
		if want := "x" + strings.ToValidUTF8(mark, "\uFFFD"); len(read.Pending) == 0 || !strings.HasSuffix(read.Pending[0].Namespace, want) {
			t.Errorf("with %q the JSON has %d references", mark, len(read.Pending))
		}
	})
}

func BenchmarkClusterPage(b *testing.B) {
	cluster := parseCluster(pendingRows(1000))
	site := clusterSite(b, func() *model.Cluster { return cluster })
	b.ReportAllocs()
	for b.Loop() {
		get(b, site, "/")
	}
}
