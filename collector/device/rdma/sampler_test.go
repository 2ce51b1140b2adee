package rdma

import (
	"context"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/device"
	"github.com/dra-exporter/dra-exporter/test/fakes/sysfstest"
)

// A virtual function comes and goes while the adapters are being sampled.
func TestSamplesFunctionsThatComeAndGo(t *testing.T) {
	defer goleak.VerifyNone(t)
	tree := sysfstest.Plant(t, "rdma")
	sampler := device.NewSampler(device.Options{
		Sources: []device.Source{New(tree.Root)}, Interval: 20 * time.Millisecond, SlowInterval: 50 * time.Millisecond, Clock: clock.System(),
	})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		sampler.Run(ctx)
		close(ended)
	}()
	there := func(want int) func() bool {
		return func() bool { return len(sampler.Latest()) == want && sampler.Statuses()[0].Up }
	}
	sysfstest.Eventually(t, "four functions", there(4))
	tree.Rename("class/infiniband/mlx5_2", "class_away")
	tree.Rename(virtual+"infiniband", "away")
	sysfstest.Eventually(t, "three functions", there(3))
	tree.Rename("away", virtual+"infiniband")
	tree.Rename("class_away", "class/infiniband/mlx5_2")
	sysfstest.Eventually(t, "four functions again", there(4))
	cancel()
	<-ended
}

// Ten thousand samples leak neither memory nor files.
func TestNothingIsLeftBehind(t *testing.T) {
	defer goleak.VerifyNone(t)
	s := New(sysfstest.Plant(t, "rdma").Root)
	sysfstest.LeavesNothing(t, func() []device.Reader { return adapters(t, s) })
}

// BenchmarkRead measures one fast read of one adapter, files of a disk's cache
// standing in for the kernel's.
func BenchmarkRead(b *testing.B) {
	tree := sysfstest.Plant(b, "rdma")
	r := adapters(b, New(tree.Root))[1]
	b.ReportAllocs()
	for b.Loop() {
		if _, err := r.Read(b.Context(), device.Fast); err != nil {
			b.Fatal(err)
		}
	}
}
