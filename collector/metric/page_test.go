package metric_test

import (
	"bytes"
	"strings"
	"sync"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"

	"github.com/dra-exporter/dra-exporter/collector/metric"
	"github.com/dra-exporter/dra-exporter/test/fakes/metrictest"
)

// smallPage has a family of each kind, out of order, with and without a start,
// and with label values that no sane driver would send.
func smallPage() []metric.Row {
	var (
		power = &metric.Family{Name: "dra_device_power_watts", Help: "Power drawn", Unit: "watts",
			Labels: []string{"uuid"}}
		busy = &metric.Family{Name: "dra_claim_busy_seconds_total", Help: "Integral of \"utilization\"", Unit: "seconds",
			Type: metric.Counter, Labels: []string{"uuid", "namespace"}}
		energy = &metric.Family{Name: "dra_device_energy_joules_total", Help: "Energy of the hardware's life", Unit: "joules",
			Type: metric.Counter, Labels: []string{"uuid"}}
		price = &metric.Family{Name: "dra_device_price_per_hour", Help: "Price", Unit: "euros", Labels: []string{"uuid"}}
	)
	first := metric.NewLabels([]string{"uuid"}, "GPU-1")
	second := metric.NewLabels([]string{"uuid"}, "a \"quote\",\na line and a \\")
	third := metric.NewLabels([]string{"uuid", "namespace"}, "GPU-1", "not \xff UTF-8")
	start := time.Date(2026, 11, 20, 10, 0, 0, 250_000_000, time.UTC)
	return []metric.Row{
		{Family: power, Labels: first, Value: 312.5},
		{Family: power, Labels: second, Value: 0},
		{Family: busy, Labels: third, Value: 17.25, Start: start},
		{Family: energy, Labels: first, Value: 1e9},
		{Family: price, Labels: first, Value: 2.5},
	}
}

func TestPageText(t *testing.T) {
	metrictest.CompareGolden(t, "testdata/page.txt", metrictest.Text(t, metric.NewPage(smallPage())))
}

// The golden file was read by the OpenMetrics parser of Prometheus.
func TestPageOpenMetrics(t *testing.T) {
	families, err := metric.NewPage(smallPage()).Gather()
	if err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	encoder := expfmt.NewEncoder(&text, expfmt.NewFormat(expfmt.TypeOpenMetrics), expfmt.WithCreatedLines())
	for _, family := range families {
		if err := encoder.Encode(family); err != nil {
			t.Fatal(err)
		}
	}
	if err := encoder.(expfmt.Closer).Close(); err != nil {
		t.Fatal(err)
	}
	metrictest.CompareGolden(t, "testdata/page.openmetrics.txt", text.String())
}

func TestPageProtobuf(t *testing.T) {
	families, err := metric.NewPage(smallPage()).Gather()
	if err != nil {
		t.Fatal(err)
	}
	var wire bytes.Buffer
	encoder := expfmt.NewEncoder(&wire, expfmt.NewFormat(expfmt.TypeProtoDelim))
	for _, family := range families {
		if err := encoder.Encode(family); err != nil {
			t.Fatal(err)
		}
	}
	var read dto.MetricFamily
	if err := expfmt.NewDecoder(&wire, expfmt.NewFormat(expfmt.TypeProtoDelim)).Decode(&read); err != nil {
		t.Fatal(err)
	}
	counter := read.GetMetric()[0].GetCounter()
	started := counter.GetCreatedTimestamp().AsTime()
	if counter.GetValue() != 17.25 || started.UnixMilli() != 1795168800250 {
		t.Errorf("read %v since %v, want 17.25 since 2026-11-20T10:00:00.25Z", counter.GetValue(), started)
	}
	if unit := read.GetUnit(); unit != "seconds" {
		t.Errorf("unit %q, want seconds", unit)
	}
}

func TestPageIsRenderedOnce(t *testing.T) {
	page := metric.NewPage(smallPage())
	results := make([][]*dto.MetricFamily, 16)
	var scrapes sync.WaitGroup
	for i := range results {
		scrapes.Go(func() { results[i], _ = page.Gather() })
	}
	scrapes.Wait()
	for _, families := range results {
		if len(families) != 4 || families[0] != results[0][0] {
			t.Fatal("two scrapes saw two renderings")
		}
	}
}

func TestEmptyPage(t *testing.T) {
	if text := metrictest.Text(t, metric.NewPage(nil)); text != "" {
		t.Errorf("a page without rows says %q", text)
	}
}

func TestLabels(t *testing.T) {
	labels := metric.NewLabels([]string{"node", "device"}, "n\xc3\x28", "gpu-0")
	if got := labels.Get("node"); got != "n\uFFFD(" {
		t.Errorf("node = %q", got)
	}
	if got := labels.Get("pool"); got != "" {
		t.Errorf("pool = %q, want none", got)
	}
	var all []string
	for name, value := range labels.Each {
		all = append(all, name+"="+value)
	}
	if got := strings.Join(all, " "); got != "device=gpu-0 node=n\uFFFD(" {
		t.Errorf("labels are %q", got)
	}
}
