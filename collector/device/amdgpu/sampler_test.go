package amdgpu

import (
	"context"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/device"
	"github.com/dra-exporter/dra-exporter/collector/source"
	"github.com/dra-exporter/dra-exporter/test/fakes/sysfstest"
)

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
	sysfstest.Eventually(t, "three cards", func() bool { return there() == 3 })
	tree.Rename("bus/pci/devices/0000:e2:00.0", "away")
	tree.Rename("bus/pci/drivers/amdgpu/0000:e2:00.0", "bound")
	sysfstest.Eventually(t, "two cards", func() bool { return there() == 2 && sampler.Statuses()[0].Up })
	tree.Rename("away", "bus/pci/devices/0000:e2:00.0")
	tree.Rename("bound", "bus/pci/drivers/amdgpu/0000:e2:00.0")
	sysfstest.Eventually(t, "three cards again", func() bool { return there() == 3 })
	tree.Break(whole + "gpu_busy_percent")
	sysfstest.Eventually(t, "an impaired source", func() bool {
		status := sampler.Statuses()[0]
		return status.Up && status.Reason == source.ReasonDeviceError
	})
	cancel()
	<-ended
}

// Ten thousand samples leak neither memory nor files.
func TestNothingIsLeftBehind(t *testing.T) {
	defer goleak.VerifyNone(t)
	s := New(sysfstest.Plant(t, "amdgpu").Root)
	sysfstest.LeavesNothing(t, func() []device.Reader { return cards(t, s) })
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
