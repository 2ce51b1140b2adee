package apiserver

import (
	"reflect"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/apiserver/decode"
	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/dra"
)

const (
	farPoolRefresh    = 10 * time.Minute
	farPoolFirstRetry = 5 * time.Second
)

// farPools knows the pools that no slice of this node publishes though a
// claim here has been given a device of them: network-attached devices, and
// pools whose driver is down. Of each only the devices that are allocated
// here are kept. It does no I/O and is not safe for concurrent use.
type farPools struct {
	agenda *agenda[decode.PoolID]
	known  map[decode.PoolID]*farPool
	spread func(limit time.Duration) time.Duration // random, in [0, limit)
}

type farPool struct {
	wanted  map[string]bool // names of devices
	devices []dra.PublishedDevice
	retries int
}

func newFarPools(spread func(time.Duration) time.Duration) *farPools {
	return &farPools{agenda: newAgenda(func(decode.PoolID) bool { return false }), known: make(map[decode.PoolID]*farPool), spread: spread}
}

// want says that a device is wanted. Its pool is due at once.
func (f *farPools) want(now clock.Instant, pool decode.PoolID, device string) {
	record, found := f.known[pool]
	if !found {
		record = &farPool{wanted: make(map[string]bool)}
		f.known[pool] = record
	}
	if !record.wanted[device] {
		record.wanted[device] = true
		f.agenda.set(pool, now.Elapsed)
	}
}

// release says that a device is not wanted any more, and reports whether that
// changes what is known: the devices of a pool stay until it is listed again,
// or until none of them is wanted.
func (f *farPools) release(pool decode.PoolID, device string) (changed bool) {
	record, found := f.known[pool]
	if !found {
		return false
	}
	if delete(record.wanted, device); len(record.wanted) > 0 {
		return false
	}
	return f.drop(pool)
}

// drop forgets a pool, and reports whether devices that were known are gone.
func (f *farPools) drop(pool decode.PoolID) (changed bool) {
	record, found := f.known[pool]
	delete(f.known, pool)
	f.agenda.drop(pool)
	return found && len(record.devices) > 0
}

// listed notes the slices that a list of the pool brought. Where some of the
// newest generation are missing, or more than there should be, its driver is
// at work: soon there is news. It reports whether the wanted devices are
// others than were known.
func (f *farPools) listed(now clock.Instant, pool decode.PoolID, present []decode.SliceRecord) (changed bool) {
	record := f.known[pool]
	newest := newestGeneration(present)
	if newest.missing {
		f.broken(now, pool)
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
		f.broken(now, pool)
		return changed
	}
	record.retries = 0
	f.agenda.set(pool, now.Elapsed+farPoolRefresh-farPoolRefresh/10+f.spread(farPoolRefresh/5))
	return changed
}

// broken notes a list that failed or was not the last word; what is known of
// the pool stays.
func (f *farPools) broken(now clock.Instant, pool decode.PoolID) {
	record := f.known[pool]
	wait := farPoolRefresh
	if record.retries < 7 { // 5 s doubled seven times is past the refresh
		wait = farPoolFirstRetry << record.retries
	}
	record.retries++
	f.agenda.set(pool, now.Elapsed+wait+f.spread(wait/5))
}

// devices returns what is known, in no particular order.
func (f *farPools) devices() []dra.PublishedDevice {
	var all []dra.PublishedDevice
	for _, record := range f.known {
		all = append(all, record.devices...)
	}
	return all
}
