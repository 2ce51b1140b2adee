package inventory

import (
	"encoding/binary"
	"hash/maphash"
)

// shapeIndex finds, for the selectors that read the same of a device, the blocks
// whose devices are all the same to them. Most blocks are: nodes have equal
// devices. The result of a selector for one block holds for all blocks of the
// same shape, so ten thousand blocks cost a selector no more than a few.
type shapeIndex struct {
	reads projection
	names []uint32 // as of each of the selectors
	users int      // selectors

	slots  []blockShape // by slot of the block
	shapes []deviceShape
	byKey  map[memoKey]int // shapes that other blocks may have
	free   []int           // shapes without blocks
	stamp  uint64

	id      uint64 // no other index has had it
	changes uint64 // how often the shape of a block was set
}

// blockShape is the shape of the block with the stamp.
type blockShape struct {
	stamp uint64
	shape int
}

// deviceShape is common to all blocks whose devices have equal keys in the same
// order.
type deviceShape struct {
	stamp  uint64 // no other shape has had it
	key    memoKey
	blocks int // that have it
}

// blockShape returns the shape of a block, and false if it is not known yet.
func (x *shapeIndex) blockShape(b *block) (int, bool) {
	if b.slot >= len(x.slots) || x.slots[b.slot].stamp != b.stamp {
		return 0, false
	}
	return x.slots[b.slot].shape, true
}

// set sets the shape of a block. The block that had the slot before is gone.
func (x *shapeIndex) set(b *block, key memoKey) int {
	if b.slot >= len(x.slots) {
		grown := make([]blockShape, max(b.slot+1, len(x.slots)*5/4))
		copy(grown, x.slots)
		x.slots = grown
	}
	if previous := x.slots[b.slot]; previous.stamp != 0 {
		x.release(previous.shape)
	}
	at, ok := x.byKey[key]
	if !ok {
		at = x.take()
		x.stamp++
		x.shapes[at] = deviceShape{stamp: x.stamp, key: key}
		x.byKey[key] = at
	}
	x.shapes[at].blocks++
	x.changes++
	x.slots[b.slot] = blockShape{b.stamp, at}
	return at
}

func (x *shapeIndex) take() int {
	if last := len(x.free) - 1; last >= 0 {
		at := x.free[last]
		x.free = x.free[:last]
		return at
	}
	x.shapes = append(x.shapes, deviceShape{})
	return len(x.shapes) - 1
}

func (x *shapeIndex) release(at int) {
	gone := &x.shapes[at]
	if gone.blocks--; gone.blocks > 0 {
		return
	}
	if x.byKey[gone.key] == at {
		delete(x.byKey, gone.key)
	}
	*gone = deviceShape{}
	x.free = append(x.free, at)
}

// shapesFor returns the index for selectors that read these properties. Each
// call needs one releaseShapes.
func (ss *selectorStore) shapesFor(reads projection, names []uint32) *shapeIndex {
	key := reads.key()
	found := ss.shapes[key]
	if found == nil {
		ss.indexes++
		found = &shapeIndex{reads: reads, names: names, byKey: map[memoKey]int{}, id: ss.indexes}
		ss.shapes[key] = found
	}
	found.users++
	return found
}

func (ss *selectorStore) releaseShapes(x *shapeIndex) {
	if x.users--; x.users == 0 {
		delete(ss.shapes, x.reads.key())
	}
}

// findShape returns the shape of a block.
func (ss *selectorStore) findShape(x *shapeIndex, b *block) int {
	if at, ok := x.blockShape(b); ok {
		return at
	}
	keys := ss.keys[:0]
	for bit := range eachBit(b.all) {
		key := ss.deviceKey(x, b, bit)
		keys = binary.LittleEndian.AppendUint64(keys, key[0])
		keys = binary.LittleEndian.AppendUint64(keys, key[1])
	}
	ss.keys = keys
	return x.set(b, ss.hash(keys))
}

// deviceKey returns a key that is the same for devices which are the same to
// the selectors.
func (ss *selectorStore) deviceKey(x *shapeIndex, b *block, bit int) memoKey {
	d := b.device(bit)
	if d.irregular() {
		return memoKey{b.stamp, uint64(bit)} // like no other
	}
	ss.scratch = ss.scratch[:0]
	if x.reads.driver || x.reads.whole {
		ss.scratch = append(ss.scratch, b.slice.pool.driver...)
	}
	if d.shareable() && (x.reads.shareable || x.reads.whole) {
		ss.scratch = append(ss.scratch, 1)
	}
	ss.scratch = append(ss.scratch, 0)
	if x.reads.whole {
		for _, p := range d.properties {
			ss.scratch = binary.LittleEndian.AppendUint32(ss.scratch, p.name)
			ss.scratch = binary.LittleEndian.AppendUint32(ss.scratch, p.value)
		}
	} else {
		for _, name := range x.names {
			value, published := d.property(name)
			if published {
				value++
			}
			ss.scratch = binary.LittleEndian.AppendUint32(ss.scratch, value)
		}
	}
	return ss.hash(ss.scratch)
}

func (ss *selectorStore) hash(text []byte) memoKey {
	return memoKey{maphash.Bytes(ss.seeds[0], text), maphash.Bytes(ss.seeds[1], text)}
}
