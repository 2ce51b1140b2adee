package device

import (
	"context"
	"fmt"
	"testing"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/source"
)

// denseReader is one whole device with seven partitions, each with all
// quantities, in observations allocated for each read.
func denseReader(gpu int) Reader {
	var devices []Device
	for partition := range 8 {
		d := Device{UUID: fmt.Sprintf("GPU-%d", gpu)}
		if partition > 0 {
			d.ParentUUID, d.UUID = d.UUID, fmt.Sprintf("MIG-%d-%d", gpu, partition)
		}
		devices = append(devices, d)
	}
	return &fakeReader{key: devices[0].UUID, read: func(call int, tier Tier) ([]Observation, error) {
		observations := make([]Observation, len(devices))
		for i, d := range devices {
			readings := make([]Reading, 0, Quantities)
			for q := range Quantities {
				readings = append(readings, Reading{Quantity: Quantity(q), Value: float64(call)})
			}
			observations[i] = Observation{Device: d, Readings: readings[:Quantities-7]}
			if tier == Slow {
				observations[i].Slow = readings[Quantities-7:]
			}
		}
		return observations, nil
	}}
}

// BenchmarkRound measures one round over the dense node: eight devices with
// seven partitions each, all quantities, from asking to publishing.
func BenchmarkRound(b *testing.B) {
	from := &fakeSource{name: "fake"}
	for gpu := range 8 {
		from.readers = append(from.readers, denseReader(gpu))
	}
	s := NewSampler(Options{Sources: []Source{from}, Clock: clock.System()})
	l := s.loops[0]
	l.tracker = source.NewTracker("fake", discard(), l.now, nil)
	l.applyDiscovery(discovered{readers: from.readers})
	b.ReportAllocs()
	for b.Loop() {
		l.begin(context.Background())
		for l.open {
			l.apply(<-l.answers)
		}
	}
	if got := len(s.Latest()); got != 64 {
		b.Fatalf("%d samples, want 64", got)
	}
	b.ReportMetric(float64(64*Quantities), "readings")
}
