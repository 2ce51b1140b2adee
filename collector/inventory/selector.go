package inventory

import (
	"context"
	"encoding/binary"
	"hash/maphash"
	"slices"

	resourcev1 "k8s.io/api/resource/v1"
	dracel "k8s.io/dynamic-resource-allocation/cel"
)

// selector is a CEL expression with its results for the devices.
type selector struct {
	expression string
	broken     string // why it cannot be asked; empty: it can
	compiled   dracel.CompilationResult
	sees       projection
	names      []uint32 // of the facts that it sees, held in the table
	pins       int      // classes that have it
	used       uint64   // when last, of Inventory.uses

	results []result // by slot
	memo    map[memoKey]outcome
}

// result has a bit for each device of a block, whose stamp it has. A device for
// which the selector failed does not match. A selector is asked only about the
// devices that those before it select, so that asked may be a part of the block.
type result struct {
	stamp                uint64
	asked, match, failed uint64
}

// note adds what came of asking about one device.
func (r *result) note(bit int, found outcome) {
	r.asked |= 1 << bit
	switch found {
	case outcomeMatch:
		r.match |= 1 << bit
	case outcomeFailed:
		r.failed |= 1 << bit
	}
}

type outcome uint8

const (
	outcomeNo outcome = iota
	outcomeMatch
	outcomeFailed
)

// memoKey is a hash of what a selector sees of a device: 128 bits of two random
// functions, so that two devices with the same key are the same.
type memoKey [2]uint64

// memoLimit bounds what a selector remembers beyond its results. One that sees
// what each device has for itself would remember every device for nothing.
const memoLimit = 4096

// selectorLimit bounds how many selectors are kept that no class has.
const selectorLimit = 192

// compile makes selectors that are not known yet. It takes about a millisecond
// for each, without the lock.
func (inv *Inventory) compile(published []resourcev1.DeviceSelector) []*selector {
	compiled, _ := inv.compilePaused(context.Background(), nil, published)
	return compiled
}

func (inv *Inventory) compilePaused(ctx context.Context, pause Pause, published []resourcev1.DeviceSelector) ([]*selector, error) {
	compiled := make([]*selector, len(published))
	for i := range published {
		expression := expressionOf(&published[i])
		inv.mu.Lock()
		compiled[i] = inv.selectors[expression]
		inv.mu.Unlock()
		if compiled[i] != nil {
			continue
		}
		if err := pause.take(ctx); err != nil {
			return nil, err
		}
		compiled[i] = newSelector(expression)
	}
	return compiled, nil
}

func expressionOf(published *resourcev1.DeviceSelector) string {
	if published.CEL == nil {
		return ""
	}
	return published.CEL.Expression
}

// known gives the selectors of a request's class, and its own, without
// compiling any; false if one would have to be.
func (inv *Inventory) known(request *Request) ([]*selector, bool) {
	var all []*selector
	if class := inv.classes[request.Class]; class != nil {
		all = slices.Clone(class.selectors)
	}
	for i := range request.Selectors {
		found := inv.selectors[expressionOf(&request.Selectors[i])]
		if found == nil {
			return nil, false
		}
		inv.uses++
		found.used = inv.uses
		all = append(all, found)
	}
	return all, true
}

func newSelector(expression string) *selector {
	made := &selector{expression: expression, memo: map[memoKey]outcome{}}
	if expression == "" {
		made.broken = "the selector is of a kind that is not known: it has no CEL expression"
		return made
	}
	compiler := dracel.GetCompiler(dracel.Features{EnableConsumableCapacity: true, EnableListTypeAttributes: true})
	made.compiled = compiler.CompileCELExpression(expression, dracel.Options{DisableCostEstimation: true})
	if made.compiled.Error != nil {
		made.broken = made.compiled.Error.Error()
		return made
	}
	made.sees = projectionOf(made.compiled.Environment, expression)
	return made
}

// adopt puts compiled selectors among the known ones, and gives those that are
// known already.
func (inv *Inventory) adopt(compiled []*selector) []*selector {
	adopted := make([]*selector, len(compiled))
	for i, made := range compiled {
		known := inv.selectors[made.expression]
		if known == nil {
			known = made
			inv.selectors[made.expression] = made
			made.names = made.names[:0]
			for _, name := range made.sees.names {
				made.names = append(made.names, inv.texts.hold(name))
			}
		}
		inv.uses++
		known.used = inv.uses
		adopted[i] = known
	}
	inv.retire()
	return adopted
}

// retire forgets the selector that was used least recently while there are too
// many that no class has.
func (inv *Inventory) retire() {
	for {
		var oldest *selector
		unpinned := 0
		for _, s := range inv.selectors {
			if s.pins > 0 {
				continue
			}
			unpinned++
			if oldest == nil || s.used < oldest.used {
				oldest = s
			}
		}
		if unpinned <= selectorLimit {
			return
		}
		inv.forget(oldest)
	}
}

func (inv *Inventory) forget(s *selector) {
	delete(inv.selectors, s.expression)
	for _, name := range s.names {
		inv.texts.drop(name)
	}
	s.names, s.results = nil, nil
	clear(s.memo)
}

func (inv *Inventory) pin(compiled []*selector) []*selector {
	adopted := inv.adopt(compiled)
	for _, s := range adopted {
		s.pins++
	}
	return adopted
}

func (inv *Inventory) unpin(selectors []*selector) {
	for _, s := range selectors {
		s.pins--
	}
	inv.retire()
}

// at is the result for a block; nothing matches where there is none yet, and
// everything fails if the selector cannot be asked.
func (s *selector) at(b *block) result {
	switch {
	case s.broken != "":
		return result{stamp: b.stamp, asked: b.all, failed: b.all}
	case b.slot >= len(s.results) || s.results[b.slot].stamp != b.stamp:
		return result{stamp: b.stamp}
	}
	return s.results[b.slot]
}

func (s *selector) put(b *block, r result) {
	if b.slot >= len(s.results) {
		grown := make([]result, max(b.slot+1, len(s.results)*5/4))
		copy(grown, s.results)
		s.results = grown
	}
	s.results[b.slot] = r
}

// key is what the selector sees of a device.
func (inv *Inventory) key(s *selector, of *slice, d *device) memoKey {
	inv.scratch = inv.scratch[:0]
	if s.sees.driver || s.sees.whole {
		inv.scratch = append(inv.scratch, of.pool.driver...)
	}
	if d.multi() && (s.sees.multi || s.sees.whole) {
		inv.scratch = append(inv.scratch, 1)
	}
	inv.scratch = append(inv.scratch, 0)
	if s.sees.whole {
		for _, f := range d.facts {
			inv.scratch = binary.LittleEndian.AppendUint32(inv.scratch, f.name)
			inv.scratch = binary.LittleEndian.AppendUint32(inv.scratch, f.value)
		}
	} else {
		for _, name := range s.names {
			value, published := d.fact(name)
			if published {
				value++
			}
			inv.scratch = binary.LittleEndian.AppendUint32(inv.scratch, value)
		}
	}
	return memoKey{maphash.Bytes(inv.seeds[0], inv.scratch), maphash.Bytes(inv.seeds[1], inv.scratch)}
}

// ask evaluates the selector for one device. The error is the runtime's, with
// the hint that the scheduler adds.
func (s *selector) ask(ctx context.Context, input dracel.Device) (bool, error) {
	match, _, err := s.compiled.DeviceMatches(ctx, input)
	return match, dracel.EnhanceRuntimeError(err)
}
