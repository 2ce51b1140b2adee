//go:build cgo

package nvml

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/source"
)

// A GPU that was reset, or unbound and bound back, is visible only after the
// library is initialized again. While a GPU is lost or cannot be read, this is
// done at intervals between these two. They increase, because it may disturb the
// other GPUs.
const (
	reconnectFirst = 30 * time.Second
	reconnectMost  = 5 * time.Minute
)

// lockTimeout is how long lock waits for the calls that are under way.
const lockTimeout = 200 * time.Millisecond

// librarySession is the use of the library between two initializations, repeatedly.
type librarySession struct {
	library nvml.Interface
	now     clock.Clock
	sysfs   string
	samples samples // of GPM

	// calls is read-locked during every call into the library, and locked
	// while the connection is ended, made and looked through: the library
	// must not be shut down under a call, and handles from before are not
	// to be used after. It is only ever tried to be locked, because a call
	// that hangs never releases it. The text of a return code is a call as
	// well: fmt.Errorf formats it immediately, and no bare code is returned as
	// an error, so that an error can be printed at any time.
	calls  sync.RWMutex
	number uint64 // of the present or last connection; handles are good for one alone. Guarded by calls

	reconnectWanted atomic.Bool                    // another connection: a GPU has been lost since this one was made, or cannot be read in it
	failed          atomic.Pointer[source.Failure] // why there is no connection, or none that finds GPUs; nil: there is

	// What follows belongs to Readers and Close.
	connected   bool
	initialized bool
	since       clock.Instant
	pause       time.Duration // at least, before another connection is made
	driver      string        // version of the driver that the library last worked with; empty: none yet
	watcher     xidWatcher    // its counts outlive each connection
	unbind      unbindWatcher
}

// acquire permits calls into the library until leave is called. It
// connects where there is no connection, or where another one is wanted and no
// call is under way.
func (c *librarySession) acquire(ctx context.Context) (leave func(), err error) {
	switch {
	case !c.connected:
		if !c.lock(ctx) {
			return nil, &source.Failure{
				Reason: source.ReasonTimeout,
				Err:    errors.New("reconnect: a call into the library has not returned"),
			}
		}
		c.pause = reconnectFirst
	case c.reconnectDue() && c.lock(ctx):
		c.pause = min(2*c.pause, reconnectMost)
	default:
		c.calls.RLock()
		return c.calls.RUnlock, nil
	}
	if err := c.connect(); err != nil {
		c.calls.Unlock()
		return nil, err
	}
	return c.calls.Unlock, nil
}

// lock waits a moment for the calls that are under way, which as a rule are
// short. It reports whether it has locked calls.
func (c *librarySession) lock(ctx context.Context) bool {
	ctx, end := context.WithTimeout(ctx, lockTimeout)
	defer end()
	return try(ctx, c.calls.TryLock)
}

// acquireShared waits while the library is being initialized again. It reports
// whether it has read-locked calls.
func (c *librarySession) acquireShared(ctx context.Context) bool { return try(ctx, c.calls.TryRLock) }

// try tries a lock until it has it or ctx ends.
func try(ctx context.Context, lock func() bool) bool {
	for !lock() {
		select {
		case <-ctx.Done():
			return false
		case <-time.After(5 * time.Millisecond):
		}
	}
	return true
}

// reconnectDue reports whether another connection is wanted and may be made.
func (c *librarySession) reconnectDue() bool {
	if c.now().Since(c.since) < c.pause {
		return false
	}
	if !c.reconnectWanted.Load() {
		c.pause = reconnectFirst
		return false
	}
	return true
}

// connect initializes the library, also if it was initialized before. calls is
// locked.
//
// A library that has been called stays mapped until the process ends, closed or
// not: the dynamic linker keeps what the program itself is bound to
// (add_dependency in glibc's elf/dl-lookup.c), and the binding's functions are. So
// the library of a driver that was replaced is never replaced, and only a new
// process opens another.
func (c *librarySession) connect() error {
	c.shutdown()
	if ret := c.library.Init(); ret != nvml.SUCCESS {
		c.watcher.counts.unwatchExcept(nil)
		return c.fail("initialize the library", ret)
	}
	c.connected, c.initialized, c.since = true, true, c.now()
	c.reconnectWanted.Store(false)
	return nil
}

// fail records that there is no connection, and why. The next look for GPUs
// connects again.
func (c *librarySession) fail(action string, ret nvml.Return) error {
	f := failure(action, ret)
	if loaded := driverVersion(c.sysfs); ret == nvml.ERROR_LIB_RM_VERSION_MISMATCH && c.driver != "" && loaded != c.driver {
		f.Err = fmt.Errorf("%s: %w: driver %s was replaced by %s while its library was in use: restart the agent, which then opens the library of the new one",
			action, ret, c.driver, cmp.Or(loaded, "another"))
	}
	c.connected = false
	c.failed.Store(f)
	return f
}

// shutdown ends the connection, and before it the XID watcher and all samples,
// which belong to it. That it fails changes nothing. calls is locked.
func (c *librarySession) shutdown() {
	c.unbind.interrupt()
	c.watcher.stop()
	c.unbind.stop()
	if c.initialized {
		c.samples.freeAll()
		_ = c.library.Shutdown()
	}
	c.connected, c.initialized = false, false
	c.number++
}

// recordLoss requests another connection if the error says that a GPU or the
// connection was lost.
func (c *librarySession) recordLoss(err error) {
	if gpuLost(err) || connectionLost(err) {
		c.reconnectWanted.Store(true)
	}
}

// samples are those that have been allocated of the library. They are safe
// for concurrent use.
type samples struct {
	mu  sync.Mutex
	all map[nvml.GpmSample]bool
}

func (s *samples) alloc(library nvml.Interface) (nvml.GpmSample, nvml.Return) {
	sample, ret := library.GpmSampleAlloc()
	if ret != nvml.SUCCESS {
		return nil, ret
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all == nil {
		s.all = make(map[nvml.GpmSample]bool)
	}
	s.all[sample] = true
	return sample, nvml.SUCCESS
}

func (s *samples) free(sample nvml.GpmSample) {
	s.mu.Lock()
	delete(s.all, sample)
	s.mu.Unlock()
	_ = sample.Free() // nothing can be done about one that stays
}

// freeAll frees what was not freed. No call into the library is under way.
func (s *samples) freeAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for sample := range s.all {
		_ = sample.Free()
	}
	clear(s.all)
}
