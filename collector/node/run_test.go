package node

import (
	"context"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/clock"
)

// Readings that come a little earlier or later than an interval after those
// before make one step each, and a source that cannot be read does not keep
// time from passing.
func TestOneStepForEachChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var steps atomic.Int64
		wake := make(chan struct{}, 1)
		inputs := Inputs{Gather: func() Facts { steps.Add(1); return Facts{} }, Settled: func() bool { return true }, Wake: wake}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan struct{})
		runner := NewRunner(Config{Node: "n", Interval: time.Second}, inputs, clock.System(), slog.New(slog.DiscardHandler))
		go func() { defer close(ended); runner.Run(ctx) }()
		synctest.Wait()
		steps.Store(0)
		const changes = 30
		for i := range changes {
			time.Sleep(time.Second + time.Duration(i%3-1)*40*time.Millisecond)
			wake <- struct{}{}
			synctest.Wait()
		}
		if steps.Load() != changes {
			t.Errorf("%d steps for %d changes", steps.Load(), changes)
		}
		time.Sleep(3100 * time.Millisecond)
		if idle := steps.Load() - changes; idle != 2 {
			t.Errorf("%d steps in three intervals without readings, want 2", idle)
		}
		stop()
		<-ended
	})
}
