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

	// What a duty cycle does not use of its share in this time is saved, and may be used
	// later at twice the share, for a backlog that comes at once, as after the
	// start: 1,000 different specifications with 80,000 devices are 5 s of work.
	savingTime = 10 * time.Second

	// turnWork is how much work a namespace may have done before it is the next
	// one's turn.
	turnWork = 100 * time.Millisecond
	// podWork is how much work the diagnosis of one pod may take in all.
	podWork = 4 * time.Second
)

// dutyCycle keeps work within a share of a core: work of duration t is followed by
// a rest of t × (1/share − 1), or by a shorter one while there is work that has
// been saved. Any period therefore has at most as much work as its share of the
// period and savingTime together. It measures elapsed time, which on a busy
// machine is more than what was computed, so that it rests too long rather than
// too short. A nil dutyCycle never rests. It belongs to one goroutine.
type dutyCycle struct {
	clock clock.Clock
	share float64
	saved time.Duration // work beyond the share that may be done
	began clock.Instant // of the work that has not been rested for
	last  clock.Instant // when the clock was last read
	done  time.Duration // work that has been rested for
}

// newDutyCycle returns a duty cycle that has saved as much as it can.
func newDutyCycle(clk clock.Clock, share float64) *dutyCycle {
	p := &dutyCycle{clock: clk, share: min(max(share, leastShare), 1), began: clk()}
	p.saved = p.mostSaved()
	return p
}

func (p *dutyCycle) mostSaved() time.Duration { return time.Duration(p.share * float64(savingTime)) }

// idle declares that so much of the time that has passed was spent waiting.
func (p *dutyCycle) idle(d time.Duration) {
	p.began = p.began.Add(d)
	p.saved = min(p.saved+time.Duration(float64(d)*p.share), p.mostSaved())
}

// worked returns the work so far, as of the last call of rest.
func (p *dutyCycle) worked() time.Duration {
	return p.done + max(p.last.Since(p.began), 0)
}

// rest pauses for the work since the last rest, if there was enough, and returns
// the context's error after that. Small pieces of work add up.
func (p *dutyCycle) rest(ctx context.Context) error {
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
	pause := p.pauseAfter(worked)
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

// pauseAfter returns how long to rest for work, and takes from what is saved what
// the rest is too short for.
func (p *dutyCycle) pauseAfter(worked time.Duration) time.Duration {
	rest := func(share float64) float64 { return float64(worked) * (1/share - 1) }
	whole, short := rest(p.share), rest(min(2*p.share, 1))
	missing := time.Duration((whole - short) * p.share)
	if missing > p.saved {
		return time.Duration(whole)
	}
	p.saved -= missing
	return time.Duration(short)
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

// workMeter measures the work of one diagnosis, keeps it within its limit, and
// divides it into turns. With a nil meter only the context ends work.
type workMeter struct {
	pace    *dutyCycle
	limit   time.Duration // 0: none
	suspend func() error  // called when the turn is over

	used, turn  time.Duration // in all, and in this turn
	measured    time.Duration // of the pace's work
	evaluations int
	searches    int
}

// resume begins a turn. Work of others since the last turn does not count.
func (m *workMeter) resume() { m.turn, m.measured = 0, m.pace.worked() }

func (m *workMeter) measure() {
	worked := m.pace.worked()
	m.used += worked - m.measured
	m.turn += worked - m.measured
	m.measured = worked
}

// pause is called between two pieces of work. It rests as the pace requires, and
// waits for the next turn at the end of one. Its error is the context's, an
// overLimit, or that of suspend.
func (m *workMeter) pause(ctx context.Context) error {
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
func (m *workMeter) evaluated(ctx context.Context) error {
	if m != nil {
		m.evaluations++
	}
	return m.pause(ctx)
}

// searched counts a search of the allocator.
func (m *workMeter) searched() {
	if m != nil {
		m.searches++
	}
}
