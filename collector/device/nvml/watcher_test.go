//go:build cgo

package nvml

import (
	"fmt"
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
		if took := time.Since(began); took != 0 {
			t.Errorf("received after %v", took)
		}
		if got := from.XIDs()["GPU-3"]; len(got) != 1 || got[0] != (device.XID{Code: 79, Count: 1, Last: wall}) {
			t.Errorf("received %v", got)
		}
		board.raise(gpu(s, 1), 43, 2, 0)
		board.raise(gpu(s, 1), 43, noInstance, noInstance)
		synctest.Wait()
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
			synctest.Wait()
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
		synctest.Wait()
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
		synctest.Wait()
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

// A set that fails at once is not waited for without pause, and events are
// received again when it works again.
func TestWaitThatFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := fitted(dgxh100.New())
		board := withEvents(s)
		create := s.EventSetCreateFunc
		var fails atomic.Bool
		var waits atomic.Int64
		s.EventSetCreateFunc = func() (nvml.EventSet, nvml.Return) {
			set, ret := create()
			wait := set.(*mock.EventSet).WaitFunc
			set.(*mock.EventSet).WaitFunc = func(milliseconds uint32) (nvml.EventData, nvml.Return) {
				if waits.Add(1); fails.Load() {
					return nvml.EventData{}, nvml.ERROR_GPU_IS_LOST
				}
				return wait(milliseconds)
			}
			return set, ret
		}
		from := NewOver(s, Options{})
		fails.Store(true)
		readers(t, from)
		time.Sleep(10 * time.Second)
		if n := waits.Load(); n < 50 || n > 101 {
			t.Errorf("a set that fails was asked %d times in ten seconds", n)
		}
		fails.Store(false)
		board.raise(gpu(s, 0), 8, noInstance, noInstance)
		time.Sleep(time.Second)
		if got := counts(from); got != "map[GPU-0:8:1]" {
			t.Errorf("received %s", got)
		}
		if err := from.Close(); err != nil {
			t.Error(err)
		}
	})
}

// What cannot be watched is read all the same.
func TestNoWatcher(t *testing.T) {
	for name, deafen := range map[string]func(*mock.Device, *server.Server){
		"no set": func(_ *mock.Device, s *server.Server) {
			s.EventSetCreateFunc = func() (nvml.EventSet, nvml.Return) { return nil, nvml.ERROR_MEMORY }
		},
		"not registered": func(d *mock.Device, _ *server.Server) {
			d.RegisterEventsFunc = func(uint64, nvml.EventSet) nvml.Return { return nvml.ERROR_NOT_SUPPORTED }
		},
		"types unknown": func(d *mock.Device, _ *server.Server) {
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
		if err := from.Close(); err != nil {
			t.Error(err)
		}
		if held, _ := board.state(); held != 0 {
			t.Errorf("%s: %d event sets are held", name, held)
		}
	}
}
