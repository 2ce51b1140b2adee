package device

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/source"
)

// loop takes one source through its rounds. In a round every reader that is
// free is asked once; the round ends when all have answered, and at the
// latest when its patience is over. A reader that has not answered by then
// keeps its seat and is asked no more until its call comes back. What it then
// says is taken, because nothing newer can be known of it, unless the read
// began longer ago than the staleness limit.
//
// How the source is, is what its readers said last, so that one that always
// takes a little longer than a round counts as well. A read that takes twice
// the patience of a round is overdue: its reader counts as failed until a
// read of it comes back sooner.
//
// Patience is counted in ticks, so that a deadline and the tick that opens
// the next round never race: one interval, or as many of a shorter interval
// as make up a second.
//
// All fields but calls belong to the goroutine of run; calls into the source
// are made in goroutines of their own, which answer through channels. Only a
// Listener is asked directly what it has heard, for it never waits.
type loop struct {
	source   Source
	now      clock.Clock
	log      *slog.Logger
	tracker  *source.Tracker
	observe  func(name string, seconds float64)
	publish  func([]Sample)
	interval time.Duration
	slow     time.Duration
	stale    time.Duration // how long after it began the answer of a read is of use
	patience int

	ticker  *time.Ticker
	answers chan answer
	found   chan discovery
	done    chan struct{} // closed when nobody takes answers any more
	calls   atomic.Int64  // calls into the source that have not come back

	seats      []*seat // sorted by the readers' keys
	round      uint64  // number of the present or last round
	open       bool
	ticks      int  // so far
	opened     int  // the tick at which the present or last round began
	pending    int  // readers that have not answered in it
	answered   bool // a reader has, since the last report
	discovery  discoveryState
	duplicates []string
	hearing    hearing
	samples    []Sample // what the last round has found, without what was heard
}

// answer is what a read came back with, and for which round it was meant.
type answer struct {
	seat         *seat
	round        uint64
	tier         Tier
	at           clock.Instant
	observations []Observation
	err          error
}

func newLoop(from Source, o Options, publish func([]Sample)) *loop {
	l := &loop{
		source:    from,
		now:       o.Clock,
		log:       o.Log,
		tracker:   source.NewTracker(from.Name(), o.Log, o.Clock, nil),
		observe:   o.Observe,
		publish:   publish,
		interval:  o.Interval,
		slow:      o.SlowInterval,
		stale:     StaleAfter(o.Interval),
		patience:  max(1, int((time.Second+o.Interval-1)/o.Interval)),
		answers:   make(chan answer),
		found:     make(chan discovery),
		done:      make(chan struct{}),
		discovery: discoveryState{retry: backoff{first: o.Interval, most: o.SlowInterval}},
		hearing:   newHearing(from),
	}
	if o.Optional[from.Name()] {
		l.tracker.Optional()
	}
	return l
}

// run takes rounds until ctx ends. It never waits for a call into the source.
func (l *loop) run(ctx context.Context) {
	l.ticker = time.NewTicker(l.interval)
	defer l.ticker.Stop()
	defer close(l.done)
	l.discover(ctx)
	for {
		select {
		case <-ctx.Done():
			return
		case <-l.ticker.C:
			l.tick(ctx)
		case a := <-l.answers:
			l.take(a)
		case <-l.hearing.heard():
			l.tell()
		case d := <-l.found:
			l.adopt(d)
			if !l.open && l.unread() {
				l.ticker.Reset(l.interval)
				l.begin(ctx)
			}
		}
	}
}

// tick ends the round whose patience is over and opens the next.
func (l *loop) tick(ctx context.Context) {
	l.ticks++
	if l.open {
		if l.ticks-l.opened < l.patience {
			return
		}
		l.finish()
	}
	l.discoverWhenDue(ctx)
	l.begin(ctx)
}

// begin opens a round: it asks every reader that is free.
func (l *loop) begin(ctx context.Context) {
	if len(l.seats) == 0 {
		l.samples = nil
		l.tell()
		return
	}
	l.round++
	l.open, l.opened, l.pending = true, l.ticks, 0
	now := l.now()
	for _, s := range l.seats {
		if s.busy() || s.gone {
			continue
		}
		l.pending++
		s.tick = l.ticks
		l.ask(ctx, s, s.ask(l.round, now, l.slow))
	}
	if l.pending == 0 {
		l.finish()
	}
}

// ask starts one read. Its context ends when its answer is of no use any more.
func (l *loop) ask(ctx context.Context, s *seat, tier Tier) {
	began, round := s.began, l.round
	l.calls.Add(1)
	go func() {
		reading, end := context.WithTimeout(ctx, l.stale)
		defer end()
		observations, err := s.reader.Read(reading, tier)
		at := l.now()
		l.calls.Add(-1)
		l.observe(l.source.Name(), at.Since(began).Seconds())
		select {
		case l.answers <- answer{s, round, tier, at, observations, err}:
		case <-l.done:
		}
	}()
}

// take receives an answer, and drops it where it comes too late to be of use.
func (l *loop) take(a answer) {
	s, overdue := a.seat, l.overdue(a.seat)
	inTime := l.open && a.round == l.round
	s.asked, l.answered = 0, true
	switch {
	case s.gone:
		l.dismiss(s)
	case a.at.Since(s.began) > l.stale:
		s.drop(a, l.tooLate())
	default:
		s.take(a)
		if overdue {
			s.fail(a.tier, l.tooLate())
		}
	}
	if inTime {
		l.pending--
	}
	switch {
	case inTime && l.pending == 0:
		l.finish()
	case !l.open:
		l.conclude()
	}
}

// overdue reports whether the reader of a seat takes so long for a read that
// it counts as failed.
func (l *loop) overdue(s *seat) bool {
	return s.busy() && l.ticks-s.tick >= 2*l.patience
}

// finish ends the round.
func (l *loop) finish() {
	l.open = false
	l.conclude()
}

// conclude says how the source is and publishes what is known.
func (l *loop) conclude() {
	var samples []Sample
	for _, s := range l.seats {
		if !s.gone {
			samples = s.appendSamples(samples, l.source.Name(), l.now(), 3*l.slow)
		}
	}
	l.samples, l.duplicates = Merge([][]Sample{samples}, 0)
	l.report()
	l.noteHang()
	l.tell()
}

// tell publishes what the last round has found, with what has been heard up
// to now. It is also called between rounds, and while readers hang: then
// nothing but what was heard is new.
func (l *loop) tell() {
	l.publish(l.hearing.attach(l.samples, l.seats, l.source.Name()))
}

// unread reports whether a reader has never been asked.
func (l *loop) unread() bool {
	return slices.ContainsFunc(l.seats, func(s *seat) bool { return s.began.IsZero() })
}

// dismiss takes away the seat of a reader whose hardware is gone.
func (l *loop) dismiss(gone *seat) {
	l.seats = slices.DeleteFunc(l.seats, func(s *seat) bool { return s == gone })
}

// sit gives a newly found reader its seat.
func (l *loop) sit(reader Reader) {
	l.seats = append(l.seats, &seat{
		key:    reader.Key(),
		reader: reader,
		retry:  backoff{first: 2 * l.interval, most: l.slow},
	})
	slices.SortFunc(l.seats, func(a, b *seat) int { return strings.Compare(a.key, b.key) })
}

// close waits for the calls that are under way, then closes the source. A
// source into which a call hangs stays open, and a Close that hangs is left
// behind. It looks again and again for the calls to end, because a goroutine
// that waited for one that hangs would be left behind as well.
func (l *loop) close(grace time.Duration) {
	over := time.NewTimer(grace)
	defer over.Stop()
	look := time.NewTicker(grace / 50)
	defer look.Stop()
	for l.calls.Load() > 0 {
		select {
		case <-look.C:
		case <-over.C:
			return
		}
	}
	closed := make(chan error, 1)
	go func() { closed <- l.source.Close() }()
	select {
	case err := <-closed:
		if err != nil {
			l.log.Warn("source was not closed", "component", l.source.Name(), "error", err)
		}
	case <-over.C:
	}
}
