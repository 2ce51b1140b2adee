package simulated

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/device"
)

var _ device.EventSource = (*Source)(nil)

// faultyGPU is the configuration of a GPU with these faults and a partition,
// and of another vendor's device.
func faultyGPU(faults string) string {
	return `
devices:
- {uuid: dev-x, vendor: example}
- uuid: GPU-a
  vendor: nvidia
  quantities: {power: 5, lost: 0, recovery_action: {none: 1, gpu_reset: 0}}
  partitions: [{uuid: MIG-a}]
  faults: ` + faults + `
`
}

// xidText returns the XIDs of a source as text, with the seconds from the start
// to the last report of each.
func xidText(s *Source, start time.Time) string {
	var b strings.Builder
	all := s.XIDs()
	for _, uuid := range slices.Sorted(maps.Keys(all)) {
		b.WriteString(uuid + ":")
		for _, xid := range all[uuid] {
			fmt.Fprintf(&b, " %d %dx %gs", xid.Code, xid.Count, xid.Last.Sub(start).Seconds())
		}
		b.WriteString("\n")
	}
	return b.String()
}

func TestXIDs(t *testing.T) {
	for name, test := range map[string]struct {
		faults string
		want   map[int]string // by second
	}{
		"none": {"[]", map[int]string{0: "GPU-a:\nMIG-a:\n"}},
		"one": {"[{kind: xid, code: 79, after: 10s}]", map[int]string{
			9: "GPU-a:\nMIG-a:\n", 10: "GPU-a: 79 1x 10s\nMIG-a:\n", 1000: "GPU-a: 79 1x 10s\nMIG-a:\n",
		}},
		"at once": {"[{kind: xid, code: 79}]", map[int]string{0: "GPU-a: 79 1x 0s\nMIG-a:\n"}},
		"again and again": {"[{kind: xid, code: 79, after: 10s, every: 5s}]", map[int]string{
			9: "GPU-a:\nMIG-a:\n", 14: "GPU-a: 79 1x 10s\nMIG-a:\n", 15: "GPU-a: 79 2x 15s\nMIG-a:\n", 112: "GPU-a: 79 21x 110s\nMIG-a:\n",
		}},
		"for a time": {"[{kind: xid, code: 79, after: 10s, every: 5s, for: 10s}]", map[int]string{
			15: "GPU-a: 79 2x 15s\nMIG-a:\n", 1000: "GPU-a: 79 2x 15s\nMIG-a:\n",
		}},
		"of a partition, and several": {"[{kind: xid, code: 79}, {kind: xid, code: 13, after: 3s}, {kind: xid, code: 13, after: 1s}, {kind: xid, code: 31, partition: MIG-a}]", map[int]string{
			5: "GPU-a: 13 2x 3s 79 1x 0s\nMIG-a: 31 1x 0s\n",
		}},
		"while it hangs and has disappeared": {"[{kind: xid, code: 79, after: 2s}, {kind: hang, after: 1s}, {kind: disappear, after: 1s}]", map[int]string{
			2: "GPU-a: 79 1x 2s\nMIG-a:\n",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, start := New(parsed(t, faultyGPU(test.faults)), clock.System()), time.Now()
				for _, second := range slices.Sorted(maps.Keys(test.want)) {
					time.Sleep(time.Until(start.Add(time.Duration(second) * time.Second)))
					if got, want := xidText(s, start), "GPU-a"+test.want[second][len("GPU-a"):]; got != want {
						t.Errorf("after %d s\n%swant\n%s", second, got, want)
					}
				}
			})
		})
	}
}

// The timer is set to the next report.
func TestNextReport(t *testing.T) {
	once := Fault{Kind: "xid", After: 10}
	often := Fault{Kind: "xid", After: 10, Every: 5, For: 11}
	exact := Fault{Kind: "xid", After: 10, Every: 5, For: 10}
	for _, test := range []struct {
		fault   Fault
		elapsed time.Duration
		want    time.Duration // 0: never
	}{
		{once, 0, 10}, {once, 9, 10}, {once, 10, 0},
		{often, 0, 10}, {often, 10, 15}, {often, 14, 15}, {often, 15, 20}, {often, 20, 0},
		{exact, 10, 15}, {exact, 15, 0},
		{Fault{Kind: "xid", Every: math.MaxInt64}, 1, math.MaxInt64}, {Fault{Kind: "xid", After: 1, Every: math.MaxInt64}, 1, 0},
		{Fault{Kind: "hang", After: 10}, 0, 0},
	} {
		if at, comes := test.fault.next(test.elapsed); comes != (test.want > 0) || at != test.want {
			t.Errorf("%+v: after %d the next is at %d, %t; want %d", test.fault, test.elapsed, at, comes, test.want)
		}
	}
}

func TestChangedSignals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(parsed(t, faultyGPU("[{kind: xid, code: 79, after: 10s, every: 20s}, {kind: xid, code: 13, after: 10s}]")), clock.System())
		start := time.Now()
		var signals []string
		for range 3 {
			<-s.Changed()
			signals = append(signals, time.Since(start).String())
			xidText(s, start)
		}
		if got := strings.Join(signals, " "); got != "10s 30s 50s" {
			t.Errorf("signals after %s", got)
		}
		s.Replace(parsed(t, faultyGPU("[{kind: xid, code: 48, after: 5s, every: 5s}]")))
		time.Sleep(5 * time.Second)
		synctest.Wait()
		select {
		case <-s.Changed():
		default:
			t.Error("no signal of a new fault")
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		if got := s.XIDs()["GPU-a"]; len(got) != 3 {
			t.Errorf("after it was closed %v were received", got)
		}
		<-s.Changed()
		time.Sleep(time.Hour)
		select {
		case <-s.Changed():
			t.Error("a signal after it was closed")
		default:
		}
	})
}

// Reports that come faster than signals are sent are counted nevertheless.
func TestXIDStorm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, start := New(parsed(t, faultyGPU("[{kind: xid, code: 13, after: 1s, every: 1us}]")), clock.System()), time.Now()
		words := 0
		for time.Since(start) < 2*time.Second {
			<-s.Changed()
			words++
		}
		if words > 102 {
			t.Errorf("%d signals in a second", words)
		}
		s.Close()
		if got := s.XIDs()["GPU-a"][0].Count; got != uint64(time.Since(start.Add(time.Second))/time.Microsecond)+1 {
			t.Errorf("%d reports after %s", got, time.Since(start))
		}
	})
}

func TestXIDsOutliveTheirFaults(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const often = "[{kind: xid, code: 79, after: 1s, every: 1s}]"
		s, start := New(parsed(t, faultyGPU(often)), clock.System()), time.Now()
		expectXIDs := func(want string) {
			t.Helper()
			if got := xidText(s, start); got != want {
				t.Errorf("after %s\n%swant\n%s", time.Since(start), got, want)
			}
		}
		time.Sleep(3 * time.Second)
		s.Replace(parsed(t, faultyGPU(often)))
		expectXIDs("GPU-a: 79 3x 3s\nMIG-a:\n")
		time.Sleep(time.Second)
		expectXIDs("GPU-a: 79 4x 4s\nMIG-a:\n")
		time.Sleep(time.Second)
		s.Replace(parsed(t, faultyGPU("[{kind: xid, code: 48}]")))
		expectXIDs("GPU-a: 48 1x 5s 79 5x 5s\nMIG-a:\n")
		time.Sleep(time.Minute)
		s.Replace(parsed(t, "devices: [{uuid: GPU-b, vendor: nvidia}]"))
		expectXIDs("GPU-b:\n")
		s.Replace(parsed(t, faultyGPU("[]")))
		expectXIDs("GPU-a: 48 1x 5s 79 5x 5s\nMIG-a:\n")
		s.Close()
	})
}

func TestSetAndLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(parsed(t, faultyGPU(`
  - {kind: set, quantity: recovery_action, details: [none], value: 0, after: 10s, for: 5s}
  - {kind: set, quantity: recovery_action, details: [gpu_reset], value: 1, after: 10s, for: 5s}
  - {kind: lost, after: 20s, for: 5s}`)), clock.System())
		for _, want := range []string{
			10: "power=5 recovery_action(gpu_reset)=1 recovery_action(none)=0 lost=0\nMIG-a:\n",
			14: "power=5 recovery_action(gpu_reset)=1 recovery_action(none)=0 lost=0\nMIG-a:\n",
			15: "power=5 recovery_action(gpu_reset)=0 recovery_action(none)=1 lost=0\nMIG-a:\n",
			20: "lost=1\nMIG-a:\nerror: the device is lost\n",
			25: "power=5 recovery_action(gpu_reset)=0 recovery_action(none)=1 lost=0\nMIG-a:\n",
		} {
			if want != "" {
				expect(t, read(t, s, device.Fast), "dev-x:\nGPU-a: "+want)
			}
			time.Sleep(time.Second)
		}
	})
}

// Through the sampler: a GPU that falls off the bus says so at once, and
// still does when it is not found any more.
func TestSamplerReportsXIDs(t *testing.T) {
	for _, then := range []string{"hang", "disappear", "lost", "error"} {
		synctest.Test(t, func(t *testing.T) {
			from := New(parsed(t, faultyGPU("[{kind: xid, code: 79, after: 10500ms}, {kind: "+then+", after: 10200ms, for: 100s}]")), clock.System())
			sampler := device.NewSampler(device.Options{Sources: []device.Source{from}, Clock: clock.System()})
			ctx, cancel := context.WithCancel(t.Context())
			var running sync.WaitGroup
			running.Go(func() { sampler.Run(ctx) })
			xids := func() []device.XID {
				for _, sample := range sampler.Latest() {
					if sample.Device.UUID == "GPU-a" {
						return sample.XIDs
					}
				}
				t.Errorf("after %s: the device has no XIDs", then)
				return nil
			}
			time.Sleep(10499 * time.Millisecond)
			synctest.Wait()
			if got := xids(); got == nil || len(got) > 0 {
				t.Errorf("%v were received before they were reported", got)
			}
			for _, wait := range []time.Duration{time.Millisecond, time.Minute, time.Hour} {
				time.Sleep(wait)
				synctest.Wait()
				if got := xids(); len(got) != 1 || got[0].Code != 79 || got[0].Count != 1 {
					t.Errorf("%s later, after %s, %v were received", wait, then, got)
				}
			}
			cancel()
			running.Wait()
		})
	}
}
