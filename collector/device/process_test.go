package device

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func TestMergeProcesses(t *testing.T) {
	for name, test := range map[string]struct{ list, want []Process }{
		"none":   {[]Process{}, []Process{}},
		"sorted": {[]Process{{PID: 12}, {PID: 3}}, []Process{{PID: 3}, {PID: 12}}},
		"in two lists": {
			[]Process{{PID: 5, Memory: 100, Utilization: 0.5}, {PID: 4}, {PID: 5, Memory: 200, Utilization: 0.2, Proxied: true}},
			[]Process{{PID: 4}, {PID: 5, Memory: 200, Utilization: 0.5, Proxied: true}},
		},
		"the larger first": {
			[]Process{{PID: 5, Memory: 200, Utilization: 0.2}, {PID: 5, Memory: 100, Utilization: 0.5}, {PID: 5}},
			[]Process{{PID: 5, Memory: 200, Utilization: 0.5}},
		},
		"in one of two lists with a value": {
			[]Process{{PID: 5, Memory: Unknown, Utilization: 0, Proxied: true}, {PID: 5, Memory: 0, Utilization: Unknown}},
			[]Process{{PID: 5, Proxied: true}},
		},
		"in both without values": {[]Process{{PID: 5, Memory: Unknown}, {PID: 5, Memory: Unknown}}, []Process{{PID: 5, Memory: Unknown}}},
		"no pids":                {[]Process{{PID: 0}, {PID: 7}, {PID: -1}}, []Process{{PID: 7}}},
		"no numbers":             {[]Process{{PID: 7, Memory: math.NaN(), Utilization: math.Inf(1)}}, []Process{{PID: 7, Memory: Unknown, Utilization: Unknown}}},
		"less than nothing":      {[]Process{{PID: 7, Memory: -5, Utilization: -0.1}}, []Process{{PID: 7, Memory: Unknown, Utilization: Unknown}}},
	} {
		if got := mergeProcesses(test.list); !slices.Equal(got, test.want) || got == nil {
			t.Errorf("%s: %v, want %v", name, got, test.want)
		}
	}
}

// processes writes down the processes in the samples.
func (s *sampling) processes() string {
	var b strings.Builder
	for _, sample := range s.Latest() {
		at := "never"
		if !sample.ProcessesAt.IsZero() {
			at = fmt.Sprintf("%gs", sample.ProcessesAt.Wall.Sub(s.start).Seconds())
		}
		fmt.Fprintf(&b, "%s at %s: %v\n", sample.Device.UUID, at, sample.Processes)
	}
	return b.String()
}

// lister is a reader of one device that lists the given processes.
func lister(uuid string, list *atomic.Pointer[[]Process]) *fakeReader {
	return &fakeReader{key: uuid, read: func(call int, tier Tier) ([]Observation, error) {
		observations := watts(uuid, float64(call), tier)
		if given := list.Load(); given != nil {
			observations[0].Processes = slices.Clone(*given)
		}
		return observations, nil
	}}
}

// A list stays what it was, as old as it is, until there is another one.
func TestProcessesAreKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var list atomic.Pointer[[]Process]
		s := sample(t, &fakeSource{name: "fake", readers: []Reader{lister("GPU-a", &list)}})
		expect := func(want string) {
			t.Helper()
			if got := s.processes(); got != want {
				t.Errorf("after %s %swant %s", time.Since(s.start), got, want)
			}
		}
		expect("GPU-a at never: []\n")
		list.Store(&[]Process{{PID: 9, Memory: 2}, {PID: 4, Memory: 1}})
		s.pass(time.Second)
		expect("GPU-a at 1s: [{4 1 0 false} {9 2 0 false}]\n")
		before := s.Latest()[0].Processes
		list.Store(nil)
		s.pass(2 * time.Second)
		expect("GPU-a at 1s: [{4 1 0 false} {9 2 0 false}]\n")
		list.Store(&[]Process{{PID: 3, Memory: 7}})
		s.pass(time.Second)
		expect("GPU-a at 4s: [{3 7 0 false}]\n")
		list.Store(&[]Process{})
		s.pass(time.Second)
		expect("GPU-a at 5s: []\n")
		if want := []Process{{PID: 4, Memory: 1}, {PID: 9, Memory: 2}}; !slices.Equal(before, want) {
			t.Errorf("a sample that was published has been changed: %v", before)
		}
	})
}

// The processes are those of the first source that has listed any.
func TestProcessesAreMerged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var first, second atomic.Pointer[[]Process]
		s := sample(t,
			&fakeSource{name: "none", readers: []Reader{steady("GPU-a")}},
			&fakeSource{name: "first", readers: []Reader{lister("GPU-a", &first)}},
			&fakeSource{name: "second", readers: []Reader{lister("GPU-a", &second)}},
		)
		second.Store(&[]Process{{PID: 2}})
		s.pass(time.Second)
		if got := s.processes(); got != "GPU-a at 1s: [{2 0 0 false}]\n" {
			t.Errorf("of the only one that lists: %s", got)
		}
		first.Store(&[]Process{})
		s.pass(time.Second)
		if got := s.processes(); got != "GPU-a at 2s: []\n" {
			t.Errorf("of the first that lists: %s", got)
		}
		first.Store(nil)
		s.pass(time.Second)
		if got := s.processes(); got != "GPU-a at 2s: []\n" {
			t.Errorf("after the first has ceased: %s", got)
		}
	})
}
