//go:build cgo && linux

package dcgm

import (
	"testing"

	"github.com/dra-exporter/dra-exporter/collector/device"
	"github.com/dra-exporter/dra-exporter/test/fakes/stubs"
)

// An engine refuses a watch because of one field that a GPU model lacks. That
// model does without the field; others are not affected.
func TestProfilingLacksAField(t *testing.T) {
	node := stubs.NewNode(t, 2)
	node.Set(0, "name", "NVIDIA A10")
	node.Set(0, "dcgm.profiler_lacks", "1006 1011")
	for gpu := range 2 {
		for _, key := range []string{"sm", "fp64", "fp16", "tensor"} {
			node.Set(gpu, "profiling."+key, "0.5")
		}
	}
	engine := startEngine(t, node)
	var log logged
	s := newSource(t, Options{HostEngine: engine.Address, Profiling: true, Log: log.logger()})
	r := connected(t, s)
	has := func(o device.Observation, engine string) bool {
		_, is := reading(o, device.EngineActive, engine)
		return is
	}
	eventually(t, "both report their engines", func() bool {
		o := read(t, r, device.Fast)
		return has(o[0], "sm") && has(o[0], "fp16") && has(o[0], "tensor") && has(o[1], "fp64")
	})
	if has(read(t, r, device.Fast)[0], "fp64") {
		t.Error("the A10 reports a field that it lacks")
	}
	for i, part := range s.session.wholeFast.parts { // one for each model
		for _, field := range part.fields {
			if i == 0 && field == fp64Active {
				t.Error("a query has a field that is not watched")
			}
		}
	}
	held := engine.Inspect()
	for range 2 {
		connected(t, s)
	}
	if now := engine.Inspect(); now != held {
		t.Errorf("the engine holds %+v, before two refreshes it was %+v", now, held)
	}
	if log.lines("what=\"every field of profiling\"") != 1 || log.lines("field 1006 of NVIDIA A10") != 1 ||
		log.lines("field 1011 of NVIDIA A10") != 1 || log.lines("H100") != 0 {
		t.Errorf("the log is\n%s", log.String())
	}

	// All that was made for it goes with the plan.
	node.CreateMIG(1, "1g.10gb", -1)
	eventually(t, "the partition is there", func() bool {
		o := read(t, r, device.Fast)
		return len(o) == 3 && has(o[0], "sm")
	})
	if now := engine.Inspect(); now.FieldGroups != held.FieldGroups {
		t.Errorf("there are %d field groups, before it were %d", now.FieldGroups, held.FieldGroups)
	}
}

// If an engine accepts no profiling field at all, that is tested once.
func TestProfilingRefusedEntirely(t *testing.T) {
	node := stubs.NewNode(t, 1)
	node.Set(0, "dcgm.profiler_lacks", "1001 1002 1003 1004 1005 1006 1007 1008 1009 1010 1011 1012")
	engine := startEngine(t, node)
	var log logged
	s := newSource(t, Options{HostEngine: engine.Address, Profiling: true, Log: log.logger()})
	connected(t, s)
	names, held := s.session.nameCount, engine.Inspect()
	read(t, connected(t, s), device.Slow)
	if s.session.nameCount != names || engine.Inspect() != held || held.FieldGroups != 6 {
		t.Errorf("%d groups were made by a refresh, the engine holds %+v", s.session.nameCount-names, held)
	}
	if n := log.lines("what=profiling"); n != 1 {
		t.Errorf("%d lines in the log:\n%s", n, log.String())
	}
	node.Unset(0, "dcgm.profiler_lacks")
	connected(t, s)
	if n := log.lines("what=profiling"); n != 2 || !s.session.profilingWatched {
		t.Errorf("it is not taken later; the log is\n%s", log.String())
	}
}

// The fields that a GPU lacks are found when the counters are released, and not
// before.
func TestProfilingInUseAndLacksAField(t *testing.T) {
	node := stubs.NewNode(t, 1)
	node.Set(0, "dcgm.profiler_lacks", "1006")
	node.SetNode("dcgm.profiler", "other")
	engine := startEngine(t, node)
	s := newSource(t, Options{HostEngine: engine.Address, Profiling: true})
	connected(t, s)
	held := engine.Inspect()
	connected(t, s)
	if now := engine.Inspect(); now != held || s.session.profilingWatched || s.session.profilingSplit {
		t.Errorf("the engine holds %+v, before a refresh it was %+v", now, held)
	}
	node.SetNode("dcgm.profiler", "none")
	r := connected(t, s)
	eventually(t, "the other fields are reported", func() bool {
		_, is := reading(read(t, r, device.Fast)[0], device.EngineActive, "sm")
		return is
	})
}
