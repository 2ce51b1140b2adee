// Package schedule decides when a role's reducer makes a step.
package schedule

import (
	"context"
	"time"
)

// spacing is the shortest pause between two steps. It bounds how many steps a
// burst of changes can cause.
const spacing = 50 * time.Millisecond

// Options define when a step is due.
type Options struct {
	// Settled reports whether every source has been read once, or has failed.
	// The first step waits for it, but at most for SettleTime.
	Settled    func() bool
	SettleTime time.Duration

	Wake     <-chan struct{} // something has changed
	Interval time.Duration   // after which a step is made although nothing has changed
	Rest     float64         // pause after a step, as a multiple of its duration

	Observe func(took time.Duration) // is called after each step; may be nil
}

// Run calls step until the context ends: first when all sources have settled,
// then after each change and after each interval without one. Step returns its
// duration.
func Run(ctx context.Context, options Options, step func(context.Context) time.Duration) {
	if !settle(ctx, options) {
		return
	}
	ticker := time.NewTicker(options.Interval)
	defer ticker.Stop()
	for {
		took := step(ctx)
		if options.Observe != nil {
			options.Observe(took)
		}
		ticker.Reset(options.Interval)
		rest := time.NewTimer(max(spacing, time.Duration(options.Rest*float64(took)))) // without a wake until it is waited for
		select {
		case <-ctx.Done():
			return
		case <-options.Wake:
		case <-ticker.C:
		}
		select {
		case <-ctx.Done():
			return
		case <-rest.C:
		}
		select {
		case <-options.Wake: // the step has that change, too
		default:
		}
	}
}

// settle waits until all sources have settled, and reports whether the context
// is still valid.
func settle(ctx context.Context, options Options) bool {
	const pause = 20 * time.Millisecond
	for waited := time.Duration(0); waited < options.SettleTime && !options.Settled(); waited += pause {
		if !wait(ctx, pause) {
			return false
		}
	}
	return ctx.Err() == nil
}

// wait reports whether the pause passed before the context ended.
func wait(ctx context.Context, pause time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(pause):
		return true
	}
}
