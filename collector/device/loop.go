package device

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/source"
)

// loop takes one source through its rounds. In a round every reader that is free
// is read once. The round ends when all have answered, at the latest when its
// timeout is over. A reader that has not answered by then is kept, and is not
// read again until its call returns. The result is then applied, because nothing
// newer is known, unless the read began longer ago than the staleness limit.
//
// The status of a source depends on the last result of each reader, so that a
// reader which always takes a little longer than a round counts as well. A read
// that takes twice the patience of a round is overdue: its reader counts as failed
// until a read returns sooner.
//
// Patience is counted in ticks, so that a deadline and the tick that opens
// the next round never race: one interval, or as many of a shorter interval
// as make up a second.
//
// All fields but calls belong to the goroutine of run; calls into the source
// are made in goroutines of their own, which answer through channels. Only a
// EventSource is called directly, because its methods never wait.
type loop struct {
	source   Source
	now      clock.Clock
	log      *slog.Logger
	tracker  *source.Tracker
	observe  func(name string, seconds float64)
	publish  func([]Sample)
	interval time.Duration
	slow     time.Duration
	stale    time.Duration // how long after its beginning the answer of a read is useful
	secret   bool          // serial numbers are not kept
	patience int
	pace     *atomic.Int64 // nanoseconds from one round to the next, at least

	ticker  *time.Ticker
	aligned bool // the ticker ticks at multiples of the interval
	answers chan readResult
	found   chan discovered
	refresh chan func()   // asks for a round at once, which calls it at its end
	done    chan struct{} // closed when answers are not received any more
	calls   atomic.Int64  // calls into the source that have not come back

	specs      *[Quantities]Spec
	readers    []*readerState // sorted by the readers' keys
	round      uint64         // number of the present or last round
	open       bool
	ticks      int  // so far
	opened     int  // the tick at which the present or last round began
	pending    int  // readers that have not answered in it
	answered   bool // a reader has, since the last report
	discovery  discovery
	duplicates []string
	requested  []func() // of refresh, to be called at the end of the next round
	served     []func() // and of the present one
	events     events
	release    release
	unbinding  func()   // passes on that a driver is to be unbound
	samples    []Sample // what the last round has found, without XIDs
}

func newLoop(s Source, o Options, pace *atomic.Int64, publish func([]Sample), unbinding func()) *loop {
	specs := Specs()
	l := &loop{
		specs:     &specs,
		source:    s,
		now:       o.Clock,
		log:       o.Log,
		tracker:   source.NewTracker(s.Name(), o.Log, o.Clock, nil),
		observe:   o.Observe,
		publish:   publish,
		interval:  o.Interval,
		slow:      o.SlowInterval,
		stale:     StaleAfter(o.Interval),
		secret:    o.HideSerials,
		patience:  max(1, int((time.Second+o.Interval-1)/o.Interval)),
		pace:      pace,
		answers:   make(chan readResult),
		found:     make(chan discovered),
		refresh:   make(chan func(), 1),
		done:      make(chan struct{}),
		discovery: discovery{every: o.SlowInterval, retry: backoff{first: o.Interval, most: o.SlowInterval}},
		events:    newEvents(s, StaleAfter(o.Interval)),
		release:   newRelease(s),
		unbinding: unbinding,
	}
	if changing, ok := s.(ChangingSource); ok {
		l.discovery.every = min(l.slow, changing.LookEvery())
	}
	l.tracker.Refuse(0)
	if o.Optional[s.Name()] {
		l.tracker.Optional()
	}
	return l
}

// run takes rounds until ctx ends. It never waits for a call into the source.
func (l *loop) run(ctx context.Context) {
	l.ticker = time.NewTicker(clock.UntilNext(l.interval))
	defer l.ticker.Stop()
	defer close(l.done)
	if l.release.paused() {
		l.closeWhenIdle()
	} else {
		l.discover(ctx)
	}
	unbinding := l.watchUnbinding()
	for {
		select {
		case <-ctx.Done():
			return
		case <-l.ticker.C:
			if !l.aligned {
				l.ticker.Reset(l.interval)
				l.aligned = true
			}
			l.tick(ctx)
		case a := <-l.answers:
			l.apply(a)
		case <-l.events.changed():
			l.publishSamples()
		case d := <-l.found:
			l.applyDiscovery(d)
			if !l.open && !l.release.paused() && l.unreadReader() {
				l.restart(ctx)
			}
		case ended := <-l.refresh:
			l.requested = append(l.requested, ended)
		case <-l.release.changes:
			l.applyRelease(ctx)
		case err := <-l.release.closed:
			l.applyClosed(ctx, err)
		case <-unbinding:
			l.unbinding()
		}
		l.closeWhenIdle()
		if len(l.requested) > 0 && !l.open && !l.discovery.running {
			l.restart(ctx)
		}
	}
}

// restart opens a round between two ticks. The next tick is the first of a whole interval
// that comes after at least one.
func (l *loop) restart(ctx context.Context) {
	l.ticker.Reset(l.interval + clock.UntilNext(l.interval)%l.interval)
	l.aligned = false
	l.begin(ctx)
}

// tick ends the round whose patience is over and opens the next.
func (l *loop) tick(ctx context.Context) {
	l.ticks++
	if l.release.paused() {
		l.releasedTick(l.now())
		return
	}
	if l.open {
		if l.ticks-l.opened < l.patience {
			return
		}
		l.finish()
	}
	l.discoverWhenDue(ctx)
	if l.due() {
		l.begin(ctx)
	}
}

// due reports whether the pace allows a round, or a reader needs one.
func (l *loop) due() bool {
	return time.Duration(l.ticks-l.opened)*l.interval >= time.Duration(l.pace.Load()) ||
		slices.ContainsFunc(l.readers, func(s *readerState) bool { return s.failed || s.busy() })
}

// begin opens a round: it starts a read of every reader that is free.
func (l *loop) begin(ctx context.Context) {
	l.served, l.requested = append(l.served, l.requested...), nil
	if l.release.paused() {
		l.serve() // nothing is read until the source is opened again
		return
	}
	if len(l.readers) == 0 {
		l.opened = l.ticks
		l.samples = nil
		l.publishSamples()
		l.serve()
		return
	}
	l.round++
	l.open, l.opened, l.pending = true, l.ticks, 0
	now := l.now()
	for _, s := range l.readers {
		if s.busy() || s.removed {
			continue
		}
		l.pending++
		s.tick = l.ticks
		l.start(ctx, s, s.start(l.round, now, l.slow))
	}
	if l.pending == 0 {
		l.finish()
	}
}

// start starts one read. Its context ends when the answer is no longer useful.
func (l *loop) start(ctx context.Context, s *readerState, tier Tier) {
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
		case l.answers <- readResult{s, round, tier, at, observations, err}:
		case <-l.done:
		}
	}()
}

// apply applies an answer, or drops it if it comes too late to be useful.
func (l *loop) apply(a readResult) {
	s, overdue := a.state, l.overdue(a.state)
	inTime := l.open && a.round == l.round
	s.round, l.answered = 0, true
	switch {
	case s.removed:
		l.readers = slices.DeleteFunc(l.readers, func(r *readerState) bool { return r == s })
	case a.at.Since(s.began) > l.stale:
		s.drop(a, l.tooLate())
	default:
		s.apply(a)
		l.reportRefused(s.takeRefused())
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

// reportRefused counts readings that cannot be true, and logs the first one of each
// quantity of a device.
func (l *loop) reportRefused(refused []refusal) {
	l.tracker.Refuse(len(refused))
	for _, r := range refused {
		if !r.again {
			l.log.Warn("a reading cannot be true and is left out", "component", l.source.Name(), "device", r.device,
				"quantity", l.specs[r.Reading.Quantity].Name, "value", r.Reading.Value, "because", r.Because)
		}
	}
}

// overdue reports whether a read takes so long that its reader counts as
// failed.
func (l *loop) overdue(s *readerState) bool {
	return s.busy() && l.ticks-s.tick >= 2*l.patience
}

// finish ends the round.
func (l *loop) finish() {
	l.open = false
	l.conclude()
	l.serve()
}

// serve calls the functions that wait for the end of the round.
func (l *loop) serve() {
	for _, ended := range l.served {
		ended()
	}
	l.served = nil
}

// conclude reports the status of the source and publishes the samples.
func (l *loop) conclude() {
	var samples []Sample
	for _, s := range l.readers {
		if !s.removed {
			samples = s.appendSamples(samples, l.source.Name(), l.now(), 3*l.slow)
		}
	}
	l.samples, l.duplicates = Merge([][]Sample{samples}, 0)
	l.report()
	l.reportHang()
	l.publishSamples()
}

// publishSamples publishes the samples of the last round with the XIDs reported
// up to now. It is also called between rounds and while readers hang; then only
// the XIDs are new.
func (l *loop) publishSamples() {
	samples := l.events.attach(l.samples, l.readers, l.source.Name(), l.now())
	if l.release.released.Load() {
		samples = markReleased(samples)
		_ = l.events.failure() // XIDs are not missed: they are not received on purpose
	}
	l.publish(samples)
}

// unreadReader reports whether a reader has never been read.
func (l *loop) unreadReader() bool {
	return slices.ContainsFunc(l.readers, func(s *readerState) bool { return s.began.IsZero() })
}

// addReader adds a reader unless it is known; a known one is not removed any
// more.
func (l *loop) addReader(reader Reader) {
	at, ok := slices.BinarySearchFunc(l.readers, reader.Key(), func(s *readerState, key string) int {
		return strings.Compare(s.key, key)
	})
	if ok {
		l.readers[at].removed = false
		return
	}
	l.readers = slices.Insert(l.readers, at, &readerState{
		specs:  l.specs,
		secret: l.secret,
		key:    reader.Key(),
		reader: reader,
		retry:  backoff{first: 2 * l.interval, most: l.slow},
	})
}

// discoverWhenDue looks for devices at each slow tier and after failures, and
// notices when the last discovery has not returned.
func (l *loop) discoverWhenDue(ctx context.Context) {
	d, now := &l.discovery, l.now()
	switch {
	case d.expire(now):
		if len(l.readers) == 0 {
			l.tracker.Report(d.err)
		}
		l.reportHang()
	case !d.running && now.Elapsed >= d.due:
		l.discover(ctx)
	}
}

// discover lists the readers of the source, in a goroutine of its own.
func (l *loop) discover(ctx context.Context) {
	l.discovery.start(l.now())
	l.calls.Add(1)
	go func() {
		readers, err := l.source.Readers(ctx)
		l.calls.Add(-1)
		select {
		case l.found <- discovered{readers, err}:
		case <-l.done:
		}
	}()
}

// applyDiscovery adds the readers that are new and, if the discovery succeeded,
// removes those that are gone. One that hangs stays, without its devices, until
// its read returns.
func (l *loop) applyDiscovery(found discovered) {
	d := &l.discovery
	d.finish(l.now(), found.err)
	current := make(map[string]bool, len(found.readers))
	for _, reader := range found.readers {
		current[reader.Key()] = true
		l.addReader(reader)
	}
	if found.err == nil {
		l.readers = slices.DeleteFunc(l.readers, func(s *readerState) bool {
			if current[s.key] {
				return false
			}
			s.removed, s.devices = true, nil
			return !s.busy()
		})
	}
	l.reportHang()
	if len(l.readers) == 0 {
		d.roundSucceeded()
		l.tracker.Report(d.err)
	}
}

// reportHang reports to the tracker since when a call into the source hangs.
func (l *loop) reportHang() {
	var start clock.Instant
	older := func(began clock.Instant) {
		if start.IsZero() || began.Elapsed < start.Elapsed {
			start = began
		}
	}
	for _, s := range l.readers {
		if l.overdue(s) {
			older(s.began)
		}
	}
	if l.discovery.late {
		older(l.discovery.began)
	}
	l.tracker.Hang(start)
}

// report reports the status of the source to the tracker: a failure if no
// reader was useful, an impairment if a part failed, else a success. It reports
// nothing if nothing has happened since the last report.
func (l *loop) report() {
	c := countReaders(l.readers, l.overdue, l.tooLate)
	if !l.answered && c.overdue == 0 {
		return
	}
	l.answered = false
	switch {
	case c.useful == 0 && c.failed == 0:
		// Nothing is there to be read: the result of the discovery stands.
	case c.useful == 0:
		l.tracker.Report(c.failure(source.ReasonTimeout))
		l.discovery.roundFailed(l.now())
	default:
		l.discovery.roundSucceeded()
		if err := c.impairment(l.duplicates, l.discovery.err, l.events.failure()); err != nil {
			l.tracker.Impair(err)
		} else {
			l.tracker.Report(nil)
		}
	}
}

// tooLate returns the error of an overdue read.
func (l *loop) tooLate() error {
	limit := time.Duration(2*l.patience) * l.interval
	return &source.Failure{Reason: source.ReasonTimeout, Err: fmt.Errorf("no answer within %s", limit)}
}

// close waits for the calls that are under way, then closes the source. If a
// call into the source hangs, the source stays open; a Close that hangs is left
// behind. It polls for the end of the calls, because a goroutine that waited
// for a hanging call would be left behind as well.
func (l *loop) close(grace time.Duration) {
	timer := time.NewTimer(grace)
	defer timer.Stop()
	look := time.NewTicker(grace / 50)
	defer look.Stop()
	for l.calls.Load() > 0 {
		select {
		case <-look.C:
		case <-timer.C:
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
	case <-timer.C:
	}
}
