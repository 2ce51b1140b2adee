package otelcol

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/dra-exporter/dra-exporter/test/suites/otelcol/compare"
)

// TestScrape tests the alternative to pushes. The collector's targets have the
// instances and names of pushes. The exporter's pods come from a list here and
// not from an API server, with the labels of Prometheus' discovery.
func TestScrape(t *testing.T) {
	t.Parallel()
	b, d := startBackend(t, "service.name"), startDemo(t)
	startConfigured(t, []string{"--config=" + staticTargets(t, d), "--feature-gates=receiver.prometheusreceiver.EnableCreatedTimestampZeroIngestion"},
		"BACKEND_ENDPOINT="+b.grpc, "BACKEND_INSECURE=true", "SCRAPE_INTERVAL=1s")
	for _, r := range d.roles {
		eventually(t, "the "+r.name+" role to be scraped", func() error {
			return checkScraped(t, b, r)
		})
	}
}

// staticTargets is scrape.yaml with a list instead of the API server.
func staticTargets(t *testing.T, d *demo) (file string) {
	t.Helper()
	text := read(t, configuration(t, "scrape.yaml"))
	const service = "          kubernetes_sd_configs:\n            - role: pod\n              namespaces:\n                names: [dra-exporter]\n"
	targets := "          static_configs:\n"
	for _, r := range d.roles {
		address := strings.TrimSuffix(strings.TrimPrefix(r.page, "http://"), "/metrics")
		targets += fmt.Sprintf("            - targets: [%q]\n              labels: {__meta_kubernetes_pod_container_port_name: metrics, __meta_kubernetes_pod_node_name: gpu-node-1, "+
			"__meta_kubernetes_pod_label_app_kubernetes_io_component: %s}\n", address, r.name)
	}
	// This target must not be scraped: it has no port of that name.
	targets += "            - targets: [\"127.0.0.1:1\"]\n              labels: {__meta_kubernetes_pod_container_port_name: other}\n"
	if strings.Count(text, service) != 1 {
		t.Fatal("scrape.yaml does not find its targets as this test knows it")
	}
	text = strings.Replace(text, service, targets, 1)
	file = filepath.Join(t.TempDir(), "scrape.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// checkScraped returns an error unless all families of a role's page have
// arrived from the instance that a push has, and the start times of counters
// are those of the page, known or not.
func checkScraped(t *testing.T, b *backend, r role) error {
	t.Helper()
	page, err := compare.Scrape(t.Context(), r.page)
	if err != nil {
		return err
	}
	missing := page.Families
	for _, request := range b.metrics(t, "dra-exporter", map[string]string{"service.instance.id": r.instance}) {
		for _, of := range request.ResourceMetrics().All() {
			for _, scope := range of.ScopeMetrics().All() {
				for _, m := range scope.Metrics().All() {
					// The oldest collector gives a counter without a start time that of the first scrape.
					if family, known := missing[m.Name()]; known && (began(family) == starts(m) || oldest() && starts(m)) {
						delete(missing, m.Name())
					}
				}
			}
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("%d families have not arrived as they are, such as %s", len(missing), (&compare.Page{Families: missing}).Names()[0])
	}
	return nil
}

// began reports whether the page has the start time of a counter.
func began(family *dto.MetricFamily) bool {
	return family.GetType() == dto.MetricType_COUNTER && family.GetMetric()[0].GetCounter().GetCreatedTimestamp() != nil
}

func starts(m pmetric.Metric) bool {
	return m.Type() == pmetric.MetricTypeSum && m.Sum().DataPoints().At(0).StartTimestamp() != 0
}
