package inventory

import (
	"cmp"
	"context"
	"math/bits"
	"slices"

	dracel "k8s.io/dynamic-resource-allocation/cel"

	"github.com/dra-exporter/dra-exporter/collector/dra"
)

// requestQuery applies one request to all devices. It reads up-to-date pools and the
// existing results of selectors. It evaluates no selector.
type requestQuery struct {
	pools       *poolStore
	nodes       *nodeIndex
	devices     *deviceStore
	selectors   *selectorStore
	request     *Request
	classExists bool
	class, own  []*selector
}

// stages has the devices of a block that each stage leaves.
type stages struct {
	left   [dra.StageBestNode]uint64
	failed uint64 // a selector failed, and all selectors before it matched
	open   uint64 // a selector has yet to be evaluated
}

// stages applies the stages to a block. A class that does not exist selects
// nothing.
func (q *requestQuery) stages(p *pool, b *block) (s stages) {
	s.left[dra.StagePublished] = b.all
	if !q.classExists {
		return s
	}
	s.left[dra.StageClass], s.failed, s.open = filter(b, b.all, q.class)
	matched, failed, open := filter(b, s.left[dra.StageClass], q.own)
	s.failed, s.open = s.failed|failed, s.open|open
	s.left[dra.StageSelectors] = matched
	s.left[dra.StageUntainted] = q.untainted(p, b, matched)
	s.left[dra.StageFree] = q.free(p, b, s.left[dra.StageUntainted])
	return s
}

// untainted returns the devices of the mask without a taint that the request
// does not tolerate.
func (q *requestQuery) untainted(p *pool, b *block, mask uint64) uint64 {
	if len(q.request.Tolerations) == 0 {
		return mask &^ b.tainted
	}
	for bit := range eachBit(mask & b.tainted) {
		if repelled(b.device(bit), p.rules, q.request.Tolerations) {
			mask &^= 1 << bit
		}
	}
	return mask
}

// free returns the devices of the mask that can be allocated to the request,
// which tolerates their taints.
func (q *requestQuery) free(p *pool, b *block, mask uint64) uint64 {
	mask = q.unallocated(b, mask&b.usable)
	if q.request.Capacity == nil || len(q.request.Capacity.Requests) == 0 {
		return mask & b.roomy
	}
	for bit := range eachBit(mask) {
		d := b.device(bit)
		if !capacityFits(q.devices.capacity(p.id.driver, d), p.consumed(d), q.request.Capacity) {
			mask &^= 1 << bit
		}
	}
	return mask
}

// unallocated returns the devices of the mask that are not allocated as a
// whole. With admin access, allocations do not matter.
func (q *requestQuery) unallocated(b *block, mask uint64) uint64 {
	if q.request.AdminAccess {
		return mask
	}
	return mask &^ b.exclusive
}

// count counts the devices that each stage leaves. It also returns a few of the
// selectors that failed.
func (q *requestQuery) count() (Count, []selectorFailure) {
	count := Count{NoClass: !q.classExists, Complete: true}
	free, onNodes := q.nodes.bySelection(), map[string]int{}
	var failures selectorFailures
	for _, p := range q.pools.all() {
		for _, b := range p.blocks {
			s := q.stages(p, b)
			for stage := range s.left {
				count.Left[stage] += bits.OnesCount64(s.left[stage])
			}
			count.Complete = count.Complete && s.open == 0
			if s.failed != 0 {
				count.Failed += bits.OnesCount64(s.failed)
				failures.add(q, p, b, s.failed)
			}
			count.Incomplete += bits.OnesCount64(q.unallocated(b, s.left[dra.StageUntainted]&b.incomplete))
			if p.divided {
				q.addOnNodes(onNodes, p, b, s.left[dra.StageFree])
			} else {
				free.add(b, s.left[dra.StageFree])
			}
		}
	}
	count.Free = q.nodes.count(free)
	if len(onNodes) > 0 {
		count.Free = count.Free.Merge(sortedCounts(onNodes), func(a, b int) int { return a + b })
	}
	for _, node := range count.Free {
		count.Left[dra.StageBestNode] = max(count.Left[dra.StageBestNode], node.Devices)
	}
	return count, failures.selectors
}

// addOnNodes adds the devices of the mask to each node that can have them.
func (q *requestQuery) addOnNodes(nodes map[string]int, p *pool, b *block, mask uint64) {
	type counts struct{ anywhere, declared int } // declared: on nodes that declare a feature
	found := map[*poolView]counts{}
	for bit := range eachBit(mask) {
		d := b.device(bit)
		selection := b.slice.deviceSelection(d)
		for _, v := range p.views.bySelection[selection] {
			counts := found[v]
			switch {
			case !v.provides(b.slice, d, p.isShare(d)):
				continue
			case selection.optional:
				counts.declared++
			default:
				counts.anywhere++
			}
			found[v] = counts
		}
	}
	for v, counts := range found {
		for _, node := range p.views.nodes(v, q.nodes) {
			n := counts.anywhere
			if counts.declared > 0 && q.nodes.declares(node) {
				n += counts.declared
			}
			if n > 0 {
				nodes[node] += n
			}
		}
	}
}

// selectorFailure is a selector that failed for a device.
type selectorFailure struct {
	selector *selector
	where    string       // "request", or the class
	device   dra.DeviceID // unless the selector is broken
	input    dracel.Device
}

// failuresAtMost is the number of devices for which failures of selectors are
// reported.
const failuresAtMost = 4

// selectorFailures are the selectors that failed for the first devices.
type selectorFailures struct {
	selectors []selectorFailure // each selector once
	devices   int
}

// add adds the devices of the mask.
func (f *selectorFailures) add(q *requestQuery, p *pool, b *block, failed uint64) {
	for bit := range eachBit(failed) {
		if f.devices == failuresAtMost {
			return
		}
		f.devices++
		for i, s := range slices.Concat(q.class, q.own) {
			r := s.result(b)
			seen := slices.ContainsFunc(f.selectors, func(other selectorFailure) bool { return other.selector == s })
			if r.failed&(1<<bit) != 0 && !seen {
				failure := selectorFailure{selector: s, where: "request"}
				if i < len(q.class) {
					failure.where = "class " + validUTF8(q.request.Class)
				}
				if s.broken == "" {
					failure.device = p.deviceID(b.device(bit))
					failure.input = q.selectors.input(s, b, bit)
				}
				f.selectors = append(f.selectors, failure)
			}
			if r.match&(1<<bit) == 0 {
				break // the selectors after it are not evaluated
			}
		}
	}
}

// evaluateFailures evaluates the selectors again for the texts of their errors.
// All of it takes no longer than one evaluation may. It needs no lock.
func evaluateFailures(failures []selectorFailure) []dra.SelectorError {
	var reported []dra.SelectorError
	ctx, cancel := context.WithTimeout(context.Background(), EvaluationLimit)
	defer cancel()
	for _, f := range failures {
		failure := dra.SelectorError{Where: f.where, Expression: validUTF8(f.selector.expression), Message: validUTF8(f.selector.broken)}
		if f.selector.broken == "" {
			failure.Device = f.device.String()
			if _, err := f.selector.evaluate(ctx, f.input); err != nil {
				failure.Message = validUTF8(err.Error())
			}
		}
		reported = append(reported, failure)
	}
	return reported
}

// changedSince reports whether a pool with a device that the class selectors or
// the request's own select has changed since a version. A device counts also if
// a selector fails for it or has yet to be evaluated.
func (q *requestQuery) changedSince(version uint64) bool {
	chain := slices.Concat(q.class, q.own)
	selected := func(s *slice) bool {
		return slices.ContainsFunc(s.blocks, func(b *block) bool {
			match, failed, open := filter(b, b.all, chain)
			return match|failed|open != 0
		})
	}
	return slices.ContainsFunc(q.pools.all(), func(p *pool) bool { return p.changed > version && slices.ContainsFunc(p.slices, selected) })
}

// notFreeReason returns why a device that passes all earlier stages is not
// free.
func (q *requestQuery) notFreeReason(p *pool, b *block, bit int) NotFree {
	d, mask := b.device(bit), uint64(1)<<bit
	switch {
	case b.exclusive&mask != 0 && !q.request.AdminAccess:
		return NotFreeHeld // whatever its pool is like, so that Count.Incomplete counts the same devices
	case b.incomplete&mask != 0:
		return NotFreeIncomplete
	case b.invalid&mask != 0:
		return NotFreeInvalid
	case !p.declared(b.slice, d):
		return NotFreeUndeclared
	case b.usable&mask != 0:
		return NotFreeCapacity
	}
	for _, v := range p.views.bySelection[b.slice.deviceSelection(d)] {
		if v.has(b.slice) && v.valid && v.counters.suffice(d) {
			return NotFreeGroups
		}
	}
	return NotFreeCounters
}

// causeKey identifies a cause of one stage.
type causeKey struct {
	taint   dra.Taint
	rule    string
	notFree NotFree
}

// causeCounts counts devices for each cause of one stage.
type causeCounts struct {
	byKey  map[causeKey]*Cause
	keys   []causeKey   // in the order in which they were found
	taints [][]causeKey // of each device at StageUntainted
}

// add adds a device with its causes.
func (c *causeCounts) add(keys []causeKey, device dra.DeviceID, examples int) {
	if c.byKey == nil {
		c.byKey = make(map[causeKey]*Cause)
	}
	for _, key := range keys {
		cause, ok := c.byKey[key]
		if !ok {
			cause = &Cause{Taint: key.taint, Rule: key.rule, NotFree: key.notFree}
			c.byKey[key] = cause
			c.keys = append(c.keys, key)
		}
		cause.Count++
		if len(cause.Examples) < examples {
			cause.Examples = append(cause.Examples, device)
		}
	}
}

// sorted returns the causes; those of the most devices come first. Causes
// beyond the limit become one cause.
func (c *causeCounts) sorted(limit int) []Cause {
	slices.SortStableFunc(c.keys, func(x, y causeKey) int { return cmp.Compare(c.byKey[y].Count, c.byKey[x].Count) })
	listed, others := c.keys[:min(limit, len(c.keys))], c.keys[min(limit, len(c.keys)):]
	var causes []Cause
	for _, key := range listed {
		causes = append(causes, *c.byKey[key])
	}
	if len(others) == 0 {
		return causes
	}
	unlisted := make(map[causeKey]bool, len(others))
	for _, key := range others {
		unlisted[key] = true
	}
	rest := Cause{Others: len(others)}
	for _, keys := range c.taints {
		if slices.ContainsFunc(keys, func(key causeKey) bool { return unlisted[key] }) {
			rest.Count++
		}
	}
	return append(causes, rest)
}

// explain returns why each stage removes devices.
func (q *requestQuery) explain(limits ExplanationLimits) Explanation {
	var counts [dra.StageBestNode]causeCounts
	untainted := q.nodes.bySelection()
	holders := holderDevices{claims: map[*claim][]dra.DeviceID{}, seen: map[*device]bool{}}
	var keys []causeKey
	for _, p := range q.pools.all() {
		for _, b := range p.blocks {
			left := q.stages(p, b).left
			untainted.add(b, left[dra.StageUntainted])
			for stage := dra.StageClass; stage <= dra.StageFree; stage++ {
				for bit := range eachBit(left[stage-1] &^ left[stage]) {
					d := b.device(bit)
					keys = q.appendCauses(keys[:0], stage, p, b, bit)
					counts[stage].add(keys, p.deviceID(d), limits.Examples)
					switch stage {
					case dra.StageUntainted:
						counts[stage].taints = append(counts[stage].taints, slices.Clone(keys))
					case dra.StageFree:
						holders.add(p, b.slice, d)
					}
				}
			}
		}
	}
	explained := Explanation{Causes: make(map[dra.Stage][]Cause), Untainted: q.nodes.count(untainted)}
	for stage := dra.StageClass; stage <= dra.StageFree; stage++ {
		limit := len(counts[stage].keys)
		if stage == dra.StageUntainted {
			limit = limits.Taints
		}
		if causes := counts[stage].sorted(limit); len(causes) > 0 {
			explained.Causes[stage] = causes
		}
	}
	all := holders.sorted()
	explained.Holders, explained.HoldersInAll = all[:min(limits.Holders, len(all))], len(all)
	return explained
}

// appendCauses appends why the stage removes a device: at StageUntainted each
// taint that the request does not tolerate, once.
func (q *requestQuery) appendCauses(keys []causeKey, stage dra.Stage, p *pool, b *block, bit int) []causeKey {
	switch stage {
	case dra.StageUntainted:
		for rule, taint := range eachTaint(b.device(bit), p.rules) {
			key := causeKey{taint: newTaint(taint), rule: validUTF8(rule)}
			if repels(taint, q.request.Tolerations) && !slices.Contains(keys, key) {
				keys = append(keys, key)
			}
		}
		return keys
	case dra.StageFree:
		return append(keys, causeKey{notFree: q.notFreeReason(p, b, bit)})
	default:
		return append(keys, causeKey{})
	}
}

// holderDevices are the claims that hold devices which a request could
// otherwise have.
type holderDevices struct {
	claims map[*claim][]dra.DeviceID
	seen   map[*device]bool
}

// add adds the claims that prevent the allocation of a device: the claims that
// hold it, or else the claims that hold devices of the same counter sets.
func (h *holderDevices) add(p *pool, s *slice, d *device) {
	if p.allocated[d.name] != nil {
		h.addAllocated(p, d)
		return
	}
	for _, v := range p.views.bySelection[s.deviceSelection(d)] {
		if !v.has(s) {
			continue
		}
		for _, s := range v.counted() {
			for i := range s.devices {
				if other := &s.devices[i]; p.allocated[other.name] != nil && d.sharesCounters(other) {
					h.addAllocated(p, other)
				}
			}
		}
	}
}

func (h *holderDevices) addAllocated(p *pool, d *device) {
	if h.seen[d] {
		return
	}
	h.seen[d] = true
	id := p.deviceID(d)
	for a := p.allocated[d.name]; a != nil; a = a.next {
		if !slices.Contains(h.claims[a.claim], id) {
			h.claims[a.claim] = append(h.claims[a.claim], id)
		}
	}
}

// sorted returns the claims, those with most devices first.
func (h *holderDevices) sorted() []dra.Holder {
	var holders []dra.Holder
	for c, devices := range h.claims {
		holders = append(holders, dra.Holder{
			Claim:   dra.ClaimRef{Namespace: validUTF8(c.ref.Namespace), Name: validUTF8(c.ref.Name)},
			Pods:    slices.Clone(c.pods),
			Devices: devices,
		})
	}
	slices.SortFunc(holders, func(a, b dra.Holder) int {
		return cmp.Or(cmp.Compare(len(b.Devices), len(a.Devices)), compareClaims(a.Claim, b.Claim))
	})
	return holders
}
