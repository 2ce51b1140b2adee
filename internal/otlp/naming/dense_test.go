package naming

import (
	"slices"
	"testing"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/device"
	"github.com/dra-exporter/dra-exporter/collector/metric"
	"github.com/dra-exporter/dra-exporter/collector/model"
	"github.com/dra-exporter/dra-exporter/test/fakes/otlptest"
)

// All of the reducer's rows are exported, with start times, while claims come and
// go, and what is gone is evicted.
func TestSemconvOfTheReducer(t *testing.T) {
	n, naming, parsed := otlptest.NewNode(semconvTime), NewSemConv(), NewSemConv()
	n.Facts.Samples[0].Device.Hardware = device.Hardware{Serial: "1650923004310", VBIOS: "96.00"}
	for turn := range 6 {
		rows, at := n.Tick(), n.Now.Wall
		made := naming.Metrics(rows, n.Model, at)
		checkSemconv(t, rows, made, at)
		if got, want := semconvText(made), semconvText(parsed.Metrics(rows, parseNode(rows), at)); got != want {
			t.Errorf("the model leads to other points than its rows:\n%s\nwant\n%s", got, want)
		}
		if turn == 3 {
			n.Facts.Cluster.Pods, n.Facts.Cluster.Claims = n.Facts.Cluster.Pods[32:], n.Facts.Cluster.Claims[32:]
		}
	}
	full, devices, claims := len(naming.cache.entries), len(naming.subjects.devices), len(naming.subjects.claims)
	if devices != 64 || claims != 64 {
		t.Errorf("%d devices and %d claims are known", devices, claims)
	}
	n.Now = n.Now.Add(time.Hour)
	for turn := range 4 {
		rows := n.Tick()
		if turn > 1 { // the order of rows is not always the same
			slices.Reverse(rows)
		}
		checkSemconv(t, rows, naming.Metrics(rows, n.Model, n.Now.Wall), n.Now.Wall)
	}
	ordered := 0
	for _, order := range naming.cache.orders {
		ordered += len(order)
	}
	if ordered > len(naming.cache.entries) {
		t.Errorf("%d entries are in order, %d in all", ordered, len(naming.cache.entries))
	}
	if less := len(naming.cache.entries); less >= full || len(naming.subjects.claims) != 32 {
		t.Errorf("%d entries of %d are left after the grace period, and %d claims", less, full, len(naming.subjects.claims))
	}
	naming.Metrics(nil, nil, n.Now.Wall)
	if len(naming.cache.entries)+len(naming.subjects.devices)+len(naming.subjects.claims) > 0 {
		t.Error("an empty page leaves entries")
	}
}

// BenchmarkSemconvNaming is what a push costs in which only readings are new.
func BenchmarkSemconvNaming(b *testing.B) {
	n, naming := otlptest.NewNode(semconvTime), NewSemConv()
	var (
		snapshots [2][]metric.Row
		models    [2]*model.Node
		turn      int
	)
	for i := range snapshots {
		snapshots[i], models[i] = n.Tick(), n.Model
	}
	naming.Metrics(snapshots[1], models[1], n.Now.Wall)
	b.ReportAllocs()
	for b.Loop() {
		naming.Metrics(snapshots[turn%2], models[turn%2], n.Now.Wall)
		turn++
	}
	b.ReportMetric(float64(len(snapshots[0])), "rows")
}

// BenchmarkSemconvNamingFirst is what the first push costs.
func BenchmarkSemconvNamingFirst(b *testing.B) {
	n := otlptest.NewNode(semconvTime)
	rows := n.Tick()
	b.ReportAllocs()
	for b.Loop() {
		NewSemConv().Metrics(rows, n.Model, n.Now.Wall)
	}
}
