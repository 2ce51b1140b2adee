package otelcol

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/dra-exporter/dra-exporter/test/suites/otelcol/compare"
)

// TestDelta: the differences of counters arrive and add up to the page's
// value. If the counter's start is known, this includes the time before the
// first push; of hardware counters the part before the first push is omitted.
// All other metrics are unchanged.
func TestDelta(t *testing.T) {
	t.Parallel()
	b := startBackend(t, clusterName)
	grpc := startDeployed(t, "delta.yaml", "BACKEND_URL=http://"+b.http)
	d := startDemo(t, "--otlp.endpoint=http://"+grpc, "--otlp.protocol=grpc", "--otlp.cluster-name=delta", "--otlp.interval=3s")
	first, err := compare.Scrape(t.Context(), d.roles[0].page)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range d.roles {
		eventually(t, "differences of the "+r.name+" role that add up", func() error {
			stop := r.pages(t)
			time.Sleep(4 * time.Second) // longer than the interval between pushes
			sums, err := differences(b.metrics(t, "delta", map[string]string{"service.instance.id": r.instance}))
			if err != nil {
				t.Fatal(err)
			}
			err = errors.New("no page")
			for _, page := range stop() {
				if r.name == "node" && !hasNewClaims(page, first.Answered) {
					err = errors.New("no claim has come yet")
				} else if err = compareSums(page, sums); err == nil {
					return nil
				}
			}
			return err
		})
	}
}

// hasNewClaims reports whether a claim was added since a time: with three
// seconds between two pushes, it had used its devices before it was first
// pushed.
func hasNewClaims(page *compare.Page, since time.Time) bool {
	for _, m := range page.Families["dra_claim_held_seconds_total"].GetMetric() {
		if m.GetCounter().GetCreatedTimestamp().AsTime().After(since) {
			return true
		}
	}
	return false
}

// differences returns the sum of all received differences of each counter, by
// family.
func differences(requests []pmetric.Metrics) (map[string]float64, error) {
	sums := map[string]float64{}
	for _, request := range requests {
		for _, of := range request.ResourceMetrics().All() {
			for _, scope := range of.ScopeMetrics().All() {
				for _, m := range scope.Metrics().All() {
					if m.Type() != pmetric.MetricTypeSum {
						continue
					}
					if m.Sum().IsMonotonic() != (m.Sum().AggregationTemporality() == pmetric.AggregationTemporalityDelta) {
						return nil, fmt.Errorf("%s is monotonic: %t, and a %s", m.Name(), m.Sum().IsMonotonic(), m.Sum().AggregationTemporality())
					}
					for _, p := range m.Sum().DataPoints().All() {
						sums[m.Name()] += p.DoubleValue()
					}
				}
			}
		}
	}
	return sums, nil
}

// compareSums compares the sums with a page. They are equal to the values of
// the snapshot that was pushed last.
func compareSums(page *compare.Page, sums map[string]float64) error {
	const rounding = 1e-9 // of adding differences
	accrued, lifetime := 0, 0
	for name, family := range page.Families {
		if family.GetType() != dto.MetricType_COUNTER || !strings.HasPrefix(name, "dra_") || strings.HasPrefix(name, "dra_exporter_") {
			continue
		}
		now, known := total(family)
		switch {
		case known && now > 0:
			if accrued++; math.Abs(sums[name]-now) > rounding*max(1, now) {
				return fmt.Errorf("%s is %v, its differences are %v", name, now, sums[name])
			}
		case !known && now > 1e6:
			if lifetime++; sums[name] > now/2 {
				return fmt.Errorf("%s is %v, of an unknown start, and its differences are %v", name, now, sums[name])
			}
		}
	}
	if accrued == 0 {
		return errors.New("no counter has grown that says when it began")
	}
	if page.Families["dra_device_energy_joules_total"] != nil && lifetime == 0 {
		return errors.New("no counter of the hardware's life has grown")
	}
	return nil
}

// total returns the sum of a family, and whether all of its counters have a
// start time.
func total(family *dto.MetricFamily) (sum float64, known bool) {
	known = true
	for _, m := range family.GetMetric() {
		sum += m.GetCounter().GetValue()
		known = known && m.GetCounter().GetCreatedTimestamp() != nil
	}
	return sum, known
}
