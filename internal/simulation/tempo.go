package simulation

import (
	"context"
	"time"
)

// tempo is the time of the scenario, which may pass faster than the world's.
type tempo struct {
	began time.Time
	speed float64 // seconds of the scenario in one of the world's
}

// now is how long the scenario has been going on.
func (t tempo) now() time.Duration { return time.Duration(float64(time.Since(t.began)) * t.speed) }

// until waits for a time of the scenario. It reports false if ctx ended first.
func (t tempo) until(ctx context.Context, at time.Duration) bool {
	timer := time.NewTimer(time.Duration(float64(at-t.now()) / t.speed))
	defer timer.Stop()
	select {
	case <-timer.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}
