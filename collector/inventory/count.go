package inventory

import (
	"cmp"
	"context"
	"math/bits"
	"slices"

	"github.com/dra-exporter/dra-exporter/collector/dra"
)

// Spread is how many free devices each node reaches, of those that reach any.
type Spread map[string]int

// NodeCount is how many free devices a node reaches.
type NodeCount struct {
	Node string
	Free int
}

// Best are the nodes that reach most, at most as many as the limit says, the
// first by name among equals.
func (s Spread) Best(limit int) []NodeCount {
	all := make([]NodeCount, 0, len(s))
	for node, devices := range s {
		all = append(all, NodeCount{node, devices})
	}
	slices.SortFunc(all, func(a, b NodeCount) int {
		return cmp.Or(cmp.Compare(b.Free, a.Free), cmp.Compare(a.Node, b.Node))
	})
	return all[:min(limit, len(all))]
}

// tally counts one request, with where the free devices are.
type tally struct {
	inv     *Inventory
	request *Request
	class   []*selector
	own     []*selector
	count   Count
	reaches map[*reach]int
	failing []failing // a few
}

// failing is a device for which a selector failed.
type failing struct {
	slice *slice
	index int
}

// troublesAtMost is how many failures of selectors are told.
const troublesAtMost = 4

// Count counts what the stages of the funnel leave of all devices for a
// request. It does not ask selectors: Select does. Those that Select has not
// compiled just before are compiled, which takes a millisecond for each.
func (inv *Inventory) Count(request Request) Count {
	compiled := inv.compile(request.Selectors)
	inv.refresh()
	inv.mu.Lock()
	inv.recountDirty(-1)
	t := &tally{inv: inv, request: &request, reaches: map[*reach]int{}}
	t.class, t.own = inv.chosen(&request, compiled)
	t.all()
	inquiries := t.inquiries()
	inv.mu.Unlock()
	t.count.Troubles = troubles(inquiries)
	return t.count
}

func (t *tally) all() {
	t.count.Version = t.inv.version
	t.count.Complete = true
	for _, p := range t.inv.order {
		for _, s := range p.current {
			for _, b := range s.blocks {
				t.block(p, b)
			}
		}
	}
	t.count.Free = t.inv.spread(t.reaches)
	for _, devices := range t.count.Free {
		t.count.Left[dra.StageBestNode] = max(t.count.Left[dra.StageBestNode], devices)
	}
}

func (t *tally) block(p *pool, b *block) {
	t.leave(dra.StagePublished, b.all)
	if t.class == nil && t.inv.classes[t.request.Class] == nil {
		return // a class that does not exist selects nothing
	}
	mask, failed, open := narrow(b, b.all, t.class)
	t.leave(dra.StageClass, mask)
	mask, failedOwn, openOwn := narrow(b, mask, t.own)
	t.count.Complete = t.count.Complete && open|openOwn == 0
	t.leave(dra.StageSelectors, mask)
	t.fail(b, failed|failedOwn)
	mask = p.tolerated(b, mask, t.request)
	t.leave(dra.StageUntainted, mask)
	switch {
	case p.complete:
	case t.request.AdminAccess:
		t.count.Incomplete += bits.OnesCount64(mask)
	default:
		t.count.Incomplete += bits.OnesCount64(mask &^ b.taken)
	}
	mask = t.inv.available(p, b, mask, t.request)
	t.leave(dra.StageFree, mask)
	t.place(b, mask)
}

func (t *tally) leave(stage dra.Stage, mask uint64) { t.count.Left[stage] += bits.OnesCount64(mask) }

// tolerated are the devices of the mask without a taint that the request does
// not tolerate.
func (p *pool) tolerated(b *block, mask uint64, request *Request) uint64 {
	if len(request.Tolerations) == 0 {
		return mask &^ b.tainted
	}
	for bit := range each(mask & b.tainted) {
		if _, taint := p.repelled(b.device(bit), request.Tolerations); taint != nil {
			mask &^= 1 << bit
		}
	}
	return mask
}

// place notes from where the devices of the mask can be used.
func (t *tally) place(b *block, mask uint64) {
	if mask == 0 {
		return
	}
	if b.slice.reach != nil {
		t.reaches[b.slice.reach.thing] += bits.OnesCount64(mask)
		return
	}
	for bit := range each(mask) {
		t.reaches[b.device(bit).reach(b.slice)]++
	}
}

// spread is how many devices each node reaches.
func (inv *Inventory) spread(reaches map[*reach]int) Spread {
	spread := make(Spread, len(reaches))
	everywhere := 0
	for r, devices := range reaches {
		switch {
		case r.node != "" && inv.knows(r.node):
			spread[r.node] += devices
		case r.all:
			everywhere += devices
		}
		for node := range r.nodes {
			spread[node] += devices
		}
	}
	if everywhere == 0 {
		return spread
	}
	for node := range inv.nodes {
		spread[node] += everywhere
	}
	if len(inv.nodes) == 0 {
		for node := range spread {
			spread[node] += everywhere
		}
	}
	return spread
}

func (t *tally) fail(b *block, failed uint64) {
	t.count.Failed += bits.OnesCount64(failed)
	for bit := range each(failed) {
		if len(t.failing) == troublesAtMost {
			return
		}
		t.failing = append(t.failing, failing{b.slice, b.first + bit})
	}
}

// trouble is a selector to be asked again for why it fails.
type trouble struct {
	where    string
	selector *selector
	device   dra.DeviceID
	inquiry
}

// inquiries are the selectors that failed, each for one device, with what they
// are to be asked again.
func (t *tally) inquiries() []trouble {
	var all []trouble
	seen := map[*selector]bool{}
	for _, f := range t.failing {
		for i, s := range slices.Concat(t.class, t.own) {
			r := s.at(f.slice.blocks[f.index/blockSize])
			bit := uint64(1) << (f.index % blockSize)
			if r.failed&bit != 0 && !seen[s] {
				seen[s] = true
				made := trouble{where: t.where(i), selector: s}
				if s.broken == "" {
					made.device = f.slice.pool.id(&f.slice.devices[f.index])
					made.inquiry.input = t.inv.input(s, f.slice, f.index)
				}
				all = append(all, made)
			}
			if r.match&bit == 0 {
				break // the selectors after it are not asked
			}
		}
	}
	return all
}

func (t *tally) where(selector int) string {
	if selector < len(t.class) {
		return "class " + clean(t.request.Class)
	}
	return "request"
}

// troubles asks again, for the words of the errors. All of it takes no longer
// than one evaluation may.
func troubles(all []trouble) []dra.SelectorTrouble {
	var told []dra.SelectorTrouble
	ctx, cancel := context.WithTimeout(context.Background(), EvaluationLimit)
	defer cancel()
	for _, one := range all {
		made := dra.SelectorTrouble{Where: one.where, Expression: clean(one.selector.expression), Message: clean(one.selector.broken)}
		if one.selector.broken == "" {
			made.Device = one.device.String()
			if _, err := one.selector.ask(ctx, one.input); err != nil {
				made.Message = clean(err.Error())
			}
		}
		told = append(told, made)
	}
	return told
}
