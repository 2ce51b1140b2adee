package naming

import (
	"slices"
	"testing"

	"github.com/dra-exporter/dra-exporter/collector/cluster"
	"github.com/dra-exporter/dra-exporter/collector/metric"
	"github.com/dra-exporter/dra-exporter/collector/node"
	"github.com/dra-exporter/dra-exporter/collector/self"
	"github.com/dra-exporter/dra-exporter/internal/dcgmnames"
	"github.com/dra-exporter/dra-exporter/test/fakes/otlptest"
)

// everyFamily is what any role can ever push.
func everyFamily() []*metric.Family {
	return slices.Concat(node.Families(), cluster.Families(), self.NewPushFamilies().All(), dcgmnames.Families())
}

// TestNamesStayAsTheyAre holds every family to what is done to a name where a
// Prometheus series is made of a metric: it gets the unit unless one of its
// words is that, and a monotonic sum ends with total, a gauge of unit 1 with
// ratio, wherever these words stood before.
// https://opentelemetry.io/docs/specs/otel/compatibility/prometheus_and_openmetrics/#metric-metadata-1
func TestNamesStayAsTheyAre(t *testing.T) {
	for _, family := range everyFamily() {
		metrics := familyMetrics(family, nil)
		if (metrics.Unit == "") != (family.Unit == "") {
			t.Errorf("%s: unit %q for %q", family.Name, metrics.Unit, family.Unit)
		}
		if got := otlptest.SeriesName(metrics); got != family.Name {
			t.Errorf("%s would become %s", family.Name, got)
		}
	}
}

// TestEachUnitHasItsCode: no unit of ours or of the Go and process collectors
// is exported without its code, and no two have the same.
func TestEachUnitHasItsCode(t *testing.T) {
	units := map[string]string{"percent": "%"}
	for _, family := range everyFamily() {
		if family.Unit != "" {
			units[family.Unit] = UCUM(family.Unit)
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
