package dcgmnames

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/expfmt"

	"github.com/dra-exporter/dra-exporter/collector/device"
	"github.com/dra-exporter/dra-exporter/collector/metric"
	"github.com/dra-exporter/dra-exporter/collector/model"
	"github.com/dra-exporter/dra-exporter/test/fakes/metrictest"
)

const gibibyte = 1 << 30

// wholeReadings returns all readings of a GPU.
func wholeReadings() map[string]float64 {
	return map[string]float64{
		"utilization_ratio": 0.9, "memory_activity_ratio": 0.4,
		"memory_used_bytes": 40 * gibibyte, "memory_size_bytes": 80 * gibibyte, "memory_reserved_bytes": 0.5 * gibibyte,
		"power_watts": 512.5, "energy_joules_total": 1234.5,
		"temperature_celsius/gpu": 61, "temperature_celsius/memory": 71, "clock_hertz/sm": 1980e6, "clock_hertz/memory": 2619e6,
		"engine_active_ratio/graphics": 0.91, "engine_active_ratio/sm": 0.81, "engine_active_ratio/tensor": 0.71,
		"engine_active_ratio/fp64": 0.01, "engine_active_ratio/fp32": 0.11, "engine_active_ratio/fp16": 0.21,
		"engine_active_ratio/dram": 0.51, "engine_active_ratio/encoder": 0.02, "engine_active_ratio/decoder": 0.03,
		"sm_occupancy_ratio": 0.6, "pcie_replays_total": 3,
		"remapped_rows/corrected": 1, "remapped_rows/uncorrected": 2, "row_remap_failed": 0,
	}
}

// wholeNode returns a node with a GPU of each kind: a GPU of one claim and two
// containers, one that two claims share, one in partitions, a free one, one of
// a device plugin, one with admin access only, and
// one of AMD.
func wholeNode() *testNode {
	s := newTestNode()
	for number := range 6 {
		s.read(s.gpu(number), map[string]float64{
			"utilization_ratio": 0.1, "memory_used_bytes": gibibyte, "memory_size_bytes": 80 * gibibyte, "power_watts": 100 + float64(number),
		})
	}
	s.read("GPU-0", wholeReadings())
	s.xids("GPU-0")
	s.claim("train", "llm", "GPU-0", "llm-0/main", "llm-0/logger")

	s.read("GPU-1", map[string]float64{"utilization_ratio": 0.9, "memory_used_bytes": 60 * gibibyte, "memory_reserved_bytes": gibibyte})
	s.claim("serve", "chat", "GPU-1", "chat-0/server")
	s.claim("serve", "embed", "GPU-1", "embed-0/server")
	s.splits("serve", "chat", "GPU-1", model.Process, 0.5, 40*gibibyte)
	s.splits("serve", "embed", "GPU-1", model.Process, 0.3, 16*gibibyte)
	s.podSplits("serve", "chat-0", "GPU-1", 0.5, 40*gibibyte)
	s.podSplits("serve", "embed-0", "GPU-1", 0.3, 16*gibibyte)

	s.unread("GPU-2", device.Utilization)
	for _, instance := range []int{7, 8} {
		s.read(s.partition(2, instance), map[string]float64{
			"memory_used_bytes": gibibyte * float64(instance), "memory_size_bytes": 10 * gibibyte, "engine_active_ratio/graphics": float64(instance) / 100,
		})
	}
	s.claim("serve", "small", "MIG-2-7", "small-0/server")

	s.plugin("batch", "GPU-4", "job-0", "work")
	s.consumers("ops", "monitor", "GPU-5", "monitor-0/watch")

	busy(s, s.add(model.Identity{UUID: "gpu-node-1/pci-0000:c1:00.0", Vendor: "amd", Model: "MI300X", PCIBusID: "0000:c1:00.0"}), 0.7)
	s.claim("train", "amd", "gpu-node-1/pci-0000:c1:00.0", "amd-0/main")
	return s
}

// traffic sets the counters that rates are derived from.
func (s *testNode) traffic(uuid string, bytes float64) {
	s.read(uuid, map[string]float64{
		"pcie_transmit_bytes_total": bytes, "pcie_receive_bytes_total": 2 * bytes,
		"nvlink_transmit_bytes_total": 1e6 * bytes, "nvlink_receive_bytes_total": 3e6 * bytes,
	})
}

func familyNames() []string {
	var names []string
	for _, family := range Families() {
		names = append(names, family.Name)
	}
	return names
}

func TestGolden(t *testing.T) {
	for _, mode := range []Mode{Copy, Split} {
		t.Run(mode.String(), func(t *testing.T) {
			s, translator := wholeNode(), newTranslator(mode)
			var rows []metric.Row
			for second := range 4 {
				s.traffic("GPU-0", 1000*float64(second))
				rows = translator.Rows(time.Duration(second)*time.Second, s.snapshot())
			}
			text := metrictest.Text(t, metric.NewPage(rows), familyNames()...)
			metrictest.CompareGolden(t, "testdata/"+mode.String()+".txt", text)
		})
	}
}

// Every name exists in OpenMetrics as well, where a counter without _total is
// of unknown type, and in the order of the table.
func TestNamesInEveryFormat(t *testing.T) {
	s := newTestNode()
	s.read(s.gpu(0), wholeReadings())
	s.xids("GPU-0")
	translator := newTranslator(Copy)
	var rows []metric.Row
	for second := range 4 {
		s.traffic("GPU-0", float64(second))
		rows = translator.Rows(time.Duration(second)*time.Second, s.snapshot())
	}
	families, err := metric.NewPage(rows).Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range []expfmt.FormatType{expfmt.TypeTextPlain, expfmt.TypeOpenMetrics} {
		var text bytes.Buffer
		encoder := expfmt.NewEncoder(&text, expfmt.NewFormat(kind))
		for _, family := range families {
			if err := encoder.Encode(family); err != nil {
				t.Fatal(err)
			}
		}
		for _, name := range familyNames() {
			if !strings.Contains(text.String(), "\n"+name+"{") {
				t.Errorf("%v: %s is missing", kind, name)
			}
		}
	}
}
