package simulated

import (
	"fmt"
	"strings"
	"testing"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/device"
)

// BenchmarkRead measures one fast read of a device with seven partitions,
// each with every quantity.
func BenchmarkRead(b *testing.B) {
	var file strings.Builder
	file.WriteString("templates:\n  all:\n    quantities:\n")
	for _, spec := range device.Specs() {
		value := "{curve: random, min: 0, max: 1, period: 10s}"
		if spec.Kind == device.Counter {
			value = "{rate: " + value + "}"
		}
		for range spec.Details {
			value = "{detail: " + value + "}"
		}
		fmt.Fprintf(&file, "      %s: %s\n", spec.Name, value)
	}
	file.WriteString("devices:\n- template: all\n  uuid: GPU-0\n  partitions:\n")
	for i := range 7 {
		fmt.Fprintf(&file, "  - {template: all, uuid: MIG-%d}\n", i)
	}
	s := New(parsed(b, file.String()), clock.System())
	readers, err := s.Readers(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := readers[0].Read(b.Context(), device.Fast); err != nil {
			b.Fatal(err)
		}
	}
}
