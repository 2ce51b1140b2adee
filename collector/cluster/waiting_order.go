package cluster

import (
	"slices"

	"github.com/dra-exporter/dra-exporter/collector/dra"
)

// drop ends a wait.
func (w *waits) drop(wr *waiter) {
	wr.gone, w.removed, w.waiting = true, true, nil
	delete(w.young, wr)
	delete(w.stale, wr)
}

// arrange brings the order up to date: what came is sorted and merged in, and
// only where a wait has another beginning all of it is sorted.
func (w *waits) arrange() {
	if len(w.added) == 0 && !w.removed && !w.resort {
		return
	}
	isGone := func(wr *waiter) bool { return wr.gone }
	w.added = slices.DeleteFunc(w.added, isGone)
	if w.removed {
		w.order = slices.DeleteFunc(w.order, isGone)
	}
	if w.resort {
		slices.SortFunc(w.order, compareWaiters)
	}
	if len(w.added) > 0 {
		slices.SortFunc(w.added, compareWaiters)
		w.order = merge(w.order, w.added, compareWaiters)
	}
	clear(w.added)
	w.added, w.removed, w.resort = w.added[:0], false, false
}

// merge joins two sorted lists in the room of the first.
func merge[T any](a, b []T, compare func(T, T) int) []T {
	i, j := len(a)-1, len(b)-1
	a = append(a, b...)
	for k := len(a) - 1; j >= 0; k-- {
		if i >= 0 && compare(a[i], b[j]) > 0 {
			a[k] = a[i]
			i--
		} else {
			a[k] = b[j]
			j--
		}
	}
	return a
}

// tell lists who waits, and what is to be judged: one question for each pod
// with a reference that a judge can say something of, at the place of its
// oldest wait. As long as what he judges by cannot be read nothing is to be: he
// would go by an empty inventory, and be believed once it is read.
func (s *State) tell() ([]Waiting, []dra.Question) {
	w := &s.waits
	judged := judgeable(w.synced)
	told := make([]Waiting, len(w.order))
	var questions []dra.Question
	for i, wr := range w.order {
		told[i] = wr.tell()
		if p := wr.pod; judged && !p.waiting.question && wr.askable() {
			p.waiting.question = true
			questions = append(questions, s.question(p))
		}
	}
	for _, wr := range w.order {
		wr.pod.waiting.question = false
	}
	return told, questions
}

func (wr *waiter) tell() Waiting {
	node := ""
	if c := wr.reference.claim; c != nil && c.life != nil {
		node = c.life.Node
	}
	return Waiting{
		Pod: wr.ref, PodUID: wr.uid, Node: node, PodClaim: wr.name, Claim: wr.claim,
		DeviceClass: wr.class, Since: wr.since,
		Reason: wr.reason, Message: wr.message, Verdict: wr.verdict,
	}
}

// askable reports whether a judge can say something of the reference: it is
// known what it asks for, it has no devices yet, and its pod may be scheduled.
func (wr *waiter) askable() bool {
	r := &wr.reference
	switch {
	case wr.pod.life.Gated || r.vanishing():
		return false
	case r.present() && !r.foreign(wr.pod):
		return !r.claim.life.Allocated
	default:
		return r.template != "" || r.extended > 0
	}
}

// question asks about all claims of a pod at once, those among them that are
// allocated too: they say on which nodes the others are of any use.
func (s *State) question(p *podEntry) dra.Question {
	q := dra.Question{Pod: p.ref, PodUID: p.life.UID}
	for i := range p.refs {
		r := &p.refs[i]
		asked := dra.Asked{PodClaim: r.name, Template: r.template, Extended: r.extended}
		if r.present() && !r.foreign(p) {
			asked.Claim = r.claim.ref.Name
		}
		if (asked.Claim != "" || asked.Template != "" || asked.Extended > 0) && s.waits.backing.asks(r) {
			q.Asked = append(q.Asked, asked)
		}
	}
	return q
}
