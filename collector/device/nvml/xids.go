//go:build cgo

package nvml

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/device"
)

// noInstance is what an event names that is not of one instance of a MIG
// device.
const noInstance = 0xFFFFFFFF

// xidCounts counts the XIDs that have been reported of each device. It is safe for
// concurrent use.
//
// A GPU that is not watched any more is reported for device.RecentXIDs after its
// last XID, so that this reaches every consumer; then other sources may report
// it. Its counts are reported again once it is watched again.
//
// A GPU that was removed in good order is not reported until it is back. The
// counts of a MIG device end with it: another one with its UUID is another one.
type xidCounts struct {
	changed chan struct{}
	now     clock.Clock

	mu            sync.Mutex
	received      clock.Instant                 // when the last wait for events returned; zero: never
	gpus          map[string]*gpuXIDs           // by UUID
	migDevices    map[string]map[string]migXIDs // by the UUIDs of the GPU and of the MIG device
	reported      map[string][]device.XID       // nil: to be built
	reportedUntil clock.Instant                 // reported is valid before this; zero: until a change
}

// gpuXIDs are the XIDs of one GPU itself.
type gpuXIDs struct {
	xids    []device.XID // sorted by code
	watched bool
	failure error         // why it is not, though the GPU reports XIDs; nil: it does not, or is lost
	last    clock.Instant // when the GPU last reported an XID; zero: never
	removed bool
}

// migXIDs is a MIG device as events name it, and its XIDs.
type migXIDs struct {
	gpuInstance, computeInstance uint32
	xids                         []device.XID
}

func newXIDCounts(now clock.Clock) *xidCounts {
	return &xidCounts{
		now:        now,
		changed:    make(chan struct{}, 1),
		gpus:       make(map[string]*gpuXIDs),
		migDevices: make(map[string]map[string]migXIDs),
	}
}

// setWatched sets whether the XIDs of a GPU are watched for, and why not if they
// should be. The GPU has not been removed.
func (c *xidCounts) setWatched(gpu string, watched bool, failure error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	h, ok := c.gpus[gpu]
	if !ok {
		h = new(gpuXIDs)
		c.gpus[gpu] = h
	}
	same := ok && h.watched == watched && !h.removed && (h.failure == nil) == (failure == nil)
	h.watched, h.failure, h.removed = watched, failure, false
	if !same {
		c.change()
	}
}

// unwatchExcept sets that no GPU is watched but those named.
func (c *xidCounts) unwatchExcept(but map[string]bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for gpu, h := range c.gpus {
		if (h.watched || h.failure != nil) && !but[gpu] {
			h.watched, h.failure = false, nil
			c.change()
		}
	}
}

// receive records that a wait for events has returned as it should.
func (c *xidCounts) receive() {
	now := c.now()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.received = now
}

// state returns when a wait for events has last returned, and why some GPUs are
// not watched.
func (c *xidCounts) state() (clock.Instant, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var first error
	failed, present := 0, 0
	for _, gpu := range slices.Sorted(maps.Keys(c.gpus)) {
		h := c.gpus[gpu]
		if !h.removed {
			present++
		}
		if h.failure != nil {
			if failed++; first == nil {
				first = fmt.Errorf("%s: %w", gpu, h.failure)
			}
		}
	}
	if first == nil {
		return c.received, nil
	}
	return c.received, fmt.Errorf("receive XIDs of %d of %d GPUs, the first: %w", failed, present, first)
}

// remove sets that a GPU was removed in good order.
func (c *xidCounts) remove(gpu string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.migDevices, gpu)
	if h := c.gpus[gpu]; h != nil && !h.removed {
		h.removed, h.failure = true, nil
		c.change()
	}
}

// setInstances sets which MIG devices a GPU has now.
func (c *xidCounts) setInstances(gpu string, parts map[string]migXIDs) {
	c.mu.Lock()
	defer c.mu.Unlock()
	previous := c.migDevices[gpu]
	same := len(parts) == len(previous)
	for uuid, p := range parts {
		earlier, ok := previous[uuid]
		same = same && ok && earlier.gpuInstance == p.gpuInstance && earlier.computeInstance == p.computeInstance
		p.xids = earlier.xids
		parts[uuid] = p
	}
	c.migDevices[gpu] = parts
	if !same {
		c.change()
	}
}

// record counts one XID of a GPU. It is of the MIG device that is named, if
// that is known, else of the GPU.
func (c *xidCounts) record(gpu string, gpuInstance, computeInstance uint32, code int) {
	now := c.now()
	c.mu.Lock()
	defer c.mu.Unlock()
	defer c.change()
	h := c.gpus[gpu]
	if h == nil {
		h = new(gpuXIDs)
		c.gpus[gpu] = h
	}
	h.last = now
	if uuid, ok := c.named(gpu, gpuInstance, computeInstance); ok {
		p := c.migDevices[gpu][uuid]
		p.xids = increment(p.xids, code, now.Wall)
		c.migDevices[gpu][uuid] = p
		return
	}
	h.xids = increment(h.xids, code, now.Wall)
}

// named finds the MIG device of an event. One that names a GPU instance alone
// is of a MIG device only where that is the only one in the instance.
func (c *xidCounts) named(gpu string, gpuInstance, computeInstance uint32) (uuid string, found bool) {
	if gpuInstance == noInstance {
		return "", false
	}
	for candidate, p := range c.migDevices[gpu] {
		if p.gpuInstance != gpuInstance || computeInstance != noInstance && p.computeInstance != computeInstance {
			continue
		}
		if found {
			return "", false
		}
		uuid, found = candidate, true
	}
	return uuid, found
}

// increment returns the XIDs with one more.
func increment(xids []device.XID, code int, at time.Time) []device.XID {
	i, ok := slices.BinarySearchFunc(xids, code, func(x device.XID, code int) int { return cmp.Compare(x.Code, code) })
	if !ok {
		xids = slices.Insert(xids, i, device.XID{Code: code})
	}
	xids[i].Count++
	xids[i].Last = at
	return xids
}

// change signals that the report has changed. mu is locked.
func (c *xidCounts) change() {
	c.reported = nil
	select {
	case c.changed <- struct{}{}:
	default:
	}
}

// report returns the XIDs of each device that is watched, or that has reported
// one within device.RecentXIDs.
func (c *xidCounts) report() map[string][]device.XID {
	now := c.now()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.reported != nil && (c.reportedUntil.IsZero() || now.Since(c.reportedUntil) < 0) {
		return c.reported
	}
	c.reported, c.reportedUntil = make(map[string][]device.XID), clock.Instant{}
	for gpu, h := range c.gpus {
		if h.removed || !h.watched && (h.last.IsZero() || now.Since(h.last) >= device.RecentXIDs) {
			continue
		}
		c.add(gpu, h.xids, h)
		for uuid, p := range c.migDevices[gpu] {
			c.add(uuid, p.xids, h)
		}
	}
	return c.reported
}

// add adds a device to the report. mu is locked.
func (c *xidCounts) add(uuid string, xids []device.XID, h *gpuXIDs) {
	if !h.watched && len(xids) == 0 {
		return
	}
	c.reported[uuid] = append([]device.XID{}, xids...)
	if end := h.last.Add(device.RecentXIDs); !h.watched && (c.reportedUntil.IsZero() || end.Since(c.reportedUntil) < 0) {
		c.reportedUntil = end
	}
}
