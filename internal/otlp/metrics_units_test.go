package otlp

import (
	"slices"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/dra-exporter/dra-exporter/collector/cluster"
	"github.com/dra-exporter/dra-exporter/collector/metric"
	"github.com/dra-exporter/dra-exporter/collector/node"
	"github.com/dra-exporter/dra-exporter/collector/self"
	"github.com/dra-exporter/dra-exporter/internal/dcgmnames"
)

// everyFamily is what any role can ever push.
func everyFamily() []*metric.Family {
	return slices.Concat(node.Families(), cluster.Families(), self.NewPush().All(), dcgmnames.Families())
}

// TestNamesStayAsTheyAre holds every family to what is done to a name where a
// Prometheus series is made of a metric: it gets the unit unless one of its
// words is that, and a monotonic sum ends with total, a gauge of unit 1 with
// ratio, wherever these words stood before.
// https://opentelemetry.io/docs/specs/otel/compatibility/prometheus_and_openmetrics/#metric-metadata-1
func TestNamesStayAsTheyAre(t *testing.T) {
	for _, family := range everyFamily() {
		metrics := plain(family, nil)
		if (metrics.Unit == "") != (family.Unit == "") {
			t.Errorf("%s: unit %q for %q", family.Name, metrics.Unit, family.Unit)
		}
		if got := seriesName(metrics); got != family.Name {
			t.Errorf("%s would become %s", family.Name, got)
		}
	}
}

// seriesName is the name after that, of a metric whose unit is one of ours.
func seriesName(metrics metricdata.Metrics) string {
	words := map[string]string{"s": "seconds", "By": "bytes", "J": "joules", "W": "watts", "Cel": "celsius", "Hz": "hertz"}
	tokens := strings.Split(metrics.Name, "_")
	if word := words[metrics.Unit]; word != "" && !slices.Contains(tokens, word) {
		tokens = append(tokens, word)
	}
	end := ""
	switch data := metrics.Data.(type) {
	case metricdata.Sum[float64]:
		if data.IsMonotonic {
			end = "total"
		}
	case metricdata.Gauge[float64]:
		if metrics.Unit == "1" {
			end = "ratio"
		}
	}
	if end != "" {
		tokens = append(slices.DeleteFunc(tokens, func(token string) bool { return token == end }), end)
	}
	return strings.Join(tokens, "_")
}

// TestEachUnitHasItsCode: no unit of ours or of the Go and process collectors
// goes out without its code, and no two have the same.
func TestEachUnitHasItsCode(t *testing.T) {
	units := map[string]string{"percent": "%"}
	for _, family := range everyFamily() {
		if family.Unit != "" {
			units[family.Unit] = ucum(family.Unit)
		}
	}
	of := map[string]string{}
	for unit, code := range units {
		if code == "" || of[code] != "" {
			t.Errorf("the code of %s is %q, that of %q too", unit, code, of[code])
		}
		of[code] = unit
	}
	if len(units) < 8 {
		t.Errorf("only %d units are looked at", len(units))
	}
}
