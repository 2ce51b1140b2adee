package simulated

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/device"
)

const used = `
devices:
- uuid: GPU-a
  quantities: {utilization: {curve: ramp, min: 0, max: 1, period: 100s}, memory_used: 40e9}
  processes:
  - {pid: 11, memory: 0.5, utilization: 0.25}
  - {pid: 7, memory: 0.1, proxied: true}
- uuid: GPU-b
  quantities: {utilization: 0.5}
  processes: []
- uuid: GPU-c
  quantities: {memory_used: 40e9}
- uuid: GPU-d
  partitions: [{uuid: MIG-d}]
`

// using writes down the processes of the whole devices.
func using(t *testing.T, s *Source) string {
	t.Helper()
	readers, err := s.Readers(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, r := range readers {
		observations, err := r.Read(t.Context(), device.Fast)
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range observations {
			if o.Processes == nil {
				continue
			}
			fmt.Fprintf(&b, "%s:", o.Device.UUID)
			for _, p := range o.Processes {
				fmt.Fprintf(&b, " %d=%g/%.4g/%t", p.PID, p.Memory, p.Utilization, p.Proxied)
			}
			b.WriteByte('\n')
		}
	}
	return b.String()
}

func TestProcesses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(parsed(t, used), clock.System())
		time.Sleep(40 * time.Second)
		if got := using(t, s); got != "" {
			t.Errorf("listed without being let to: %s", got)
		}
		listing := true
		s.ListProcesses(func() bool { return listing })
		expect := func(what, want string) {
			t.Helper()
			if got := using(t, s); got != want {
				t.Errorf("%s:\n%swant\n%s", what, got, want)
			}
		}
		expect("of the file", "GPU-a: 11=2e+10/0.1/false 7=4e+09/0/true\nGPU-b:\n")
		s.SetLoad("GPU-a", 0.5)
		expect("under half the load", "GPU-a: 11=1e+10/0.05/false 7=2e+09/0/true\nGPU-b:\n")
		given := []Process{{PID: 5, Memory: 1, Utilization: 1}}
		for _, uuid := range []string{"GPU-b", "GPU-c"} {
			if there, err := s.SetProcesses(uuid, given); !there || err != nil {
				t.Errorf("%s: %t, %v", uuid, there, err)
			}
		}
		given[0].PID = 6
		if there, err := s.SetProcesses("GPU-a", nil); !there || err != nil {
			t.Errorf("without a list: %t, %v", there, err)
		}
		const set = "GPU-b: 5=-1/0.5/false\nGPU-c: 5=4e+10/-1/false\n"
		expect("as they were set", set)
		s.Replace(parsed(t, used))
		expect("of the same file again", set)
		listing = false
		expect("no more", "")
	})
}

func TestProcessesAreChecked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(parsed(t, used), clock.System())
		s.ListProcesses(func() bool { return true })
		before := using(t, s)
		for uuid, list := range map[string][]Process{
			"GPU-a": {{PID: 1, Memory: 0.7}, {PID: 2, Memory: 0.7}},
			"GPU-b": {{PID: 0}},
			"GPU-d": {{PID: 1}},
		} {
			if _, err := s.SetProcesses(uuid, list); err == nil || !strings.Contains(err.Error(), uuid) {
				t.Errorf("%s may have %v: %v", uuid, list, err)
			}
		}
		if there, err := s.SetProcesses("GPU-x", []Process{{PID: 1}}); there || err != nil {
			t.Errorf("a device that is not there: %t, %v", there, err)
		}
		var ten []Process
		for pid := range 10 {
			ten = append(ten, Process{PID: pid + 1, Memory: 0.1, Utilization: 0.1})
		}
		if after := using(t, s); after != before {
			t.Errorf("what was refused has changed them:\n%s", after)
		}
		if _, err := s.SetProcesses("GPU-a", ten); err != nil {
			t.Errorf("ten times 0.1: %v", err)
		}
	})
}

// A quantity that fails is not known of the processes either.
func TestProcessesOfADeviceThatFails(t *testing.T) {
	s := New(parsed(t, strings.Replace(used, "  processes:\n", "  faults: [{kind: error, quantity: memory_used}]\n  processes:\n", 1)), clock.System())
	s.ListProcesses(func() bool { return true })
	readers, err := s.Readers(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	observations, err := readers[0].Read(t.Context(), device.Fast)
	if err == nil || len(observations[0].Processes) != 2 || observations[0].Processes[0].Memory != device.Unknown || observations[0].Processes[0].Utilization == device.Unknown {
		t.Errorf("%+v, %v", observations, err)
	}
}
