package diagnosis

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/dra"
)

const (
	// clusterWide is the share that is charged for the selectors of device
	// classes, which belong to no namespace.
	clusterWide = ""
	// mostNamespaces is how many namespaces have a counter of their own.
	mostNamespaces = 100
	// shortPerLong is how many turns of short items a namespace has between two
	// turns of a long one, while it has both.
	shortPerLong = 3
)

// diagnosisItem is what has to be diagnosed, for however many pods that request the same.
type diagnosisItem struct {
	pod        podClaims
	namespaces []string      // of the pods
	diagnosis  *podDiagnosis // nil: none yet
	version    uint64        // of the inventory for which the diagnosis holds
	turn       uint64        // when it was last diagnosed
	queued     bool

	begun   bool          // the diagnosis under way has had a turn
	task    *task         // suspended; nil: the diagnosis has to begin, or to begin again
	backoff time.Duration // after the last diagnosis that needed too much work; 0: it did not
	retry   clock.Instant // when the back-off ends
}

// shares divide the budget among namespaces by weighted fair queueing with
// equal weights: each turn is charged to a namespace, and the next turn is for
// the one that has been charged least. A namespace that has had no items for a
// while begins with what the others have been charged, so that nothing is saved
// up.
type shares struct {
	byName  map[string]*namespaceShare
	virtual time.Duration // the charge of the share that had the last turn
	counted map[string]time.Duration
}

// namespaceShare is one namespace's.
type namespaceShare struct {
	namespace string
	charged   time.Duration
	short     []*diagnosisItem // that have had no turn yet since they were queued
	long      []*diagnosisItem // that did not end within a turn, the suspended ones first
	turns     int              // of short items since the last long one
}

func newShares() shares {
	return shares{byName: make(map[string]*namespaceShare), counted: make(map[string]time.Duration)}
}

func (s *shares) of(namespace string) *namespaceShare {
	found := s.byName[namespace]
	if found == nil {
		found = &namespaceShare{namespace: namespace, charged: s.virtual}
		s.byName[namespace] = found
	}
	return found
}

func (s *shares) add(namespace string, entry *diagnosisItem) {
	sh := s.of(namespace)
	sh.charged = max(sh.charged, s.virtual) // those with items have been charged no less
	switch {
	case entry.task != nil:
		sh.long = slices.Insert(sh.long, 0, entry)
	case entry.begun:
		sh.long = append(sh.long, entry)
	default:
		sh.short = append(sh.short, entry)
	}
}

// clear empties the lists. Charges stay, also of namespaces that are added again
// before the next turn.
func (s *shares) clear() {
	for _, sh := range s.byName {
		sh.short, sh.long = nil, nil
	}
}

// removeIdle removes shares without items that have not been charged more than
// others.
func (s *shares) removeIdle() {
	maps.DeleteFunc(s.byName, func(_ string, sh *namespaceShare) bool { return !sh.hasItems() && sh.charged <= s.virtual })
}

// hasItems reports whether there is something in the lists.
func (s *shares) hasItems() bool {
	for _, sh := range s.byName {
		if sh.hasItems() {
			return true
		}
	}
	return false
}

// hasItems removes what has had its turn in another share from the lists.
func (sh *namespaceShare) hasItems() bool {
	sh.short, sh.long = ready(sh.short), ready(sh.long)
	return len(sh.short)+len(sh.long) > 0
}

func ready(items []*diagnosisItem) []*diagnosisItem {
	for len(items) > 0 && !items[0].queued {
		items = items[1:]
	}
	return items
}

// next returns the share that has been charged least of those with something to
// do, and its next item. The item is nil if it is the turn of the selectors of
// classes; both are nil if there is nothing to do.
func (s *shares) next(classesDue bool) (*namespaceShare, *diagnosisItem) {
	var best *namespaceShare
	if classesDue {
		best = s.of(clusterWide)
		best.charged = max(best.charged, s.virtual)
	}
	for _, sh := range s.byName {
		if sh.namespace != clusterWide && sh.hasItems() && (best == nil || compareShares(sh, best) < 0) {
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

// compareShares orders the share that has been charged less first.
func compareShares(a, b *namespaceShare) int {
	return cmp.Or(cmp.Compare(a.charged, b.charged), cmp.Compare(a.namespace, b.namespace))
}

// next removes and returns the next item: short ones first, and now and then a
// long one.
func (sh *namespaceShare) next() *diagnosisItem {
	list := &sh.short
	if len(sh.short) == 0 || sh.turns >= shortPerLong && len(sh.long) > 0 {
		list = &sh.long
		sh.turns = 0
	} else {
		sh.turns++
	}
	entry := (*list)[0]
	*list = (*list)[1:]
	return entry
}

// charge charges a share for a turn.
func (s *shares) charge(sh *namespaceShare, worked time.Duration) {
	sh.charged += worked
	name := sh.namespace
	if _, ok := s.counted[name]; !ok && len(s.counted) >= mostNamespaces {
		name = clusterWide
	}
	s.counted[name] += worked
}

// costs returns what has been charged since the start, by namespace. All but the
// first namespaces are added up under the empty name.
func (s *shares) costs() []dra.DiagnosisCost {
	costs := make([]dra.DiagnosisCost, 0, len(s.counted))
	for _, name := range slices.Sorted(maps.Keys(s.counted)) {
		costs = append(costs, dra.DiagnosisCost{Namespace: name, Took: s.counted[name]})
	}
	return costs
}
