package cluster

import (
	"cmp"
	"slices"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/dra"
)

// onsetDelay is how long a reason must last before it is counted: watches of
// pods and of claims tell of one moment in any order.
const onsetDelay = 2 * time.Second

// mixedDelay is how long it must last that something other than devices is in
// the way while the scheduler speaks of devices, too. Once devices suffice, the
// scheduler's next attempt may well succeed, and it comes no later than the end
// of the pod's backoff, which is at most ten seconds by default
// (k8s.io/kubernetes, pkg/scheduler/apis/config/v1, PodMaxBackoffSeconds).
const mixedDelay = 15 * time.Second

// hearVerdicts takes in what the judge says. A verdict stays until another
// comes, as long as its reference waits for devices. While slices or classes cannot be
// read, the judge has judged by an empty inventory, and is not heard.
func (s *State) hearVerdicts(facts Facts) {
	if !judgeable(facts.Synced) {
		return
	}
	for i := range facts.Verdicts {
		verdict := &facts.Verdicts[i]
		p, known := s.books.pods[verdict.Pod]
		if !known || p.life.UID != verdict.PodUID {
			continue
		}
		for _, wr := range p.waiting.waiters {
			if wr.name != verdict.PodClaim || !wr.askable() || wr.verdict != nil && sameVerdict(wr.verdict, verdict) {
				continue
			}
			heard := *verdict
			wr.verdict = &heard
			wr.labels.requested, wr.labels.candidates = nil, nil
			s.review(wr, &wr.reference)
		}
	}
}

func judgeable(synced Synced) bool { return synced.Claims && synced.Slices && synced.Classes }

// sameVerdict reports whether two verdicts say the same, of whichever
// inventory. One with detail is for a person, and always new.
func sameVerdict(a, b *dra.Verdict) bool {
	return a.Reason == b.Reason && a.Message == b.Message && b.Detail == nil && a.Detail == nil && slices.Equal(a.Funnel, b.Funnel)
}

// reviewReasons finds the reasons again of those for whom something has
// changed: of all of them where it is another collection that is known.
func (s *State) reviewReasons(synced Synced, now clock.Instant) {
	w := &s.waits
	if synced != w.synced {
		for _, wr := range slices.Concat(w.order, w.added) {
			if wr.gone {
				continue
			}
			if !judgeable(synced) {
				wr.forgetVerdict()
			}
			w.stale[wr] = struct{}{}
		}
		w.synced, w.waiting = synced, nil
	}
	for wr := range w.stale {
		evidence := s.evidenceOf(wr)
		wr.mixed = evidence.said.aboutDRA()
		if reason, message := reasonOf(evidence); reason != wr.reason || message != wr.message {
			wr.message, w.waiting = message, nil
			if reason != wr.reason {
				wr.begin(reason, now)
				w.young[wr] = struct{}{}
			}
			s.notePending(wr, now)
		}
	}
	clear(w.stale)
}

func (s *State) evidenceOf(wr *waiter) evidence {
	extended := ""
	if wr.reference.extended > 0 {
		extended = wr.name
	}
	message := wr.pod.life.Unschedulable
	trouble := s.books.trouble.creationOf(wr.uid, wr.name)
	if group := s.books.group(wr.pod); trouble == "" && group != nil {
		trouble = s.books.trouble.creationOf(group.UID, wr.name)
	}
	return evidence{
		reference: wr.reference, pod: wr.pod, verdict: wr.verdict,
		said: s.waits.listener.understand(message, extended), message: message,
		trouble: trouble, nodeless: !s.waits.synced.Nodes,
		queued: !s.config.Once && wr.askable() && judgeable(s.waits.synced),
	}
}

// begin notes that the reference waits for another reason from now on. What
// comes after a gate was not there before the exporter.
func (wr *waiter) begin(reason dra.PendingReason, now clock.Instant) {
	wr.silent = wr.silent && wr.reason != dra.ReasonGated
	wr.reason, wr.known, wr.labels.reason = reason, now, nil
}

// countOnsets counts the reasons that have lasted. Each counts once for each
// wait, however often it comes back, and the first one of a wait that was
// found in a list does not: it was counted before this exporter started. As
// long as the watches contradict each other nothing is counted; afterwards
// what is then still so.
func (s *State) countOnsets(now clock.Instant) {
	if !s.waits.watches.agree {
		return
	}
	for wr := range s.waits.young {
		if wr.gone || !isFailure(wr.reason) {
			delete(s.waits.young, wr)
			continue
		}
		if now.Since(wr.known) < wr.onsetDelay() && !wr.silent {
			continue
		}
		delete(s.waits.young, wr)
		if _, counted := wr.counted[wr.reason]; counted {
			continue
		}
		if wr.counted == nil {
			wr.counted = make(map[dra.PendingReason]struct{})
		}
		wr.counted[wr.reason] = struct{}{}
		if !wr.silent {
			s.failures.add(wr.class, string(wr.reason), 1, now.Wall)
		}
		wr.silent = false
	}
}

func (wr *waiter) onsetDelay() time.Duration {
	if wr.reason == dra.ReasonOther && wr.mixed {
		return mixedDelay
	}
	return onsetDelay
}

// compareWaiters puts the oldest wait first, and the rest in an order that is
// always the same.
func compareWaiters(a, b *waiter) int {
	return cmp.Or(a.since.Compare(b.since), cmp.Compare(a.ref.Namespace, b.ref.Namespace), cmp.Compare(a.ref.Name, b.ref.Name), cmp.Compare(a.name, b.name))
}
