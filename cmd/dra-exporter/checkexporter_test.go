package main

import (
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/dra-exporter/dra-exporter/internal/check"
)

// A page of Prometheus' library passes; what is no page fails, with what to do.
func TestCheckExporter(t *testing.T) {
	folder := t.TempDir()
	socket := filepath.Join(folder, "gpu.example.com.sock")
	registry := prometheus.NewRegistry()
	power := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "dra_device_power_watts"}, []string{"driver", "pool", "device"})
	registry.MustRegister(power)
	power.WithLabelValues("gpu.example.com", "node-1", "gpu-0").Set(70)
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: promhttp.HandlerFor(registry, promhttp.HandlerOpts{}), ReadHeaderTimeout: time.Minute}
	go func() { _ = server.Serve(listener) }()
	defer server.Close()

	const area = "metrics of gpu.example.com"
	c := runCheck(t, nil, "exporter", "--duration=1s", "unix://"+socket)
	c.expectFinding(t, area, "values", check.OK, "1 value")
	c.expectFinding(t, area, "devices", check.OK, "1 device")
	if c.code != 0 {
		t.Errorf("the exit status is %d", c.code)
	}
	power.WithLabelValues("gpu.nvidia.com", "node-1", "gpu-0").Set(70)
	c = runCheck(t, nil, "exporter", "--duration=1s", "unix://"+socket)
	c.expectFinding(t, area, "unix://"+socket, check.Failure, `the label driver is "gpu.nvidia.com"`)
	if c.code != 1 || !strings.Contains(c.Findings[0].Remedy, "a driver reports no devices of another one") {
		t.Errorf("the exit status is %d: %+v", c.code, c.Findings)
	}
	for _, wrong := range []string{"/tmp/a.sock", "unix://a.sock", "--duration=0s unix:///a.sock", "http://localhost:9100/metrics", "--driver=A http://localhost:9100/metrics"} {
		output, err := program(t.Context(), append([]string{"check", "exporter"}, strings.Fields(wrong)...)...).CombinedOutput()
		if err == nil || !strings.Contains(err.Error(), "exit status 2") {
			t.Errorf("%s: %v, %s", wrong, err, output)
		}
	}
}
