package device

import (
	"context"
	"slices"
	"sync/atomic"

	"github.com/dra-exporter/dra-exporter/collector/clock"
)

// ReleasableSource is a Source that keeps devices open between its reads. Whoever resets such
// a device, replaces its driver or passes it to a virtual machine has to wait until
// the source is closed. After Close, Readers opens it again.
type ReleasableSource interface {
	Source
	// KeepsOpen reports whether this source keeps devices open.
	KeepsOpen() bool
}

// UnbindSource is a ReleasableSource that is notified when a driver is to be unbound from
// one of its devices. Unbinding waits until the device is closed.
type UnbindSource interface {
	ReleasableSource
	// Unbinding signals that a driver is to be unbound.
	Unbinding() <-chan struct{}
}

// Access is whether the sources keep devices open.
type Access uint8

// The states, as dra_exporter_device_access names them.
const (
	AccessOpen      Access = iota
	AccessReleasing        // a call into a source has not returned, so that it is not closed yet
	AccessReleased         // no source keeps a device open
)

// String returns the state label of dra_exporter_device_access.
func (a Access) String() string { return [...]string{"open", "releasing", "released"}[a] }

// Release closes the sources that keep devices open, as soon as the calls into them
// have returned, and keeps them closed until it is called with false. Meanwhile their
// samples are the last ones, see Sample.Released. It may be called before Run: then
// no such source is opened.
func (s *Sampler) Release(release bool) {
	for _, l := range s.loops {
		l.release.request(release)
	}
}

// Access returns whether the sources keep devices open. Those that never do count as
// what was requested last.
func (s *Sampler) Access() Access {
	access := AccessOpen
	for i, l := range s.loops {
		if i == 0 || l.release.access() == AccessReleasing {
			access = l.release.access()
		}
	}
	return access
}

// Unbinding signals that a driver is to be unbound from a device that a source keeps
// open. The sources must be released for that.
func (s *Sampler) Unbinding() <-chan struct{} { return s.unbinding }

// release records whether a loop keeps its source closed. Only request and access
// may be called by other goroutines.
type release struct {
	holds     bool // the source keeps devices open
	requested atomic.Bool
	released  atomic.Bool
	changes   chan struct{} // signals that requested has changed
	closing   bool          // Close has not returned
	failed    bool          // it has failed since the last tick
	closed    chan error    // what it returned
}

func newRelease(source Source) release {
	holder, ok := source.(ReleasableSource)
	return release{holds: ok && holder.KeepsOpen(), changes: make(chan struct{}, 1), closed: make(chan error)}
}

func (r *release) request(release bool) {
	if r.requested.Swap(release) == release {
		return
	}
	signal(r.changes)
}

func (r *release) access() Access {
	switch {
	case !r.requested.Load():
		return AccessOpen
	case r.holds && !r.released.Load():
		return AccessReleasing
	default:
		return AccessReleased
	}
}

// paused reports whether no call into the source may begin.
func (r *release) paused() bool { return r.holds && (r.closing || r.requested.Load()) }

// applyRelease applies that the source is to be released, or not any more.
func (l *loop) applyRelease(ctx context.Context) {
	if !l.release.holds || l.release.closing {
		return
	}
	if l.release.requested.Load() {
		l.closeWhenIdle()
		return
	}
	if !l.release.released.Swap(false) {
		return // it was never closed
	}
	l.tracker.Release(false)
	for _, s := range l.readers {
		s.began, s.again = clock.Instant{}, 0 // a read is due at once, and a slow one
	}
	l.discover(ctx)
}

// closeWhenIdle closes the source once no call into it is under way. It is called
// again at every tick and after every answer.
func (l *loop) closeWhenIdle() {
	r := &l.release
	if !r.paused() || r.closing || r.failed || r.released.Load() || l.calls.Load() > 0 {
		return
	}
	r.closing = true
	go func() {
		err := l.source.Close()
		select {
		case r.closed <- err:
		case <-l.done:
		}
	}()
}

// applyClosed applies what Close has returned. One that failed is repeated at the next
// tick.
func (l *loop) applyClosed(ctx context.Context, err error) {
	l.release.closing, l.release.failed = false, err != nil
	if err != nil {
		l.log.Warn("source was not released", "component", l.source.Name(), "error", err)
	} else {
		l.release.released.Store(true)
		l.tracker.Release(true)
		l.open = false
		l.serve()
		l.publishSamples()
	}
	if !l.release.requested.Load() {
		l.release.released.Store(true) // whether it was closed in part is not known
		l.applyRelease(ctx)
	}
}

// markReleased returns the samples as those of a source that is closed.
func markReleased(samples []Sample) []Sample {
	marked := slices.Clone(samples)
	for i := range marked {
		marked[i].Released = true
	}
	return marked
}

// watchUnbinding passes on that a driver is to be unbound.
func (l *loop) watchUnbinding() <-chan struct{} {
	if unbinding, ok := l.source.(UnbindSource); ok {
		return unbinding.Unbinding()
	}
	return nil
}

// releasedTick replaces a tick while the source is released or to be released.
func (l *loop) releasedTick(now clock.Instant) {
	l.release.failed = false
	l.closeWhenIdle()
	if l.release.released.Load() {
		l.publishSamples() // XIDs that were received before expire
		return
	}
	if l.open && l.ticks-l.opened >= l.patience {
		l.finish()
	}
	l.discovery.expire(now)
	l.reportHang()
}
