package kubelet

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/source"
)

// The first and the longest delay before a failed List is retried. A missing socket
// costs nothing to try, and a kubelet that returns should be found soon; an
// overloaded kubelet needs longer delays.
const (
	firstRetry     = 250 * time.Millisecond
	latestRetry    = 2 * time.Second
	firstBackoff   = 500 * time.Millisecond
	backoffFactor  = 3 // latest backoff in intervals
	jitterFraction = 0.5
)

// listPace schedules Lists.
type listPace struct {
	interval time.Duration
	debounce time.Duration
	random   func() float64 // in [0, 1)
	failures int            // in a row
}

func newListPace(interval, debounce time.Duration) listPace {
	return listPace{interval: interval, debounce: debounce, random: rand.Float64}
}

// run calls list immediately and whenever it is due, until ctx ends.
func (p *listPace) run(ctx context.Context, requests chan struct{}, list func(context.Context) error) {
	for {
		// This List covers earlier requests.
		select {
		case <-requests:
		default:
		}
		err := list(ctx)
		if err != nil {
			p.failures++
		} else {
			p.failures = 0
		}
		if !p.wait(ctx, requests, err) {
			return
		}
	}
}

// wait returns true when the next List is due, and false when ctx has ended.
func (p *listPace) wait(ctx context.Context, requests <-chan struct{}, err error) bool {
	if source.ReasonOf(err) == source.ReasonResourceExhausted {
		requests = nil // the kubelet limits the rate: requests do not shorten the delay
	}
	timer := time.NewTimer(p.delay(err))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return ctx.Err() == nil
	case <-requests:
		return sleep(ctx, p.debounce)
	}
}

// delay is the time from the end of a List, which ended with err, to the next.
func (p *listPace) delay(err error) time.Duration {
	switch {
	case err == nil:
		return p.interval
	case source.ReasonOf(err) == source.ReasonResourceExhausted:
		return p.backoff(firstBackoff, backoffFactor*p.interval)
	default:
		return p.backoff(firstRetry, min(latestRetry, p.interval))
	}
}

// backoff doubles from first with every failure up to latest, and subtracts
// a random part, so that the agents of a cluster are not synchronized.
func (p *listPace) backoff(first, latest time.Duration) time.Duration {
	d := first
	for i := 1; i < p.failures && d < latest; i++ {
		d *= 2
	}
	d = min(d, latest)
	return d - time.Duration(jitterFraction*p.random()*float64(d))
}

func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return ctx.Err() == nil
	}
}
