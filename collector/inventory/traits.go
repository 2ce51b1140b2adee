package inventory

import (
	"encoding/binary"
	"hash/maphash"
	"maps"
	"slices"
	"strings"

	resourcev1 "k8s.io/api/resource/v1"
)

// Traits decide whether claims can be allocated on a node: the properties of its
// devices that their selectors and constraints read, and the allocations of
// these devices. The allocator has the same result on all nodes with the same
// traits.
type Traits struct {
	chains     [][]*selector // of each request: its class' selectors and its own
	reads      projection
	attributes []string // that constraints refer to, qualified
	seed       maphash.Seed
	buffer     []byte // of the last key; guarded by the inventory's lock

	// patterns have the values of each attribute of constraints in the order in
	// which they occur on the node of the last key, under the same lock: constraints
	// compare values within a node only.
	patterns []map[uint32]uint32
}

// RequestTraits returns what the requests and the attributes of constraints read. It
// is nil if that is not known: a request has derived attributes, or a selector
// that is broken or not kept any more.
func (inv *Inventory) RequestTraits(requests []Request, attributes []resourcev1.FullyQualifiedName) *Traits {
	inv.mu.Lock()
	defer inv.mu.Unlock()
	traits := &Traits{seed: inv.selectors.seeds[0]}
	for i := range requests {
		class, _ := inv.classes.classSelectors(requests[i].Class)
		selectors, ok := inv.selectors.known(requests[i].Selectors)
		if !ok || len(requests[i].Derived) > 0 {
			return nil
		}
		chain := slices.Concat(class, selectors)
		traits.chains = append(traits.chains, chain)
		for _, s := range chain {
			if s.broken != "" {
				return nil
			}
			traits.reads.driver = traits.reads.driver || s.reads.driver
			traits.reads.whole = traits.reads.whole || s.reads.whole
			traits.reads.names = append(traits.reads.names, s.reads.names...)
		}
	}
	slices.Sort(traits.reads.names)
	traits.reads.names = slices.Compact(traits.reads.names)
	for _, attribute := range attributes {
		traits.attributes = append(traits.attributes, nameAttribute+string(attribute))
		traits.patterns = append(traits.patterns, map[uint32]uint32{})
	}
	return traits
}

// TraitsKey is equal for nodes with the same traits, also at different times: it
// covers all of the inventory's state that matters.
type TraitsKey struct {
	hash    uint64
	devices int
}

// NodeKey returns the key of a node, and false if it is not known: the node does
// not exist, other nodes can use devices that the requests select, or devices have
// something that selectors cannot read.
func (t *Traits) NodeKey(inv *Inventory, name string) (TraitsKey, bool) {
	if t == nil {
		return TraitsKey{}, false
	}
	inv.lockUpdated()
	defer inv.mu.Unlock()
	if !inv.nodes.exists(name) {
		return TraitsKey{}, false
	}
	w := traitsWriter{Traits: t, texts: inv.texts, bytes: t.buffer[:0]}
	for _, pattern := range t.patterns {
		clear(pattern)
	}
	for _, property := range t.reads.names {
		w.names = append(w.names, w.number(property))
	}
	for _, attribute := range t.attributes {
		w.constrained = append(w.constrained, w.number(attribute))
	}
	w.add(uint64(inv.texts.sweeps)) // the numbers of texts are those since then
	declares := inv.nodes.declares(name)
	for _, p := range inv.pools.withSelections(inv.nodes.selecting(name)) {
		if !w.addPool(p, name, declares) {
			return TraitsKey{}, false
		}
	}
	t.buffer = w.bytes
	return TraitsKey{maphash.Bytes(t.seed, w.bytes), w.devices}, true
}

// traitsWriter writes the traits of one node to bytes that are hashed.
type traitsWriter struct {
	*Traits
	texts       *textTable
	names       []uint32 // of reads; 0: no device has it
	constrained []uint32 // of attributes
	bytes       []byte
	devices     int
}

// number is one more than that of the text, 0 if it is not known.
func (w *traitsWriter) number(text string) uint32 {
	if number, ok := w.texts.numbers[text]; ok {
		return number + 1
	}
	return 0
}

func (w *traitsWriter) add(values ...uint64) {
	for _, value := range values {
		w.bytes = binary.LittleEndian.AppendUint64(w.bytes, value)
	}
}

func (w *traitsWriter) addText(text string) {
	w.add(uint64(len(text)))
	w.bytes = append(w.bytes, text...)
}

func (w *traitsWriter) addPool(p *pool, node string, declares bool) bool {
	w.addText(p.id.driver)
	v := p.views.onNode(node)
	if v == nil || v.obsolete {
		return true // as if there was no pool
	}
	w.add(uint64(len(v.current)), bit(v.complete), bit(v.valid))
	if p.repeats || v.complete && v.whole != nil || slices.ContainsFunc(v.current, func(s *slice) bool { return s.onlyNode() != node }) {
		// Without devices that are selected, only whether it is complete matters.
		return !w.selectsAny(p)
	}
	for _, s := range v.current {
		w.add(uint64(len(s.devices)), bit(s.selection.value.optional && !declares))
		w.addText(internedKey(s.counters))
		for _, b := range s.blocks {
			w.add(b.exclusive, b.shared, b.tainted, b.usable, b.roomy)
			for i := range b.devices() {
				if !w.addDevice(b.device(i)) {
					return false
				}
			}
			w.addState(p, b)
		}
	}
	return true
}

// selectsAny reports whether the requests select a device of the pool. It is also
// true if this is not known.
func (w *traitsWriter) selectsAny(p *pool) bool {
	for _, b := range p.blocks {
		for _, chain := range w.chains {
			if match, failed, open := filter(b, b.all, chain); match|failed|open != 0 {
				return true
			}
		}
	}
	return false
}

// addState adds the taints that rules give the devices of a block, and the consumed
// capacity of shared devices.
func (w *traitsWriter) addState(p *pool, b *block) {
	if len(p.rules) > 0 {
		for bit := range eachBit(b.tainted) {
			for _, taint := range eachTaint(b.device(bit), p.rules) {
				w.addText(taint.Key)
				w.addText(taint.Value)
				w.addText(string(taint.Effect))
			}
		}
		w.add(^uint64(0)) // the end of the taints
	}
	for bit := range eachBit(b.shared) {
		consumed := p.consumed(b.device(bit))
		for _, name := range slices.Sorted(maps.Keys(consumed)) {
			amount := consumed[name]
			w.addText(string(name))
			w.addText(amount.String())
		}
		w.add(^uint64(0)) // the end of the amounts
	}
}

func (w *traitsWriter) addDevice(d *device) bool {
	if d.irregular() {
		return false
	}
	w.devices++
	w.add(bit(d.extras != nil))
	if d.extras != nil {
		w.add(bit(d.extras.shareable), uint64(len(d.extras.taints)), uint64(len(d.extras.consumes)))
		for _, taint := range d.extras.taints {
			w.addText(taint.Key)
			w.addText(taint.Value)
			w.addText(string(taint.Effect))
		}
		for _, consumed := range d.extras.consumes {
			w.addText(internedKey(consumed))
		}
		w.addText(internedKey(d.extras.capacity))
	}
	for _, p := range d.properties {
		// What requests ask for of capacities is no selector.
		if w.reads.whole || slices.Contains(w.names, p.name+1) || strings.HasPrefix(w.texts.text(p.name), nameCapacity) {
			w.add(uint64(p.name)<<32 | uint64(p.value))
		}
	}
	w.add(^uint64(0)) // the end of the properties
	for i, name := range w.constrained {
		w.add(w.pattern(i, d, name))
	}
	return true
}

// pattern is the same for devices of a node with the same value of an attribute
// that constraints refer to, and 0 for those without it. Two lists may have a
// value in common, so that lists are compared as they are.
func (w *traitsWriter) pattern(at int, d *device, name uint32) uint64 {
	if name == 0 {
		return 0
	}
	value, published := d.property(name - 1)
	if !published {
		return 0
	}
	switch w.texts.text(value)[0] {
	case valueInts, valueBools, valueStrings, valueVersions:
		return 1<<32 | uint64(value)
	}
	found, ok := w.patterns[at][value]
	if !ok {
		found = uint32(len(w.patterns[at]) + 1)
		w.patterns[at][value] = found
	}
	return uint64(found)
}

func internedKey[T any](value *interned[T]) string {
	if value == nil {
		return ""
	}
	return value.key
}

func bit(value bool) uint64 {
	if value {
		return 1
	}
	return 0
}
