package demo_test

import (
	"context"
	"slices"
	"testing"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/device"
	"github.com/dra-exporter/dra-exporter/collector/device/exporter"
)

// The agent's own sources read the other vendors' devices over real sockets, with the
// load that the scenario puts on them.
func TestAccelerators(t *testing.T) {
	s := playing(t, 1)
	drivers, err := exporter.New(exporter.Options{Folder: s.SocketDir(), Clock: clock.System()})
	if err != nil {
		t.Fatal(err)
	}
	intel, err := exporter.Preset("intel-xpumd=" + s.IntelExporter())
	if err != nil {
		t.Fatal(err)
	}
	pages, err := exporter.New(exporter.Options{Exporters: []exporter.Config{intel}, Clock: clock.System()})
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, func() string {
		tpus := readAll(t, drivers)
		if len(tpus) != 4 {
			return "four TPU chips"
		}
		for _, tpu := range tpus {
			published := device.PublishedName{Driver: "tpu.google.com", Pool: s.NodeName(), Device: "accel3"}
			if tpu.Device.Published == published && power(tpu) > 90 {
				return ""
			}
		}
		return "a TPU chip under load"
	})
	eventually(t, func() string {
		gpus := readAll(t, pages)
		if len(gpus) != 1 || gpus[0].Device.PCIBusID != "0000:3a:00.0" || gpus[0].Device.Model == "" || power(gpus[0]) < 70 {
			return "the Intel GPU under load"
		}
		return ""
	})
	readers, err := s.Source().Readers(t.Context())
	if err != nil || slices.ContainsFunc(readers, func(r device.Reader) bool { return r.Key() == "tpu-0" || r.Key() == "0000:3a:00.0" }) {
		t.Errorf("the agent reads them by itself: %v", err)
	}
}

// readAll reads all devices of a source; none if it has none yet.
func readAll(t *testing.T, from device.Source) []device.Observation {
	t.Helper()
	readers, _ := from.Readers(context.WithoutCancel(t.Context()))
	var all []device.Observation
	for _, reader := range readers {
		observations, _ := reader.Read(t.Context(), device.Fast)
		all = append(all, observations...)
	}
	return all
}

func power(of device.Observation) float64 {
	for _, r := range of.Readings {
		if r.Quantity == device.Power {
			return r.Value
		}
	}
	return 0
}
