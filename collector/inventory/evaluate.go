package inventory

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	resourcev1 "k8s.io/api/resource/v1"
	dracel "k8s.io/dynamic-resource-allocation/cel"
)

// How much is done under the lock at once, and how many devices are asked about
// between two times.
const (
	blocksPerPass = 512
	asksPerPass   = 128
)

// inquiry is a device that a selector is to be asked about.
type inquiry struct {
	key   memoKey
	input dracel.Device
}

// Select has the selectors of requests, and of their classes, evaluated for all
// devices. It returns early with the context's error.
func (inv *Inventory) Select(ctx context.Context, requests ...Request) error {
	for i := range requests {
		for _, s := range inv.selectorsOf(&requests[i]) {
			if _, err := inv.evaluate(ctx, s, -1); err != nil {
				return err
			}
		}
	}
	return nil
}

// Settle has the selectors of all classes evaluated for all devices, so that
// the next Supply has counted them all.
func (inv *Inventory) Settle(ctx context.Context) error {
	inv.mu.Lock()
	var all []*selector
	for _, c := range inv.classes {
		all = append(all, c.selectors...)
	}
	inv.mu.Unlock()
	for _, s := range all {
		if _, err := inv.evaluate(ctx, s, -1); err != nil {
			return err
		}
	}
	return nil
}

// selectorsOf are the selectors of the request's class, then its own.
func (inv *Inventory) selectorsOf(request *Request) []*selector {
	compiled := inv.compile(request.Selectors)
	inv.mu.Lock()
	defer inv.mu.Unlock()
	class, own := inv.chosen(request, compiled)
	return slices.Concat(class, own)
}

// chosen are the selectors of the request's class and its own, which have been
// compiled.
func (inv *Inventory) chosen(request *Request, compiled []*selector) (class, own []*selector) {
	if found := inv.classes[request.Class]; found != nil {
		class = found.selectors
	}
	return class, inv.adopt(compiled)
}

// evaluate asks a selector about all devices that it has not been asked about,
// at most as often as the limit says (-1: as often as it takes). It returns how
// often it asked.
func (inv *Inventory) evaluate(ctx context.Context, s *selector, limit int) (asked int, err error) {
	for {
		inv.mu.Lock()
		todo, done := inv.pass(s)
		sweeps := inv.sweeps
		inv.mu.Unlock()
		if done || limit >= 0 && asked >= limit {
			return asked, nil
		}
		outcomes := make([]outcome, len(todo))
		for i := range todo {
			if outcomes[i], err = s.outcome(ctx, todo[i].input); err != nil {
				return asked, err
			}
		}
		asked += len(todo)
		inv.mu.Lock()
		if sweeps == inv.sweeps { // else the keys may mean something else
			s.remember(todo, outcomes)
		}
		inv.mu.Unlock()
	}
}

// outcome is what comes of asking; an error is the context's alone.
func (s *selector) outcome(ctx context.Context, input dracel.Device) (outcome, error) {
	if ctx.Err() != nil {
		return outcomeFailed, fmt.Errorf("evaluate selectors: %w", context.Cause(ctx))
	}
	match, err := s.ask(ctx, input)
	switch {
	case ctx.Err() != nil:
		return outcomeFailed, fmt.Errorf("evaluate selectors: %w", context.Cause(ctx))
	case err != nil:
		return outcomeFailed, nil
	case match:
		return outcomeMatch, nil
	}
	return outcomeNo, nil
}

func (s *selector) remember(todo []inquiry, outcomes []outcome) {
	if len(s.memo)+len(todo) > memoLimit {
		clear(s.memo)
	}
	for i := range todo {
		s.memo[todo[i].key] = outcomes[i]
	}
}

// pass looks at the blocks that are new to the selector, as far as it remembers
// what comes of them, and gives the devices that it has to be asked about to go
// on. It is done when there is nothing left to look at.
func (inv *Inventory) pass(s *selector) (todo []inquiry, done bool) {
	if inv.complete(s) || inv.selectors[s.expression] != s {
		return nil, true // one that was forgotten meanwhile is asked anew by whoever needs it
	}
	wanted := map[memoKey]struct{}{}
	from, _ := slices.BinarySearchFunc(inv.blocks, s.upTo+1, func(b *block, stamp uint64) int { return cmp.Compare(b.stamp, stamp) })
	for i, b := range inv.blocks[from:] {
		if i >= blocksPerPass || len(todo) >= asksPerPass {
			return todo, false
		}
		var r result
		if b.slice != nil {
			r = inv.look(s, b, wanted, &todo)
		}
		if len(todo) > 0 {
			continue // this block, or one before it, has to be looked at again
		}
		if b.slice != nil {
			s.put(b, r)
		}
		s.upTo = b.stamp
	}
	if len(todo) == 0 {
		s.upTo = inv.stamp
	}
	return todo, len(todo) == 0
}

// look finds the result of a block as far as it is remembered, and adds to todo
// what is not.
func (inv *Inventory) look(s *selector, b *block, wanted map[memoKey]struct{}, todo *[]inquiry) result {
	var r result
	for i := range b.slice.in(b) {
		d := b.device(i)
		key := inv.key(s, b.slice, d)
		if d.odd() {
			key = memoKey{b.stamp, uint64(i)} // like no other
		}
		switch known, asked := s.memo[key]; {
		case !asked:
			if _, already := wanted[key]; !already {
				wanted[key] = struct{}{}
				*todo = append(*todo, inquiry{key, inv.input(s, b.slice, b.first+i)})
			}
		case known == outcomeMatch:
			r.match |= 1 << i
		case known == outcomeFailed:
			r.failed |= 1 << i
		}
	}
	return r
}

// input is what the selector sees of a device, in upstream's form: for what it
// does not look at makes no difference and costs the most.
func (inv *Inventory) input(s *selector, of *slice, index int) dracel.Device {
	d := &of.devices[index]
	multi := d.multi()
	input := dracel.Device{
		Driver:                   of.pool.driver,
		AllowMultipleAllocations: &multi,
		Attributes:               map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{},
		Capacity:                 map[resourcev1.QualifiedName]resourcev1.DeviceCapacity{},
	}
	if d.odd() {
		if published, err := unpack(of.packed); err == nil {
			input.Attributes, input.Capacity = published.Spec.Devices[index].Attributes, published.Spec.Devices[index].Capacity
		}
		return input
	}
	for _, f := range d.facts {
		if !s.sees.whole && !slices.Contains(s.names, f.name) {
			continue
		}
		name, value := inv.texts.text(f.name), inv.texts.text(f.value)
		if attribute, is := strings.CutPrefix(name, nameAttribute); is {
			input.Attributes[resourcev1.QualifiedName(attribute)] = attributeOf(value)
		} else if quantity, err := quantityOf(value); err == nil {
			input.Capacity[resourcev1.QualifiedName(name[len(nameCapacity):])] = resourcev1.DeviceCapacity{Value: quantity}
		}
	}
	return input
}
