//go:build cgo

package nvml

import (
	"fmt"
	"testing"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/clock"
)

// hands are those of a clock that a test moves, in seconds since 1970.
type hands int

func (h *hands) read() clock.Instant {
	return clock.Instant{Wall: time.Unix(int64(*h), 0).UTC(), Elapsed: time.Duration(*h) * time.Second}
}

// reported is the report of the counts, one device after the other.
func reported(c *xidCounts) string { return fmt.Sprint(c.report()) }

// changed reports whether a change was signalled.
func changed(c *xidCounts) bool {
	select {
	case <-c.changed:
		return true
	default:
		return false
	}
}

func TestXIDsAreCounted(t *testing.T) {
	now := hands(5)
	c := newXIDCounts(now.read)
	expect := func(want string, change bool) {
		t.Helper()
		if got := reported(c); got != want {
			t.Errorf("reported %s, want %s", got, want)
		}
		if changed(c) != change {
			t.Errorf("signalled a change: %t", !change)
		}
	}
	expect("map[]", false)
	c.setWatched("GPU-0", true, nil)
	c.setWatched("GPU-1", false, nil)
	expect("map[GPU-0:[]]", true)
	if c.report()["GPU-0"] == nil {
		t.Error("a GPU that is watched has no XIDs, not even none")
	}
	c.record("GPU-0", noInstance, noInstance, 79)
	before := c.report()
	now = 6
	c.record("GPU-0", noInstance, noInstance, 13)
	now = 7
	c.record("GPU-0", noInstance, noInstance, 79)
	const two = "{13 1 1970-01-01 00:00:06 +0000 UTC} {79 2 1970-01-01 00:00:07 +0000 UTC}"
	expect("map[GPU-0:["+two+"]]", true)
	if got := fmt.Sprint(before); got != "map[GPU-0:[{79 1 1970-01-01 00:00:05 +0000 UTC}]]" {
		t.Errorf("what was reported has become %s", got)
	}
	c.setWatched("GPU-0", true, nil)
	expect("map[GPU-0:["+two+"]]", false)

	// What was reported stays known for a while when the GPU is not watched any more, but
	// not when the GPU was taken away in good order; then it is known again
	// once the GPU is back.
	c.setWatched("GPU-0", false, nil)
	expect("map[GPU-0:["+two+"]]", true)
	c.remove("GPU-0")
	c.remove("GPU-0")
	c.remove("GPU-7")
	expect("map[]", true)
	c.remove("GPU-0")
	expect("map[]", false)
	c.setWatched("GPU-0", true, nil)
	expect("map[GPU-0:["+two+"]]", true)
}

func TestXIDsOfMIGDevices(t *testing.T) {
	now := hands(1)
	c := newXIDCounts(now.read)
	c.setWatched("GPU-0", true, nil)
	parts := func() map[string]migXIDs {
		return map[string]migXIDs{
			"MIG-a": {gpuInstance: 3, computeInstance: 0},
			"MIG-b": {gpuInstance: 5, computeInstance: 0},
			"MIG-c": {gpuInstance: 5, computeInstance: 1},
		}
	}
	c.setInstances("GPU-0", parts())
	expect := func(when, want string) {
		t.Helper()
		counts := make(map[string]int)
		for uuid, xids := range c.report() {
			counts[uuid] = 0
			for _, x := range xids {
				counts[uuid] += int(x.Count)
			}
		}
		if got := fmt.Sprint(counts); got != want {
			t.Errorf("%s: reported %s, want %s", when, got, want)
		}
	}
	expect("at first", "map[GPU-0:0 MIG-a:0 MIG-b:0 MIG-c:0]")
	record := func(gpuInstance, computeInstance uint32) {
		c.record("GPU-0", gpuInstance, computeInstance, 43)
	}
	record(5, 1)
	expect("both are named", "map[GPU-0:0 MIG-a:0 MIG-b:0 MIG-c:1]")
	record(3, noInstance)
	expect("an instance is named that is one device", "map[GPU-0:0 MIG-a:1 MIG-b:0 MIG-c:1]")
	record(5, noInstance)
	expect("an instance is named that is two", "map[GPU-0:1 MIG-a:1 MIG-b:0 MIG-c:1]")
	record(noInstance, noInstance)
	record(9, 0)
	expect("none is named, or an unknown one", "map[GPU-0:3 MIG-a:1 MIG-b:0 MIG-c:1]")
	changed(c)
	c.setInstances("GPU-0", parts())
	expect("they are found again", "map[GPU-0:3 MIG-a:1 MIG-b:0 MIG-c:1]")
	if changed(c) {
		t.Error("the same devices signal a change")
	}
	c.setInstances("GPU-0", map[string]migXIDs{"MIG-b": {gpuInstance: 5}})
	expect("two are gone", "map[GPU-0:3 MIG-b:0]")
	c.setInstances("GPU-0", map[string]migXIDs{"MIG-a": {gpuInstance: 3}, "MIG-b": {gpuInstance: 5}})
	expect("one is recreated", "map[GPU-0:3 MIG-a:0 MIG-b:0]")
	c.remove("GPU-0")
	expect("the GPU was taken away", "map[]")
	c.setWatched("GPU-0", true, nil)
	expect("the GPU is back", "map[GPU-0:3]")
}

// A source that does not watch a GPU any more leaves the device to others, but not
// before its last XIDs have reached every consumer.
func TestXIDsOfUnwatchedGPU(t *testing.T) {
	now := hands(1000)
	c := newXIDCounts(now.read)
	expect := func(when, want string) {
		t.Helper()
		counts := make(map[string]int)
		for uuid, xids := range c.report() {
			counts[uuid] = len(xids)
		}
		if got := fmt.Sprint(counts); got != want {
			t.Errorf("%s: reported %s, want %s", when, got, want)
		}
	}
	for _, gpu := range []string{"GPU-0", "GPU-1", "GPU-2"} {
		c.setWatched(gpu, true, nil)
	}
	c.setInstances("GPU-0", map[string]migXIDs{"MIG-a": {gpuInstance: 3}, "MIG-b": {gpuInstance: 4}})
	c.record("GPU-0", noInstance, noInstance, 79)
	c.record("GPU-0", 3, 0, 43)
	now += 3600
	expect("an hour of silence", "map[GPU-0:1 GPU-1:0 GPU-2:0 MIG-a:1 MIG-b:0]")
	c.unwatchExcept(map[string]bool{"GPU-1": true})
	changed(c)
	c.unwatchExcept(map[string]bool{"GPU-1": true})
	if changed(c) {
		t.Error("devices that are unwatched already signal a change")
	}
	expect("the first and the last are not watched any more", "map[GPU-1:0]")
	c.record("GPU-0", noInstance, noInstance, 79) // by a wait that came back
	expect("the first has reported one nevertheless", "map[GPU-0:1 GPU-1:0 MIG-a:1]")
	now += 60
	c.record("GPU-2", noInstance, noInstance, 62)
	now += 59
	expect("just before two minutes", "map[GPU-0:1 GPU-1:0 GPU-2:1 MIG-a:1]")
	now++
	expect("after two minutes", "map[GPU-1:0 GPU-2:1]")
	now += 60
	expect("a minute later", "map[GPU-1:0]")
	c.setWatched("GPU-0", true, nil)
	c.setWatched("GPU-2", false, nil)
	expect("they are watched again", "map[GPU-0:1 GPU-1:0 MIG-a:1 MIG-b:0]")
}
