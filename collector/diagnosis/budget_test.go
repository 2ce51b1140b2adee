package diagnosis

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/clock"
)

// A pace of a quarter rests three times as long as was worked, when nothing is saved.
func TestPaceRests(t *testing.T) {
	for _, test := range []struct {
		name  string
		share float64
		work  time.Duration
		rest  time.Duration
	}{
		{"a quarter of a core", 0.25, 40 * time.Millisecond, 120 * time.Millisecond},
		{"half a core", 0.5, 40 * time.Millisecond, 40 * time.Millisecond},
		{"a whole core", 1, 40 * time.Millisecond, 0},
		{"more than there is", 7, 40 * time.Millisecond, 0},
		{"nothing is as little as can be", 0, 10 * time.Millisecond, 990 * time.Millisecond},
		{"too little work to rest for", 0.25, 4 * time.Millisecond, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				clk := clock.System()
				p := newDutyCycle(clk, test.share)
				p.saved = 0
				time.Sleep(test.work)
				before := clk()
				if err := p.rest(t.Context()); err != nil {
					t.Fatal(err)
				}
				if got := clk().Since(before); got != test.rest {
					t.Errorf("rested %v after %v, want %v", got, test.work, test.rest)
				}
			})
		})
	}
}

// Little pieces of work add up until they are worth a rest, and a rest is not
// itself rested for.
func TestPaceAddsUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clk := clock.System()
		p := newDutyCycle(clk, 0.25)
		p.saved = 0
		start := clk()
		for range 100 {
			time.Sleep(2 * time.Millisecond)
			if err := p.rest(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		worked, elapsed := 200*time.Millisecond, clk().Since(start)
		if share := float64(worked) / float64(elapsed); share > 0.26 || share < 0.24 {
			t.Errorf("worked %.3f of the time, want 0.25", share)
		}
	})
}

// What was not used of the share is used at twice the share, at the start and
// after idle time, and never more than was saved.
func TestPaceUsesWhatIsSaved(t *testing.T) {
	for _, test := range []struct {
		name    string
		share   float64
		idle    time.Duration // since everything that was saved was used
		work    time.Duration
		elapsed time.Duration // of the work with its rests
	}{
		{"less than is saved", 0.25, time.Hour, 4 * time.Second, 8 * time.Second},
		{"as much as at twice the share in the saving time", 0.25, time.Hour, 5 * time.Second, 10 * time.Second},
		{"more than is saved", 0.25, time.Hour, 6 * time.Second, 14 * time.Second},
		{"a part of the saving time", 0.25, 4 * time.Second, 3 * time.Second, 8 * time.Second},
		{"nothing", 0.25, 0, 3 * time.Second, 12 * time.Second},
		{"never more than a core", 0.8, time.Hour, 20 * time.Second, 20 * time.Second},
		{"a whole core", 1, time.Hour, 20 * time.Second, 20 * time.Second},
		{"a small share", 0.01, time.Hour, 400 * time.Millisecond, 30 * time.Second},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				clk := clock.System()
				p := newDutyCycle(clk, test.share)
				if p.saved != p.mostSaved() {
					t.Errorf("%v is saved at the start", p.saved)
				}
				p.saved = 0
				time.Sleep(test.idle)
				p.idle(test.idle)
				start := clk()
				for range test.work / (10 * time.Millisecond) {
					time.Sleep(10 * time.Millisecond)
					if err := p.rest(t.Context()); err != nil {
						t.Fatal(err)
					}
				}
				if got := clk().Since(start); got < test.elapsed*99/100 || got > test.elapsed*101/100 {
					t.Errorf("%v of work took %v, want %v", test.work, got, test.elapsed)
				}
				if p.saved < 0 || p.saved > p.mostSaved() {
					t.Errorf("%v is saved", p.saved)
				}
			})
		})
	}
}

func TestPaceEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		clk := clock.System()
		p := newDutyCycle(clk, 0.01)
		p.saved = 0
		time.Sleep(50 * time.Millisecond)
		before := clk()
		if err := p.rest(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("rest = %v, want the context's error", err)
		}
		if got := clk().Since(before); got != 50*time.Millisecond {
			t.Errorf("rested %v beyond the end of the context", got)
		}
		var none *dutyCycle
		if err := none.rest(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("rest without a pace = %v, want the context's error", err)
		}
	})
}
