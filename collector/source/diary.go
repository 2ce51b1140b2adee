package source

import (
	"log/slog"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/clock"
)

// steady is how long a flapping source must be in one state before that is
// logged.
const steady = 30 * time.Second

// diary logs changes of the state of a source. A source that fails again for
// the reason that it has just recovered from is flapping: that is logged once,
// and then nothing until the state has been the same for some time. So a device
// that fails now and then does not fill the log.
type diary struct {
	log      *slog.Logger
	present  state
	since    clock.Instant           // when that began
	left     map[state]clock.Instant // when each state was over last
	told     state                   // last logged state
	restless bool                    // and that the source comes and goes
	optional bool                    // the source may be missing
	meanings meanings                // of the present state
}

// maxMeanings is how many meanings of one state are logged as soon as they
// appear. Each further one is logged once it has lasted.
const maxMeanings = 8

// meanings are the kinds of the texts of one state: a reason such as
// resource_exhausted has several. A meaning is logged when it appears, and one
// that returns when it has lasted.
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

// tell records that the present meaning is logged.
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

// state is what the log distinguishes.
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

// unsettled reports whether the present state has not been logged.
func (d *diary) unsettled() bool { return d.restless || d.told != d.present }

// tell logs the status. A healthy source is only logged after a failure.
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
