package apiserver

import "time"

const (
	firstPause   = 250 * time.Millisecond // after a cycle of list and watch has ended
	longestPause = 2500 * time.Millisecond
	lastingPause = 30 * time.Second // where somebody must mend something first
	calmCycle    = 30 * time.Second // a cycle as long as this starts the pauses anew
)

// pauses says how long to wait between two cycles of list and watch.
type pauses struct {
	next    time.Duration
	lasting int                                     // cycles in a row that ended with a lasting error
	spread  func(limit time.Duration) time.Duration // random, in [0, limit)
}

func newPauses(spread func(time.Duration) time.Duration) *pauses {
	return &pauses{next: firstPause, spread: spread}
}

// after is the pause that follows a cycle, by the failure that ended it, if
// it was one. An API server that starts may refuse for a moment what it will
// allow, so a lasting error is believed when it comes again.
func (p *pauses) after(err error, took time.Duration) time.Duration {
	if took > calmCycle {
		p.next = firstPause
	}
	wait := p.next + p.spread(p.next)
	p.next = min(2*p.next, longestPause)
	if !isLasting(cause(err)) {
		p.lasting = 0
		return wait
	}
	if p.lasting++; p.lasting > 1 {
		return lastingPause + p.spread(lastingPause/2)
	}
	return wait
}
