package diagnosis

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"
)

const (
	// turnWork is how much work a namespace may have done before the next one
	// has its turn.
	turnWork = 100 * time.Millisecond
	// orderWork is how much work the diagnosis of one order may take in all.
	orderWork = 4 * time.Second
)

// errSuspended ends work at the end of a turn, where it is not to go on later.
var errSuspended = errors.New("the turn is over")

// overLimit says that the diagnosis of an order needs more work than it may.
type overLimit struct {
	limit       time.Duration
	evaluations int // of selectors
	searches    int // of the allocator, each on one node
}

func (o *overLimit) Error() string {
	return fmt.Sprintf("the diagnosis needs more than %v of work: by then %d evaluations of selectors and %d searches on nodes had been made",
		o.limit, o.evaluations, o.searches)
}

// meter measures the work on one order, keeps it within its limit, and divides
// it into turns. Without a meter there is nothing but the context to end work.
type meter struct {
	pace    *pace
	limit   time.Duration // 0: none
	suspend func() error  // called when the turn is over

	used, turn  time.Duration // in all, and in this turn
	seen        time.Duration // of the pace's work, so much has been added
	evaluations int
	searches    int
}

func newMeter(pace *pace, limit time.Duration) *meter {
	return &meter{pace: pace, limit: limit}
}

// resume begins a turn. What others worked since the last one does not count.
func (m *meter) resume() {
	m.turn, m.seen = 0, m.pace.worked()
}

func (m *meter) measure() {
	worked := m.pace.worked()
	m.used += worked - m.seen
	m.turn += worked - m.seen
	m.seen = worked
}

// pause is called between two pieces of work. It rests as the pace demands, and
// waits for the next turn at the end of one. Its error is the context's, or an
// overLimit.
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

// diagnosis is that of one order, which can be suspended. Its methods are called
// from one goroutine.
type diagnosis struct {
	meter   *meter
	version uint64 // of the inventory when it began
	result  *judgement
	next    func() (struct{}, bool)
	stop    func() // ends it, wherever it is
}

// begin makes the diagnosis of an order, with nothing done yet.
func (q *queue) begin(ctx context.Context, it *item) *diagnosis {
	d := &diagnosis{meter: newMeter(q.pace, orderWork), version: q.judge.inventory.Version()}
	d.next, d.stop = iter.Pull(func(yield func(struct{}) bool) {
		d.meter.suspend = func() error {
			if !yield(struct{}{}) {
				return errSuspended
			}
			return nil
		}
		d.result = q.judge.consider(ctx, d.meter, q.ground, it.order, false)
	})
	return d
}

// resume goes on for a turn, and reports whether the diagnosis has come to its
// end.
func (d *diagnosis) resume() bool {
	d.meter.resume()
	_, more := d.next()
	d.meter.measure()
	return !more
}
