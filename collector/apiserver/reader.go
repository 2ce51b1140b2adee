package apiserver

import (
	"context"
	"sync"
	"time"
)

// reader carries out an agenda: a few reads at a time, and each start some
// time after the one before, so that neither a start of the agent nor the
// return of the API server makes a burst of requests.
type reader struct {
	parallel int
	pace     time.Duration // between two starts
	wake     chan struct{} // capacity 1: the agenda has changed

	// next takes what is due and returns the read to do, or nil and how
	// long nothing will be due.
	next func() (read func(ctx context.Context), wait time.Duration)
}

// run returns after ctx has ended and all reads have returned.
func (r *reader) run(ctx context.Context) {
	var reads sync.WaitGroup
	defer reads.Wait()
	slots := make(chan struct{}, r.parallel)
	for ctx.Err() == nil {
		select {
		case slots <- struct{}{}:
		case <-ctx.Done():
			return
		}
		read, wait := r.next()
		if read == nil {
			<-slots
			r.await(ctx, wait)
			continue
		}
		reads.Go(func() {
			defer signal(r.wake)
			defer func() { <-slots }()
			read(ctx)
		})
		sleep(ctx, r.pace)
	}
}

// await waits for a change of the agenda, but not for long.
func (r *reader) await(ctx context.Context, wait time.Duration) {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-r.wake:
	case <-ctx.Done():
	}
}

// signal leaves word in a channel of capacity 1, unless some lies there.
func signal(channel chan struct{}) {
	select {
	case channel <- struct{}{}:
	default:
	}
}
