//go:build cgo

package nvml

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock/dgxh100"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock/server"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/device"
)

// without is a library that lacks some functions.
func without(names ...string) func(string) error {
	return func(name string) error {
		if slices.Contains(names, name) {
			return errors.New("undefined symbol")
		}
		return nil
	}
}

// kernel is a sysfs in which NVIDIA's driver is bound to the GPUs with the
// indices.
func kernel(t *testing.T, sysfs string, gpus ...int) {
	t.Helper()
	folder := filepath.Join(sysfs, "bus/pci/drivers/nvidia")
	if err := errors.Join(os.RemoveAll(folder), os.MkdirAll(filepath.Join(folder, "module"), 0o755)); err != nil {
		t.Fatal(err)
	}
	for _, i := range gpus {
		if err := os.Mkdir(filepath.Join(folder, fmt.Sprintf("0000:%xa:00.0", i+1)), 0o755); err != nil {
			t.Fatal(err)
		}
	}
}

// lose makes every call to a GPU say that it is lost.
func lose(d *server.Device, ret nvml.Return) {
	d.GetMemoryInfo_v2Func = func() (nvml.Memory_v2, nvml.Return) { return nvml.Memory_v2{}, ret }
	d.GetMigModeFunc = func() (int, int, nvml.Return) { return 0, 0, ret }
	d.GetUtilizationRatesFunc = func() (nvml.Utilization, nvml.Return) { return nvml.Utilization{}, ret }
}

// keys are the keys of the readers, and what each says of being lost.
func keys(t *testing.T, from *Source) string {
	t.Helper()
	found, _ := from.Readers(t.Context())
	var all []string
	for _, r := range found {
		text := written(r.Read(t.Context(), device.Fast))
		all = append(all, fmt.Sprintf("%s:%s", r.Key(), strings.TrimPrefix(linesWith(text, "lost"), "lost  ")))
	}
	return strings.Join(all, " ")
}

// A GPU that has fallen off the bus is reported as lost, also once the library
// does not list it any more, until it is back.
func TestFallenOffTheBus(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := fitted(dgxh100.New())
		s.Devices = s.Devices[:3]
		board := withEvents(s)
		slice(t, gpu(s, 1), 0)
		from := NewOver(s, Options{})
		expect := func(when, want string) {
			t.Helper()
			if got := keys(t, from); got != want {
				t.Errorf("%s: there are %s, want %s", when, got, want)
			}
		}
		expect("at first", "GPU-0:0 GPU-1:0 GPU-2:0")
		memory, mig, rates := gpu(s, 1).GetMemoryInfo_v2Func, gpu(s, 1).GetMigModeFunc, gpu(s, 1).GetUtilizationRatesFunc
		board.raise(gpu(s, 1), 79, noInstance, noInstance)
		lose(gpu(s, 1), nvml.ERROR_GPU_IS_LOST)
		expect("it fell", "GPU-0:0 GPU-1:1 GPU-2:0")
		all := s.Devices
		s.Devices = []nvml.Device{all[0], all[2]}
		time.Sleep(time.Minute)
		expect("it is not listed", "GPU-0:0 GPU-1:1 GPU-2:0")
		observations, err := from.readers["GPU-1"].Read(t.Context(), device.Slow)
		if len(observations) != 2 || observations[1].Device.UUID != "MIG-GPU-1-0" || !errors.Is(err, nvml.ERROR_GPU_IS_LOST) {
			t.Errorf("it is reported as\n%s", written(observations, err))
		}
		if got := counts(from); got != "map[GPU-1:79:1]" {
			t.Errorf("received %s", got)
		}
		// It is looked for again and again.
		before := len(s.InitCalls())
		for range 40 {
			time.Sleep(30 * time.Second)
			_, _ = from.Readers(t.Context())
		}
		if n := len(s.InitCalls()) - before; n < 3 || n > 8 {
			t.Errorf("the library was initialized %d more times in 20 minutes", n)
		}
		s.Devices = all
		gpu(s, 1).GetMemoryInfo_v2Func, gpu(s, 1).GetMigModeFunc, gpu(s, 1).GetUtilizationRatesFunc = memory, mig, rates
		expect("it is back", "GPU-0:0 GPU-1:0 GPU-2:0")
		if err := from.Close(); err != nil {
			t.Error(err)
		}
	})
}

// A lost GPU may stay listed while its handle is refused. It is reported as lost
// all the while, and found again once it has been repaired.
func TestLostAndRefused(t *testing.T) {
	for _, refusal := range []nvml.Return{
		nvml.ERROR_GPU_IS_LOST, nvml.ERROR_UNKNOWN, nvml.ERROR_IRQ_ISSUE, nvml.ERROR_INSUFFICIENT_POWER, nvml.ERROR_NO_PERMISSION,
	} {
		synctest.Test(t, func(t *testing.T) {
			s := fitted(dgxh100.New())
			s.Devices = s.Devices[:2]
			var broken, refused atomic.Bool
			handle, mig := s.DeviceGetHandleByIndexFunc, gpu(s, 1).GetMigModeFunc
			s.InitFunc = func() nvml.Return {
				refused.Store(broken.Load())
				return nvml.SUCCESS
			}
			s.DeviceGetHandleByIndexFunc = func(i int) (nvml.Device, nvml.Return) {
				if i == 1 && refused.Load() {
					return nil, refusal
				}
				return handle(i)
			}
			gpu(s, 1).GetMigModeFunc = func() (int, int, nvml.Return) {
				if broken.Load() {
					return 0, 0, nvml.ERROR_GPU_IS_LOST
				}
				return mig()
			}
			sampler := device.NewSampler(device.Options{Sources: []device.Source{NewOver(s, Options{})}, Clock: clock.System()})
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				sampler.Run(ctx)
			}()
			expect := func(when string, lost float64) {
				t.Helper()
				samples := sampler.Latest()
				if len(samples) != 2 || len(samples[0].Readings) < 10 {
					t.Fatalf("%v, %s: the samples are %+v", refusal, when, samples)
				}
				age := clock.System()().Wall.Sub(samples[1].At.Wall)
				asLost := slices.ContainsFunc(samples[1].Readings, func(r device.Reading) bool {
					return r.Quantity == device.Lost && r.Value == lost && r.Measured.To == samples[1].At.Elapsed
				})
				if !asLost || age > device.StaleAfter(time.Second) {
					t.Fatalf("%v, %s: after %s it says %v", refusal, when, age, samples[1].Readings)
				}
			}
			time.Sleep(40500 * time.Millisecond)
			expect("at first", 0)
			broken.Store(true)
			time.Sleep(2 * time.Second)
			for second := range 600 {
				time.Sleep(time.Second)
				expect(fmt.Sprintf("%d s after it fell", second), 1)
			}
			broken.Store(false)
			time.Sleep(reconnectMost + 30*time.Second)
			expect("once it has been repaired", 0)
			if n := len(s.InitCalls()); n < 4 || n > 8 {
				t.Errorf("%v: initialized %d times", refusal, n)
			}
			cancel()
			<-ended
		})
	}
}

// A GPU that cannot be identified for a while is still there, and others come and
// go all the same.
func TestOneThatIsRefusedHidesNoOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, sysfs := fitted(dgxh100.New()), t.TempDir()
		all := s.Devices
		there := all[:2]
		s.InitFunc = func() nvml.Return {
			s.Devices = there
			return nvml.SUCCESS
		}
		board := withEvents(s)
		kernel(t, sysfs, 0, 1)
		from := NewOver(s, Options{Sysfs: sysfs})
		look := func(minutes int, want string) {
			t.Helper()
			for range 2 * minutes {
				time.Sleep(30 * time.Second)
				_, _ = from.Readers(t.Context())
			}
			if got := keys(t, from); got != want {
				t.Errorf("there are %s, want %s", got, want)
			}
		}
		look(1, "GPU-0:0 GPU-1:0")
		board.raise(gpu(s, 0), 13, noInstance, noInstance)
		looked()
		failUUID(gpu(s, 0), nvml.ERROR_UNKNOWN)
		look(1, "GPU-1:0")
		if got := counts(from); got != "map[GPU-0:13:1]" {
			t.Errorf("received %s of the GPU that cannot be identified", got)
		}
		kernel(t, sysfs, 1)
		keys(t, from)
		if got := counts(from); got != "map[]" {
			t.Errorf("received %s of a GPU that another driver has", got)
		}
		kernel(t, sysfs, 0, 1)
		look(10, "GPU-1:0")
		kernel(t, sysfs, 0, 1, 2)
		there = all[:3]
		look(6, "GPU-1:0 GPU-2:0")
		gpu(s, 0).GetUUIDFunc = func() (string, nvml.Return) { return "GPU-0", nvml.SUCCESS }
		look(1, "GPU-0:0 GPU-1:0 GPU-2:0")
		look(6, "GPU-0:0 GPU-1:0 GPU-2:0")
		initialized := len(s.InitCalls())
		if look(60, "GPU-0:0 GPU-1:0 GPU-2:0"); len(s.InitCalls()) != initialized {
			t.Errorf("initialized %d times more while nothing happens", len(s.InitCalls())-initialized)
		}
		if err := from.Close(); err != nil {
			t.Error(err)
		}
	})
}

// A GPU that was given to another driver is gone, and not reported as lost.
func TestBoundElsewhere(t *testing.T) {
	for _, bySysfs := range []bool{true, false} { // whether sysfs shows it; else the library does not list it any more
		synctest.Test(t, func(t *testing.T) {
			s, sysfs := fitted(dgxh100.New()), t.TempDir()
			s.Devices = s.Devices[:3]
			board := withEvents(s)
			kernel(t, sysfs, 0, 1, 2)
			from := NewOver(s, Options{Sysfs: sysfs})
			keys(t, from)
			board.raise(gpu(s, 1), 13, noInstance, noInstance)
			looked()
			all := s.Devices
			if bySysfs {
				kernel(t, sysfs, 0, 2)
				lose(gpu(s, 1), nvml.ERROR_GPU_IS_LOST)
				if got := keys(t, from); got != "GPU-0:0 GPU-1: GPU-2:0" {
					t.Errorf("while the library lists it there are %s", got)
				}
				time.Sleep(time.Minute)
			}
			s.Devices = []nvml.Device{all[0], all[2]}
			if got := keys(t, from); got != "GPU-0:0 GPU-2:0" {
				t.Errorf("there are %s", got)
			}
			if got := counts(from); got != "map[]" {
				t.Errorf("received %s of a GPU that is not there", got)
			}

			// And back.
			kernel(t, sysfs, 0, 1, 2)
			s.Devices = []nvml.Device{all[0], fitted(dgxh100.New()).Devices[1], all[2]}
			gpu(s, 1).GetSupportedEventTypesFunc = gpu(s, 0).GetSupportedEventTypesFunc
			gpu(s, 1).RegisterEventsFunc = func(_ uint64, set nvml.EventSet) nvml.Return {
				return board.register(s.Devices[1], nvml.EventTypeXidCriticalError, set)
			}
			if got := keys(t, from); got != "GPU-0:0 GPU-1:0 GPU-2:0" {
				t.Errorf("once it is back there are %s", got)
			}
			board.raise(s.Devices[1], 13, noInstance, noInstance)
			looked()
			if got := counts(from); got != "map[GPU-1:13:2]" {
				t.Errorf("received %s", got)
			}
			if err := from.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// The library lists what was there when it was initialized. Where the kernel
// has another GPU, it is initialized again, once for each.
func TestGPUAppears(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, sysfs := fitted(dgxh100.New()), t.TempDir()
		all := s.Devices
		s.Devices = all[:2]
		listed := 2
		s.InitFunc = func() nvml.Return {
			s.Devices = all[:listed]
			return nvml.SUCCESS
		}
		kernel(t, sysfs, 0, 1)
		from := NewOver(s, Options{Sysfs: sysfs})
		look := func(minutes int) {
			for range 2 * minutes {
				time.Sleep(30 * time.Second)
				readers(t, from)
			}
		}
		look(10)
		if len(s.InitCalls()) != 1 {
			t.Errorf("initialized %d times while nothing happens", len(s.InitCalls()))
		}
		kernel(t, sysfs, 0, 1, 2)
		listed = 3
		look(1)
		if got := keys(t, from); got != "GPU-0:0 GPU-1:0 GPU-2:0" || len(s.InitCalls()) != 2 {
			t.Errorf("a minute later there are %s", got)
		}
		kernel(t, sysfs, 0, 1, 2, 3) // which the library never lists
		look(60)
		if len(s.InitCalls()) != 3 {
			t.Errorf("initialized %d times", len(s.InitCalls()))
		}
		kernel(t, sysfs, 0, 1, 2)
		look(1)
		kernel(t, sysfs, 0, 1, 2, 3)
		listed = 4
		look(1)
		if got := keys(t, from); got != "GPU-0:0 GPU-1:0 GPU-2:0 GPU-3:0" {
			t.Errorf("in the end there are %s", got)
		}
		if err := from.Close(); err != nil {
			t.Error(err)
		}
	})
}

// A GPU that waits for a reset is reported as lost, with everything else that
// it reports. So it stays when it is not listed any more.
func TestResetRequired(t *testing.T) {
	s := fitted(dgxh100.New())
	s.Devices = s.Devices[:1]
	gpu(s, 0).GetMigModeFunc = func() (int, int, nvml.Return) { return 0, 0, nvml.ERROR_RESET_REQUIRED }
	from := NewOver(s, Options{})
	text := read(t, from, 0, device.Fast)
	if got := linesWith(text, "lost", "power ", "error"); got != "lost  1; power  400.5 watts; error: get the MIG mode of GPU-0: ERROR_RESET_REQUIRED" {
		t.Errorf("it says %s", got)
	}
	s.Devices = nil
	if got := keys(t, from); got != "GPU-0:1" {
		t.Errorf("when it is not listed any more there is %s", got)
	}
}

// The XID alone distinguishes a GPU that fell off the bus from one that was
// removed in good order, and another driver is enough for the opposite.
func TestLostByXID(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, sysfs := fitted(dgxh100.New()), t.TempDir()
		s.Devices = s.Devices[:1]
		board := withEvents(s)
		kernel(t, sysfs, 0)
		from := NewOver(s, Options{Sysfs: sysfs})
		keys(t, from)
		board.raise(gpu(s, 0), 79, noInstance, noInstance)
		looked()
		s.Devices = nil
		if got := keys(t, from); got != "GPU-0:1" {
			t.Errorf("after the XID there is %s", got)
		}
		kernel(t, sysfs)
		if got := keys(t, from); got != "" || len(from.XIDs()) != 0 {
			t.Errorf("when it was bound elsewhere there are %s and %v", got, from.XIDs())
		}
		if err := from.Close(); err != nil {
			t.Error(err)
		}
	})
}

// With MIG mode a GPU gains and loses quantities at once.
func TestMIGModeIsSwitched(t *testing.T) {
	s := fitted(dgxh100.New())
	d := gpu(s, 0)
	whole := d.GetUtilizationRatesFunc
	from := NewOver(s, Options{})
	r := readers(t, from)[0]
	expect := func(want string) {
		t.Helper()
		if got := linesWith(written(r.Read(t.Context(), device.Fast)), "utilization", "MIG-", "error"); !strings.HasPrefix(got, want) || want == "" && got != "" {
			t.Errorf("there is %q, want %q", got, want)
		}
	}
	expect("utilization  0.1 ratio")
	slice(t, d, 0)
	expect("MIG-GPU-0-0 ")
	d.MigMode, d.GetUtilizationRatesFunc = nvml.DEVICE_MIG_DISABLE, whole
	_, _ = r.Read(t.Context(), device.Fast)
	expect("utilization  0.1 ratio")
}

// The sampler shows a GPU that fell off the bus within two samples, with the
// XID, while the others go on.
func TestSamplerShowsLostGPU(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := fitted(dgxh100.New())
		board := withEvents(s)
		var falls atomic.Bool
		hang := make(chan struct{})
		gpu(s, 3).GetPowerUsageFunc = func() (uint32, nvml.Return) {
			if falls.Load() {
				<-hang
				return 0, nvml.ERROR_GPU_IS_LOST
			}
			return 1, nvml.SUCCESS
		}
		sampler := device.NewSampler(device.Options{Sources: []device.Source{NewOver(s, Options{})}, Clock: clock.System()})
		ended := make(chan struct{})
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			defer close(ended)
			sampler.Run(ctx)
		}()
		time.Sleep(5500 * time.Millisecond)
		falls.Store(true)
		board.raise(gpu(s, 3), 79, noInstance, noInstance)
		looked()
		expect := func(lost float64) {
			t.Helper()
			samples := sampler.Latest()
			if len(samples) != 8 || len(samples[3].XIDs) != 1 || samples[3].XIDs[0].Code != 79 || len(samples[2].XIDs) != 0 || samples[2].XIDs == nil {
				t.Fatalf("the samples are %+v", samples)
			}
			for _, reading := range samples[3].Readings {
				if reading.Quantity == device.Lost && reading.Value == lost {
					return
				}
			}
			t.Errorf("it is not reported as lost: %v", samples[3].Readings)
		}
		expect(0) // received at once
		time.Sleep(2 * time.Second)
		close(hang)
		synctest.Wait()
		expect(1)
		cancel()
		<-ended
	})
}
