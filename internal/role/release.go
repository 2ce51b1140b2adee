package role

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/device"
	"github.com/dra-exporter/dra-exporter/collector/device/sysfs"
	"github.com/dra-exporter/dra-exporter/collector/devicerelease"
	"github.com/dra-exporter/dra-exporter/collector/node"
	"github.com/dra-exporter/dra-exporter/collector/source"
)

const (
	// releaseInterval is the time between two decisions whether devices are released.
	releaseInterval = time.Second
	// startInterval is the same until it is known whether they are.
	startInterval = 50 * time.Millisecond
)

// releases releases the devices of the node when others need them, and opens them again.
// Only run, and what it calls, reads and decides.
type releases struct {
	file    string // whose existence releases; empty: none
	sysfs   string
	policy  *devicerelease.Policy
	idle    bool                                          // the policy asks whether devices have been read since they were opened
	labels  func() (labels map[string]string, tried bool) // of the node
	sampler *device.Sampler
	clock   clock.Clock
	log     *slog.Logger

	facts  atomic.Pointer[node.Facts] // of the newest step; nil: there has been none
	exists atomic.Bool                // the file does, as it was seen last
	reason atomic.Pointer[devicerelease.Reason]
	read   func() bool // reports whether devices have been read since they were opened; nil: it was not asked for
}

// access returns whether devices are released, and why.
func (r *releases) access() node.DeviceAccess {
	access := node.DeviceAccess{State: r.sampler.Access()}
	if reason := r.reason.Load(); reason != nil {
		access.Reason = string(*reason)
	}
	return access
}

// starting reports whether it is not known yet if devices are to be released.
func (r *releases) starting() bool {
	reason := r.reason.Load()
	return reason != nil && *reason == devicerelease.ReasonStarting
}

// prepare decides for the first time, before any source is opened.
func (r *releases) prepare() {
	r.look()
	r.decide(false)
}

// run decides again every second, and at once when a driver is to be unbound.
func (r *releases) run(ctx context.Context) {
	timer := time.NewTimer(startInterval)
	defer timer.Stop()
	for {
		pause := startInterval
		if !r.starting() {
			pause = clock.UntilNext(releaseInterval)
		}
		timer.Reset(pause)
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
			r.decide(false)
		case <-r.sampler.Unbinding():
			r.decide(true)
		}
	}
}

// decide takes one step of the policy and applies its result.
func (r *releases) decide(unbinding bool) {
	reason := r.policy.Step(r.gather(unbinding), r.clock())
	if previous := r.reason.Swap(&reason); previous == nil && reason != devicerelease.ReasonNone || previous != nil && *previous != reason {
		r.report(reason)
		r.read = nil
	}
	r.sampler.Release(reason != devicerelease.ReasonNone)
}

func (r *releases) report(reason devicerelease.Reason) {
	if reason == devicerelease.ReasonNone {
		r.log.Info("opening the devices of this node again")
	} else {
		r.log.Info("releasing the devices of this node", "reason", string(reason))
	}
}

func (r *releases) gather(unbinding bool) *devicerelease.Facts {
	labels, tried := r.labels()
	facts := &devicerelease.Facts{File: r.exists.Load(), Unbinding: unbinding, Labels: labels, LabelsDue: !tried}
	if known := r.facts.Load(); known != nil {
		facts.Published, facts.Claims, facts.Plugins = known.Cluster.Published, known.Cluster.Claims, known.Listing.Plugins
	}
	var err error
	facts.Bound, err = sysfs.Bound(r.sysfs, "nvidia")
	facts.BoundKnown = r.sysfs != "" && (err == nil || errors.Is(err, fs.ErrNotExist)) // without the driver, nothing is bound to it
	if r.idle && r.read == nil && r.sampler.Access() == device.AccessOpen {
		r.read = r.sampler.Refresh()
	}
	facts.Read = r.read != nil && r.read()
	return facts
}

// watchFile looks for the file every second, in a goroutine of its own: a file system
// that hangs keeps nothing else from being decided.
func (r *releases) watchFile(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		timer.Reset(clock.UntilNext(releaseInterval))
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
			if _, ok := source.Await(ctx, releaseInterval, func() {}, func() bool { r.look(); return true }); !ok {
				return
			}
		}
	}
}

// look looks for the file. If it cannot be found out whether it exists, it counts as
// before.
func (r *releases) look() {
	if r.file == "" {
		return
	}
	_, err := os.Lstat(r.file)
	switch {
	case err == nil:
		r.exists.Store(true)
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		r.exists.Store(false)
	default:
		r.log.Warn("the release file cannot be looked for: devices stay as they are", "file", r.file, "error", err)
	}
}
