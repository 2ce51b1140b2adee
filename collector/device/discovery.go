package device

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/source"
)

// discoveryPatience is how long a source may look for its devices before it
// counts as hung: a vendor's library may take seconds to wake the hardware.
// What it then finds still counts, because nothing newer is known.
const discoveryPatience = 10 * time.Second

// discovery is what a source answered to the question what is there.
type discovery struct {
	readers []Reader
	err     error
}

// discoveryState is where a source's looking for devices stands.
type discoveryState struct {
	began   clock.Instant // of the last one
	running bool
	late    bool          // it has not come back in time
	due     time.Duration // when, in elapsed time, the next one is to begin
	hasty   bool          // that is sooner than usual, after a failed round
	retry   backoff
	err     error // what the last one failed with
}

// hasten brings the next look forward after a round in which all failed.
func (d *discoveryState) hasten(now clock.Instant) {
	if d.running || d.hasty {
		return
	}
	d.hasty, d.due = true, min(d.due, now.Elapsed+d.retry.grow())
}

// calm ends the hurry once a round has gone well.
func (d *discoveryState) calm() {
	if d.err == nil {
		d.retry.reset()
	}
}

// discoverWhenDue looks for devices at each slow tier and after failures, and
// notices when the last look has not come back.
func (l *loop) discoverWhenDue(ctx context.Context) {
	d, now := &l.discovery, l.now()
	switch {
	case d.running && !d.late && now.Since(d.began) > discoveryPatience:
		d.late = true
		d.err = &source.Failure{
			Reason: source.ReasonTimeout,
			Err:    fmt.Errorf("look for devices: no answer within %s", discoveryPatience),
		}
		if len(l.seats) == 0 {
			l.tracker.Report(d.err)
		}
		l.noteHang()
	case !d.running && now.Elapsed >= d.due:
		l.discover(ctx)
	}
}

// discover asks the source for its readers, beside the loop.
func (l *loop) discover(ctx context.Context) {
	d := &l.discovery
	d.began, d.running, d.hasty = l.now(), true, false
	d.due = d.began.Elapsed + l.slow
	l.calls.Add(1)
	go func() {
		readers, err := l.source.Readers(ctx)
		l.calls.Add(-1)
		select {
		case l.found <- discovery{readers, err}:
		case <-l.done:
		}
	}()
}

// adopt seats the readers that are new and, if the look succeeded, dismisses
// those that are gone.
func (l *loop) adopt(found discovery) {
	d := &l.discovery
	d.running, d.late, d.err = false, false, nil
	if found.err != nil {
		d.err = fmt.Errorf("look for devices: %w", found.err)
		d.due = l.now().Elapsed + d.retry.grow()
	}
	for _, reader := range found.readers {
		at, sits := slices.BinarySearchFunc(l.seats, reader.Key(), func(s *seat, key string) int {
			return strings.Compare(s.key, key)
		})
		if sits {
			l.seats[at].gone = false
		} else {
			l.sit(reader)
		}
	}
	if found.err == nil {
		l.dismissMissing(found.readers)
	}
	l.noteHang()
	if len(l.seats) == 0 {
		d.calm()
		l.tracker.Report(d.err)
	}
}

// dismissMissing takes away the seats of readers that are not there any
// more. One that hangs keeps its seat, without its devices, until it returns.
func (l *loop) dismissMissing(there []Reader) {
	keys := make(map[string]bool, len(there))
	for _, reader := range there {
		keys[reader.Key()] = true
	}
	for _, s := range slices.Clone(l.seats) {
		switch {
		case keys[s.key]:
		case s.busy():
			s.gone, s.devices = true, nil
		default:
			l.dismiss(s)
		}
	}
}

// noteHang tells the tracker since when a call into the source hangs.
func (l *loop) noteHang() {
	var since clock.Instant
	older := func(began clock.Instant) {
		if since.IsZero() || began.Elapsed < since.Elapsed {
			since = began
		}
	}
	for _, s := range l.seats {
		if l.overdue(s) {
			older(s.began)
		}
	}
	if l.discovery.late {
		older(l.discovery.began)
	}
	l.tracker.Hang(since)
}
