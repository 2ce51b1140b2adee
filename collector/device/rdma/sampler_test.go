package rdma

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
	eventually(t, "four functions", there(4))
	tree.Rename("class/infiniband/mlx5_2", "class_away")
	tree.Rename(virtual+"infiniband", "away")
	eventually(t, "three functions", there(3))
	tree.Rename("away", virtual+"infiniband")
	tree.Rename("class_away", "class/infiniband/mlx5_2")
	eventually(t, "four functions again", there(4))
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
	tree := sysfstest.Plant(t, "rdma")
	s := New(tree.Root)
	sample := func(times int) {
		for i := range times {
			tier := device.Fast
			if i%30 == 0 {
				tier = device.Slow
			}
			for _, r := range adapters(t, s) {
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
