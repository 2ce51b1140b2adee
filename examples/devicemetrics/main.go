// Devicemetrics serves a page of a DRA driver's devices, as docs/plugins.md specifies it.
package main

import (
	"log/slog"
	"net"
	"net/http"
	"os"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

func main() {
	const driver = "gpu.example.com" // as in the ResourceSlices
	labels := []string{"driver", "pool", "device"}
	power := prometheus.NewDesc(prometheus.BuildFQName("dra", "device", "power_watts"), "Power drawn by the whole device", labels, nil)
	energy := prometheus.NewDesc(prometheus.BuildFQName("dra", "device", "energy_joules_total"), "Energy drawn since the hardware's counter began", labels, nil)

	registry := prometheus.NewRegistry()
	registry.MustRegister(prometheus.CollectorFunc(func(metrics chan<- prometheus.Metric) {
		// Read the hardware here. Send nothing for what cannot be read.
		metrics <- prometheus.MustNewConstMetric(power, prometheus.GaugeValue, 71.5, driver, "my-node", "gpu-0")
		metrics <- prometheus.MustNewConstMetric(energy, prometheus.CounterValue, 7150, driver, "my-node", "gpu-0")
	}))

	socket := os.Args[1] + "/" + driver + ".sock"
	_ = os.Remove(socket) // that of a process which was killed
	listener, err := net.Listen("unix", socket)
	if err == nil {
		err = http.Serve(listener, promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	}
	slog.Error("serve the page", "error", err)
	os.Exit(1)
}
