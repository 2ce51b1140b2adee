package page

import (
	"cmp"
	"slices"
	"time"
)

// PendingCount is how many claims are pending, as docs/glossary.md defines it:
// references of pods to claims, and requests of extended resources, that are
// not satisfied. Those of pods with scheduling gates are counted apart. The
// page, the JSON's reader and top have their numbers from here.
type PendingCount struct {
	Pending int
	Gated   int
	Oldest  time.Time     // since when the oldest has been pending; zero where none is
	Reasons []ReasonCount // of those that are pending, the most frequent first
}

// ReasonCount is how many claims are pending for a reason; the reason is empty
// until it is known.
type ReasonCount struct {
	Reason string
	Count  int
}

// CountPending counts the references of all lists, each by its own reason.
func CountPending(lists ...[]Waiting) PendingCount {
	var count PendingCount
	for _, list := range lists {
		for i := range list {
			count.add(&list[i])
		}
	}
	slices.SortFunc(count.Reasons, func(a, b ReasonCount) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Reason, b.Reason))
	})
	return count
}

func (c *PendingCount) add(w *Waiting) {
	if w.gated() {
		c.Gated++
		return
	}
	c.Pending++
	if !w.Since.IsZero() && (c.Oldest.IsZero() || w.Since.Before(c.Oldest)) {
		c.Oldest = w.Since
	}
	i := slices.IndexFunc(c.Reasons, func(r ReasonCount) bool { return r.Reason == w.Reason })
	if i < 0 {
		i = len(c.Reasons)
		c.Reasons = append(c.Reasons, ReasonCount{Reason: w.Reason})
	}
	c.Reasons[i].Count++
}

// Count is how many claims are pending in the cluster.
func (v ClusterView) Count() PendingCount { return CountPending(v.Waiting, v.Gated) }

// gatedReason is that of references whose pods have scheduling gates.
const gatedReason = "scheduling_gated"

// gated reports whether the pod has scheduling gates. Such a reference is not
// pending: the scheduler must not look at the pod yet.
func (w *Waiting) gated() bool { return w.Reason == gatedReason }
