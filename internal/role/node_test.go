package role

import (
	"context"
	"log/slog"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/device"
	"github.com/dra-exporter/dra-exporter/collector/node"
)

// lister is a source of one device, used by process 10, that lists its processes while
// the gate is open.
type lister struct {
	gate   *Gate
	listed atomic.Int64
}

func (*lister) Name() string                                       { return "lister" }
func (*lister) Close() error                                       { return nil }
func (*lister) Key() string                                        { return "GPU-0" }
func (l *lister) Readers(context.Context) ([]device.Reader, error) { return []device.Reader{l}, nil }
func (l *lister) Read(context.Context, device.Tier) ([]device.Observation, error) {
	o := device.Observation{Device: device.Device{UUID: "GPU-0"}, Readings: []device.Reading{
		{Quantity: device.Utilization, Value: 0.5}, {Quantity: device.MemoryUsed, Value: 100},
	}}
	if l.gate.Open() {
		l.listed.Add(1)
		o.Processes = []device.Process{{PID: 10, Memory: 40, Utilization: 0.25}}
	}
	return []device.Observation{o}, nil
}

// TestOldListsAreNotLookedUp checks that the processes of a device whose reads hang are
// not looked up after their list is stale.
func TestOldListsAreNotLookedUp(t *testing.T) {
	const interval = 100 * time.Millisecond
	gate := &Gate{}
	source := &lister{gate: gate}
	var later atomic.Int64
	now := clock.System()
	n, err := NewNodeRole(NodeOptions{
		Name: "n", Config: node.Config{Interval: interval}, SlowInterval: 30 * time.Second, Processes: true,
		Clock: func() clock.Instant { return now().Add(time.Duration(later.Load())) },
		Gate:  gate, Sources: []device.Source{source}, Socket: filepath.Join(t.TempDir(), "kubelet.sock"), Procfs: t.TempDir(),
	}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	gate.open.Store(true)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); n.sampler.Run(ctx) }()
	defer func() { stop(); <-ended }()
	for deadline := time.Now().Add(30 * time.Second); len(n.processes.pids()) != 1; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("listed %d times, and %v is looked up", source.listed.Load(), n.processes.pids())
		}
	}
	gate.open.Store(false)
	time.Sleep(2 * interval)
	if len(n.processes.pids()) != 1 {
		t.Error("a list that is not stale is not looked up")
	}
	later.Store(int64(device.StaleAfter(interval) + time.Second))
	if old := n.processes.pids(); len(old) != 0 {
		t.Errorf("%v is looked up", old)
	}
}
