//go:build cgo

package nvml

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock/dgxh100"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock/server"

	"github.com/dra-exporter/dra-exporter/collector/device"
)

func always() bool { return true }

// listing is what a simulated GPU reports about processes.
type listing struct {
	compute, graphics, mps []nvml.ProcessInfo
	samples                []nvml.ProcessUtilizationSample
	returns                map[string]nvml.Return // by list, and of utilization
	asked                  []uint64               // since when
}

func using(pid uint32, memory uint64) nvml.ProcessInfo {
	return nvml.ProcessInfo{Pid: pid, UsedGpuMemory: memory}
}

func doing(pid, percent uint32, at uint64) nvml.ProcessUtilizationSample {
	return nvml.ProcessUtilizationSample{Pid: pid, SmUtil: percent, TimeStamp: at}
}

// lists makes a simulated GPU report what the listing holds at the time.
func lists(d *server.Device, l *listing) {
	list := func(name string, infos *[]nvml.ProcessInfo) func() ([]nvml.ProcessInfo, nvml.Return) {
		return func() ([]nvml.ProcessInfo, nvml.Return) { return *infos, l.returns[name] }
	}
	d.GetComputeRunningProcessesFunc = list("compute", &l.compute)
	d.GetGraphicsRunningProcessesFunc = list("graphics", &l.graphics)
	d.GetMPSComputeRunningProcessesFunc = list("mps", &l.mps)
	d.GetProcessUtilizationFunc = func(since uint64) (newer []nvml.ProcessUtilizationSample, _ nvml.Return) {
		l.asked = append(l.asked, since)
		for _, s := range l.samples {
			if s.TimeStamp > since {
				newer = append(newer, s)
			}
		}
		if ret := l.returns["utilization"]; ret != nvml.SUCCESS {
			return nil, ret
		}
		if newer == nil {
			return nil, nvml.ERROR_NOT_FOUND
		}
		return newer, nvml.SUCCESS
	}
}

// processText writes down who uses the first device: pid, memory, utilization.
func processText(observations []device.Observation, err error) string {
	if err != nil && len(observations) == 0 {
		return err.Error()
	}
	list := observations[0].Processes
	text := []string{"unknown"}
	if list != nil {
		text = nil
		slices.SortStableFunc(list, func(a, b device.Process) int { return cmp.Compare(a.PID, b.PID) })
	}
	for _, p := range list {
		proxied := map[bool]string{true: ":proxied"}[p.Proxied]
		text = append(text, fmt.Sprintf("%d:%g:%g%s", p.PID, p.Memory, p.Utilization, proxied))
	}
	if err != nil {
		text = append(text, "error: "+err.Error())
	}
	return strings.Join(text, " ")
}

// listed is a source over a machine whose GPU 0 has the listing, and the
// reader of that GPU, at a time that only the test moves.
func listed(t *testing.T, l *listing) (*server.Server, *Source, device.Reader) {
	t.Helper()
	s := fitted(dgxh100.New())
	lists(gpu(s, 0), l)
	from := NewOver(s, Options{Processes: always})
	return s, from, readers(t, from)[0]
}

func TestProcessesAreListed(t *testing.T) {
	now := uint64(time.Now().UnixMicro())
	mine := []nvml.ProcessInfo{using(10, 1<<30)}
	for name, test := range map[string]struct {
		listing
		want string
	}{
		"none": {listing{}, ""},
		"all lists": {listing{
			compute: []nvml.ProcessInfo{using(10, 100), using(11, 200)}, graphics: []nvml.ProcessInfo{using(12, 300)},
			mps: []nvml.ProcessInfo{using(13, 400)}, samples: []nvml.ProcessUtilizationSample{doing(10, 30, now), doing(13, 45, now)},
		}, "10:100:0.3 11:200:0 12:300:0 13:400:0.45:proxied"},
		"one in two lists": {listing{compute: mine, mps: []nvml.ProcessInfo{using(10, 7)}}, "10:1.073741824e+09:0 10:7:0:proxied"},
		"memory unknown":   {listing{compute: []nvml.ProcessInfo{using(10, math.MaxUint64)}}, "10:-1:0"},
		"no pids":          {listing{compute: []nvml.ProcessInfo{using(0, 5), using(1<<31, 5), using(10, 5)}}, "10:5:0"},
		"ended, and nothing done": {listing{compute: mine, samples: []nvml.ProcessUtilizationSample{
			doing(9, 20, now), doing(8, 0, now)}}, "9:0:0.2 10:1.073741824e+09:0"},
		"left in the buffer": {listing{compute: mine, samples: []nvml.ProcessUtilizationSample{
			doing(0, 20, now), doing(4_000_000_000, 5, now), doing(77, 3_000_000, now), doing(10, 101, now)}}, "10:1.073741824e+09:-1"},
		"a newer sample": {listing{compute: mine, samples: []nvml.ProcessUtilizationSample{
			doing(10, 60, now), doing(10, 20, now-100)}}, "10:1.073741824e+09:0.6"},
	} {
		_, _, r := listed(t, &test.listing)
		if got := processText(r.Read(t.Context(), device.Fast)); got != test.want {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
	}
}

// A list that fails leaves the processes unknown, a failed read of the
// utilization leaves that unknown, and neither affects any other quantity.
func TestProcessFailures(t *testing.T) {
	const all, idle = "10:5:0.3", "10:5:-1"
	for name, test := range map[string]struct {
		list, want string
		ret        nvml.Return
		quiet      bool // asked no more before the GPUs are looked for
	}{
		"no compute list":      {"compute", "unknown", nvml.ERROR_NOT_SUPPORTED, true},
		"no graphics list":     {"graphics", all, nvml.ERROR_NOT_SUPPORTED, false},
		"no MPS list":          {"mps", "unknown", nvml.ERROR_NOT_SUPPORTED, true},
		"forbidden":            {"compute", "unknown", nvml.ERROR_NO_PERMISSION, true},
		"not ready":            {"mps", "unknown", nvml.ERROR_NOT_READY, false},
		"list fails":           {"graphics", "unknown error: list the processes of GPU-0: ERROR_UNKNOWN", nvml.ERROR_UNKNOWN, false},
		"lost":                 {"compute", "unknown error: list the processes of GPU-0: ERROR_GPU_IS_LOST", nvml.ERROR_GPU_IS_LOST, false},
		"no utilization":       {"utilization", idle, nvml.ERROR_NOT_SUPPORTED, true},
		"utilization denied":   {"utilization", idle, nvml.ERROR_NO_PERMISSION, true},
		"utilization not here": {"utilization", idle, nvml.ERROR_NO_DATA, false},
		"too many":             {"utilization", idle, nvml.ERROR_INSUFFICIENT_SIZE, false},
		"utilization fails":    {"utilization", idle + " error: measure the processes of GPU-0: ERROR_UNKNOWN", nvml.ERROR_UNKNOWN, false},
	} {
		l := &listing{compute: []nvml.ProcessInfo{using(10, 5)}, returns: map[string]nvml.Return{test.list: test.ret}}
		l.samples = []nvml.ProcessUtilizationSample{doing(10, 30, uint64(time.Now().UnixMicro()))}
		s, from, r := listed(t, l)
		for range 2 {
			observations, err := r.Read(t.Context(), device.Fast)
			if got := processText(observations, err); got != test.want {
				t.Errorf("%s: %s, want %s", name, got, test.want)
			}
			if text := written(observations, nil); !strings.Contains(text, "utilization  0.1 ratio") || !strings.Contains(text, "power  400.5") {
				t.Errorf("%s: other quantities are missing:\n%s", name, text)
			}
		}
		d := gpu(s, 0)
		calls := map[string]int{
			"compute": len(d.GetComputeRunningProcessesCalls()), "graphics": len(d.GetGraphicsRunningProcessesCalls()),
			"mps": len(d.GetMPSComputeRunningProcessesCalls()), "utilization": len(l.asked),
		}
		if got := calls[test.list]; test.quiet != (got == 1) {
			t.Errorf("%s: asked %d times", name, got)
		}
		l.returns = nil
		readers(t, from)
		l.samples = []nvml.ProcessUtilizationSample{doing(10, 30, uint64(time.Now().UnixMicro()))}
		if got := processText(r.Read(t.Context(), device.Fast)); got != all {
			t.Errorf("%s: afterwards %s", name, got)
		}
	}
}

// The binding goes over the end of its array where processes come between the
// two calls that it makes.
func TestProcessesOutgrowTheBinding(t *testing.T) {
	l := &listing{compute: []nvml.ProcessInfo{using(10, 5)}}
	s, _, r := listed(t, l)
	d, times := gpu(s, 0), 0
	now := uint64(time.Now().UnixMicro())
	d.GetProcessUtilizationFunc = func(uint64) ([]nvml.ProcessUtilizationSample, nvml.Return) {
		times++
		array, room := make([]nvml.ProcessUtilizationSample, 1), times
		array[0] = doing(10, 30, now)
		return array[:3-room], nvml.SUCCESS // 2 of 1, then 1 of 1
	}
	if got := processText(r.Read(t.Context(), device.Fast)); got != "10:5:0.3" || times != 2 {
		t.Errorf("asked %d times: %s", times, got)
	}
	d.GetComputeRunningProcessesFunc = func() ([]nvml.ProcessInfo, nvml.Return) {
		var none []nvml.ProcessInfo
		return none[:1], nvml.SUCCESS
	}
	_, err := r.Read(t.Context(), device.Fast)
	if !errors.Is(err, nvml.ERROR_INSUFFICIENT_SIZE) {
		t.Errorf("a list that never fits: %v", err)
	}
}

// A buffer for no sample is too small for the binding.
func TestNoSampleFits(t *testing.T) {
	s, _, r := listed(t, &listing{compute: []nvml.ProcessInfo{using(10, 5)}})
	gpu(s, 0).GetProcessUtilizationFunc = func(uint64) ([]nvml.ProcessUtilizationSample, nvml.Return) {
		return []nvml.ProcessUtilizationSample{}, nvml.ERROR_INSUFFICIENT_SIZE
	}
	if got := processText(r.Read(t.Context(), device.Fast)); got != "10:5:0" {
		t.Error(got)
	}
}

// A library that lacks one of the lists reports no processes, and one that lacks
// their utilization reports them without it.
func TestProcessesOfOlderLibraries(t *testing.T) {
	for lacks, want := range map[string]string{
		"nvmlDeviceGetComputeRunningProcesses":    "unknown",
		"nvmlDeviceGetGraphicsRunningProcesses":   "unknown",
		"nvmlDeviceGetMPSComputeRunningProcesses": "unknown",
		"nvmlDeviceGetProcessUtilization":         "10:5:-1",
		"_v3":                                     "10:5:0",
	} {
		s := fitted(dgxh100.New())
		d := gpu(s, 0)
		lists(d, &listing{compute: []nvml.ProcessInfo{using(10, 5)}})
		s.LookupSymbolFunc = func(name string) error {
			if strings.HasPrefix(name, lacks) || lacks == "_v3" && strings.HasSuffix(name, lacks) && strings.Contains(name, "Processes") {
				return errors.New("undefined symbol")
			}
			return nil
		}
		if want == "unknown" { // the process would not survive a call
			d.GetComputeRunningProcessesFunc = func() ([]nvml.ProcessInfo, nvml.Return) { panic("called") }
		}
		r := readers(t, NewOver(s, Options{Processes: always}))[0]
		if got := processText(r.Read(t.Context(), device.Fast)); got != want {
			t.Errorf("without %s: %s, want %s", lacks, got, want)
		}
	}
}

// Processes are read of whole GPUs that are not divided, in each read, while
// they are wanted, and in no more calls than there are functions.
func TestWhenProcessesAreRead(t *testing.T) {
	l := &listing{compute: []nvml.ProcessInfo{using(10, 5)}}
	s := fitted(dgxh100.New())
	d := gpu(s, 0)
	lists(d, l)
	wanted := false
	from := NewOver(s, Options{Processes: func() bool { return wanted }})
	r := readers(t, from)[0]
	calls := func() int {
		return len(d.GetComputeRunningProcessesCalls()) + len(d.GetGraphicsRunningProcessesCalls()) +
			len(d.GetMPSComputeRunningProcessesCalls()) + len(l.asked)
	}
	expect := func(what, want string, more int) {
		t.Helper()
		before := calls()
		if got := processText(r.Read(t.Context(), device.Fast)); got != want || calls()-before != more {
			t.Errorf("%s: %s in %d calls, want %s in %d", what, got, calls()-before, want, more)
		}
	}
	expect("not wanted", "unknown", 0)
	wanted = true
	expect("wanted", "10:5:0", 4)
	slice(t, d, 2)
	expect("divided", "unknown", 0)
	d.MigMode = nvml.DEVICE_MIG_DISABLE
	expect("whole again", "10:5:0", 4)
	d.GetMigModeFunc = func() (int, int, nvml.Return) { return 0, 0, nvml.ERROR_UNKNOWN }
	expect("who knows", "unknown error: get the MIG mode of GPU-0: ERROR_UNKNOWN", 0)
	d.GetMigModeFunc = func() (int, int, nvml.Return) { return 0, 0, nvml.ERROR_NOT_SUPPORTED }
	expect("indivisible", "10:5:0", 4)
	wanted = false
	expect("wanted no more", "unknown", 0)
}
