package inventory

import (
	"slices"
	"strings"

	resourcev1 "k8s.io/api/resource/v1"
)

// slice is a ResourceSlice: compressed as it was published, for the allocator,
// and in a compact form for counting.
type slice struct {
	name       string
	packed     []byte
	pool       *pool
	generation int64
	siblings   int64 // how many slices its pool has, as this one says
	reach      *book[*reach]
	counters   *book[[]counterSet]
	devices    []device
	blocks     []*block
}

type counterSet struct {
	name     string
	counters []counter
}

// blockSize is how many devices fit the bits of a word.
const blockSize = 64

// block is up to 64 devices of one slice. Each mask has a bit for each device;
// they are right for as long as the pool is not dirty.
type block struct {
	slice   *slice // nil once the block is gone
	first   int    // of its devices, in the slice
	all     uint64
	slot    int    // where selectors keep their results for it
	stamp   uint64 // grows from block to block
	taken   uint64 // allocated to one claim alone
	shared  uint64 // allocated to claims that share it
	tainted uint64 // has a taint that keeps claims off, if they do not tolerate it
	fit     uint64 // the pool is well, and what the device is cut from suffices
	roomy   uint64 // its capacity suffices for a request that names no amount
	free    uint64 // can be allocated now, to a claim without tolerations
}

// Slice takes a slice as it is from now on; nil: it is gone.
func (inv *Inventory) Slice(name string, published *resourcev1.ResourceSlice) {
	var packed []byte
	if published != nil {
		var err error
		if packed, err = pack(published); err != nil {
			published = nil // it did not come over the wire
		}
	}
	inv.mu.Lock()
	defer inv.mu.Unlock()
	old := inv.slices[name]
	if old != nil && published != nil && slices.Equal(old.packed, packed) {
		return // only its metadata is different
	}
	inv.version++
	if published == nil {
		if old != nil {
			inv.reshaped = inv.version
			inv.unshelve(old)
		}
		return
	}
	inv.replace(old, inv.record(strings.Clone(name), published, packed))
	inv.tidy()
}

// record makes the compact form of a slice, and puts it into its pool.
func (inv *Inventory) record(name string, published *resourcev1.ResourceSlice, packed []byte) *slice {
	spec := &published.Spec
	made := &slice{
		name:       name,
		packed:     packed,
		generation: spec.Pool.Generation,
		siblings:   spec.Pool.ResourceSliceCount,
		devices:    make([]device, len(spec.Devices)),
		counters:   inv.counterSetsOf(spec),
	}
	var each []*book[*reach]
	made.reach, each = inv.reachesOf(spec)
	for i := range spec.Devices {
		var reach *book[*reach]
		if each != nil {
			reach = each[i]
		}
		made.devices[i] = inv.shelve(spec.Driver, &spec.Devices[i], reach)
	}
	made.pool = inv.poolOf(clean(spec.Driver), clean(spec.Pool.Name))
	made.pool.slices = append(made.pool.slices, made)
	made.eachReach(func(r *reach) { r.bound(made.pool, 1) })
	inv.touch(made.pool)
	return made
}

// replace puts a slice in the place of the one before, whose results of
// selectors stay if its devices have not changed for them.
func (inv *Inventory) replace(old, made *slice) {
	inv.slices[made.name] = made
	if old == nil || !old.sameFor(made) {
		inv.reshaped = inv.version
		inv.block(made)
	} else {
		made.blocks, old.blocks = old.blocks, nil
		for _, b := range made.blocks {
			b.slice = made
		}
	}
	if old != nil {
		inv.drop(old)
	}
}

// sameFor says whether a request can tell the two apart only by taints,
// capacity and counters, which are looked at anew for every count.
func (s *slice) sameFor(other *slice) bool {
	return s.pool == other.pool && s.generation == other.generation && s.siblings == other.siblings && s.reach == other.reach &&
		slices.EqualFunc(s.devices, other.devices, func(a, b device) bool {
			return a.sameFacts(&b) && a.reach(s) == b.reach(other)
		})
}

// reach is from where a device of the slice can be used.
func (d *device) reach(of *slice) *reach {
	if of.reach != nil {
		return of.reach.thing
	}
	return d.more.reach.thing
}

func (s *slice) eachReach(do func(*reach)) {
	if s.reach != nil {
		do(s.reach.thing)
		return
	}
	for i := range s.devices {
		do(s.devices[i].reach(s))
	}
}

// block gives the slice blocks, which all selectors are still to be asked about.
func (inv *Inventory) block(of *slice) {
	for first := 0; first < len(of.devices); first += blockSize {
		count := min(blockSize, len(of.devices)-first)
		inv.stamp++
		made := &block{slice: of, first: first, all: ^uint64(0) >> (blockSize - count), slot: inv.slot(), stamp: inv.stamp}
		of.blocks = append(of.blocks, made)
		inv.blocks = append(inv.blocks, made)
	}
}

// in are the devices of a block.
func (s *slice) in(of *block) []device {
	return s.devices[of.first:min(of.first+blockSize, len(s.devices))]
}

func (inv *Inventory) slot() int {
	if last := len(inv.vacant) - 1; last >= 0 {
		slot := inv.vacant[last]
		inv.vacant = inv.vacant[:last]
		return slot
	}
	inv.slots++
	return inv.slots - 1
}

// unshelve forgets a slice that is gone.
func (inv *Inventory) unshelve(gone *slice) {
	delete(inv.slices, gone.name)
	inv.drop(gone)
}

// drop gives back all that a slice holds.
func (inv *Inventory) drop(gone *slice) {
	gone.eachReach(func(r *reach) { r.bound(gone.pool, -1) })
	gone.pool.slices = slices.DeleteFunc(gone.pool.slices, func(s *slice) bool { return s == gone })
	inv.touch(gone.pool)
	for _, b := range gone.blocks {
		b.slice = nil
		inv.vacant = append(inv.vacant, b.slot)
		inv.gone++
	}
	for i := range gone.devices {
		inv.discard(&gone.devices[i])
	}
	inv.leave(gone.reach)
	inv.counters.giveBack(gone.counters)
	delete(inv.unpacked, gone)
	if len(gone.pool.slices) == 0 && len(gone.pool.held) == 0 {
		inv.removePool(gone.pool)
	}
}

// tidy forgets what has been unused for long enough to matter.
func (inv *Inventory) tidy() {
	if inv.texts.littered() {
		inv.texts.sweep()
		inv.sweeps++
		for _, s := range inv.selectors {
			clear(s.memo)
		}
	}
	if inv.gone > 64 && inv.gone > len(inv.blocks)/2 {
		inv.blocks = slices.DeleteFunc(inv.blocks, func(b *block) bool { return b.slice == nil })
		inv.gone = 0
	}
}

func (inv *Inventory) counterSetsOf(spec *resourcev1.ResourceSliceSpec) *book[[]counterSet] {
	if len(spec.SharedCounters) == 0 {
		return nil
	}
	key, err := (&resourcev1.ResourceSliceSpec{SharedCounters: spec.SharedCounters}).Marshal()
	if err != nil {
		return nil
	}
	return inv.counters.lend(key, func() []counterSet {
		sets := make([]counterSet, len(spec.SharedCounters))
		for i, published := range spec.SharedCounters {
			sets[i] = counterSet{strings.Clone(published.Name), countersOf(published.Counters)}
		}
		return sets
	})
}
