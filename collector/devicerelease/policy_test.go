package devicerelease

import (
	"testing"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/dra"
)

const address = "0000:c1:00.0"

// step is the facts at a second, and the reason that follows.
type step struct {
	second int
	change func(*Facts)
	want   Reason
}

func play(t *testing.T, options Options, steps []step) {
	t.Helper()
	policy, facts := New(options), &Facts{BoundKnown: true, Bound: bound(address)}
	for _, s := range steps {
		if s.change != nil {
			s.change(facts)
		}
		if got := policy.Step(facts, clock.Instant{Elapsed: time.Hour + time.Duration(s.second)*time.Second}); got != s.want {
			t.Errorf("second %d: %q, want %q", s.second, got, s.want)
		}
		facts.Unbinding = false
	}
}

func bound(addresses ...string) map[string]bool {
	all := make(map[string]bool)
	for _, address := range addresses {
		all[address] = true
	}
	return all
}

func claimWith(driver, device string) dra.Claim {
	return dra.Claim{Allocated: true, Results: []dra.Result{{Request: "gpu", Device: dra.DeviceID{Driver: driver, Pool: "n", Name: device}}}}
}

func TestFileAndLabels(t *testing.T) {
	label := func(key, value string) func(*Facts) {
		return func(f *Facts) { f.Labels = map[string]string{key: value} }
	}
	play(t, Options{Labels: []string{"a", "b"}}, []step{
		{0, nil, ReasonNone},
		{1, label("a", "true"), ReasonNone},
		{2, label("a", "paused-for-driver-upgrade"), ReasonLabel},
		{3, label("a", "false"), ReasonLabel},
		{4, label("a", ""), ReasonLabel},
		{5, label("c", "false"), ReasonNone},
		{6, label("b", "paused-for-mig-change"), ReasonLabel},
		{7, func(f *Facts) { f.File = true }, ReasonFile},
		{8, label("b", "true"), ReasonFile},
		{9, func(f *Facts) { f.File = false }, ReasonNone},
	})
}

// Labels that have not been read may ask for a release. They are awaited for a while.
func TestLabelsAreAwaited(t *testing.T) {
	due := func(due bool) func(*Facts) { return func(f *Facts) { f.LabelsDue = due } }
	play(t, Options{Labels: []string{"a"}}, []step{
		{0, due(true), ReasonStarting}, {4, nil, ReasonStarting}, {5, nil, ReasonNone}, {6, due(false), ReasonNone},
	})
	play(t, Options{Labels: []string{"a"}}, []step{{0, due(true), ReasonStarting}, {1, due(false), ReasonNone}})
}

func TestPassthrough(t *testing.T) {
	publish := func(driver string, passthrough bool, at string) func(*Facts) {
		return func(f *Facts) {
			f.Claims = []dra.Claim{claimWith(driver, "gpu-0")}
			f.Published = []dra.PublishedDevice{{ID: dra.DeviceID{Driver: driver, Pool: "n", Name: "gpu-0"}, Passthrough: passthrough, PCIAddress: at}}
		}
	}
	class := func(f *Facts) {
		f.Published = nil
		f.Claims[0].Requests = []dra.Request{{Name: "gpu", DeviceClass: "vfio.gpu.nvidia.com"}}
	}
	steps := []step{
		{0, publish("gpu.nvidia.com", false, address), ReasonNone},
		{1, publish("gpu.nvidia.com", true, address), ReasonPassthrough},
		{2, func(f *Facts) { f.Bound = bound("0000:c2:00.0") }, ReasonNone},
		{3, func(f *Facts) { f.BoundKnown = false }, ReasonPassthrough},
		{4, func(f *Facts) { f.BoundKnown, f.Bound = true, bound(address) }, ReasonPassthrough},
		{5, func(f *Facts) { f.Claims = nil }, ReasonNone},
		{6, publish("gpu.nvidia.com", true, ""), ReasonPassthrough},
		{7, class, ReasonPassthrough},
		{8, publish("gpu.example.com", true, address), ReasonNone},
	}
	play(t, Options{Passthrough: true}, steps)
	for i := range steps {
		steps[i].want = ReasonNone
	}
	play(t, Options{}, steps)
}

// An unbinding is over when nothing has changed for ten seconds after the driver was
// unbound, or after ten minutes.
func TestUnbinding(t *testing.T) {
	announced := func(f *Facts) { f.Unbinding = true }
	left := func(f *Facts) { f.Bound = bound() }
	back := func(f *Facts) { f.Bound = bound(address) }
	play(t, Options{}, []step{
		{0, announced, ReasonUnbind},
		{60, nil, ReasonUnbind},
		{61, left, ReasonUnbind},
		{70, back, ReasonUnbind},
		{79, nil, ReasonUnbind},
		{80, nil, ReasonNone},
	})
	play(t, Options{}, []step{
		{0, announced, ReasonUnbind}, {599, nil, ReasonUnbind}, {600, nil, ReasonNone},
		{601, announced, ReasonUnbind}, {602, func(f *Facts) { f.BoundKnown = false }, ReasonUnbind}, {1201, nil, ReasonNone},
	})
}

// Idle GPUs are open until all have been read, once a minute.
func TestIdle(t *testing.T) {
	read := func(read bool) func(*Facts) { return func(f *Facts) { f.Read = read } }
	hold := func(f *Facts) { f.Claims = []dra.Claim{claimWith("gpu.nvidia.com", "gpu-0")} }
	other := func(f *Facts) { f.Claims = []dra.Claim{claimWith("dra.cpu", "cpudev0")} }
	plugin := func(f *Facts) {
		f.Plugins = []dra.PluginAssignment{{Resource: "nvidia.com/gpu", DeviceIDs: []string{"GPU-a"}}}
	}
	play(t, Options{Idle: true}, []step{
		{0, nil, ReasonNone},
		{2, read(true), ReasonIdle},
		{61, read(false), ReasonIdle},
		{62, nil, ReasonNone},
		{64, read(true), ReasonIdle},
		{65, hold, ReasonNone},
		{1000, nil, ReasonNone},
		{1001, func(f *Facts) { f.Claims[0].Results[0].AdminAccess = true }, ReasonNone},
		{1002, nil, ReasonIdle},
		{1003, other, ReasonIdle},
		{1004, plugin, ReasonNone},
		{1005, func(f *Facts) { f.Plugins, f.Read = nil, false }, ReasonNone},
		{1020, nil, ReasonIdle}, // it cannot be read
	})
	play(t, Options{}, []step{{0, read(true), ReasonNone}, {2, nil, ReasonNone}})
}
