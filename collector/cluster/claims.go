package cluster

import (
	"cmp"
	"maps"
	"slices"

	"github.com/dra-exporter/dra-exporter/collector/model"
)

// dependsOnPods reports whether a state is known only where pods are.
func dependsOnPods(state model.ClaimState) bool {
	return state == model.ClaimUnused || state == model.ClaimPending
}

func decideState(c *claimEntry) model.ClaimState {
	switch {
	case !c.object.Deleted.IsZero():
		return model.ClaimTerminating
	case c.object.Allocated && len(c.object.ReservedFor) > 0:
		return model.ClaimReserved
	case c.object.Allocated:
		return model.ClaimAllocated
	case slices.ContainsFunc(c.users, (*podEntry).alive):
		return model.ClaimPending
	default:
		return model.ClaimUnused
	}
}

// claimCounts counts claims by namespace, device class and state.
type claimCounts struct {
	counts  map[claimCountKey]*claimCount
	order   []*claimCount // sorted; nil: a count was added or removed
	list    stableList[*model.ClaimCount]
	classes map[string]int      // number of counts by class
	idle    map[string]struct{} // classes that may have no counts any more
}

// countedClaim is how a claim was counted last; the zero value: it was not.
type countedClaim struct {
	count *claimCount
	state model.ClaimState
}

type claimCountKey struct{ namespace, class string }

type claimCount struct {
	key    claimCountKey
	claims [model.ClaimStates]int
	all    int
	model  *model.ClaimCount // nil: outdated
}

func newClaimCounts() *claimCounts {
	return &claimCounts{
		counts:  make(map[claimCountKey]*claimCount),
		classes: make(map[string]int),
		idle:    make(map[string]struct{}),
	}
}

// update counts a claim as what it is now, and returns its device class as label has it;
// false if it does not exist.
func (cc *claimCounts) update(c *claimEntry, label func(class string) string) (class string, exists bool) {
	previous := c.counted
	if previous.count != nil {
		previous.count.claims[previous.state]--
		previous.count.all--
		previous.count.model = nil
	}
	var now *claimCount
	if c.object != nil {
		class = label(c.object.Class())
		now = cc.count(claimCountKey{c.ref.Namespace, class})
	}
	if previous.count != nil && previous.count != now && previous.count.all == 0 {
		cc.remove(previous.count)
	}
	if now == nil {
		c.counted = countedClaim{}
		return "", false
	}
	state := decideState(c)
	now.claims[state]++
	now.all++
	now.model = nil
	c.counted = countedClaim{now, state}
	return class, true
}

// count returns the count of a key; it adds one if there is none.
func (cc *claimCounts) count(key claimCountKey) *claimCount {
	count := cc.counts[key]
	if count == nil {
		count = &claimCount{key: key}
		cc.counts[key] = count
		cc.order = nil
		cc.classes[key.class]++
	}
	return count
}

func (cc *claimCounts) remove(count *claimCount) {
	delete(cc.counts, count.key)
	cc.order = nil
	if cc.classes[count.key.class]--; cc.classes[count.key.class] == 0 {
		delete(cc.classes, count.key.class)
		cc.idle[count.key.class] = struct{}{}
	}
}

// unusedClasses returns the classes that have lost their last claim since it
// was called last. It runs once all claims were updated.
func (cc *claimCounts) unusedClasses() []string {
	var unused []string
	for class := range cc.idle {
		if cc.classes[class] == 0 {
			unused = append(unused, class)
		}
	}
	clear(cc.idle)
	return unused
}

// sorted returns the counts. pods reports whether pods are known.
func (cc *claimCounts) sorted(pods bool) []*model.ClaimCount {
	if cc.order == nil {
		cc.order = slices.SortedFunc(maps.Values(cc.counts), func(a, b *claimCount) int {
			return cmp.Or(cmp.Compare(a.key.namespace, b.key.namespace), cmp.Compare(a.key.class, b.key.class))
		})
	}
	for _, count := range cc.order {
		cc.list.add(count.sharedModel(pods))
	}
	return cc.list.take()
}

// sharedModel returns the count as the model has it, the same one while nothing changes.
func (c *claimCount) sharedModel(pods bool) *model.ClaimCount {
	if c.model != nil && c.model.States[model.ClaimUnused].Known == pods {
		return c.model
	}
	c.model = &model.ClaimCount{Namespace: c.key.namespace, Class: c.key.class}
	for state := range model.ClaimState(model.ClaimStates) {
		if pods || !dependsOnPods(state) {
			c.model.States[state] = model.Optional{Value: float64(c.claims[state]), Known: true}
		}
	}
	return c.model
}
