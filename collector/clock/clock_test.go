package clock_test

import (
	"testing"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/clock"
)

func TestInstant(t *testing.T) {
	var never clock.Instant
	if !never.IsZero() {
		t.Error("the zero instant is not never")
	}
	now := clock.System()
	first := now()
	if first.IsZero() {
		t.Error("the first instant of a clock means never")
	}
	if second := now(); second.Since(first) < 0 {
		t.Errorf("time ran backwards by %v", first.Since(second))
	}
	// A wall clock that jumps changes no duration.
	jumped := first.Add(time.Second)
	jumped.Wall = jumped.Wall.Add(-24 * time.Hour)
	if got := jumped.Since(first); got != time.Second {
		t.Errorf("a second is %v", got)
	}
}
