package source

import (
	"log/slog"
	"sync"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/clock"
)

// Tracker keeps the Status of one source and logs when it changes, not at
// every tick, and not each time where it comes and goes. It is safe for
// concurrent use.
type Tracker struct {
	now     clock.Clock
	observe func(seconds float64)

	mu     sync.Mutex
	status Status
	diary  diary
}

// NewTracker returns the tracker of the named source. observe, which may be
// nil, is told how long each finished attempt took, in seconds.
func NewTracker(name string, log *slog.Logger, now clock.Clock, observe func(seconds float64)) *Tracker {
	if observe == nil {
		observe = func(float64) {}
	}
	return &Tracker{now: now, observe: observe, status: Status{Name: name}, diary: newDiary(log.With("component", name))}
}

// Optional says that the source may well not exist here: that its library was
// never found is then no reason for a warning.
func (t *Tracker) Optional() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.diary.optional = true
}

// Begin notes the start of an attempt and returns what ends it. The end may
// come late: it then still counts, as the failure or success that it is.
func (t *Tracker) Begin() (end func(error)) {
	began := t.now()
	return func(err error) {
		t.observe(t.now().Since(began).Seconds())
		t.Report(err)
	}
}

// Report notes the outcome of an attempt whose duration means nothing, such
// as a watch that broke.
func (t *Tracker) Report(err error) {
	t.conclude(err == nil, err)
}

// Impair notes that the source works but not wholly: one of its devices
// fails, say. It counts as a success with a reason, and as an error.
func (t *Tracker) Impair(err error) {
	t.conclude(true, err)
}

// Late notes that an attempt which began at an instant has not ended when it
// should have. The source is down, and what ends the attempt counts.
func (t *Tracker) Late(began clock.Instant, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.status.Up, t.status.Reason, t.status.Message = false, ReasonOf(err), Text(err.Error())
	if t.status.HungSince.IsZero() {
		t.status.HungSince = began
	}
	t.diary.note(t.status, t.now())
}

// conclude notes how an attempt ended and what went wrong in it.
func (t *Tracker) conclude(up bool, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.now()
	t.status.Up, t.status.Reason, t.status.Message = up, ReasonOf(err), ""
	if err != nil {
		t.status.Errors++
		t.status.Message = Text(err.Error())
	}
	if up {
		t.status.LastSuccess = now
	}
	t.diary.note(t.status, now)
}

// Hang notes since when a read has not come back; the zero instant: none.
func (t *Tracker) Hang(since clock.Instant) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.status.HungSince = since
}

// Status returns the present status. Where nothing is reported as long as
// nothing changes, it is what finds out that the source has settled.
func (t *Tracker) Status() Status {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.diary.unsettled() {
		t.diary.note(t.status, t.now())
	}
	return t.status
}

// steady is how long a source must stay as it is before the log says so, once
// it comes and goes.
const steady = 30 * time.Second

// diary tells the log how a source is, when that changes. A source that fails
// again for the reason that it has just recovered from comes and goes: that is
// said once, and then nothing before it has stayed the same for some time. So
// a device that fails now and then does not fill the log.
type diary struct {
	log      *slog.Logger
	present  state
	since    clock.Instant           // when that began
	left     map[state]clock.Instant // when each state was over last
	told     state                   // what the log has been told last
	restless bool                    // and that the source comes and goes
	optional bool                    // the source may well not exist here
	meanings meanings                // of the present state
}

// maxMeanings is how many meanings of one state are logged as soon as they
// appear. Each further one is logged once it has lasted.
const maxMeanings = 8

// meanings are what the texts of one state have said, as kinds of text: a
// reason such as resource_exhausted stands for several. A meaning is logged when
// it appears, and one that returns when it has lasted.
type meanings struct {
	present string
	since   clock.Instant
	logged  string
	seen    map[string]bool
}

// note takes in the text of a state that goes on, and reports whether it
// belongs into the log.
func (m *meanings) note(text string, now clock.Instant) bool {
	if kind := kindOf(text); kind != m.present {
		m.present, m.since = kind, now
	}
	isNew := !m.seen[m.present] && len(m.seen) < maxMeanings
	return m.present != m.logged && (isNew || now.Since(m.since) >= steady)
}

// tell notes that the present meaning is logged.
func (m *meanings) tell() {
	m.logged = m.present
	if len(m.seen) < maxMeanings {
		m.seen[m.present] = true
	}
}

// begin starts again with the first text of a state.
func (m *meanings) begin(text string, now clock.Instant) {
	*m = meanings{present: kindOf(text), since: now, seen: make(map[string]bool)}
	m.tell()
}

// state is what the log tells apart.
type state struct {
	up     bool
	reason Reason
}

func (s state) well() bool { return s.reason == ReasonNone }

func newDiary(log *slog.Logger) diary {
	return diary{log: log, left: make(map[state]clock.Instant)}
}

// note takes in how the source is now.
func (d *diary) note(status Status, now clock.Instant) {
	if s := (state{status.Up, status.Reason}); s == d.present {
		if !d.unsettled() && !s.well() && d.meanings.note(status.Message, now) {
			d.meanings.tell()
			d.tell(status)
		}
	} else {
		d.meanings.begin(status.Message, now)
		left, known := d.left[s]
		d.left[d.present], d.present, d.since = now, s, now
		switch back := known && now.Since(left) < steady; {
		case d.restless:
		case s.well() || !back:
			d.tell(status)
		case d.told.well():
			d.restless, d.told = true, s
			d.log.Warn("source comes and goes", "reason", string(status.Reason), "error", status.Message)
		}
	}
	if d.unsettled() && now.Since(d.since) >= steady {
		d.restless = false
		d.meanings.begin(status.Message, now)
		d.tell(status)
	}
}

// unsettled reports whether the log has not been told of the present state.
func (d *diary) unsettled() bool { return d.restless || d.told != d.present }

// tell tells the log. That a source is well is news only where it was not.
func (d *diary) tell(status Status) {
	before := d.told
	d.told = d.present
	switch {
	case d.optional && status.NeverFound():
		d.log.Info("source is not here", "reason", string(status.Reason), "error", status.Message)
	case !d.present.well() && status.Up:
		d.log.Warn("source is impaired", "reason", string(status.Reason), "error", status.Message)
	case !d.present.well():
		d.log.Warn("source is down", "reason", string(status.Reason), "error", status.Message)
	case !before.well():
		d.log.Info("source is up again")
	}
}
