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

// heard is what an ear tells, one device after the other.
func heard(e *ear) string { return fmt.Sprint(e.xids()) }

// changed reports whether the ear has told of a change.
func changed(e *ear) bool {
	select {
	case <-e.changed:
		return true
	default:
		return false
	}
}

func TestXIDsAreCounted(t *testing.T) {
	now := hands(5)
	e := newEar(now.read)
	expect := func(want string, news bool) {
		t.Helper()
		if got := heard(e); got != want {
			t.Errorf("heard %s, want %s", got, want)
		}
		if changed(e) != news {
			t.Errorf("told of a change: %t", !news)
		}
	}
	expect("map[]", false)
	e.listen("GPU-0", true)
	e.listen("GPU-1", false)
	expect("map[GPU-0:[]]", true)
	if e.xids()["GPU-0"] == nil {
		t.Error("a GPU that is listened to has no XIDs, not even none")
	}
	e.hear("GPU-0", noInstance, noInstance, 79)
	before := e.xids()
	now = 6
	e.hear("GPU-0", noInstance, noInstance, 13)
	now = 7
	e.hear("GPU-0", noInstance, noInstance, 79)
	const two = "{13 1 1970-01-01 00:00:06 +0000 UTC} {79 2 1970-01-01 00:00:07 +0000 UTC}"
	expect("map[GPU-0:["+two+"]]", true)
	if got := fmt.Sprint(before); got != "map[GPU-0:[{79 1 1970-01-01 00:00:05 +0000 UTC}]]" {
		t.Errorf("what was told has become %s", got)
	}
	e.listen("GPU-0", true)
	expect("map[GPU-0:["+two+"]]", false)

	// What was heard stays known for a while when nobody listens any more, but
	// not when the GPU was taken away in good order; then it is known again
	// once the GPU is back.
	e.listen("GPU-0", false)
	expect("map[GPU-0:["+two+"]]", true)
	e.leave("GPU-0")
	e.leave("GPU-0")
	e.leave("GPU-7")
	expect("map[]", true)
	e.leave("GPU-0")
	expect("map[]", false)
	e.listen("GPU-0", true)
	expect("map[GPU-0:["+two+"]]", true)
}

func TestXIDsOfMIGDevices(t *testing.T) {
	now := hands(1)
	e := newEar(now.read)
	e.listen("GPU-0", true)
	parts := func() map[string]part {
		return map[string]part{
			"MIG-a": {gpuInstance: 3, computeInstance: 0},
			"MIG-b": {gpuInstance: 5, computeInstance: 0},
			"MIG-c": {gpuInstance: 5, computeInstance: 1},
		}
	}
	e.divide("GPU-0", parts())
	expect := func(when, want string) {
		t.Helper()
		counts := make(map[string]int)
		for uuid, xids := range e.xids() {
			counts[uuid] = 0
			for _, x := range xids {
				counts[uuid] += int(x.Count)
			}
		}
		if got := fmt.Sprint(counts); got != want {
			t.Errorf("%s: heard %s, want %s", when, got, want)
		}
	}
	expect("at first", "map[GPU-0:0 MIG-a:0 MIG-b:0 MIG-c:0]")
	hear := func(gpuInstance, computeInstance uint32) {
		e.hear("GPU-0", gpuInstance, computeInstance, 43)
	}
	hear(5, 1)
	expect("both are named", "map[GPU-0:0 MIG-a:0 MIG-b:0 MIG-c:1]")
	hear(3, noInstance)
	expect("an instance is named that is one device", "map[GPU-0:0 MIG-a:1 MIG-b:0 MIG-c:1]")
	hear(5, noInstance)
	expect("an instance is named that is two", "map[GPU-0:1 MIG-a:1 MIG-b:0 MIG-c:1]")
	hear(noInstance, noInstance)
	hear(9, 0)
	expect("none is named, or an unknown one", "map[GPU-0:3 MIG-a:1 MIG-b:0 MIG-c:1]")
	changed(e)
	e.divide("GPU-0", parts())
	expect("they are found again", "map[GPU-0:3 MIG-a:1 MIG-b:0 MIG-c:1]")
	if changed(e) {
		t.Error("the same devices are news")
	}
	e.divide("GPU-0", map[string]part{"MIG-b": {gpuInstance: 5}})
	expect("two are gone", "map[GPU-0:3 MIG-b:0]")
	e.divide("GPU-0", map[string]part{"MIG-a": {gpuInstance: 3}, "MIG-b": {gpuInstance: 5}})
	expect("one is made anew", "map[GPU-0:3 MIG-a:0 MIG-b:0]")
	e.leave("GPU-0")
	expect("the GPU was taken away", "map[]")
	e.listen("GPU-0", true)
	expect("the GPU is back", "map[GPU-0:3]")
}

// A source that does not listen any more leaves the device to others, but not
// before what it heard last has reached everybody.
func TestXIDsThatNobodyListensFor(t *testing.T) {
	now := hands(1000)
	e := newEar(now.read)
	expect := func(when, want string) {
		t.Helper()
		counts := make(map[string]int)
		for uuid, xids := range e.xids() {
			counts[uuid] = len(xids)
		}
		if got := fmt.Sprint(counts); got != want {
			t.Errorf("%s: heard %s, want %s", when, got, want)
		}
	}
	for _, gpu := range []string{"GPU-0", "GPU-1", "GPU-2"} {
		e.listen(gpu, true)
	}
	e.divide("GPU-0", map[string]part{"MIG-a": {gpuInstance: 3}, "MIG-b": {gpuInstance: 4}})
	e.hear("GPU-0", noInstance, noInstance, 79)
	e.hear("GPU-0", 3, 0, 43)
	now += 3600
	expect("an hour of silence", "map[GPU-0:1 GPU-1:0 GPU-2:0 MIG-a:1 MIG-b:0]")
	e.ignore(map[string]bool{"GPU-1": true})
	changed(e)
	e.ignore(map[string]bool{"GPU-1": true})
	if changed(e) {
		t.Error("that still nobody listens is news")
	}
	expect("nobody listens any more to the first and the last", "map[GPU-0:1 GPU-1:0 MIG-a:1]")
	now += 60
	e.hear("GPU-2", noInstance, noInstance, 62) // by a wait that came back
	now += 59
	expect("just before two minutes", "map[GPU-0:1 GPU-1:0 GPU-2:1 MIG-a:1]")
	now++
	expect("after two minutes", "map[GPU-1:0 GPU-2:1]")
	now += 60
	expect("a minute later", "map[GPU-1:0]")
	e.listen("GPU-0", true)
	e.listen("GPU-2", false)
	expect("somebody listens again", "map[GPU-0:1 GPU-1:0 MIG-a:1 MIG-b:0]")
}
