package web

import (
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/dra-exporter/dra-exporter/collector/metric"
	"github.com/dra-exporter/dra-exporter/test/fakes/metrictest"
)

// BenchmarkScrape encodes a new page each time, as the first scrape of a
// snapshot does.
func BenchmarkScrape(b *testing.B) {
	rows := metrictest.DenseRows()
	benchmarkScrapes(b, len(rows), func() *metric.Page { return metric.NewPage(rows) })
}

// BenchmarkScrapeAgain scrapes one page.
func BenchmarkScrapeAgain(b *testing.B) {
	rows := metrictest.DenseRows()
	page := metric.NewPage(rows)
	benchmarkScrapes(b, len(rows), func() *metric.Page { return page })
}

// BenchmarkScrapeLimits encodes a page that has as many rows as the cluster role has at
// its limits, each with labels of its own.
func BenchmarkScrapeLimits(b *testing.B) {
	const families, rowsOfFamily = 9, 20_066
	names := []string{"driver", "pool", "node", "state"}
	var rows []metric.Row
	for f := range families {
		family := &metric.Family{Name: fmt.Sprintf("dra_quantity_%d", f), Help: "A quantity of a pool"}
		for i := range rowsOfFamily {
			labels := metric.NewLabels(names, "gpu.example.com", fmt.Sprintf("pool-%d", i), fmt.Sprintf("gpu-node-%d.example.com", i), "allocated")
			rows = append(rows, metric.Row{Family: family, Labels: labels, Value: float64(i % 9)})
		}
	}
	benchmarkScrapes(b, len(rows), func() *metric.Page { return metric.NewPage(rows) })
}

func benchmarkScrapes(b *testing.B, rows int, page func() *metric.Page) {
	const (
		text        = "text/plain;version=0.0.4"
		openMetrics = "application/openmetrics-text;version=1.0.0"
		protobuf    = "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited"
	)
	handler, err := newHandler(Config{Log: slog.New(slog.DiscardHandler), MetricsPath: "/metrics", Page: page, Metrics: prometheus.NewRegistry()})
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
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(rows)/1000, "µs/series")
			b.ReportMetric(float64(sent), "sent-B")
		})
	}
}

// BenchmarkScrapeHTTP scrapes a page that is ready, over a connection on this machine.
func BenchmarkScrapeHTTP(b *testing.B) {
	page := metric.NewPage(metrictest.DenseRows())
	handler, err := newHandler(Config{Log: slog.New(slog.DiscardHandler), MetricsPath: "/metrics", Page: func() *metric.Page { return page }, Metrics: prometheus.NewRegistry()})
	if err != nil {
		b.Fatal(err)
	}
	server := httptest.NewServer(handler)
	defer server.Close()
	client := &http.Client{Transport: &http.Transport{DisableCompression: true}}
	defer client.CloseIdleConnections()
	received := int64(0)
	b.ReportAllocs()
	for b.Loop() {
		response, err := client.Get(server.URL + "/metrics")
		if err != nil {
			b.Fatal(err)
		}
		received, err = io.Copy(io.Discard, response.Body)
		if err != nil {
			b.Fatal(err)
		}
		response.Body.Close()
	}
	b.ReportMetric(float64(received), "sent-B")
}

// countingWriter is a response that stores only its size.
type countingWriter struct {
	header http.Header
	bytes  int
}

func (c *countingWriter) Header() http.Header         { return c.header }
func (c *countingWriter) Write(p []byte) (int, error) { c.bytes += len(p); return len(p), nil }
func (c *countingWriter) WriteHeader(int)             {}
