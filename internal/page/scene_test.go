package page

import (
	"bytes"
	"cmp"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/common/expfmt"
	prometheusmodel "github.com/prometheus/common/model"

	"github.com/dra-exporter/dra-exporter/collector/metric"
	"github.com/dra-exporter/dra-exporter/collector/model"
)

// noon is when the hand-written scrape is looked at.
var noon = time.Unix(1795168800, 0).UTC()

// rowsOf reads a page of text as rows, family by family.
func rowsOf(t testing.TB, text []byte) []metric.Row {
	t.Helper()
	parser := expfmt.NewTextParser(prometheusmodel.LegacyValidation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	var rows []metric.Row
	for _, name := range slices.Sorted(maps.Keys(families)) {
		family := &metric.Family{Name: name}
		for _, series := range families[name].GetMetric() {
			var names, values []string
			for _, pair := range series.GetLabel() {
				names, values = append(names, pair.GetName()), append(values, pair.GetValue())
			}
			value := cmp.Or(series.GetGauge().GetValue(), series.GetCounter().GetValue())
			rows = append(rows, metric.Row{Family: family, Labels: metric.NewLabels(names, values...), Value: value})
		}
	}
	return rows
}

// testNodeRows returns the rows of a node with a device in every state:
// exclusive, shared, partitioned, held by a device plugin, idle, free and
// without hardware.
func testNodeRows(t testing.TB) []metric.Row {
	t.Helper()
	text, err := os.ReadFile("testdata/node.metrics.txt")
	if err != nil {
		t.Fatal(err)
	}
	return rowsOf(t, text)
}

// handler serves the rows at noon.
func handler(t testing.TB, rows []metric.Row) http.Handler {
	t.Helper()
	return handlerOf(t, func() []metric.Row { return rows })
}

// handlerOf serves the present rows at noon.
func handlerOf(t testing.TB, rows func() []metric.Row) http.Handler {
	t.Helper()
	return configured(t, Config{}, rows)
}

// served serves the rows at noon, with more of the configuration.
func served(t testing.TB, config Config, rows []metric.Row) http.Handler {
	t.Helper()
	return configured(t, config, func() []metric.Row { return rows })
}

// configured serves the present rows of a node.
func configured(t testing.TB, config Config, rows func() []metric.Row) http.Handler {
	t.Helper()
	return nodeSite(t, config, func() *model.Node { return parseNode(rows()) })
}

// nodeSite serves the present model at noon.
func nodeSite(t testing.TB, config Config, present func() *model.Node) http.Handler {
	t.Helper()
	config.Model = present
	config.Node, config.MetricsPath, config.Log = "node-a", "/metrics", slog.New(slog.DiscardHandler)
	config.Now = func() time.Time { return noon }
	handlers, err := Handlers(config)
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

// get returns the answer's status and body.
func get(t testing.TB, handler http.Handler, path string) (int, string) {
	t.Helper()
	recorder := httptest.NewRecorder()
	handler.ServeHTTP(recorder, httptest.NewRequest(http.MethodGet, path, nil))
	return recorder.Code, recorder.Body.String()
}
