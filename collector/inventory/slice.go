package inventory

import (
	"cmp"
	"fmt"
	"iter"
	"math/bits"
	"slices"
	"strings"
	"unique"

	"github.com/klauspost/compress/s2"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// poolID identifies a pool. All that belongs to a pool points to the same one.
type poolID struct {
	driver, name string
}

// slice is a ResourceSlice: packed as it was published, for the allocator, and
// in a compact form for counting.
type slice struct {
	name       string
	pool       *poolID
	packed     []byte
	generation int64
	poolSlices int64                     // slices of the pool, according to this one
	selection  *interned[*nodeSelection] // nil: each device has its own
	counters   *interned[[]counterSet]
	devices    []device
	blocks     []*block

	// partitions are the types of the devices; nil if the slice names no
	// attribute for it. A device without a type, or that consumes no counters,
	// has the zero handle.
	partitions []unique.Handle[string]
}

type counterSet struct {
	name     string
	counters []counter
}

func compareSlices(a, b *slice) int { return strings.Compare(a.name, b.name) }

// sameForSelectors reports whether selectors have the same results for both
// slices. The slices may then differ in taints, capacity and counters.
func (s *slice) sameForSelectors(other *slice) bool {
	return s.pool == other.pool && s.generation == other.generation && s.poolSlices == other.poolSlices && s.selection == other.selection &&
		slices.EqualFunc(s.devices, other.devices, func(a, b device) bool {
			return a.sameProperties(&b) && s.deviceSelection(&a) == other.deviceSelection(&b)
		})
}

// deviceSelection returns the selection of the nodes that can use a device of
// the slice.
func (s *slice) deviceSelection(d *device) *nodeSelection {
	if s.selection != nil {
		return s.selection.value
	}
	return d.extras.selection.value
}

// selections returns the node selections of the slice, of each device unless
// they have one in common.
func (s *slice) selections() iter.Seq[*nodeSelection] {
	return func(yield func(*nodeSelection) bool) {
		if s.selection != nil {
			yield(s.selection.value)
			return
		}
		for i := range s.devices {
			if !yield(s.deviceSelection(&s.devices[i])) {
				return
			}
		}
	}
}

// onlyNode returns the node of a slice that belongs to one node, else "".
func (s *slice) onlyNode() string {
	if s.selection == nil {
		return ""
	}
	return s.selection.value.node
}

// blockSize is how many devices fit the bits of a word.
const blockSize = 64

// block is up to 64 devices of one slice. Each mask has a bit for each device;
// masks are up to date while the pool is.
type block struct {
	slice *slice // nil once the block is removed
	first int    // index of its first device in the slice
	all   uint64
	slot  int    // where its shapes are
	stamp uint64 // grows from block to block

	exclusive uint64 // allocated to one claim alone
	shared    uint64 // allocated to claims that share it
	tainted   uint64 // has a taint that repels claims without tolerations
	usable    uint64 // a node can have it: its pool is complete and valid there, and the counters suffice
	roomy     uint64 // the capacity suffices for a request that names no amount
	free      uint64 // can be allocated now to a claim without tolerations

	incomplete uint64 // the pool is complete on no node
	invalid    uint64 // complete on some nodes, but valid on none
}

func (b *block) allocated() uint64 { return b.exclusive | b.shared }

// devices returns the devices of the block, at their bits.
func (b *block) devices() []device {
	return b.slice.devices[b.first:min(b.first+blockSize, len(b.slice.devices))]
}

// device returns the device with that bit.
func (b *block) device(bit int) *device { return &b.slice.devices[b.first+bit] }

// eachBit are the numbers of the bits of a mask.
func eachBit(mask uint64) iter.Seq[int] {
	return func(yield func(int) bool) {
		for mask != 0 {
			if !yield(bits.TrailingZeros64(mask)) {
				return
			}
			mask &= mask - 1
		}
	}
}

// slotNumbers allocates small numbers, to be used as indices.
type slotNumbers struct {
	next int
	free []int
}

func (s *slotNumbers) take() int {
	if last := len(s.free) - 1; last >= 0 {
		slot := s.free[last]
		s.free = s.free[:last]
		return slot
	}
	s.next++
	return s.next - 1
}

// blockIndex lists the blocks of all slices by their stamps.
type blockIndex struct {
	blocks  []*block // some are removed
	removed int      // how many of them
	stamp   uint64
	slots   slotNumbers
}

// add makes the blocks of a slice. No selector has results for them.
func (x *blockIndex) add(s *slice) {
	for first := 0; first < len(s.devices); first += blockSize {
		count := min(blockSize, len(s.devices)-first)
		x.stamp++
		made := &block{slice: s, first: first, all: ^uint64(0) >> (blockSize - count), slot: x.slots.take(), stamp: x.stamp}
		s.blocks = append(s.blocks, made)
		x.blocks = append(x.blocks, made)
	}
}

func (x *blockIndex) remove(gone []*block) {
	for _, b := range gone {
		b.slice = nil
		x.slots.free = append(x.slots.free, b.slot)
		x.removed++
	}
	if x.removed > 64 && x.removed > len(x.blocks)/2 {
		x.blocks = slices.DeleteFunc(x.blocks, func(b *block) bool { return b.slice == nil })
		x.removed = 0
	}
}

// after returns the blocks with a higher stamp. The slice of a removed block is
// nil.
func (x *blockIndex) after(stamp uint64) []*block {
	at, _ := slices.BinarySearchFunc(x.blocks, stamp+1, func(b *block, stamp uint64) int { return cmp.Compare(b.stamp, stamp) })
	return x.blocks[at:]
}

// unpackedLimit is for how many devices slices are kept in their unpacked form,
// to be used again: a few kilobytes each.
const unpackedLimit = 4096

// sliceStore keeps the published slices.
type sliceStore struct {
	byName      map[string]*slice
	devices     *deviceStore
	nodes       *nodeIndex
	counterSets *internPool[[]counterSet]
	blocks      blockIndex

	unpacked        map[*slice]*resourcev1.ResourceSlice
	unpackedDevices int
}

func newSliceStore(devices *deviceStore, nodes *nodeIndex) *sliceStore {
	return &sliceStore{
		byName: map[string]*slice{}, devices: devices, nodes: nodes,
		counterSets: newInternPool[[]counterSet](), unpacked: map[*slice]*resourcev1.ResourceSlice{},
	}
}

// get returns nil for a slice that does not exist.
func (s *sliceStore) get(name string) *slice { return s.byName[name] }

// put adds a slice, or replaces the slice of the same name, which the caller
// must release. Results of selectors stay valid if nothing that selectors read
// has changed; reshaped reports whether something has.
func (s *sliceStore) put(name string, pool *poolID, published *resourcev1.ResourceSlice, packed []byte) (made *slice, reshaped bool) {
	spec := &published.Spec
	made = &slice{
		name:       strings.Clone(name),
		pool:       pool,
		packed:     packed,
		generation: spec.Pool.Generation,
		poolSlices: spec.Pool.ResourceSliceCount,
		devices:    make([]device, len(spec.Devices)),
	}
	if len(spec.SharedCounters) > 0 {
		made.counters = s.counterSets.acquireFor(&resourcev1.ResourceSliceSpec{SharedCounters: spec.SharedCounters}, func() []counterSet {
			sets := make([]counterSet, len(spec.SharedCounters))
			for i, published := range spec.SharedCounters {
				sets[i] = counterSet{strings.Clone(published.Name), newCounters(published.Counters)}
			}
			return sets
		})
	}
	var selections []*interned[*nodeSelection]
	made.selection, selections = s.nodes.acquireAll(spec)
	for i := range spec.Devices {
		var selection *interned[*nodeSelection]
		if selections != nil {
			selection = selections[i]
		}
		made.devices[i] = s.devices.encode(spec.Driver, &spec.Devices[i], selection)
	}
	made.partitions = partitionTypes(spec)
	old := s.byName[made.name]
	s.byName[made.name] = made
	if old == nil || !old.sameForSelectors(made) {
		s.blocks.add(made)
		return made, true
	}
	made.blocks, old.blocks = old.blocks, nil
	for _, b := range made.blocks {
		b.slice = made
	}
	return made, false
}

// partitionTypes returns the types of a slice's partitions as the controller of
// ResourcePoolStatusRequests does: of devices that consume counters, the value
// of the attribute that the slice names, which is a string. The attribute may
// omit the driver's domain.
func partitionTypes(spec *resourcev1.ResourceSliceSpec) []unique.Handle[string] {
	if spec.PartitionTypeAttribute == nil {
		return nil
	}
	name := string(*spec.PartitionTypeAttribute)
	types := make([]unique.Handle[string], len(spec.Devices))
	for i := range spec.Devices {
		d := &spec.Devices[i]
		if len(d.ConsumesCounters) == 0 {
			continue
		}
		attribute, ok := d.Attributes[resourcev1.QualifiedName(name)]
		if bare, qualified := strings.CutPrefix(name, spec.Driver+"/"); !ok && qualified {
			attribute = d.Attributes[resourcev1.QualifiedName(bare)]
		}
		if attribute.StringValue != nil {
			types[i] = unique.Make(validUTF8(*attribute.StringValue))
		}
	}
	return types
}

// release ends the use of all that a slice holds, after it was replaced or
// deleted.
func (s *sliceStore) release(gone *slice) {
	if s.byName[gone.name] == gone {
		delete(s.byName, gone.name)
	}
	s.blocks.remove(gone.blocks)
	for i := range gone.devices {
		d := &gone.devices[i]
		s.devices.release(d)
		if d.extras != nil {
			s.nodes.release(d.extras.selection)
		}
	}
	s.nodes.release(gone.selection)
	s.counterSets.release(gone.counters)
	delete(s.unpacked, gone)
}

// keepUnpacked keeps the unpacked form of a slice, so that it is not unpacked
// for each node.
func (s *sliceStore) keepUnpacked(stored *slice, published *resourcev1.ResourceSlice) {
	if s.byName[stored.name] != stored {
		return // it was replaced meanwhile
	}
	if s.unpackedDevices += len(stored.devices); s.unpackedDevices > unpackedLimit {
		clear(s.unpacked)
		s.unpackedDevices = len(stored.devices)
	}
	s.unpacked[stored] = published
}

// unpackedSlice returns the unpacked form of a slice, nil if it is not kept.
func (s *sliceStore) unpackedSlice(stored *slice) *resourcev1.ResourceSlice {
	return s.unpacked[stored]
}

// pack encodes what the allocator reads of a slice.
func pack(published *resourcev1.ResourceSlice) ([]byte, error) {
	kept := resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: published.Name}, Spec: published.Spec}
	raw, err := kept.Marshal()
	if err != nil {
		return nil, fmt.Errorf("pack slice %s: %w", published.Name, err)
	}
	return slices.Clip(slices.Clone(s2.Encode(nil, raw))), nil
}

// unpack decodes what pack encoded.
func unpack(packed []byte) (*resourcev1.ResourceSlice, error) {
	raw, err := s2.Decode(nil, packed)
	if err != nil {
		return nil, fmt.Errorf("decompress slice: %w", err)
	}
	kept := &resourcev1.ResourceSlice{}
	if err := kept.Unmarshal(raw); err != nil {
		return nil, fmt.Errorf("unpack slice: %w", err)
	}
	return kept, nil
}

// bySelection counts devices by their node selections, at their slots.
type bySelection []int

// add adds the devices of the mask.
func (c bySelection) add(b *block, mask uint64) {
	switch {
	case mask == 0:
	case b.slice.selection != nil:
		c[b.slice.selection.value.slot] += bits.OnesCount64(mask)
	default:
		for bit := range eachBit(mask) {
			c[b.slice.deviceSelection(b.device(bit)).slot]++
		}
	}
}
