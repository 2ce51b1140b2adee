//go:build linux

package prometheus

import (
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// TestExporters has the pages of all presets of the source exporter scraped by a real
// Prometheus and by one agent. By Prometheus' own arithmetic, both have the same
// values.
func TestExporters(t *testing.T) {
	agent := freeAddress(t)
	addresses := map[string]string{"agent": agent}
	command := exec.CommandContext(t.Context(), demoBinary(t), "node", "--node.name=n", "--kubernetes.disable", "--metrics.level=full",
		"--kubelet.pod-resources-socket=/does/not/exist", "--web.listen-address="+agent)
	pages, err := filepath.Glob(filepath.Join(root, "collector/device/exporter/testdata/*.txt"))
	if err != nil || len(pages) == 0 {
		t.Fatal(pages, err)
	}
	for _, file := range pages {
		page, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/plain; version=0.0.4")
			_, _ = w.Write(page)
		}))
		t.Cleanup(server.Close)
		preset := strings.TrimSuffix(filepath.Base(file), ".txt")
		addresses[preset] = strings.TrimPrefix(server.URL, "http://")
		command.Args = append(command.Args, "--exporter.preset="+preset+"="+server.URL+"/metrics")
	}
	run(t, command)
	prometheus := startStoring(t, []string{filepath.Join(root, "test", ".bin", "prometheus", "prometheus")}, addresses, []string{""})
	for _, c := range []struct{ page, agent string }{
		{`sum(DCGM_FI_DEV_GPU_UTIL) / 100`, `sum(dra_device_utilization_ratio{uuid=~"GPU-604.*"})`},
		{`sum(DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION) / 1000`, `sum(dra_device_energy_joules_total{uuid=~"GPU-604.*"})`},
		{`sum(DCGM_FI_DEV_SM_CLOCK{GPU_I_ID=""}) * 1e6`, `sum(dra_device_clock_hertz{uuid=~"GPU-604.*",clock="sm"})`},
		{`sum(DCGM_FI_DEV_FB_USED{GPU_I_ID="7"}) * 1024 * 1024`, `sum(dra_device_memory_used_bytes{parent_uuid=~"GPU-0000.*"})`},
		{`sum(DCGM_FI_PROF_GR_ENGINE_ACTIVE{GPU_I_ID="7"})`, `sum(dra_device_utilization_ratio{parent_uuid=~"GPU-0000.*"})`},
		{`sum(hw_energy_joules_total)`, `sum(dra_device_energy_joules_total{uuid="n/pci-0000:05:00.0"})`},
		{`sum(hw_gpu_io_bytes_total{network_io_direction="receive"})`, `sum(dra_device_pcie_receive_bytes_total{uuid="n/pci-0000:05:00.0"})`},
		{`sum(hw_temperature_celsius{hw_sensor_location="memory"})`, `sum(dra_device_temperature_celsius{uuid="n/pci-0000:05:00.0",sensor="memory"})`},
		{`sum(hw_memory_size_bytes)`, `sum(dra_device_memory_size_bytes{uuid="n/pci-0000:05:00.0"})`},
		{`avg(furiosa_npu_core_utilization) / 100`, `sum(dra_device_utilization_ratio{uuid=~"09512C86.*"})`},
		{`max(furiosa_npu_hw_temperature{label="peak"})`, `max(dra_device_temperature_celsius{uuid=~"[01]9512C86.*",sensor="gpu"})`},
		{`sum(memory_used)`, `sum(dra_device_memory_used_bytes{uuid=~".*tpu.google.com.*"})`},
		{`max(memory_bandwidth_utilization) / 100`, `max(dra_device_memory_activity_ratio{uuid=~".*tpu.google.com.*"})`},
		{`sum(all_smi_gpu_memory_used_bytes{gpu_uuid=~"GPU-1234.*"})`, `sum(dra_device_memory_used_bytes{uuid=~"GPU-1234.*"})`},
		{`sum(all_smi_gpu_utilization{gpu=~"AMD.*"}) / 100`, `sum(dra_device_utilization_ratio{uuid="n/pci-0000:c1:00.0"})`},
	} {
		var want, got float64
		until(t, c.page+" and "+c.agent+" have values", func() bool {
			var both, there bool
			want, both = prometheus.value(t, c.page)
			got, there = prometheus.value(t, c.agent)
			return both && there
		})
		if math.Abs(got-want) > 1e-12*math.Abs(want) {
			t.Errorf("%s is %v, and %s is %v", c.page, want, c.agent, got)
		}
	}
}

// value returns the value of a query of one series, and whether it has one.
func (r *receiver) value(t *testing.T, query string) (float64, bool) {
	t.Helper()
	var data struct{ Result []struct{ Value [2]any } }
	r.get(t, "query", url.Values{"query": {query}}, &data)
	if len(data.Result) != 1 {
		return 0, false
	}
	value, err := strconv.ParseFloat(fmt.Sprint(data.Result[0].Value[1]), 64)
	if err != nil {
		t.Fatal(err)
	}
	return value, true
}
