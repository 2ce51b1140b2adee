package diagnosis

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/dra"
)

const (
	// clusterWide is the share that pays for the selectors of device classes,
	// which belong to no namespace.
	clusterWide = ""
	// mostNamespaces is how many namespaces have a counter of their own.
	mostNamespaces = 100
	// shortPerLong is how many turns of short items a namespace has between two
	// turns of a long one, while it has both.
	shortPerLong = 3
)

// shares divide the budget among namespaces by weighted fair queueing with
// equal weights: each turn is charged to a namespace, and the next turn is for
// the one that has been charged least. A namespace that comes back to ask after
// a while begins with what the others have been charged, so that nothing is
// saved up.
type shares struct {
	byName  map[string]*share
	virtual time.Duration // the charge of the share that had the last turn
	counted map[string]time.Duration
}

// share is one namespace's.
type share struct {
	namespace string
	charged   time.Duration
	short     []*item // that have had no turn yet since they were queued
	long      []*item // that did not end within a turn, what is suspended first
	turns     int     // of short items since the last long one
}

func newShares() shares {
	return shares{byName: make(map[string]*share), counted: make(map[string]time.Duration)}
}

func (s *shares) of(namespace string) *share {
	found := s.byName[namespace]
	if found == nil {
		found = &share{namespace: namespace, charged: s.virtual}
		s.byName[namespace] = found
	}
	return found
}

func (s *shares) add(namespace string, it *item) {
	sh := s.of(namespace)
	sh.charged = max(sh.charged, s.virtual) // those who waited have been charged no less
	switch {
	case it.diagnosis != nil:
		sh.long = slices.Insert(sh.long, 0, it)
	case it.begun:
		sh.long = append(sh.long, it)
	default:
		sh.short = append(sh.short, it)
	}
}

// clear takes everything out of the lists. Charges stay, also of those who are
// added again before the next turn.
func (s *shares) clear() {
	for _, sh := range s.byName {
		sh.short, sh.long = nil, nil
	}
}

// forget drops shares that nobody waits for and that have not been charged more
// than others.
func (s *shares) forget() {
	maps.DeleteFunc(s.byName, func(_ string, sh *share) bool { return !sh.waiting() && sh.charged <= s.virtual })
}

// waiting reports whether there is something in the lists.
func (s *shares) waiting() bool {
	for _, sh := range s.byName {
		if sh.waiting() {
			return true
		}
	}
	return false
}

// waiting drops what has had its turn elsewhere from the lists.
func (sh *share) waiting() bool {
	sh.short, sh.long = ready(sh.short), ready(sh.long)
	return len(sh.short)+len(sh.long) > 0
}

func ready(items []*item) []*item {
	for len(items) > 0 && !items[0].queued {
		items = items[1:]
	}
	return items
}

// next is the share that has been charged least of those with something to do,
// and its next item. The item is nil where it is the turn of the selectors of
// classes; both are where there is nothing to do.
func (s *shares) next(settling bool) (*share, *item) {
	var best *share
	if settling {
		best = s.of(clusterWide)
		best.charged = max(best.charged, s.virtual)
	}
	for _, sh := range s.byName {
		if sh.namespace != clusterWide && sh.waiting() && (best == nil || compareShares(sh, best) < 0) {
			best = sh
		}
	}
	if best == nil {
		return nil, nil
	}
	s.virtual = max(s.virtual, best.charged)
	if best.namespace == clusterWide {
		return best, nil
	}
	return best, best.next()
}

// compareShares puts the share that has been charged less first.
func compareShares(a, b *share) int {
	return cmp.Or(cmp.Compare(a.charged, b.charged), cmp.Compare(a.namespace, b.namespace))
}

// next takes the next item: short ones first, and long ones now and then.
func (sh *share) next() *item {
	from := &sh.short
	if len(sh.short) == 0 || sh.turns >= shortPerLong && len(sh.long) > 0 {
		from = &sh.long
		sh.turns = 0
	} else {
		sh.turns++
	}
	it := (*from)[0]
	*from = (*from)[1:]
	return it
}

// charge charges a share for a turn.
func (s *shares) charge(sh *share, worked time.Duration) {
	sh.charged += worked
	name := sh.namespace
	if _, known := s.counted[name]; !known && len(s.counted) >= mostNamespaces {
		name = clusterWide
	}
	s.counted[name] += worked
}

// costs are what has been charged since the start, by namespace: of the first
// namespaces that were charged, and of all else under the empty name.
func (s *shares) costs() []dra.DiagnosisCost {
	costs := make([]dra.DiagnosisCost, 0, len(s.counted))
	for _, name := range slices.Sorted(maps.Keys(s.counted)) {
		costs = append(costs, dra.DiagnosisCost{Namespace: name, Took: s.counted[name]})
	}
	return costs
}
