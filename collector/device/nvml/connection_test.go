//go:build cgo

package nvml

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock/dgxh100"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock/server"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/device"
)

// loseConnection makes the next look for GPUs find the connection lost.
func loseConnection(t *testing.T, s *server.Server, from *Source) {
	t.Helper()
	count := s.DeviceGetCountFunc
	s.DeviceGetCountFunc = func() (int, nvml.Return) { return 0, nvml.ERROR_UNINITIALIZED }
	if _, err := from.Readers(t.Context()); !errors.Is(err, nvml.ERROR_UNINITIALIZED) {
		t.Fatalf("without a connection: %v", err)
	}
	s.DeviceGetCountFunc = count
}

// failUUID makes the UUID of a GPU unreadable.
func failUUID(d *server.Device, ret nvml.Return) {
	d.GetUUIDFunc = func() (string, nvml.Return) { return "", ret }
}

// A look that must reconnect waits for reads that are merely under way.
func TestReconnectsDuringAShortRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := fitted(dgxh100.New())
		from := NewOver(s, Options{})
		r := readers(t, from)[0]
		loseConnection(t, s, from)
		gpu(s, 0).GetPowerUsageFunc = func() (uint32, nvml.Return) {
			time.Sleep(100 * time.Millisecond)
			return 1, nvml.SUCCESS
		}
		go func() { _, _ = r.Read(t.Context(), device.Fast) }()
		synctest.Wait()
		if readers(t, from); len(s.InitCalls()) != 2 {
			t.Errorf("initialized %d times, want twice", len(s.InitCalls()))
		}
		synctest.Wait()
	})
}

// A handle from before is not used after the library was shut down.
func TestOldHandlesAreNotUsed(t *testing.T) {
	s := fitted(dgxh100.New())
	from := NewOver(s, Options{})
	found := readers(t, from)
	read := func(i int) error {
		_, err := found[i].Read(t.Context(), device.Fast)
		return err
	}
	if err := read(3); err != nil {
		t.Fatal(err)
	}
	loseConnection(t, s, from)
	s.InitFunc = func() nvml.Return { return nvml.ERROR_DRIVER_NOT_LOADED }
	calls := len(gpu(s, 3).GetPowerUsageCalls())
	if _, err := from.Readers(t.Context()); !errors.Is(err, nvml.ERROR_DRIVER_NOT_LOADED) {
		t.Errorf("without a driver: %v", err)
	}
	if err := read(3); !errors.Is(err, nvml.ERROR_DRIVER_NOT_LOADED) {
		t.Errorf("while the library is shut down: %v", err)
	}
	s.InitFunc = func() nvml.Return { return nvml.SUCCESS }
	failUUID(gpu(s, 3), nvml.ERROR_UNKNOWN)
	if others, err := from.Readers(t.Context()); len(others) != 7 || err == nil {
		t.Errorf("%d readers and %v, want 7 and the GPU that cannot be identified", len(others), err)
	}
	if err := read(3); !errors.Is(err, errReconnecting) || len(gpu(s, 3).GetPowerUsageCalls()) != calls {
		t.Errorf("the old handle was used: %v", err)
	}
	if err := read(2); err != nil {
		t.Errorf("a GPU that was found again: %v", err)
	}
	gpu(s, 3).GetUUIDFunc = func() (string, nvml.Return) { return "GPU-3", nvml.SUCCESS }
	readers(t, from)
	if err := read(3); err != nil {
		t.Errorf("once it could be identified again: %v", err)
	}
}

// While a GPU is lost the library is initialized again, at growing intervals.
func TestLostGPUsAreDiscoveredAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := fitted(dgxh100.New())
		from := NewOver(s, Options{})
		readers(t, from)
		failUUID(gpu(s, 3), nvml.ERROR_GPU_IS_LOST)
		began := time.Now()
		var at []time.Duration
		s.InitFunc = func() nvml.Return {
			at = append(at, time.Since(began))
			return nvml.SUCCESS
		}
		look := func(times int) {
			for range times {
				time.Sleep(10 * time.Second)
				if found, _ := from.Readers(t.Context()); len(found) < 7 {
					t.Fatalf("%d readers", len(found))
				}
			}
		}
		look(120)
		want := []time.Duration{30, 90, 210, 450, 750, 1050}
		for i := range want {
			if len(at) != len(want) || at[i] != want[i]*time.Second {
				t.Fatalf("initialized at %v, want %v s", at, want)
			}
		}
		gpu(s, 3).GetUUIDFunc = func() (string, nvml.Return) { return "GPU-3", nvml.SUCCESS }
		look(60) // once more, because it was lost, and then no more
		if len(at) != len(want)+1 || len(s.ShutdownCalls()) != len(at) {
			t.Errorf("initialized at %v and shut down %d times", at, len(s.ShutdownCalls()))
		}
	})
}

func TestReadsReportLostGPUs(t *testing.T) {
	for _, ret := range []nvml.Return{nvml.ERROR_GPU_IS_LOST, nvml.ERROR_RESET_REQUIRED, nvml.ERROR_UNKNOWN} {
		synctest.Test(t, func(t *testing.T) {
			s := fitted(dgxh100.New())
			from := NewOver(s, Options{})
			r := readers(t, from)[0]
			gpu(s, 0).GetUtilizationRatesFunc = func() (nvml.Utilization, nvml.Return) { return nvml.Utilization{}, ret }
			if _, err := r.Read(t.Context(), device.Fast); !errors.Is(err, ret) {
				t.Error(err)
			}
			gone := ret != nvml.ERROR_UNKNOWN
			if asked := len(gpu(s, 0).GetPowerUsageCalls()) > 0; asked == gone {
				t.Errorf("%v: asked on: %t", ret, asked)
			}

			// Not under a read that hangs.
			time.Sleep(reconnectFirst)
			hang := make(chan struct{})
			gpu(s, 1).GetPowerUsageFunc = func() (uint32, nvml.Return) {
				<-hang
				return 1, nvml.SUCCESS
			}
			go func() { _, _ = from.readers["GPU-1"].Read(t.Context(), device.Fast) }()
			synctest.Wait()
			if readers(t, from); len(s.ShutdownCalls()) != 0 {
				t.Errorf("%v: shut down under a call", ret)
			}
			close(hang)
			synctest.Wait()
			if readers(t, from); (len(s.ShutdownCalls()) == 1) != gone {
				t.Errorf("%v: shut down %d times", ret, len(s.ShutdownCalls()))
			}
		})
	}
}

// A source that looks for a lost GPU again is not down meanwhile: the reads of
// the others wait.
func TestReadsWaitForAnotherConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := fitted(dgxh100.New())
		s.InitFunc = func() nvml.Return {
			time.Sleep(500 * time.Millisecond)
			return nvml.SUCCESS
		}
		failUUID(gpu(s, 3), nvml.ERROR_GPU_IS_LOST)
		sampler := device.NewSampler(device.Options{Sources: []device.Source{NewOver(s, Options{})}, Clock: clock.System()})
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Second)
		defer cancel()
		go sampler.Run(ctx)
		time.Sleep(2050 * time.Millisecond)
		for range 1900 {
			time.Sleep(100 * time.Millisecond)
			if status := sampler.Statuses()[0]; !status.Up {
				t.Fatalf("the source says %+v", status)
			}
		}
		if samples := sampler.Latest(); len(samples) != 7 || len(s.InitCalls()) < 3 {
			t.Errorf("%d samples after %d initializations", len(samples), len(s.InitCalls()))
		}
		<-ctx.Done()
		time.Sleep(time.Second)
	})
}
