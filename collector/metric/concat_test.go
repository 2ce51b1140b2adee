package metric_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/dra-exporter/dra-exporter/collector/metric"
)

func pageOf(names ...string) *metric.Page {
	var rows []metric.Row
	for _, name := range names {
		rows = append(rows, metric.Row{
			Family: &metric.Family{Name: name, Help: "Help of " + name},
			Labels: metric.NewLabels([]string{"uuid"}, "GPU-1"),
		})
	}
	return metric.NewPage(rows)
}

func namesOf(families []*dto.MetricFamily) string {
	var names []string
	for _, family := range families {
		names = append(names, family.GetName())
	}
	return strings.Join(names, " ")
}

func TestConcat(t *testing.T) {
	broken := errors.New("the collector is broken")
	failing := prometheus.GathererFunc(func() ([]*dto.MetricFamily, error) {
		families, _ := pageOf("half").Gather()
		return families, broken
	})
	for _, test := range []struct {
		name      string
		gatherers []prometheus.Gatherer
		names     string
		failure   string
	}{
		{name: "nothing"},
		{name: "sorted", gatherers: []prometheus.Gatherer{pageOf("d", "b"), pageOf("c", "a")}, names: "a b c d"},
		{name: "one fails", gatherers: []prometheus.Gatherer{pageOf("a"), failing, pageOf("z")},
			names: "a half z", failure: broken.Error()},
		{name: "both have it", gatherers: []prometheus.Gatherer{pageOf("a", "b"), pageOf("b")},
			names: "a b b", failure: "gather b: two sides have a family of this name"},
	} {
		t.Run(test.name, func(t *testing.T) {
			families, err := metric.Concat(test.gatherers...).Gather()
			if got := namesOf(families); got != test.names {
				t.Errorf("families %q, want %q", got, test.names)
			}
			if (err == nil) != (test.failure == "") || err != nil && err.Error() != test.failure {
				t.Errorf("error %v, want %q", err, test.failure)
			}
		})
	}
}

func TestConcatLeavesPagesAlone(t *testing.T) {
	page := pageOf("a", "c")
	both := metric.Concat(page, pageOf("b"))
	for range 2 {
		if _, err := both.Gather(); err != nil {
			t.Fatal(err)
		}
	}
	if families, _ := page.Gather(); namesOf(families) != "a c" {
		t.Errorf("the page is now %q", namesOf(families))
	}
}
