package apiserver

import (
	"cmp"
	"maps"
	"reflect"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/dra-exporter/dra-exporter/collector/apiserver/decode"
	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/dra"
)

const (
	remotePoolRefresh    = 10 * time.Minute
	remotePoolFirstRetry = 5 * time.Second
)

// devicePools has the published devices that concern this node: those of the
// pools of the node's own slices, and those that claims of its pods are
// allocated from other pools. It does no I/O and is not safe for concurrent use.
type devicePools struct {
	local     localPools
	remote    *remotePools
	allocated map[decode.PoolID]map[string]int // names of allocated devices, with how many results
	listed    bool                             // the node's slices were, at least once
}

func newDevicePools(jitter func(time.Duration) time.Duration) *devicePools {
	return &devicePools{local: make(localPools), remote: newRemotePools(jitter), allocated: make(map[decode.PoolID]map[string]int)}
}

// applySlices applies the slices of the node. It reports whether the devices
// have changed.
func (d *devicePools) applySlices(now clock.Instant, present []decode.SliceRecord) (changed bool) {
	previous := maps.Clone(d.local)
	d.local.update(present)
	changed = !reflect.DeepEqual(previous, d.local)
	return d.findRemote(now) || changed
}

// setListed records that the slices of the node were listed. It reports whether the
// devices have changed.
func (d *devicePools) setListed(now clock.Instant) (changed bool) {
	if d.listed {
		return false
	}
	d.listed = true
	return d.findRemote(now)
}

// findRemote finds the allocated devices of pools that no slice of this node
// publishes.
func (d *devicePools) findRemote(now clock.Instant) (changed bool) {
	if !d.listed {
		return false
	}
	for pool, names := range d.allocated {
		if _, ok := d.local[pool]; ok {
			changed = d.remote.remove(pool) || changed
			continue
		}
		for name := range names {
			d.remote.want(now, pool, name)
		}
	}
	return changed
}

// applyClaim applies the allocation of a claim that has changed. It reports
// whether the devices have changed.
func (d *devicePools) applyClaim(now clock.Instant, claim claimChange) (changed bool) {
	if claim.after != nil {
		for _, result := range claim.after.Results {
			pool := poolID(result.Device)
			if d.allocated[pool] == nil {
				d.allocated[pool] = make(map[string]int)
			}
			d.allocated[pool][result.Device.Name]++
			if _, ok := d.local[pool]; d.listed && !ok {
				d.remote.want(now, pool, result.Device.Name)
			}
		}
	}
	if claim.before == nil {
		return false
	}
	for _, result := range claim.before.Results {
		pool := poolID(result.Device)
		names := d.allocated[pool]
		if names[result.Device.Name]--; names[result.Device.Name] > 0 {
			continue
		}
		if delete(names, result.Device.Name); len(names) == 0 {
			delete(d.allocated, pool)
		}
		changed = d.remote.release(pool, result.Device.Name) || changed
	}
	return changed
}

// devices returns the devices, sorted by driver, pool and name.
func (d *devicePools) devices() []dra.PublishedDevice {
	all := d.remote.devices()
	for _, pool := range d.local {
		all = append(all, pool...)
	}
	slices.SortFunc(all, func(a, b dra.PublishedDevice) int {
		return cmp.Or(cmp.Compare(a.ID.Driver, b.ID.Driver), cmp.Compare(a.ID.Pool, b.ID.Pool), cmp.Compare(a.ID.Name, b.ID.Name))
	})
	return all
}

func poolID(device dra.DeviceID) decode.PoolID {
	return decode.PoolID{Driver: device.Driver, Name: device.Pool}
}

// localPools has the devices of each pool in its newest complete generation:
// while a driver replaces its slices one by one, the generation before stays. A
// pool without slices has no devices; the kubelet deletes the slices of a driver
// thirty seconds after the driver has gone.
type localPools map[decode.PoolID][]dra.PublishedDevice

// update replaces the pools by those of the slices that there are.
func (p localPools) update(present []decode.SliceRecord) {
	byPool := make(map[decode.PoolID][]decode.SliceRecord)
	for _, slice := range present {
		byPool[slice.Pool] = append(byPool[slice.Pool], slice)
	}
	maps.DeleteFunc(p, func(pool decode.PoolID, _ []dra.PublishedDevice) bool { return len(byPool[pool]) == 0 })
	for pool, all := range byPool {
		if newest := newestGeneration(all); !newest.missing {
			p[pool] = newest.devices
		}
	}
}

// generation is the newest of a pool, as far as its slices are there.
type generation struct {
	devices []dra.PublishedDevice
	missing bool // some slices are
	surplus bool // there are more slices than the pool has: some will be deleted
}

// newestGeneration returns the devices of the newest generation; of no slices,
// none. A driver that restarts may publish the present generation under new
// names before it deletes the old slices: if two slices have the same device, the
// newer slice counts.
func newestGeneration(present []decode.SliceRecord) generation {
	if len(present) == 0 {
		return generation{}
	}
	all := slices.SortedFunc(slices.Values(present), newestFirst)
	newest := all[0]
	seen := make(map[string]bool)
	found := int64(0)
	var devices []dra.PublishedDevice
	for _, slice := range all {
		if slice.Generation != newest.Generation {
			break
		}
		found++
		for _, device := range slice.Devices {
			if !seen[device.ID.Name] {
				seen[device.ID.Name] = true
				devices = append(devices, device)
			}
		}
	}
	return generation{devices: devices, missing: found < newest.Count, surplus: found > newest.Count}
}

func newestFirst(a, b decode.SliceRecord) int {
	return cmp.Or(
		cmp.Compare(b.Generation, a.Generation),
		b.Created.Compare(a.Created),
		compareVersions(b.Version, a.Version),
		cmp.Compare(a.Name, b.Name),
	)
}

// compareVersions takes texts that are no resource versions for equal.
func compareVersions(a, b string) int {
	order, err := resourceversion.CompareResourceVersion(a, b)
	if err != nil {
		return 0
	}
	return order
}

// remotePools has the pools that no slice of this node publishes but that claims
// here are allocated from: network-attached devices, and pools whose driver is
// down. Only the allocated devices of a pool are kept.
type remotePools struct {
	queue  *workqueue[decode.PoolID]
	known  map[decode.PoolID]*remotePool
	jitter func(limit time.Duration) time.Duration // random, in [0, limit)
}

type remotePool struct {
	wanted  map[string]bool // names of devices
	devices []dra.PublishedDevice
	retries int
}

func newRemotePools(jitter func(time.Duration) time.Duration) *remotePools {
	return &remotePools{
		queue: newWorkqueue(func(decode.PoolID) bool { return false }),
		known: make(map[decode.PoolID]*remotePool), jitter: jitter,
	}
}

// want adds a device that is wanted. Its pool is due at once.
func (r *remotePools) want(now clock.Instant, pool decode.PoolID, device string) {
	record, ok := r.known[pool]
	if !ok {
		record = &remotePool{wanted: make(map[string]bool)}
		r.known[pool] = record
	}
	if !record.wanted[device] {
		record.wanted[device] = true
		r.queue.set(pool, now.Elapsed)
	}
}

// release removes a device that is not wanted any more. It reports whether the
// devices have changed: those of a pool stay until it is listed again, or until
// none of them is wanted.
func (r *remotePools) release(pool decode.PoolID, device string) (changed bool) {
	record, ok := r.known[pool]
	if !ok {
		return false
	}
	if delete(record.wanted, device); len(record.wanted) > 0 {
		return false
	}
	return r.remove(pool)
}

// remove removes a pool. It reports whether it had devices.
func (r *remotePools) remove(pool decode.PoolID) (changed bool) {
	record, ok := r.known[pool]
	delete(r.known, pool)
	r.queue.remove(pool)
	return ok && len(record.devices) > 0
}

// apply applies the slices of a pool. If some of the newest generation are
// missing, or there are more than it has, its driver is replacing them: the pool
// is listed again soon. It reports whether the devices have changed.
func (r *remotePools) apply(now clock.Instant, pool decode.PoolID, present []decode.SliceRecord) (changed bool) {
	record := r.known[pool]
	newest := newestGeneration(present)
	if newest.missing {
		r.retry(now, pool)
		return false
	}
	var devices []dra.PublishedDevice
	for _, device := range newest.devices {
		if record.wanted[device.ID.Name] {
			devices = append(devices, device)
		}
	}
	changed = !reflect.DeepEqual(record.devices, devices)
	record.devices = devices
	if newest.surplus {
		r.retry(now, pool)
		return changed
	}
	record.retries = 0
	r.queue.set(pool, now.Elapsed+remotePoolRefresh-remotePoolRefresh/10+r.jitter(remotePoolRefresh/5))
	return changed
}

// retry makes a pool due again after a list that failed or was incomplete; what
// is known of it stays.
func (r *remotePools) retry(now clock.Instant, pool decode.PoolID) {
	record := r.known[pool]
	r.queue.set(pool, now.Elapsed+growingRefresh(record.retries, r.jitter))
	record.retries++
}

// growingRefresh is the time until a list is repeated, which doubles with each
// retry up to the refresh of remote pools.
func growingRefresh(retries int, jitter func(time.Duration) time.Duration) time.Duration {
	wait := remotePoolRefresh
	if retries < 7 { // 5 s doubled seven times is more than the refresh
		wait = remotePoolFirstRetry << retries
	}
	return wait + jitter(wait/5)
}

// devices returns what is known, in no order.
func (r *remotePools) devices() []dra.PublishedDevice {
	var all []dra.PublishedDevice
	for _, record := range r.known {
		all = append(all, record.devices...)
	}
	return all
}
