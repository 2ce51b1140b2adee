// Package cgroup resolves the owners of this node's processes: the pod and the
// container that procfs shows for each process, by the names that the kubelet
// and the container runtimes give to control groups.
package cgroup

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"sync/atomic"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/collector/source"
)

// SourceName is the name in the reader's Status.
const SourceName = "procfs"

// DefaultProcfs is where procfs is mounted if Options do not set it.
const DefaultProcfs = "/proc"

// timeout is how long a lookup may take before the source counts as down.
const timeout = 2 * time.Second

// Seen is a process to look up, and when the list was read that names it. A
// process that started later is another one with the same pid.
type Seen struct {
	PID int // in the pid namespace of procfs; may be a thread's
	At  clock.Instant
}

// Options configure a Reader. PIDs is required.
type Options struct {
	Procfs string        // empty: DefaultProcfs
	PIDs   func() []Seen // the processes to look up; must not block, and may name one more than once

	Log     *slog.Logger          // nil: no log
	Clock   clock.Clock           // nil: the system's
	Observe func(seconds float64) // receives the duration of each lookup of a list; may be nil
}

// Reader keeps the owners of the processes that Options.PIDs lists. All methods
// except Run are safe for concurrent use and never access a file.
type Reader struct {
	pids     func() []Seen
	resolver *resolver // used only by the lookup in progress
	timeout  time.Duration
	tracker  *source.Tracker
	now      clock.Clock
	observe  func(seconds float64)

	wake    chan struct{}
	changed chan struct{}
	latest  atomic.Pointer[map[int]dra.Owner] // replaced, never written
}

// New returns a reader. It does nothing until Run.
func New(options Options) *Reader {
	options = options.complete()
	return &Reader{
		pids:     options.PIDs,
		resolver: newResolver(options.Procfs, options.Clock),
		timeout:  timeout,
		tracker:  source.NewTracker(SourceName, options.Log, options.Clock, nil),
		now:      options.Clock,
		observe:  options.Observe,
		wake:     make(chan struct{}, 1),
		changed:  make(chan struct{}, 1),
	}
}

func (o Options) complete() Options {
	if o.Procfs == "" {
		o.Procfs = DefaultProcfs
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

// Run looks up the processes immediately and after each Refresh, until ctx ends.
// Then it returns immediately, even if a lookup hangs; the goroutine of that
// lookup remains until the lookup returns. Call Run once.
func (r *Reader) Run(ctx context.Context) {
	for {
		began, list := r.now(), r.pids()
		found, ok := source.Await(ctx, r.timeout, func() { r.late(began) }, func() ownersResult { return r.resolver.resolve(list) })
		if !ok {
			return
		}
		r.observe(r.now().Since(began).Seconds())
		r.apply(found)
		select {
		case <-ctx.Done():
			return
		case <-r.wake:
		}
	}
}

// late records that a lookup has not returned in time.
func (r *Reader) late(began clock.Instant) {
	r.tracker.Hang(began)
	r.tracker.Report(&source.Failure{Reason: source.ReasonTimeout, Err: fmt.Errorf(
		"look up processes in %s: no answer within %s; the kernel, or the server of these files, hangs", r.resolver.procfs, r.timeout)})
	signal(r.changed)
}

// apply publishes the result of a lookup. If nothing differs, it keeps the
// previous map, so that callers can recognize it by its identity.
func (r *Reader) apply(f ownersResult) {
	r.tracker.Hang(clock.Instant{})
	if latest := r.latest.Load(); !f.unreadable && (latest == nil || !maps.Equal(*latest, f.owners)) {
		r.latest.Store(&f.owners)
	}
	switch {
	case f.err == nil:
		r.tracker.Report(nil)
	case f.unreadable:
		r.tracker.Report(f.err)
	default:
		r.tracker.Impair(f.err)
	}
	signal(r.changed)
}

// Refresh requests a lookup, because the list of processes has changed.
func (r *Reader) Refresh() { signal(r.wake) }

// Latest returns the owners of the processes that were looked up last, by pid,
// without those whose lookup failed; nil before the first lookup. The map is
// shared; do not modify it.
func (r *Reader) Latest() map[int]dra.Owner {
	if latest := r.latest.Load(); latest != nil {
		return *latest
	}
	return nil
}

// Changed receives after each lookup, and when one takes too long. It holds
// one signal.
func (r *Reader) Changed() <-chan struct{} { return r.changed }

// Status returns the status of the source. A process that cannot be looked up
// impairs it. It is down while procfs shows no processes, and while a lookup
// takes too long; then HungSince is set.
func (r *Reader) Status() source.Status { return r.tracker.Status() }

func signal(changes chan<- struct{}) {
	select {
	case changes <- struct{}{}:
	default:
	}
}
