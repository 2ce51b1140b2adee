package watch

import (
	"context"
	"math/rand/v2"
	"time"
)

const (
	firstDelay     = 250 * time.Millisecond // after a cycle of list and watch has ended
	maxDelay       = 2500 * time.Millisecond
	permanentDelay = 30 * time.Second // after a permanent error
	resetAfter     = 30 * time.Second // a cycle as long as this resets the delay
)

// Backoff determines the delay between two cycles of list and watch. It is not
// safe for concurrent use.
type Backoff struct {
	next      time.Duration
	permanent int                                     // consecutive cycles that ended with a permanent error
	jitter    func(limit time.Duration) time.Duration // random, in [0, limit)
}

// NewBackoff returns the backoff before the first cycle.
func NewBackoff(jitter func(time.Duration) time.Duration) *Backoff {
	return &Backoff{next: firstDelay, jitter: jitter}
}

// Next returns the delay after a cycle of the given duration. err is the failure
// that ended it, nil for none. An API server that is starting may briefly refuse
// requests that it allows later, so only the second permanent error in a row
// causes the long delay.
func (b *Backoff) Next(err error, took time.Duration) time.Duration {
	if took > resetAfter {
		b.next = firstDelay
	}
	delay := b.next + b.jitter(b.next)
	b.next = min(2*b.next, maxDelay)
	if !IsPermanent(unwrapError(err)) {
		b.permanent = 0
		return delay
	}
	if b.permanent++; b.permanent > 1 {
		return permanentDelay + b.jitter(permanentDelay/2)
	}
	return delay
}

// Jitter returns a random duration in [0, limit).
func Jitter(limit time.Duration) time.Duration {
	if limit <= 0 {
		return 0
	}
	return rand.N(limit)
}

// Sleep returns after the duration, or when ctx ends.
func Sleep(ctx context.Context, wait time.Duration) {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
