// Metrics serves the page of a DRA driver with Prometheus' library: the devices of a
// file, read again each time. It is the process beside a driver in end-to-end tests.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// device is a device of the file, with its values by the names of their families.
type device struct {
	Driver, Pool, Name string
	Values             map[string]float64
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run() error {
	driver := flag.String("driver-name", "", "name of the DRA driver")
	folder := flag.String("folder", "", "where to create the socket")
	path := flag.String("devices", "", "JSON file of the devices")
	flag.Parse()
	registry := prometheus.NewRegistry()
	if err := registry.Register(prometheus.CollectorFunc(func(metrics chan<- prometheus.Metric) { collect(*path, metrics) })); err != nil {
		return err
	}
	// The name begins with a dot until the socket can be used.
	socket := filepath.Join(*folder, *driver+".sock")
	draft := filepath.Join(*folder, "."+*driver)
	if err := os.RemoveAll(draft); err != nil {
		return err
	}
	listener, err := net.Listen("unix", draft)
	if err != nil {
		return err
	}
	if err := os.Rename(draft, socket); err != nil {
		return err
	}
	server := &http.Server{Handler: promhttp.HandlerFor(registry, promhttp.HandlerOpts{}), ReadHeaderTimeout: time.Minute}
	return server.Serve(listener)
}

// collect reads the file.
func collect(path string, metrics chan<- prometheus.Metric) {
	var devices []device
	text, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(text, &devices)
	}
	if err != nil {
		metrics <- prometheus.NewInvalidMetric(prometheus.NewInvalidDesc(err), err)
		return
	}
	for _, d := range devices {
		for name, value := range d.Values {
			kind := prometheus.GaugeValue
			if strings.HasSuffix(name, "_total") {
				kind = prometheus.CounterValue
			}
			desc := prometheus.NewDesc(name, "As the file has it", []string{"driver", "pool", "device"}, nil)
			metric, err := prometheus.NewConstMetric(desc, kind, value, d.Driver, d.Pool, d.Name)
			if err != nil {
				metric = prometheus.NewInvalidMetric(desc, err)
			}
			metrics <- metric
		}
	}
}
