package source

import (
	"log/slog"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/clock"
)

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
	if s := (state{status.Up, status.Reason}); s != d.present {
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
