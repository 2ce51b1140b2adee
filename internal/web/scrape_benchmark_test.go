package web

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/dra-exporter/dra-exporter/collector/metric"
	"github.com/dra-exporter/dra-exporter/collector/metric/metrictest"
)

// BenchmarkScrape renders and encodes a new page each time, as the first
// scrape of a snapshot does.
func BenchmarkScrape(b *testing.B) {
	const (
		text        = "text/plain;version=0.0.4"
		openMetrics = "application/openmetrics-text;version=1.0.0"
		protobuf    = "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited"
	)
	rows := metrictest.DenseRows()
	handler, err := newHandler(Config{
		Log:         slog.New(slog.DiscardHandler),
		MetricsPath: "/metrics",
		Metrics:     prometheus.GathererFunc(func() ([]*dto.MetricFamily, error) { return metric.NewPage(rows).Gather() }),
	})
	if err != nil {
		b.Fatal(err)
	}
	for _, variant := range []struct{ name, accept, encoding string }{
		{"text", text, "identity"},
		{"text-gzip", text, "gzip"},
		{"openmetrics", openMetrics, "identity"},
		{"openmetrics-gzip", openMetrics, "gzip"},
		{"protobuf", protobuf, "identity"},
		{"protobuf-gzip", protobuf, "gzip"},
	} {
		b.Run(variant.name, func(b *testing.B) {
			request := httptest.NewRequest(http.MethodGet, "/metrics", nil)
			request.Header.Set("Accept", variant.accept)
			request.Header.Set("Accept-Encoding", variant.encoding)
			sent := 0
			b.ReportAllocs()
			for b.Loop() {
				response := &countingWriter{header: http.Header{}}
				handler.ServeHTTP(response, request)
				sent = response.bytes
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(rows))/1000, "µs/series")
			b.ReportMetric(float64(sent), "sent-B")
		})
	}
}

// countingWriter is a response that stores only its size.
type countingWriter struct {
	header http.Header
	bytes  int
}

func (c *countingWriter) Header() http.Header         { return c.header }
func (c *countingWriter) Write(p []byte) (int, error) { c.bytes += len(p); return len(p), nil }
func (c *countingWriter) WriteHeader(int)             {}
