package diagnosis

import (
	"context"
	"iter"

	"github.com/dra-exporter/dra-exporter/collector/inventory"
)

// turnsPerBackground is how many turns of diagnoses there are for one in the
// background, while diagnoses are queued.
const turnsPerBackground = 4

// background is other work, done in turns as diagnoses are: it is a coroutine that is
// suspended at the end of a turn. It belongs to Run's goroutine.
type background struct {
	work    func(ctx context.Context, pause inventory.Pause) (worked bool, err error)
	pace    *dutyCycle
	changed chan<- struct{} // receives a value after work has ended

	next func() (struct{}, bool) // resumes the work; nil: none is suspended
	end  func()

	worked bool // of the work that has ended last
}

// turn does other work until it ends or the turn is over. It reports whether there
// was something to do. Errors but the end of the context are the work's own.
func (b *background) turn(ctx context.Context) bool {
	if b.work == nil || ctx.Err() != nil {
		return false
	}
	if b.next == nil {
		b.next, b.end = iter.Pull(b.run(ctx))
	}
	if _, suspended := b.next(); suspended {
		return true
	}
	b.next, b.end = nil, nil
	if b.worked {
		notify(b.changed)
	}
	return b.worked
}

// run does the work, and yields at the end of each turn.
func (b *background) run(ctx context.Context) iter.Seq[struct{}] {
	return func(yield func(struct{}) bool) {
		began := b.pace.worked()
		b.worked, _ = b.work(ctx, func(ctx context.Context) error {
			if err := b.pace.rest(ctx); err != nil {
				return err
			}
			if b.pace.worked()-began < turnWork {
				return nil
			}
			if !yield(struct{}{}) {
				return errSuspended
			}
			began = b.pace.worked()
			return nil
		})
	}
}

// stop ends the work if it is suspended.
func (b *background) stop() {
	if b.end != nil {
		b.end()
	}
}
