package diagnosis

import (
	"context"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/clock"
)

const (
	leastWork  = 5 * time.Millisecond // below this a rest is not worth a timer
	leastShare = 0.01                 // of a core: what is less would never come to an end
)

// pace keeps work within a share of a core: work of duration t is followed by
// a rest of t × (1/share − 1). It measures elapsed time, which on a busy
// machine is more than what was computed, so it errs towards rest. A nil pace
// never rests. It belongs to one goroutine.
type pace struct {
	clock clock.Clock
	share float64
	began clock.Instant // of the work that has not been rested for
	last  clock.Instant // when the clock was looked at last
	done  time.Duration // work that has been rested for
}

func newPace(clk clock.Clock, share float64) *pace {
	return &pace{clock: clk, share: min(max(share, leastShare), 1), began: clk()}
}

// idle says that so much of the time that has passed was spent waiting.
func (p *pace) idle(d time.Duration) { p.began = p.began.Add(d) }

// worked is how much has been worked in all, as of the last rest.
func (p *pace) worked() time.Duration {
	return p.done + max(p.last.Since(p.began), 0)
}

// rest pauses for the work since the rest before, if it was worth one, and
// returns the context's error once that is done. Little pieces of work add up.
func (p *pace) rest(ctx context.Context) error {
	if p == nil {
		return ctx.Err()
	}
	now := p.clock()
	p.last = now
	worked := now.Since(p.began)
	if worked < leastWork {
		return ctx.Err()
	}
	p.done += worked
	pause := time.Duration(float64(worked) * (1/p.share - 1))
	p.began = now.Add(pause)
	return sleep(ctx, pause)
}

// sleep waits for d, or until the context is done, whose error it returns.
func sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
