package schedule

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// TestRun compares the times of all steps: the first waits for the sources, one
// follows each change, and one each interval.
func TestRun(t *testing.T) {
	for name, test := range map[string]struct {
		settled  time.Duration // after which all sources have been read
		took     time.Duration // by a step
		rest     float64
		changes  []time.Duration
		want     []time.Duration
		until    time.Duration
		interval time.Duration
	}{
		"intervals": {interval: 10 * time.Second, until: 25 * time.Second, want: []time.Duration{0, 10 * time.Second, 20 * time.Second}},
		"changes": {
			interval: 10 * time.Second, until: 13 * time.Second, changes: []time.Duration{time.Second, time.Second + time.Millisecond, 2 * time.Second},
			want: []time.Duration{0, time.Second, time.Second + spacing, 2 * time.Second, 12 * time.Second},
		},
		"sources settle": {interval: time.Minute, settled: 2 * time.Second, until: 3 * time.Second, want: []time.Duration{2 * time.Second}},
		"sources never settle": {
			interval: time.Minute, settled: time.Hour, until: 6 * time.Second, want: []time.Duration{5 * time.Second},
		},
		"ends before sources settle": {interval: time.Minute, settled: time.Hour, until: time.Second},
		"rests": {
			interval: time.Minute, took: time.Second, rest: 3, until: 10 * time.Second, changes: []time.Duration{500 * time.Millisecond, 5 * time.Second},
			want: []time.Duration{0, 4 * time.Second, 8 * time.Second},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), test.until)
				defer cancel()
				began := time.Now()
				wake := make(chan struct{}, 1)
				for _, after := range test.changes {
					time.AfterFunc(after, func() {
						select {
						case wake <- struct{}{}:
						default:
						}
					})
				}
				var steps []time.Duration
				Run(ctx, Options{
					Settled:    func() bool { return time.Since(began) >= test.settled },
					SettleTime: 5 * time.Second, Wake: wake, Interval: test.interval, Rest: test.rest,
				}, func(context.Context) time.Duration {
					steps = append(steps, time.Since(began).Round(time.Millisecond))
					time.Sleep(test.took)
					return test.took
				})
				if !slices.Equal(steps, test.want) {
					t.Errorf("steps at %v, want %v", steps, test.want)
				}
			})
		})
	}
}
