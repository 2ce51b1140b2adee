package dcgm

import (
	"slices"
	"strings"
	"testing"

	"github.com/dra-exporter/dra-exporter/collector/device"
)

// amissText returns the systems of readings that do not pass, with their
// results; each system must have one result.
func amissText(t *testing.T, readings []device.Reading) string {
	t.Helper()
	var words []string
	present := make(map[string]float64)
	for _, r := range readings {
		present[r.Details[0]] += r.Value
		if r.Value == 1 && r.Details[1] != "pass" {
			words = append(words, strings.Join(r.Details[:], "="))
		}
	}
	for system, sum := range present {
		if sum != 1 {
			t.Errorf("%s has %v results", system, sum)
		}
	}
	for _, always := range []string{"pcie", "nvlink", "memory", "inforom", "thermal", "power"} {
		if _, ok := present[always]; !ok {
			t.Errorf("%s has no readings", always)
		}
	}
	slices.Sort(words)
	return strings.Join(words, " ")
}

func TestHealthReadings(t *testing.T) {
	gpu, other := entity{wholeGPU, 0}, entity{wholeGPU, 1}
	const every = 0xFFFFFFFF
	for _, test := range []struct {
		what      string
		incidents []incident
		want      string
		systems   int
	}{
		{"no incident", nil, "", 6},
		{"an incident of another GPU", []incident{{other, 0x10, 20, 4}}, "", 6},
		{"the worst counts", []incident{{gpu, 0x10, 20, 4}, {gpu, 0x10, 10, 85}, {gpu, 0x80, 10, 10}}, "memory=fail thermal=warn", 6},
		{"one of the worst Xids", []incident{{gpu, every, 20, anyXID}}, "all=fail", 7},
		{"the GPU fell off the bus", []incident{{gpu, every, 20, 120}, {gpu, every, 10, anyXID}}, "all=fail", 7},
		{"a system of a newer engine", []incident{{gpu, 0x4000, 10, 200}}, "all=warn", 7},
		{"two systems in one", []incident{{gpu, 0x11, 20, 1}}, "all=fail", 7},
		{"the driver requires a reset", []incident{{gpu, 0x200, 20, 125}}, "driver=fail", 7},
		{"a link is down", []incident{{gpu, 0x2, 20, nvlinkDown}}, "", 6},
		{"a link is down and others err", []incident{{gpu, 0x2, 20, nvlinkDown}, {gpu, 0x2, 10, 71}}, "nvlink=warn", 6},
		{"that code elsewhere", []incident{{gpu, 0x1, 20, nvlinkDown}, {gpu, every, 20, nvlinkDown}}, "all=fail pcie=fail", 7},
		{"an Xid of a program", []incident{{gpu, 0x10, 10, anyXID}, {gpu, 0x2, 10, anyXID}, {gpu, 0x200, 10, anyXID}}, "", 6},
		{"an Xid that is named", []incident{{gpu, 0x10, 20, 81}}, "memory=fail", 6},
	} {
		readings := healthReadings(gpu, test.incidents)
		if got := amissText(t, readings); got != test.want || len(readings) != test.systems*3 {
			t.Errorf("%s: %q, %d readings; want %q of %d systems", test.what, got, len(readings), test.want, test.systems)
		}
	}
}

// Each incident counts for a system; none is lost.
func TestEverySystemHasAName(t *testing.T) {
	names := make(map[string]bool)
	for _, s := range systems() {
		if names[s.name] || healthSystem(s.bit) != s {
			t.Errorf("%s is %+v", s.name, healthSystem(s.bit))
		}
		names[s.name] = true
	}
	for bit := range 64 {
		if name := healthSystem(1 << bit).name; name == "" || bit > 13 && name != allSystems {
			t.Errorf("bit %d is of %q", bit, name)
		}
	}
}
