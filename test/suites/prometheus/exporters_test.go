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
	"slices"
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
		preset := strings.TrimSuffix(filepath.Base(file), ".txt")
		if !slices.Contains(exporterPresets(), preset) { // a page of another release
			continue
		}
		addresses[preset] = servePage(t, file)
		command.Args = append(command.Args, "--exporter.preset="+preset+"=http://"+addresses[preset]+"/metrics")
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
		prometheus.expectSame(t, c.page, c.agent)
	}
}

// TestReleasesOfDCGMExporter: Prometheus scrapes the pages of dcgm-exporter 4.8 and 4.9 of
// one node, and an agent of each page. By Prometheus' own arithmetic, each agent has the
// values of its page, and both agents have the same series, apart
// from the size of the memory, which 4.8 does not have.
func TestReleasesOfDCGMExporter(t *testing.T) {
	const preset = "nvidia-dcgm-exporter"
	addresses := map[string]string{}
	for release, file := range map[string]string{"4.8": preset, "4.9": preset + "_4.9"} {
		page, agent := servePage(t, filepath.Join(root, "collector/device/exporter/testdata", file+".txt")), freeAddress(t)
		addresses["page-"+release], addresses["agent-"+release] = page, agent
		run(t, exec.CommandContext(t.Context(), demoBinary(t), "node", "--node.name=n", "--kubernetes.disable", "--metrics.level=full",
			"--kubelet.pod-resources-socket=/does/not/exist", "--web.listen-address="+agent, "--exporter.preset="+preset+"=http://"+page+"/metrics"))
	}
	prometheus := startStoring(t, []string{filepath.Join(root, "test", ".bin", "prometheus", "prometheus")}, addresses, []string{""})
	for _, c := range []struct{ before, since, agent string }{
		{`sum(DCGM_FI_DEV_GPU_UTIL) / 100`, `sum(DCGM_FI_DEV_GPU_UTIL_RATIO)`, `dra_device_utilization_ratio{uuid=~"GPU-604.*"}`},
		{`sum(DCGM_FI_DEV_MEM_COPY_UTIL) / 100`, `sum(DCGM_FI_DEV_MEMORY_UTIL_RATIO)`, `dra_device_memory_activity_ratio{uuid=~"GPU-604.*"}`},
		{`sum(DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION) / 1000`, `sum(DCGM_FI_DEV_GPU_ENERGY_JOULES_TOTAL)`, `dra_device_energy_joules_total{uuid=~"GPU-604.*"}`},
		{`sum(DCGM_FI_DEV_POWER_USAGE{GPU_I_ID=""})`, `sum(DCGM_FI_DEV_BOARD_POWER_WATTS{GPU_I_ID=""})`, `dra_device_power_watts{uuid=~"GPU-604.*"}`},
		{`sum(DCGM_FI_DEV_SM_CLOCK{GPU_I_ID=""}) * 1e6`, `sum(DCGM_FI_DEV_SM_CLOCK_HERTZ{GPU_I_ID=""})`, `dra_device_clock_hertz{uuid=~"GPU-604.*",clock="sm"}`},
		{`sum(DCGM_FI_DEV_MEM_CLOCK) * 1e6`, `sum(DCGM_FI_DEV_MEMORY_CLOCK_HERTZ)`, `dra_device_clock_hertz{uuid=~"GPU-604.*",clock="memory"}`},
		{`sum(DCGM_FI_DEV_FB_USED{GPU_I_ID="7"}) * 1024 * 1024`, `sum(DCGM_FI_DEV_FB_USED_BYTES{GPU_I_ID="7"})`, `dra_device_memory_used_bytes{parent_uuid=~"GPU-0000.*"}`},
		{`sum(DCGM_FI_PROF_GR_ENGINE_ACTIVE{GPU_I_ID="7"})`, `sum(DCGM_FI_PROF_GR_ENGINE_UTIL_RATIO{GPU_I_ID="7"})`, `dra_device_utilization_ratio{parent_uuid=~"GPU-0000.*"}`},
		{`sum(DCGM_FI_DEV_PCIE_REPLAY_COUNTER)`, `sum(DCGM_FI_DEV_PCIE_REPLAY_TOTAL)`, `dra_device_pcie_replays_total{uuid=~"GPU-604.*"}`},
	} {
		prometheus.expectSame(t, c.before, `sum(`+strings.Replace(c.agent, "{", `{job="agent-4.8",`, 1)+`)`)
		prometheus.expectSame(t, c.since, `sum(`+strings.Replace(c.agent, "{", `{job="agent-4.9",`, 1)+`)`)
	}
	const shown = `{__name__=~"dra_device_.+",__name__!~"dra_device_memory_size_bytes|.*(created|timestamp).*"`
	for _, pair := range [][2]string{{"agent-4.8", "agent-4.9"}, {"agent-4.9", "agent-4.8"}} {
		lacking := `count(label_replace(` + shown + `,job="` + pair[0] + `"}, "name", "$1", "__name__", "(.+)") unless ignoring (job, instance) label_replace(` + shown + `,job="` + pair[1] + `"}, "name", "$1", "__name__", "(.+)")) or vector(0)`
		until(t, "both agents have the same series", func() bool {
			count, ok := prometheus.value(t, lacking)
			return ok && count == 0
		})
	}
}

// exporterPresets are the presets that have a file.
func exporterPresets() (names []string) {
	files, _ := filepath.Glob(filepath.Join(root, "collector/device/exporter/presets/*.yaml"))
	for _, file := range files {
		names = append(names, strings.TrimSuffix(filepath.Base(file), ".yaml"))
	}
	return names
}

// servePage serves the page of an exporter, and returns its address.
func servePage(t *testing.T, file string) string {
	t.Helper()
	page, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; version=0.0.4")
		_, _ = w.Write(page)
	}))
	t.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://")
}

// expectSame waits until two queries have values, and compares them.
func (r *receiver) expectSame(t *testing.T, page, agent string) {
	t.Helper()
	var want, got float64
	until(t, page+" and "+agent+" have values", func() bool {
		var read, shown bool
		want, read = r.value(t, page)
		got, shown = r.value(t, agent)
		return read && shown
	})
	if math.Abs(got-want) > 1e-12*math.Abs(want) {
		t.Errorf("%s is %v, and %s is %v", page, want, agent, got)
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
