// Package cgroup finds out whose the processes of this node are: the pod and
// the container that procfs tells of each, by the names which the kubelet and
// the container runtimes give to control groups.
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

// SourceName is how the reader calls itself in its Status.
const SourceName = "procfs"

// DefaultProcfs is where procfs is where Options do not say so.
const DefaultProcfs = "/proc"

// patience is how long a lookup may take before the source counts as down.
const patience = 2 * time.Second

// Seen is a process that is asked for, and when the list was read that names
// it. A process that has begun after that is another with the same pid.
type Seen struct {
	PID int // in the pid namespace of procfs; of a thread it is as good
	At  clock.Instant
}

// Options configure a Reader. PIDs is needed.
type Options struct {
	Procfs string        // empty: DefaultProcfs
	PIDs   func() []Seen // the processes to look up; must not block, and may name one more than once

	Log     *slog.Logger          // nil: no log
	Clock   clock.Clock           // nil: the system's
	Observe func(seconds float64) // told how long each lookup of a list took; may be nil
}

// Reader keeps whose the processes are that somebody wants to know of. All
// methods but Run may be called from any goroutine and never touch a file.
type Reader struct {
	pids     func() []Seen
	resolver *resolver // of the one lookup under way
	patience time.Duration
	tracker  *source.Tracker
	now      clock.Clock
	observe  func(seconds float64)

	poked   chan struct{}
	changed chan struct{}
	latest  atomic.Pointer[map[int]dra.Owner] // replaced, never written
}

// New returns a reader that does nothing until Run.
func New(options Options) *Reader {
	options = options.complete()
	return &Reader{
		pids:     options.PIDs,
		resolver: newResolver(options.Procfs, options.Clock),
		patience: patience,
		tracker:  source.NewTracker(SourceName, options.Log, options.Clock, nil),
		now:      options.Clock,
		observe:  options.Observe,
		poked:    make(chan struct{}, 1),
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

// Run looks up the processes at once, then after each Poke, until ctx ends. It
// returns at once then; a lookup that hangs is left behind with its goroutine.
// It is called once.
func (r *Reader) Run(ctx context.Context) {
	found := make(chan findings, 1)
	for {
		began, list := r.now(), r.pids()
		go func() { found <- r.resolver.resolve(list) }()
		if !r.await(ctx, began, found) {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-r.poked:
		}
	}
}

// await takes what the lookup that has begun finds, late as it may be, and
// reports whether it came before ctx ended.
func (r *Reader) await(ctx context.Context, began clock.Instant, found <-chan findings) bool {
	overdue := time.NewTimer(r.patience)
	defer overdue.Stop()
	for {
		select {
		case <-ctx.Done():
			return false
		case f := <-found:
			r.observe(r.now().Since(began).Seconds())
			r.take(f)
			return true
		case <-overdue.C:
			r.tracker.Hang(began)
			r.tracker.Report(&source.Failure{Reason: source.ReasonTimeout, Err: fmt.Errorf(
				"look up processes in %s: no answer within %s; the kernel, or the server of these files, hangs", r.resolver.procfs, r.patience)})
			signal(r.changed)
		}
	}
}

// take publishes what a lookup has found. What was found before is published
// again where nothing differs, so that who knows it knows so at a glance.
func (r *Reader) take(f findings) {
	r.tracker.Hang(clock.Instant{})
	if latest := r.latest.Load(); !f.blind && (latest == nil || !maps.Equal(*latest, f.owners)) {
		r.latest.Store(&f.owners)
	}
	switch {
	case f.err == nil:
		r.tracker.Report(nil)
	case f.blind:
		r.tracker.Report(f.err)
	default:
		r.tracker.Impair(f.err)
	}
	signal(r.changed)
}

// Poke asks for a lookup: there is a new list of processes.
func (r *Reader) Poke() { signal(r.poked) }

// Latest returns the owners of the processes that were asked for last, by
// pid, without those that could not be looked up; nil before the first lookup.
// The map is shared and never written.
func (r *Reader) Latest() map[int]dra.Owner {
	if latest := r.latest.Load(); latest != nil {
		return *latest
	}
	return nil
}

// Changed receives after each lookup, and when one takes too long. It holds
// one signal.
func (r *Reader) Changed() <-chan struct{} { return r.changed }

// Status says how the source is. A process that cannot be looked up impairs
// it; it is down while procfs shows no processes at all, and while a lookup
// takes too long, which HungSince tells too.
func (r *Reader) Status() source.Status { return r.tracker.Status() }

func signal(to chan<- struct{}) {
	select {
	case to <- struct{}{}:
	default:
	}
}
