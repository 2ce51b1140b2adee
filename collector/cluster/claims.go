package cluster

import (
	"cmp"
	"maps"
	"slices"

	"github.com/dra-exporter/dra-exporter/collector/metric"
)

// claimState is the one state of dra_claims that a claim is in.
type claimState uint8

const (
	stateUnused    claimState = iota // no pod that is alive references it, and it is not allocated
	statePending                     // a pod that is alive references it, and it is not allocated
	stateAllocated                   // and not reserved
	stateReserved
	stateTerminating // its deletion has begun
	claimStates      = iota
)

func (s claimState) String() string {
	return [claimStates]string{"unused", "pending", "allocated", "reserved", "terminating"}[s]
}

// dependsOnPods reports whether the state is known only where pods are.
func (s claimState) dependsOnPods() bool { return s == stateUnused || s == statePending }

func decideState(c *claimEntry) claimState {
	switch {
	case !c.object.Deleted.IsZero():
		return stateTerminating
	case c.object.Allocated && len(c.object.ReservedFor) > 0:
		return stateReserved
	case c.object.Allocated:
		return stateAllocated
	case slices.ContainsFunc(c.users, (*podEntry).alive):
		return statePending
	default:
		return stateUnused
	}
}

// claimCounts counts claims by namespace, device class and state.
type claimCounts struct {
	claims  map[*claimEntry]countedClaim
	counts  map[claimCountKey]*claimCount
	order   []*claimCount       // sorted; nil: a count was added or removed
	classes map[string]int      // number of counts by class
	idle    map[string]struct{} // classes that may have no counts any more
}

// countedClaim is how a claim was counted last.
type countedClaim struct {
	count *claimCount
	state claimState
}

type claimCountKey struct{ namespace, class string }

type claimCount struct {
	key    claimCountKey
	claims [claimStates]int
	all    int
	labels [claimStates]*metric.Labels
}

func newClaimCounts() *claimCounts {
	return &claimCounts{
		claims:  make(map[*claimEntry]countedClaim),
		counts:  make(map[claimCountKey]*claimCount),
		classes: make(map[string]int),
		idle:    make(map[string]struct{}),
	}
}

// update counts a claim as what it is now, and returns its device class as label has it;
// false if it does not exist.
func (cc *claimCounts) update(c *claimEntry, label func(class string) string) (class string, exists bool) {
	previous, ok := cc.claims[c]
	if ok {
		previous.count.claims[previous.state]--
		previous.count.all--
	}
	var now *claimCount
	if c.object != nil {
		class = label(c.object.Class())
		now = cc.count(claimCountKey{c.ref.Namespace, class})
	}
	if ok && previous.count != now && previous.count.all == 0 {
		cc.remove(previous.count)
	}
	if now == nil {
		delete(cc.claims, c)
		return "", false
	}
	state := decideState(c)
	now.claims[state]++
	now.all++
	if next := (countedClaim{now, state}); next != previous {
		cc.claims[c] = next
	}
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

// rows adds the counts. pods reports whether pods are known.
func (cc *claimCounts) rows(b *metric.Builder, family *metric.Family, pods bool) {
	if cc.order == nil {
		cc.order = slices.SortedFunc(maps.Values(cc.counts), func(a, b *claimCount) int {
			return cmp.Or(cmp.Compare(a.key.namespace, b.key.namespace), cmp.Compare(a.key.class, b.key.class))
		})
	}
	b.In(family)
	for _, count := range cc.order {
		for state := range claimState(claimStates) {
			if !pods && state.dependsOnPods() {
				continue
			}
			if count.labels[state] == nil {
				count.labels[state] = metric.NewLabels(family.Labels, count.key.namespace, count.key.class, state.String())
			}
			b.Add(count.labels[state], float64(count.claims[state]))
		}
	}
}
