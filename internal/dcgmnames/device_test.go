package dcgmnames

import (
	"testing"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/model"
)

// A GPU with partitions is shown as its partitions, and as a whole only if it
// is used as a whole.
func TestPartitions(t *testing.T) {
	s := newTestNode()
	s.read(s.gpu(0), map[string]float64{
		"utilization_ratio": 0.9, "memory_used_bytes": 9 * gibibyte, "power_watts": 300, "clock_hertz/sm": 1e9, "energy_joules_total": 7,
		"engine_active_ratio/graphics": 0.9, "temperature_celsius/gpu": 50,
	})
	s.read(s.partition(0, 3), map[string]float64{"memory_used_bytes": gibibyte, "temperature_celsius/gpu": 40})
	s.read(s.partition(0, 4), map[string]float64{"utilization_ratio": 0.25, "engine_active_ratio/graphics": 0.25})
	s.claim("a", "part", "MIG-0-4", "p/c")
	s.splits("a", "part", "MIG-0-4", model.Process, 0.1, 1) // not possible: partitions are not split
	translator := newTranslator(Split)
	rows := translator.Rows(0, s.snapshot())
	wantSeries(t, rows, "DEV_POWER_USAGE", "300", "p/c 300")
	wantSeries(t, rows, "DEV_TOTAL_ENERGY_CONSUMPTION", "7000", "p/c 7000")
	wantSeries(t, rows, "DEV_GPU_TEMP", "40", "p/c 50")
	wantSeries(t, rows, "DEV_FB_USED", "1024")
	wantSeries(t, rows, "DEV_GPU_UTIL", "p/c 25")
	wantSeries(t, rows, "PROF_GR_ENGINE_ACTIVE", "p/c 0.25")
	for _, row := range rows {
		l := row.Labels
		if l.Get("UUID") != "GPU-0" || l.Get("GPU_I_ID") == "" || l.Get("GPU_I_PROFILE") != "1g.10gb" || l.Get("device") != "nvidia0" ||
			l.Get("modelName") != "NVIDIA H100 80GB HBM3" {
			t.Fatalf("a partition is %v", pairsOf(l))
		}
	}
	s.claim("a", "whole", "GPU-0", "w/c")
	wantSeries(t, translator.Rows(0, s.snapshot()), "DEV_GPU_UTIL", "p/c 25", "w/c 90")
}

// Two partitions of one profile are two series, even if they are unused, their
// instances are unknown and their GPU has no rows.
func TestPartitionsWithoutInstances(t *testing.T) {
	s := newTestNode()
	for _, instance := range []int{1, 2} {
		part := s.partition(3, instance)
		s.read(part, map[string]float64{"memory_used_bytes": gibibyte})
		s.withoutInstance(part)
	}
	rows := newTranslator(Copy).Rows(0, s.snapshot())
	wantSeries(t, rows, "DEV_FB_USED", "1024", "1024")
	wantDistinct(t, rows)
	if l := rows[0].Labels; l.Get("UUID") != "GPU-3" || l.Get("gpu") != "" || l.Get("device") != "" {
		t.Errorf("a partition of an unknown GPU is %v", pairsOf(l))
	}
}

// TestNumbers checks that GPUs are numbered by their addresses, not by their UUIDs.
func TestNumbers(t *testing.T) {
	s := newTestNode()
	for uuid, address := range map[string]string{"GPU-a": "0001:00:00.0", "GPU-b": "0000:ff:00.0", "GPU-c": "10000:01:00.0", "GPU-d": "0000:1a:00.0", "GPU-e": ""} {
		busy(s, s.add(model.Identity{UUID: uuid, Vendor: "nvidia", PCIBusID: address}), 0.5)
	}
	want := map[string]string{
		"GPU-d": "0 nvidia0 00000000:1A:00.0", "GPU-b": "1 nvidia1 00000000:FF:00.0", "GPU-a": "2 nvidia2 00000001:00:00.0",
		"GPU-c": "3 nvidia3 00010000:01:00.0", "GPU-e": "4 nvidia4 ",
	}
	for _, row := range newTranslator(Copy).Rows(0, s.snapshot()) {
		l := row.Labels
		if got := l.Get("gpu") + " " + l.Get("device") + " " + l.Get("pci_bus_id"); got != want[l.Get("UUID")] {
			t.Errorf("%s is %q, want %q", l.Get("UUID"), got, want[l.Get("UUID")])
		}
	}
}

// The last Xid: 0 only if Xids are watched, and absent if its code is unknown.
func TestXIDs(t *testing.T) {
	xid := func(code int, seconds int64) model.XID { return model.XID{Code: code, Last: time.Unix(seconds, 0)} }
	for _, test := range []struct {
		name  string
		build func(s *testNode)
		want  []string
	}{
		{"without a watch", func(*testNode) {}, nil},
		{"none came", func(s *testNode) { s.xids("GPU-0") }, []string{"0"}},
		{"the newest counts", func(s *testNode) { s.xids("GPU-0", xid(31, 200), xid(79, 100)) }, []string{"31"}},
		{"the first of two at one time", func(s *testNode) { s.xids("GPU-0", xid(31, 100), xid(79, 100)) }, []string{"31"}},
		{"a code that has no count of its own", func(s *testNode) { s.xids("GPU-0", xid(79, 100), xid(model.OtherXID, 200)) }, nil},
		{"a partition has those of its GPU", func(s *testNode) {
			s.xids(s.partition(0, 1))
			s.xids("GPU-0", xid(79, 100))
		}, []string{"79"}},
		{"a partition has its own", func(s *testNode) {
			s.xids(s.partition(0, 1), xid(31, 200))
			s.xids("GPU-0", xid(79, 100))
		}, []string{"31"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := newTestNode()
			s.gpu(0)
			test.build(s)
			wantSeries(t, newTranslator(Copy).Rows(0, s.snapshot()), "DEV_XID_ERRORS", test.want...)
		})
	}
}

// Values that were not read are absent; reserved memory counts as used if it is
// not reported.
func TestMemoryFree(t *testing.T) {
	s := newTestNode()
	s.read(s.gpu(0), map[string]float64{"memory_used_bytes": 6 * gibibyte})
	translator := newTranslator(Copy)
	wantSeries(t, translator.Rows(0, s.snapshot()), "DEV_FB_FREE")
	s.read("GPU-0", map[string]float64{"memory_size_bytes": 8 * gibibyte})
	wantSeries(t, translator.Rows(0, s.snapshot()), "DEV_FB_FREE", "2048")
	s.read("GPU-0", map[string]float64{"memory_reserved_bytes": gibibyte})
	wantSeries(t, translator.Rows(0, s.snapshot()), "DEV_FB_FREE", "1024")
	s.read("GPU-0", map[string]float64{"memory_reserved_bytes": 3 * gibibyte})
	wantSeries(t, translator.Rows(0, s.snapshot()), "DEV_FB_FREE", "0")
}
