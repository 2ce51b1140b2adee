package cluster

import "github.com/dra-exporter/dra-exporter/collector/dra"

// review takes in what a reference is now.
func (s *State) review(wr *waiter, r *reference) {
	w := &s.waits
	wr.reference = *r
	claim, uid, class, since := "", "", w.backing.classOf(r), wr.pod.since(r)
	if c := r.claim; r.present() {
		claim, uid = c.ref.Name, c.life.UID
		if r.extended == 0 {
			class = c.state.class
		}
		if shared := c.state.since; r.extended == 0 && !c.life.Allocated && !shared.IsZero() && shared.Before(since) {
			since = shared
		}
	}
	if !wr.askable() || wr.claimUID != "" && uid != wr.claimUID {
		wr.forgetVerdict() // it is on something else
	}
	if judged := classOfVerdict(wr.verdict); judged != "" && (class == "" || r.extended > 0) {
		class = judged
	}
	w.resort = w.resort || !wr.since.IsZero() && !since.Equal(wr.since)
	if claim != wr.claim || class != wr.class {
		wr.labels.since = nil
	}
	wr.claim, wr.claimUID, wr.class, wr.since = claim, uid, class, since
	w.stale[wr] = struct{}{}
	w.waiting = nil
}

// forgetVerdict forgets what was judged, and what is shown of it.
func (wr *waiter) forgetVerdict() {
	wr.verdict, wr.labels.requested, wr.labels.candidates = nil, nil, nil
}

// classOfVerdict is the class of what a reference asks for, where the claim
// that would say so does not exist yet; empty without a verdict. Of the classes
// that have one extended resource the judge takes the one that the scheduler
// does.
func classOfVerdict(v *dra.Verdict) string {
	if v == nil {
		return ""
	}
	classes := make([]string, len(v.Funnel))
	for i := range v.Funnel {
		classes[i] = v.Funnel[i].Class
	}
	return dra.OneClass(classes)
}
