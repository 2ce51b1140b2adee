package source

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/clock"
)

// Tracker keeps the Status of one source and logs when it changes, and not each
// time if it flaps. It is safe for concurrent use.
type Tracker struct {
	now     clock.Clock
	observe func(seconds float64)

	mu      sync.Mutex
	status  Status
	changes changeLog
}

// NewTracker returns the tracker of the named source. observe, which may be nil,
// gets the duration of each finished attempt, in seconds.
func NewTracker(name string, log *slog.Logger, now clock.Clock, observe func(seconds float64)) *Tracker {
	if observe == nil {
		observe = func(float64) {}
	}
	return &Tracker{now: now, observe: observe, status: Status{Name: name}, changes: newChangeLog(log.With("component", name))}
}

// Optional declares that the source may not exist on this machine: if its library
// was never found, no warning is logged.
func (t *Tracker) Optional() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.changes.optional = true
}

// Begin records the start of an attempt and returns the function that ends it. It
// counts as a success or failure also after Late.
func (t *Tracker) Begin() (end func(error)) {
	began := t.now()
	return func(err error) {
		t.observe(t.now().Since(began).Seconds())
		t.Report(err)
	}
}

// Report records the result of an attempt without a meaningful duration, such as a
// watch that broke.
func (t *Tracker) Report(err error) {
	t.conclude(err == nil, err)
}

// Impair records that the source works in part: for example, one of its devices
// fails. It counts as a success with a reason, and as an error.
func (t *Tracker) Impair(err error) {
	t.conclude(true, err)
}

// Late records that an attempt which began at an instant has not ended in time.
// The source is down until the attempt ends.
func (t *Tracker) Late(began clock.Instant, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.status.Up, t.status.Reason, t.status.Message = false, ReasonOf(err), Text(err.Error())
	if t.status.HungSince.IsZero() {
		t.status.HungSince = began
	}
	t.changes.observe(t.status, t.now())
}

// conclude records the result of an attempt.
func (t *Tracker) conclude(up bool, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.now()
	t.status.Up, t.status.Reason, t.status.Message = up, ReasonOf(err), ""
	if err != nil {
		t.status.Errors++
		t.status.Message = Text(err.Error())
	}
	// A library that has never worked in this process may not work in another.
	if up || t.status.Reason != ReasonLibraryMismatch || t.status.LastSuccess.IsZero() {
		t.status.EndedAt = clock.Instant{}
	} else if t.status.EndedAt.IsZero() {
		t.status.EndedAt = now
	}
	if up {
		t.status.LastSuccess = now
	}
	t.changes.observe(t.status, now)
}

// Refuse counts readings that the source has returned and that cannot be true. It
// is not about an attempt: the rest of what was read may be right. A source that
// calls it at all reads values that can be refused.
func (t *Tracker) Refuse(readings int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.status.Measures = true
	t.status.Refused += uint64(readings)
}

// Release records whether the source is closed on purpose, so that it is neither up nor
// down.
func (t *Tracker) Release(released bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.status.Released = released
	if released {
		t.status.HungSince = clock.Instant{}
	}
}

// Hang records since when a read has not returned; the zero instant: none.
func (t *Tracker) Hang(start clock.Instant) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.status.HungSince = start
}

// Status returns the present status. It also logs a flapping source that has
// settled, because sources may report changes only.
func (t *Tracker) Status() Status {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.changes.unlogged() {
		t.changes.observe(t.status, t.now())
	}
	return t.status
}

// Await runs a read of which it is not known whether it ever returns, such as that of
// a file on a network file system, and returns its result, however late it comes. late
// is called once if it does not come within the limit. ok is false if ctx ends first:
// the goroutine of the read then remains until the read returns.
func Await[T any](ctx context.Context, limit time.Duration, late func(), read func() T) (result T, ok bool) {
	results := make(chan T, 1)
	go func() { results <- read() }()
	overdue := time.NewTimer(limit)
	defer overdue.Stop()
	for {
		select {
		case <-ctx.Done():
			return result, false
		case result = <-results:
			return result, true
		case <-overdue.C:
			late()
		}
	}
}

// settleTime is how long a flapping source must stay in a state before that is
// logged.
const settleTime = 30 * time.Second

// changeLog logs the changes of a source's status. A source that fails again for
// the reason that it has just recovered from is flapping: that is logged once, and
// then nothing before it has stayed in a state for settleTime. So a device that
// fails now and then does not fill the log.
type changeLog struct {
	log      *slog.Logger
	present  state
	since    clock.Instant           // start of the present state
	leftAt   map[state]clock.Instant // the newest end of each state
	logged   state                   // the state that was logged last
	flapping bool                    // logged as flapping
	optional bool                    // the source may not exist on this machine
	meanings meanings                // of the present state
}

// maxMeanings is how many meanings of one state are logged when they appear. Each
// further one is logged after settleTime.
const maxMeanings = 8

// meanings are the kinds of text of one state: a reason such as
// resource_exhausted has several. A meaning is logged when it appears, and one
// that returns after settleTime.
type meanings struct {
	present string
	since   clock.Instant
	logged  string
	seen    map[string]bool
}

// observe records the text of a state that continues, and reports whether it must
// be logged.
func (m *meanings) observe(text string, now clock.Instant) bool {
	if kind := describeKind(text); kind != m.present {
		m.present, m.since = kind, now
	}
	isNew := !m.seen[m.present] && len(m.seen) < maxMeanings
	return m.present != m.logged && (isNew || now.Since(m.since) >= settleTime)
}

// markLogged records that the present meaning is logged.
func (m *meanings) markLogged() {
	m.logged = m.present
	if len(m.seen) < maxMeanings {
		m.seen[m.present] = true
	}
}

// begin begins with the first text of a state.
func (m *meanings) begin(text string, now clock.Instant) {
	*m = meanings{present: describeKind(text), since: now, seen: make(map[string]bool)}
	m.markLogged()
}

// state is the part of a status whose changes are logged.
type state struct {
	up     bool
	reason Reason
}

func (s state) ok() bool { return s.reason == ReasonNone }

func newChangeLog(log *slog.Logger) changeLog {
	return changeLog{log: log, leftAt: make(map[state]clock.Instant)}
}

// observe records the present status, and logs it if necessary.
func (d *changeLog) observe(status Status, now clock.Instant) {
	if s := (state{status.Up, status.Reason}); s == d.present {
		if !d.unlogged() && !s.ok() && d.meanings.observe(status.Message, now) {
			d.meanings.markLogged()
			d.report(status)
		}
	} else {
		d.meanings.begin(status.Message, now)
		left, ok := d.leftAt[s]
		d.leftAt[d.present], d.present, d.since = now, s, now
		switch back := ok && now.Since(left) < settleTime; {
		case d.flapping:
		case s.ok() || !back:
			d.report(status)
		case d.logged.ok():
			d.flapping, d.logged = true, s
			d.log.Warn("source is unstable", "reason", string(status.Reason), "error", status.Message)
		}
	}
	if d.unlogged() && now.Since(d.since) >= settleTime {
		d.flapping = false
		d.meanings.begin(status.Message, now)
		d.report(status)
	}
}

// unlogged reports whether the present state has not been logged.
func (d *changeLog) unlogged() bool { return d.flapping || d.logged != d.present }

// report logs the status. A recovery is logged only after a failure.
func (d *changeLog) report(status Status) {
	previous := d.logged
	d.logged = d.present
	switch {
	case d.optional && status.NeverFound():
		d.log.Info("source is not available", "reason", string(status.Reason), "error", status.Message)
	case !d.present.ok() && status.Up:
		d.log.Warn("source is impaired", "reason", string(status.Reason), "error", status.Message)
	case !d.present.ok():
		d.log.Warn("source is down", "reason", string(status.Reason), "error", status.Message)
	case !previous.ok():
		d.log.Info("source is up again")
	}
}
