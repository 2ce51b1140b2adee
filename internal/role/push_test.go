package role

import (
	"context"
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/device"
	"github.com/dra-exporter/dra-exporter/collector/node"
)

// A push has the rows of a snapshot and the model that they are of.
func TestPushHasTheModel(t *testing.T) {
	n, err := NewNodeRole(NodeOptions{
		Name: "n", Config: node.Config{Interval: 50 * time.Millisecond}, SlowInterval: 30 * time.Second,
		Clock: clock.System(), Sources: []device.Source{&lister{gate: &Gate{}}}, Socket: filepath.Join(t.TempDir(), "kubelet.sock"),
	}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	if rows, model, at := n.snapshot(); rows != nil || model != nil || !at.IsZero() {
		t.Errorf("%d rows of %v at %v before the first snapshot", len(rows), model, at)
	}
	ctx, stop := context.WithCancel(t.Context())
	var running Parts
	defer running.Wait(n.log)
	defer stop()
	n.Start(ctx, &running)
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		rows, model, at := n.snapshot()
		if model != nil && len(model.Devices) == 1 && model.Devices[0].UUID == "GPU-0" && len(rows) > 0 && !at.IsZero() {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d rows of %+v at %v", len(rows), model, at)
		}
	}
}
