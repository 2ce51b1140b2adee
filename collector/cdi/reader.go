// Package cdi reads the CDI specifications of a node, in which DRA drivers list
// the device nodes of a device, and converts them to dra values. The format is
// that of tags.cncf.io/container-device-interface.
package cdi

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/collector/source"
)

// SourceName is the name in the reader's Status.
const SourceName = "cdi"

const (
	defaultInterval = 10 * time.Second
	debounce        = 100 * time.Millisecond
	// timeout is how long a scan may take before the source counts as down.
	timeout = 5 * time.Second
)

// Options configure a Reader.
type Options struct {
	// Dirs are searched in this order: if two devices have the same name, that of
	// the later directory counts. Without any, /etc/cdi and /var/run/cdi, as
	// container runtimes do.
	Dirs     []string
	Interval time.Duration // between scans; zero: 10 s

	Log     *slog.Logger          // nil: no log
	Clock   clock.Clock           // nil: the system's
	Observe func(seconds float64) // receives the duration of each scan; may be nil
}

// Reader keeps the devices of the specifications on this node. All methods
// except Run are safe for concurrent use and never access a file.
type Reader struct {
	interval time.Duration
	scanner  *scanner          // used only by the scan in progress
	read     func() scanResult // scanner.scan
	problems []problem         // of the latest scan; Run's alone
	tracker  *source.Tracker
	log      *slog.Logger
	now      clock.Clock
	observe  func(seconds float64)

	wake    chan struct{}
	changed chan struct{}

	mu     sync.Mutex
	latest []dra.CDIDevice // replaced, never written
}

// New returns a reader. It does nothing until Run.
func New(options Options) *Reader {
	options = options.complete()
	scanner := newScanner(options.Dirs)
	return &Reader{
		interval: options.Interval,
		scanner:  scanner,
		read:     scanner.scan,
		tracker:  source.NewTracker(SourceName, options.Log, options.Clock, nil),
		log:      options.Log.With("source", SourceName),
		now:      options.Clock,
		observe:  options.Observe,
		wake:     make(chan struct{}, 1),
		changed:  make(chan struct{}, 1),
	}
}

func (o Options) complete() Options {
	if len(o.Dirs) == 0 {
		o.Dirs = []string{"/etc/cdi", "/var/run/cdi"}
	}
	if o.Interval <= 0 {
		o.Interval = defaultInterval
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Clock == nil {
		o.Clock = clock.System()
	}
	if o.Observe == nil {
		o.Observe = func(float64) {}
	}
	return o
}

// Run scans immediately, after every interval and soon after a Refresh, until ctx
// ends. Then it returns immediately, even if a scan hangs; the goroutine of that scan
// remains until the scan returns. Call Run once.
func (r *Reader) Run(ctx context.Context) {
	for {
		if !r.scan(ctx) {
			return
		}
		timer := time.NewTimer(r.interval)
		select {
		case <-ctx.Done():
		case <-timer.C:
		case <-r.wake:
			// Wait for other files that are written at the same time.
			timer.Reset(debounce)
			select {
			case <-ctx.Done():
			case <-timer.C:
			}
		}
		timer.Stop()
		if ctx.Err() != nil {
			return
		}
	}
}

// Refresh requests a scan within a tenth of a second, for example because a claim
// was prepared.
func (r *Reader) Refresh() { signal(r.wake) }

// Latest returns the devices, sorted by name. The slice is shared; do not
// modify it.
func (r *Reader) Latest() []dra.CDIDevice {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.latest
}

// Changed receives after the first scan and after each that changed the devices
// or the Status. It holds one signal.
func (r *Reader) Changed() <-chan struct{} { return r.changed }

// Status returns the status of the source. A file that cannot be used impairs
// it; it is down if no directory can be listed, and while a scan takes too long; then
// HungSince is set. A missing directory is no error.
func (r *Reader) Status() source.Status { return r.tracker.Status() }

// scan reads the directories once and publishes the result. It returns false if ctx
// ends first.
func (r *Reader) scan(ctx context.Context) bool {
	began := r.now()
	found, ok := source.Await(ctx, timeout, func() { r.late(began) }, r.read)
	if !ok {
		return false
	}
	r.observe(r.now().Since(began).Seconds())
	r.apply(found)
	return true
}

// late records that a scan has not returned in time. The devices stay as they were.
func (r *Reader) late(began clock.Instant) {
	r.tracker.Hang(began)
	r.tracker.Report(&source.Failure{Reason: source.ReasonTimeout, Err: fmt.Errorf(
		"read CDI specifications in %s: no answer within %s; the server of a file system, or a driver, hangs", strings.Join(r.scanner.dirs, ", "), timeout)})
	signal(r.changed)
}

// apply publishes the result of a scan.
func (r *Reader) apply(found scanResult) {
	old := r.tracker.Status()
	r.tracker.Hang(clock.Instant{})
	r.report(found)
	r.mu.Lock()
	same := slices.EqualFunc(r.latest, found.devices, equal)
	r.latest = found.devices
	r.mu.Unlock()
	present := r.tracker.Status()
	first := old.LastSuccess.IsZero() && old.Errors == 0
	if first || !same || present.Up != old.Up || present.Reason != old.Reason {
		signal(r.changed)
	}
}

// report passes the result of a scan to the tracker, which logs when the source
// changes. It logs further problems of a source that is already impaired.
func (r *Reader) report(found scanResult) {
	known := r.problems
	r.problems = found.problems
	if len(found.problems) == 0 {
		r.tracker.Report(nil)
		return
	}
	if len(known) > 0 {
		r.logNewProblems(known, found.problems)
	}
	if found.unreadable {
		r.tracker.Report(joinErrors(found.problems))
		return
	}
	r.tracker.Impair(joinErrors(found.problems))
}

// logNewProblems logs the problems that the previous scan did not have, and
// names only the first of them: a folder may have any number of broken files.
func (r *Reader) logNewProblems(known, now []problem) {
	paths := make(map[string]bool, len(known))
	for _, p := range known {
		paths[p.path] = true
	}
	more := 0
	for _, p := range now {
		if paths[p.path] {
			continue
		}
		if more++; more <= maxNamed {
			r.log.Warn("one more CDI specification is ignored", "path", p.path, "error", p.err.Error())
		}
	}
	if more > maxNamed {
		r.log.Warn("more CDI specifications are ignored", "more", more-maxNamed)
	}
}

func equal(a, b dra.CDIDevice) bool { return a.Name == b.Name && slices.Equal(a.Nodes, b.Nodes) }

func signal(changes chan<- struct{}) {
	select {
	case changes <- struct{}{}:
	default:
	}
}
