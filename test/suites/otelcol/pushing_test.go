package otelcol

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/dra-exporter/dra-exporter/test/fakes/porttest"
)

// startDeployed runs a collector with a shipped configuration, and returns the
// address at which it receives pushes by gRPC. Only the addresses and
// variables differ from a cluster.
func startDeployed(t *testing.T, name string, env ...string) (grpc string) {
	t.Helper()
	return startConfigured(t, []string{"--config=" + configuration(t, name)}, env...)
}

func startConfigured(t *testing.T, arguments []string, env ...string) (grpc string) {
	t.Helper()
	addresses := porttest.Addresses(t, 4)
	host, port, _ := strings.Cut(addresses[3], ":")
	env = append(env, "HEALTH_ENDPOINT="+addresses[0], "OTLP_GRPC_ENDPOINT="+addresses[1], "OTLP_HTTP_ENDPOINT="+addresses[2],
		"TELEMETRY_HOST="+host, "TELEMETRY_PORT="+port)
	start(t, collector(), "http://"+addresses[0]+"/", env, arguments...)
	eventually(t, "the collector's own counters", func() error { return answers("http://" + addresses[3] + "/metrics") })
	return addresses[1]
}

// TestAgent: the collector passes on metrics and traces of both roles without
// changes.
func TestAgent(t *testing.T) {
	t.Parallel()
	b := startBackend(t, clusterName)
	grpc := startDeployed(t, "agent.yaml", "BACKEND_ENDPOINT="+b.grpc, "BACKEND_INSECURE=true")
	d := startDemo(t, "--otlp.endpoint=http://"+grpc, "--otlp.protocol=grpc", "--otlp.cluster-name=agent")
	d.waitSame(t, b, "agent", "prometheus")
	eventually(t, "traces", func() error {
		for _, request := range b.traces(t, "agent") {
			if request.SpanCount() > 0 {
				return nil
			}
		}
		return errors.New("no spans have arrived")
	})
}

// TestPrometheus: series that the collector pushes to a real Prometheus have
// the names and labels of a scrape.
func TestPrometheus(t *testing.T) {
	t.Parallel()
	config := filepath.Join(t.TempDir(), "prometheus.yml")
	if err := os.WriteFile(config, []byte("global: {}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	server := porttest.OneAddress(t)
	start(t, program("prometheus/prometheus"), "http://"+server+"/-/ready", nil, "--config.file="+config, "--web.enable-otlp-receiver",
		"--storage.tsdb.path="+filepath.Join(t.TempDir(), "data"), "--web.listen-address="+server)
	grpc := startDeployed(t, "prometheus.yaml", "PROMETHEUS_URL=http://"+server)
	startDemo(t, "--otlp.endpoint=http://"+grpc, "--otlp.protocol=grpc")
	for _, query := range []string{
		`dra_claim_held_seconds_total{job="dra-exporter",instance="gpu-node-1",namespace!="",resourceclaim!=""}`,
		`dra_device_energy_joules_total{job="dra-exporter",instance="gpu-node-1"}`,
		`dra_claim_pending_since_timestamp_seconds{job="dra-exporter",instance="cluster"}`,
		`dra_exporter_source_read_duration_seconds_bucket{job="dra-exporter",instance="gpu-node-1",le="+Inf"}`,
	} {
		eventually(t, query, func() error { return hasSeries("http://"+server, query) })
	}
}

func hasSeries(server, query string) error {
	client := http.Client{Timeout: 5 * time.Second}
	response, err := client.Get(server + "/api/v1/query?query=" + url.QueryEscape(query))
	if err != nil {
		return err
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err == nil && !strings.Contains(string(answer), `"metric":{`) {
		err = fmt.Errorf("%s", answer)
	}
	return err
}
