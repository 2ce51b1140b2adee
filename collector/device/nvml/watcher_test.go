//go:build cgo

package nvml

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock/dgxh100"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock/server"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/device"
)

var _ device.EventSource = (*Source)(nil)

// counts are how many XIDs have been received of each device with any.
func counts(s *Source) string {
	counts := make(map[string]uint64)
	for uuid, xids := range s.XIDs() {
		for _, x := range xids {
			counts[fmt.Sprintf("%s:%d", uuid, x.Code)] = x.Count
		}
	}
	return fmt.Sprint(counts)
}

// An XID is received at once, with the time of the wall clock, and belongs to the
// MIG device that it names.
func TestReceivesXIDs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := fitted(dgxh100.New())
		board := withEvents(s)
		slice(t, gpu(s, 1), 0, 3)
		deaf := gpu(s, 7)
		deaf.GetSupportedEventTypesFunc = func() (uint64, nvml.Return) { return nvml.EventTypeClock, nvml.SUCCESS }
		wall := time.Date(2020, 1, 2, 3, 4, 5, 0, time.UTC)
		system := clock.System()
		from := NewOver(s, Options{Clock: func() clock.Instant {
			now := system()
			now.Wall = wall
			return now
		}})
		for _, r := range readers(t, from) {
			_, _ = r.Read(t.Context(), device.Fast)
		}
		<-from.Changed()
		all := from.XIDs()
		if _, watched := all["GPU-7"]; len(all) != 9 || watched || all["MIG-GPU-1-1"] == nil {
			t.Errorf("watches %v", all)
		}
		began := time.Now()
		board.raise(gpu(s, 3), 79, noInstance, noInstance)
		<-from.Changed()
		if took := time.Since(began); took > lookInterval {
			t.Errorf("received after %v", took)
		}
		if got := from.XIDs()["GPU-3"]; len(got) != 1 || got[0] != (device.XID{Code: 79, Count: 1, Last: wall}) {
			t.Errorf("received %v", got)
		}
		board.raise(gpu(s, 1), 43, 2, 0)
		board.raise(gpu(s, 1), 43, noInstance, noInstance)
		looked()
		if got := counts(from); got != "map[GPU-1:43:1 GPU-3:79:1 MIG-GPU-1-1:43:1]" {
			t.Errorf("received %s", got)
		}
		if err := from.Close(); err != nil {
			t.Error(err)
		}
		if held, created := board.state(); held != 0 || created != 1 {
			t.Errorf("%d of %d event sets are held in the end", held, created)
		}
	})
}

// Looks do not register twice; another connection registers again, and the counts
// go on.
func TestWatchesAcrossConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := fitted(dgxh100.New())
		board := withEvents(s)
		from := NewOver(s, Options{})
		for round := range 3 {
			for range 3 {
				readers(t, from)
			}
			board.raise(gpu(s, 0), 31, noInstance, noInstance)
			looked()
			if got, want := counts(from), fmt.Sprintf("map[GPU-0:31:%d]", round+1); got != want {
				t.Errorf("received %s, want %s", got, want)
			}
			if held, created := board.state(); held != 1 || created != round+1 {
				t.Errorf("%d of %d event sets are held", held, created)
			}
			if calls := len(gpu(s, 0).RegisterEventsCalls()); calls != round+1 {
				t.Errorf("registered %d times in %d connections", calls, round+1)
			}
			loseConnection(t, s, from)
		}
		// A GPU that appears is watched in the same set.
		all := s.Devices
		s.Devices = all[:4]
		from.connection.connected = false
		readers(t, from)
		s.Devices = all
		readers(t, from)
		board.raise(gpu(s, 6), 13, noInstance, noInstance)
		looked()
		if got := counts(from); got != "map[GPU-0:31:3 GPU-6:13:1]" {
			t.Errorf("received %s", got)
		}
		if err := from.Close(); err != nil {
			t.Error(err)
		}
	})
}

// A wait that never returns parks its goroutine alone: the connection is
// renewed, and once it has come back the GPUs are watched again.
func TestWaitThatNeverReturns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := fitted(dgxh100.New())
		board := withEvents(s)
		well := s.EventSetCreateFunc
		forever := make(chan struct{})
		s.EventSetCreateFunc = func() (nvml.EventSet, nvml.Return) {
			set, ret := well()
			set.(*mock.EventSet).WaitFunc = func(uint32) (nvml.EventData, nvml.Return) {
				<-forever
				return nvml.EventData{Device: gpu(s, 2), EventType: nvml.EventTypeXidCriticalError, EventData: 62, GpuInstanceId: noInstance}, nvml.SUCCESS
			}
			return set, ret
		}
		from := NewOver(s, Options{})
		readers(t, from)
		synctest.Wait()
		s.EventSetCreateFunc = well
		for round := range 3 {
			loseConnection(t, s, from)
			began := time.Now()
			for _, r := range readers(t, from) {
				if _, err := r.Read(t.Context(), device.Fast); err != nil {
					t.Error(err)
				}
			}
			if took := time.Since(began); took > stopTimeout || len(s.InitCalls()) != round+2 {
				t.Errorf("connected %d times, the last within %v", len(s.InitCalls()), took)
			}
			if len(from.XIDs()) != 0 {
				t.Errorf("watches %v", from.XIDs())
			}
		}
		close(forever)
		synctest.Wait()
		readers(t, from)
		board.raise(gpu(s, 2), 63, noInstance, noInstance)
		looked()
		if got := counts(from); got != "map[GPU-2:62:1 GPU-2:63:1]" {
			t.Errorf("received %s", got)
		}
		if err := from.Close(); err != nil {
			t.Error(err)
		}
		if held, created := board.state(); held != 1 || created != 2 { // the hung one went with its connection
			t.Errorf("%d of %d event sets are held in the end", held, created)
		}
	})
}

func TestCloseBesideAWaitThatNeverReturns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := fitted(dgxh100.New())
		withEvents(s)
		well := s.EventSetCreateFunc
		forever := make(chan struct{})
		s.EventSetCreateFunc = func() (nvml.EventSet, nvml.Return) {
			set, ret := well()
			set.(*mock.EventSet).WaitFunc = func(uint32) (nvml.EventData, nvml.Return) {
				<-forever
				return nvml.EventData{}, nvml.ERROR_TIMEOUT
			}
			return set, ret
		}
		from := NewOver(s, Options{})
		readers(t, from)
		synctest.Wait()
		began := time.Now()
		if err := from.Close(); err != nil || len(s.ShutdownCalls()) != 1 {
			t.Errorf("closed: %v", err)
		}
		if took := time.Since(began); took > stopTimeout {
			t.Errorf("closing took %v", took)
		}
		close(forever)
	})
}

// failing makes the waits of every set that is created fail with what fails
// returns, and counts them.
func failing(s *server.Server, fails func(set int) nvml.Return) (waits *atomic.Int64) {
	create, created := s.EventSetCreateFunc, 0
	waits = new(atomic.Int64)
	s.EventSetCreateFunc = func() (nvml.EventSet, nvml.Return) {
		set, ret := create()
		created++
		number, wait := created, set.(*mock.EventSet).WaitFunc
		set.(*mock.EventSet).WaitFunc = func(milliseconds uint32) (nvml.EventData, nvml.Return) {
			waits.Add(1)
			if ret := fails(number); ret != nvml.SUCCESS {
				return nvml.EventData{}, ret
			}
			return wait(milliseconds)
		}
		return set, ret
	}
	return waits
}

// A set whose waits fail has no events: its GPUs are not reported, with the
// reason, until another set works. Their counts go on then.
func TestWaitThatFails(t *testing.T) {
	for _, ret := range []nvml.Return{nvml.ERROR_UNKNOWN, nvml.ERROR_GPU_IS_LOST, nvml.ERROR_UNINITIALIZED, nvml.ERROR_INVALID_ARGUMENT, 31} {
		synctest.Test(t, func(t *testing.T) {
			s := fitted(dgxh100.New())
			s.Devices = s.Devices[:2]
			board := withEvents(s)
			var reloads atomic.Int64
			waits := failing(s, func(set int) nvml.Return {
				if int64(set) <= reloads.Load() {
					return ret
				}
				return nvml.SUCCESS
			})
			from := NewOver(s, Options{})
			readers(t, from)
			board.raise(gpu(s, 0), 31, noInstance, noInstance)
			time.Sleep(device.RecentXIDs + lookInterval/2) // between two looks
			if _, err := from.Received(); err != nil || len(from.XIDs()) != 2 {
				t.Fatalf("at first %v is received: %v", from.XIDs(), err)
			}
			reloads.Store(1)
			time.Sleep(2 * lookInterval)
			if _, err := from.Received(); len(from.XIDs()) != 0 || err == nil || !strings.Contains(err.Error(), "receive XIDs of 2 of 2 GPUs, the first: GPU-0: wait for events: ") {
				t.Errorf("while the set fails %v is received: %v", from.XIDs(), err)
			}
			time.Sleep(time.Second)
			board.raise(gpu(s, 0), 48, noInstance, noInstance)
			looked()
			if got := counts(from); got != "map[GPU-0:31:1 GPU-0:48:1]" || len(from.XIDs()) != 2 {
				t.Errorf("with another set %s is received", got)
			}
			if _, err := from.Received(); err != nil {
				t.Error(err)
			}

			// For good: at a pace, and with other connections in the end.
			reloads.Store(1000)
			waits.Store(0)
			time.Sleep(time.Minute)
			if n := waits.Load(); n < 5 || n > 10 {
				t.Errorf("sets that fail were asked %d times in a minute", n)
			}
			time.Sleep(device.RecentXIDs)
			readers(t, from)
			if len(s.InitCalls()) != 2 || len(from.XIDs()) != 0 {
				t.Errorf("there were %d connections, and %v is received", len(s.InitCalls()), from.XIDs())
			}
			if err := from.Close(); err != nil {
				t.Error(err)
			}
			if held, _ := board.state(); held != 0 {
				t.Errorf("%d event sets are held in the end", held)
			}
		})
	}
}

// One wait that fails may have been interrupted.
func TestWaitThatFailsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := fitted(dgxh100.New())
		board := withEvents(s)
		var fails atomic.Int64
		failing(s, func(int) nvml.Return {
			if fails.Add(-1) >= 0 {
				return nvml.ERROR_UNKNOWN
			}
			return nvml.SUCCESS
		})
		from := NewOver(s, Options{})
		readers(t, from)
		fails.Store(1)
		time.Sleep(3 * lookInterval / 2)
		board.raise(gpu(s, 0), 8, noInstance, noInstance)
		time.Sleep(time.Second)
		if _, created := board.state(); counts(from) != "map[GPU-0:8:1]" || created != 1 {
			t.Errorf("received %s, with %d sets", counts(from), created)
		}
		if err := from.Close(); err != nil {
			t.Error(err)
		}
	})
}

// A lost GPU of which the whole set fails is left out of the next.
func TestWaitThatFailsForALostGPU(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := fitted(dgxh100.New())
		s.Devices = s.Devices[:2]
		board := withEvents(s)
		var fallen atomic.Bool
		failing(s, func(set int) nvml.Return {
			if fallen.Load() && set == 1 {
				return nvml.ERROR_GPU_IS_LOST
			}
			return nvml.SUCCESS
		})
		register := gpu(s, 0).RegisterEventsFunc
		gpu(s, 0).RegisterEventsFunc = func(types uint64, set nvml.EventSet) nvml.Return {
			if fallen.Load() {
				return nvml.ERROR_GPU_IS_LOST
			}
			return register(types, set)
		}
		from := NewOver(s, Options{})
		readers(t, from)
		time.Sleep(time.Second)
		fallen.Store(true)
		time.Sleep(4 * time.Second)
		board.raise(gpu(s, 1), 48, noInstance, noInstance)
		looked()
		if _, err := from.Received(); counts(from) != "map[GPU-1:48:1]" || len(from.XIDs()) != 1 || err != nil {
			t.Errorf("received %v: %v", from.XIDs(), err)
		}
		fallen.Store(false)
		readers(t, from)
		if len(from.XIDs()) != 2 {
			t.Errorf("once it is back %v is received", from.XIDs())
		}
		if err := from.Close(); err != nil {
			t.Error(err)
		}
	})
}

// A wait that returns at once, without an event or with one of nothing that is
// watched, does not make the loop spin.
func TestWaitThatReturnsAtOnce(t *testing.T) {
	for _, event := range []nvml.EventData{{}, {EventType: nvml.EventTypeXidCriticalError, EventData: 48}} {
		synctest.Test(t, func(t *testing.T) {
			s := fitted(dgxh100.New())
			board := withEvents(s)
			waits := 0
			create := s.EventSetCreateFunc
			s.EventSetCreateFunc = func() (nvml.EventSet, nvml.Return) {
				set, ret := create()
				set.(*mock.EventSet).WaitFunc = func(uint32) (nvml.EventData, nvml.Return) {
					waits++
					if event.EventType == 0 {
						return event, nvml.ERROR_TIMEOUT
					}
					return event, nvml.SUCCESS
				}
				return set, ret
			}
			from := NewOver(s, Options{})
			readers(t, from)
			time.Sleep(10 * time.Second)
			if err := from.Close(); err != nil {
				t.Error(err)
			}
			if waits > 101 {
				t.Errorf("there were %d waits in ten seconds", waits)
			}
			if held, _ := board.state(); held != 0 || counts(from) != "map[]" {
				t.Errorf("%d sets are held, received %s", held, counts(from))
			}
		})
	}
}

// What cannot be watched is read all the same.
func TestNoWatcher(t *testing.T) {
	for name, deafen := range map[string]func(*mock.Device, *server.Server){
		"no set !": func(_ *mock.Device, s *server.Server) {
			s.EventSetCreateFunc = func() (nvml.EventSet, nvml.Return) { return nil, nvml.ERROR_MEMORY }
		},
		"not registered": func(d *mock.Device, _ *server.Server) {
			d.RegisterEventsFunc = func(uint64, nvml.EventSet) nvml.Return { return nvml.ERROR_NOT_SUPPORTED }
		},
		"types unknown !": func(d *mock.Device, _ *server.Server) {
			d.GetSupportedEventTypesFunc = func() (uint64, nvml.Return) { return 0, nvml.ERROR_UNKNOWN }
		},
		"no such library": func(_ *mock.Device, s *server.Server) { s.LookupSymbolFunc = without("nvmlEventSetCreate") },
		"no wait": func(_ *mock.Device, s *server.Server) {
			s.LookupSymbolFunc = without("nvmlEventSetWait", "nvmlEventSetWait_v2")
		},
	} {
		s := fitted(dgxh100.New())
		board := withEvents(s)
		s.Devices = s.Devices[:1]
		deafen(&gpu(s, 0).Device, s)
		from := NewOver(s, Options{})
		for range 2 {
			readers(t, from)
		}
		if len(from.XIDs()) != 0 {
			t.Errorf("%s: watches %v", name, from.XIDs())
		}
		if _, err := from.Received(); (err != nil) != strings.HasSuffix(name, "!") {
			t.Errorf("%s: the reason is %v", name, err)
		}
		if err := from.Close(); err != nil {
			t.Error(err)
		}
		if held, _ := board.state(); held != 0 {
			t.Errorf("%s: %d event sets are held", name, held)
		}
	}
}
