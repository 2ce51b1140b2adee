package metric_test

import (
	"testing"

	"github.com/dra-exporter/dra-exporter/collector/metric"
	"github.com/dra-exporter/dra-exporter/collector/metric/metrictest"
)

func BenchmarkGather(b *testing.B) {
	rows := metrictest.DenseRows()
	b.ReportAllocs()
	for b.Loop() {
		if families, err := metric.NewPage(rows).Gather(); err != nil || len(families) != 88 {
			b.Fatal(len(families), err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(rows))/1000, "µs/series")
}

// BenchmarkNewLabels shows what the look at each value's bytes costs.
func BenchmarkNewLabels(b *testing.B) {
	names := []string{"node", "namespace", "resourceclaim", "uuid", "attribution"}
	b.ReportAllocs()
	for b.Loop() {
		metric.NewLabels(names, "gpu-node-17.example.com", "research", "training-job-17-gpu-x7k2p",
			"GPU-4c1f2a90-0b2d-4a57-9d3e-000000000017", "exclusive")
	}
}
