package inventory

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	resourcev1 "k8s.io/api/resource/v1"
	dracel "k8s.io/dynamic-resource-allocation/cel"
)

// How much is done under the lock at once, and how many devices are asked about
// between two times.
const (
	blocksPerPass = 512
	asksPerPass   = 128
)

// EvaluationLimit is the time that one evaluation of a selector may take. It is
// for machines that are slow or busy: the cost limit of Kubernetes applies as
// well, and ends an evaluation after some 180 ms on a machine of 2025.
const EvaluationLimit = 10 * time.Second

// ErrSlowEvaluation is returned where one evaluation of a selector reaches
// EvaluationLimit.
var ErrSlowEvaluation = fmt.Errorf("one evaluation of a selector takes more than %v", EvaluationLimit)

// Pause is called between two pieces of work: before an expression is compiled,
// and after each evaluation. It may rest. Its error ends the work; what has
// been evaluated by then is kept. A nil Pause looks at the context alone.
type Pause func(context.Context) error

func (p Pause) take(ctx context.Context) error {
	if ctx.Err() != nil {
		return fmt.Errorf("evaluate selectors: %w", context.Cause(ctx))
	}
	if p == nil {
		return nil
	}
	return p(ctx)
}

// inquiry is a device that a selector is to be asked about.
type inquiry struct {
	selector *selector
	key      memoKey
	input    dracel.Device
}

// Select has the selectors of a request evaluated: those of its class, then its
// own, each for the devices that all before it selected. It returns early with
// the error of the pause, or with ErrSlowEvaluation.
func (inv *Inventory) Select(ctx context.Context, pause Pause, request Request) error {
	compiled, err := inv.compilePaused(ctx, pause, request.Selectors)
	if err != nil {
		return err
	}
	inv.mu.Lock()
	known := inv.classes[request.Class] != nil
	class, own := inv.chosen(&request, compiled)
	inv.mu.Unlock()
	if !known {
		return nil // a class that does not exist selects nothing
	}
	return inv.evaluate(ctx, pause, slices.Concat(class, own))
}

// Settle has the selectors of all classes evaluated, so that the next Supply
// has counted them all. It returns early with the error of the pause. A class
// with a selector that reaches EvaluationLimit is left out, and the error says
// so in the end.
func (inv *Inventory) Settle(ctx context.Context, pause Pause) error {
	inv.mu.Lock()
	var chains [][]*selector
	for _, c := range inv.classes {
		if !inv.counted(c) {
			chains = append(chains, c.selectors)
		}
	}
	inv.mu.Unlock()
	var slow error
	for _, chain := range chains {
		err := inv.evaluate(ctx, pause, chain)
		switch {
		case errors.Is(err, ErrSlowEvaluation):
			slow = err
		case err != nil:
			return err
		}
	}
	return slow
}

// chosen are the selectors of the request's class and its own, which have been
// compiled.
func (inv *Inventory) chosen(request *Request, compiled []*selector) (class, own []*selector) {
	if found := inv.classes[request.Class]; found != nil {
		class = found.selectors
	}
	return class, inv.adopt(compiled)
}

// evaluate asks selectors, one after the other, about the devices that those
// before select, unless they have been asked.
func (inv *Inventory) evaluate(ctx context.Context, pause Pause, chain []*selector) error {
	for upTo := uint64(0); ; {
		inv.mu.Lock()
		todo, reached, done := inv.pass(chain, upTo)
		sweeps := inv.sweeps
		inv.mu.Unlock()
		if done {
			return nil
		}
		upTo = reached
		outcomes, err := outcomesOf(ctx, pause, todo)
		inv.mu.Lock()
		if sweeps == inv.sweeps { // else the keys may mean something else
			inv.asked += uint64(len(outcomes))
			remember(todo[:len(outcomes)], outcomes)
		}
		inv.mu.Unlock()
		if err != nil {
			return err
		}
	}
}

// outcomesOf asks until the pause ends it. The outcomes are of the first
// devices of todo.
func outcomesOf(ctx context.Context, pause Pause, todo []inquiry) ([]outcome, error) {
	outcomes := make([]outcome, 0, len(todo))
	for i := range todo {
		found, err := todo[i].outcome(ctx)
		if err != nil {
			return outcomes, err
		}
		outcomes = append(outcomes, found)
		if err := pause.take(ctx); err != nil {
			return outcomes, err
		}
	}
	return outcomes, nil
}

// outcome is what comes of asking; an error is that of the context, or
// ErrSlowEvaluation.
func (q *inquiry) outcome(ctx context.Context) (outcome, error) {
	if ctx.Err() != nil {
		return outcomeFailed, fmt.Errorf("evaluate selectors: %w", context.Cause(ctx))
	}
	limited, cancel := context.WithTimeoutCause(ctx, EvaluationLimit, ErrSlowEvaluation)
	defer cancel()
	match, err := q.selector.ask(limited, q.input)
	switch {
	case ctx.Err() != nil:
		return outcomeFailed, fmt.Errorf("evaluate selectors: %w", context.Cause(ctx))
	case errors.Is(err, ErrSlowEvaluation):
		return outcomeFailed, ErrSlowEvaluation
	case err != nil:
		return outcomeFailed, nil
	case match:
		return outcomeMatch, nil
	}
	return outcomeNo, nil
}

func remember(todo []inquiry, outcomes []outcome) {
	for i := range todo {
		if s := todo[i].selector; len(s.memo)+len(todo) > memoLimit {
			clear(s.memo)
		}
	}
	for i := range todo {
		todo[i].selector.memo[todo[i].key] = outcomes[i]
	}
}

// pass finds results for the blocks after a stamp, as far as selectors remember
// them, and gives the devices that they have to be asked about to go on. All
// blocks up to the stamp that it returns have results. It is done when there is
// nothing left to look at.
func (inv *Inventory) pass(chain []*selector, upTo uint64) (todo []inquiry, reached uint64, done bool) {
	if slices.ContainsFunc(chain, func(s *selector) bool { return inv.selectors[s.expression] != s }) {
		return nil, upTo, true // one that was forgotten meanwhile is asked again by whoever needs it
	}
	reached = upTo
	wanted := map[wantedKey]struct{}{}
	for i, b := range inv.blocks[inv.after(upTo):] {
		if i >= blocksPerPass || len(todo) >= asksPerPass {
			return todo, reached, false
		}
		if b.slice != nil {
			inv.look(chain, b, wanted, &todo)
		}
		if len(todo) == 0 {
			reached = b.stamp
		}
	}
	return todo, reached, len(todo) == 0
}

// after is the index of the first block with a higher stamp.
func (inv *Inventory) after(stamp uint64) int {
	at, _ := slices.BinarySearchFunc(inv.blocks, stamp+1, func(b *block, stamp uint64) int { return cmp.Compare(b.stamp, stamp) })
	return at
}

type wantedKey struct {
	selector *selector
	key      memoKey
}

// look finds the results of a block as far as they are remembered, and adds to
// todo what is not.
func (inv *Inventory) look(chain []*selector, b *block, wanted map[wantedKey]struct{}, todo *[]inquiry) {
	mask := b.all
	for _, s := range chain {
		if mask == 0 || s.broken != "" {
			return
		}
		r := s.at(b)
		for bit := range each(mask &^ r.asked) {
			d := b.device(bit)
			key := inv.key(s, b.slice, d)
			if d.odd() {
				key = memoKey{b.stamp, uint64(bit)} // like no other
			}
			known, remembered := s.memo[key]
			if !remembered {
				if _, already := wanted[wantedKey{s, key}]; !already {
					wanted[wantedKey{s, key}] = struct{}{}
					*todo = append(*todo, inquiry{s, key, inv.input(s, b.slice, b.first+bit)})
				}
				continue
			}
			r.note(bit, known)
		}
		s.put(b, r)
		if mask&^r.asked != 0 {
			return // which devices the next one is to be asked about is not known yet
		}
		mask &= r.match
	}
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
