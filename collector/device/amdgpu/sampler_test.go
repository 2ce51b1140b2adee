package amdgpu

import (
	"context"
	"os"
	"runtime"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/device"
	"github.com/dra-exporter/dra-exporter/collector/device/sysfs/sysfstest"
	"github.com/dra-exporter/dra-exporter/collector/source"
)

// eventually waits until what is asked for holds.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for range 2000 {
		if holds() {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("never: %s", what)
}

// A card that disappears while it is being sampled takes nothing with it, and
// one that comes back is read again.
func TestSamplesCardsThatComeAndGo(t *testing.T) {
	defer goleak.VerifyNone(t)
	tree := sysfstest.Plant(t, "amdgpu")
	sampler := device.NewSampler(device.Options{
		Sources: []device.Source{New(tree.Root)}, Interval: 20 * time.Millisecond, SlowInterval: 50 * time.Millisecond, Clock: clock.System(),
	})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		sampler.Run(ctx)
		close(ended)
	}()
	there := func() (n int) {
		for _, sample := range sampler.Latest() {
			if len(sample.Readings) > 8 {
				n++
			}
		}
		return n
	}
	eventually(t, "three cards", func() bool { return there() == 3 })
	tree.Rename("bus/pci/devices/0000:e2:00.0", "away")
	tree.Rename("bus/pci/drivers/amdgpu/0000:e2:00.0", "bound")
	eventually(t, "two cards", func() bool { return there() == 2 && sampler.Statuses()[0].Up })
	tree.Rename("away", "bus/pci/devices/0000:e2:00.0")
	tree.Rename("bound", "bus/pci/drivers/amdgpu/0000:e2:00.0")
	eventually(t, "three cards again", func() bool { return there() == 3 })
	tree.Break(whole + "gpu_busy_percent")
	eventually(t, "an impaired source", func() bool {
		status := sampler.Statuses()[0]
		return status.Up && status.Reason == source.ReasonDeviceError
	})
	cancel()
	<-ended
}

// openFiles is how many files the process has open.
func openFiles(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}

// Ten thousand samples leave nothing behind.
func TestNothingIsLeftBehind(t *testing.T) {
	defer goleak.VerifyNone(t)
	tree := sysfstest.Plant(t, "amdgpu")
	s := New(tree.Root)
	sample := func(times int) {
		for i := range times {
			tier := device.Fast
			if i%30 == 0 {
				tier = device.Slow
			}
			for _, r := range cards(t, s) {
				if _, err := r.Read(t.Context(), tier); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	sample(100)
	files, bytes := openFiles(t), heap()
	times := 10_000
	if testing.Short() {
		times = 500
	}
	sample(times)
	if now := openFiles(t); now > files {
		t.Errorf("%d files were open and %d are", files, now)
	}
	if now := heap(); now > bytes+1<<20 {
		t.Errorf("%d bytes were in use and %d are", bytes, now)
	}
}

// BenchmarkRead measures one fast read of one card, files of a disk's cache
// standing in for the kernel's.
func BenchmarkRead(b *testing.B) {
	tree := sysfstest.Plant(b, "amdgpu")
	r := cards(b, New(tree.Root))[1]
	b.ReportAllocs()
	for b.Loop() {
		if _, err := r.Read(b.Context(), device.Fast); err != nil {
			b.Fatal(err)
		}
	}
}
