package metric_test

import (
	"bytes"
	"io"
	"strconv"
	"testing"

	"github.com/prometheus/common/expfmt"

	"github.com/dra-exporter/dra-exporter/collector/metric"
	"github.com/dra-exporter/dra-exporter/test/fakes/metrictest"
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

// BenchmarkEncode encodes a new page each time, into nothing. Beside it are the floors:
// the copy of a page, and values after text that is ready.
func BenchmarkEncode(b *testing.B) {
	rows := metrictest.DenseRows()
	perRow := func(b *testing.B, encode func()) {
		b.ReportAllocs()
		for b.Loop() {
			encode()
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(rows)), "ns/row")
	}
	for name, format := range map[string]expfmt.Format{"text": expfmt.FmtText, "openmetrics": expfmt.FmtOpenMetrics_1_0_0} {
		b.Run(name, func(b *testing.B) {
			perRow(b, func() { _ = metric.NewPage(rows).Encode(io.Discard, format, false) })
		})
	}
	w := &whole{}
	if err := metric.NewPage(rows).Encode(w, expfmt.FmtText, false); err != nil {
		b.Fatal(err)
	}
	buffer := make([]byte, len(w.text))
	b.Run("floor-copy", func(b *testing.B) { perRow(b, func() { copy(buffer, w.text) }) })
	prefixes := make([]string, len(rows))
	for i, row := range rows {
		w := &whole{}
		_ = metric.NewPage([]metric.Row{{Family: row.Family, Labels: row.Labels}}).Encode(w, expfmt.FmtText, false)
		line := w.text[:len(w.text)-len("0\n")]
		for line[0] == '#' {
			_, line, _ = bytes.Cut(line, []byte("\n"))
		}
		prefixes[i] = string(line)
	}
	b.Run("floor-values", func(b *testing.B) {
		perRow(b, func() {
			text := buffer[:0]
			for i := range rows {
				text = append(strconv.AppendFloat(append(text, prefixes[i]...), rows[i].Value, 'g', -1, 64), '\n')
			}
		})
	})
}

type whole struct{ text []byte }

func (w *whole) Write(p []byte) (int, error) { w.text = append(w.text, p...); return len(p), nil }

// BenchmarkNewLabels shows what the look at each value's bytes costs.
func BenchmarkNewLabels(b *testing.B) {
	names := []string{"node", "namespace", "resourceclaim", "uuid", "attribution"}
	b.ReportAllocs()
	for b.Loop() {
		metric.NewLabels(names, "gpu-node-17.example.com", "research", "training-job-17-gpu-x7k2p",
			"GPU-4c1f2a90-0b2d-4a57-9d3e-000000000017", "exclusive")
	}
}
