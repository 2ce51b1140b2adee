package otelcol

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/dra-exporter/dra-exporter/test/fakes/porttest"
	"github.com/dra-exporter/dra-exporter/test/suites/otelcol/compare"
)

// backend is a real collector that writes all data that it receives to files,
// one for each sender and signal.
type backend struct {
	grpc, http string // host:port
	folder     string
}

// clusterName is the attribute by which most tests distinguish senders.
const clusterName = "k8s.cluster.name"

// backendConfig is a template. Its arguments are three addresses, a folder and
// an attribute.
const backendConfig = `
extensions: {health_check: {endpoint: HEALTH}}
receivers:
  otlp:
    protocols:
      grpc: {endpoint: GRPC}
      http: {endpoint: HTTP}
exporters:
  file/metrics: {path: FOLDER/*-metrics.json, flush_interval: 50ms, group_by: {enabled: true, resource_attribute: KEY}}
  file/traces: {path: FOLDER/*-traces.json, flush_interval: 50ms, group_by: {enabled: true, resource_attribute: KEY}}
service:
  extensions: [health_check]
  telemetry: {metrics: {level: none}}
  pipelines:
    metrics: {receivers: [otlp], exporters: [file/metrics]}
    traces: {receivers: [otlp], exporters: [file/traces]}
`

// startBackend starts a collector that distinguishes senders by this attribute
// of their resources. It drops data without the attribute.
func startBackend(t *testing.T, key string) *backend {
	t.Helper()
	folder, addresses := t.TempDir(), porttest.Addresses(t, 3)
	b := &backend{grpc: addresses[0], http: addresses[1], folder: folder}
	text := strings.NewReplacer("HEALTH", addresses[2], "GRPC", b.grpc, "HTTP", b.http, "FOLDER", folder, "KEY", key).Replace(backendConfig)
	file := filepath.Join(folder, "config.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	start(t, collector(), "http://"+addresses[2]+"/", nil, "--config="+file)
	return b
}

// metrics returns what a sender has pushed with these resource attributes, one
// request per element; none before the first.
func (b *backend) metrics(t *testing.T, sender string, resource map[string]string) []pmetric.Metrics {
	t.Helper()
	return compare.Of(readFile(t, compare.ReadMetrics, filepath.Join(b.folder, sender+"-metrics.json")), resource)
}

func (b *backend) traces(t *testing.T, sender string) []ptrace.Traces {
	t.Helper()
	return readFile(t, compare.ReadTraces, filepath.Join(b.folder, sender+"-traces.json"))
}

func readFile[T any](t *testing.T, read func(string) ([]T, error), file string) []T {
	t.Helper()
	all, err := read(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	return all
}
