package diagnosis

import (
	"context"
	"fmt"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/clock"
)

const (
	leastWork  = 5 * time.Millisecond // below this a rest is not worth a timer
	leastShare = 0.01                 // of a core: with less, work would never end

	// turnWork is how much work a namespace may have done before it is the next
	// one's turn.
	turnWork = 100 * time.Millisecond
	// podWork is how much work the diagnosis of one pod may take in all.
	podWork = 4 * time.Second
)

// pace keeps work within a share of a core: work of duration t is followed by
// a rest of t × (1/share − 1). It measures elapsed time, which on a busy
// machine is more than what was computed, so that it rests too long rather than
// too short. A nil pace never rests. It belongs to one goroutine.
type pace struct {
	clock clock.Clock
	share float64
	began clock.Instant // of the work that has not been rested for
	last  clock.Instant // when the clock was last read
	done  time.Duration // work that has been rested for
}

func newPace(clk clock.Clock, share float64) *pace {
	return &pace{clock: clk, share: min(max(share, leastShare), 1), began: clk()}
}

// idle declares that so much of the time that has passed was spent waiting.
func (p *pace) idle(d time.Duration) { p.began = p.began.Add(d) }

// worked returns the work so far, as of the last call of rest.
func (p *pace) worked() time.Duration {
	return p.done + max(p.last.Since(p.began), 0)
}

// rest pauses for the work since the last rest, if there was enough, and returns
// the context's error after that. Small pieces of work add up.
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
	if pause <= 0 {
		return ctx.Err()
	}
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// overLimit is the error of a diagnosis that needs more work than it may.
type overLimit struct {
	limit       time.Duration
	evaluations int // of selectors
	searches    int // of the allocator, each on one node
}

func (o *overLimit) Error() string {
	return fmt.Sprintf("the diagnosis needs more than %v: %d evaluations of selectors and %d searches on nodes were made in this time",
		o.limit, o.evaluations, o.searches)
}

// meter measures the work of one diagnosis, keeps it within its limit, and
// divides it into turns. With a nil meter only the context ends work.
type meter struct {
	pace    *pace
	limit   time.Duration // 0: none
	suspend func() error  // called when the turn is over

	used, turn  time.Duration // in all, and in this turn
	measured    time.Duration // of the pace's work
	evaluations int
	searches    int
}

// resume begins a turn. Work of others since the last turn does not count.
func (m *meter) resume() { m.turn, m.measured = 0, m.pace.worked() }

func (m *meter) measure() {
	worked := m.pace.worked()
	m.used += worked - m.measured
	m.turn += worked - m.measured
	m.measured = worked
}

// pause is called between two pieces of work. It rests as the pace requires, and
// waits for the next turn at the end of one. Its error is the context's, an
// overLimit, or that of suspend.
func (m *meter) pause(ctx context.Context) error {
	if m == nil {
		return ctx.Err()
	}
	if err := m.pace.rest(ctx); err != nil {
		return err
	}
	m.measure()
	switch {
	case m.limit > 0 && m.used >= m.limit:
		return &overLimit{m.limit, m.evaluations, m.searches}
	case m.turn >= turnWork:
		return m.suspend()
	}
	return nil
}

// evaluated is pause after an evaluation of a selector.
func (m *meter) evaluated(ctx context.Context) error {
	if m != nil {
		m.evaluations++
	}
	return m.pause(ctx)
}

// searched counts a search of the allocator.
func (m *meter) searched() {
	if m != nil {
		m.searches++
	}
}
