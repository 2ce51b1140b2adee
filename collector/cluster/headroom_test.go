package cluster

import (
	"math"
	"testing"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/dra"
)

// TestStrandedSeconds adds up device-seconds by what was true until each step, and only
// while it is known.
func TestStrandedSeconds(t *testing.T) {
	h := newHarness(t)
	stranded := func(devices float64) {
		h.facts.Headroom = &dra.Headroom{StrandedKnown: true}
		if devices > 0 {
			h.facts.Headroom.Stranded = []dra.StrandedDevices{{Driver: "d", Node: "node-a", Reason: dra.StrandedNodeCordoned, Devices: devices}}
		}
	}
	seconds := func() (sum float64, rows int) {
		for _, row := range h.last.Rows() {
			if row.Family.Name == "dra_devices_stranded_seconds_total" {
				sum, rows = sum+row.Value, rows+1
			}
		}
		return sum, rows
	}
	expect := func(what string, want float64, wantRows int) {
		t.Helper()
		if got, rows := seconds(); math.Abs(got-want) > 1e-9 || rows != wantRows {
			t.Errorf("%s: %v s in %d rows, want %v in %d", what, got, rows, want, wantRows)
		}
	}
	h.step(time.Second)
	expect("nothing is computed", 0, 0)
	stranded(0)
	h.step(10 * time.Second)
	expect("nothing is stranded", 0, 0)
	stranded(2.5)
	h.step(10 * time.Second)
	expect("devices are stranded from now on", 0, 1)
	h.step(4 * time.Second)
	expect("for 4 s", 10, 1)
	stranded(1)
	h.step(2 * time.Second)
	expect("another 2 s until there are fewer", 15, 1)
	h.facts.Synced.Nodes = false
	h.step(3 * time.Second)
	expect("3 s until nodes cannot be read", 18, 1)
	h.facts.Synced.Nodes = true
	h.step(100 * time.Second)
	expect("for which it is not known", 18, 1)
	stranded(0)
	h.step(5 * time.Second)
	expect("until they are not stranded any more", 23, 1)
	h.step(100 * time.Second)
	expect("it stays", 23, 1)
}
