// Package explain answers a question about one ResourceClaim, one pod or all pods of
// one workload: what
// was requested, how many devices each stage of the diagnosis leaves, which
// claims hold the devices that match, and what would help; or, for a claim that
// is not pending, which devices it has and which phase it is in.
//
// Reader reads a cluster once and diagnoses what is pending, by the reducer of the
// cluster role. Explain is pure: it makes a Report of these facts, and Report.Text
// renders it for a terminal. The fields of Report are a stable JSON document,
// described in docs/api.md: within its apiVersion no name is renamed or removed.
//
// Nothing is guessed. Not read is in Report.NotRead with what is
// therefore unknown, and a diagnosis that depends on it is not given.
package explain

import (
	"cmp"
	"slices"

	"github.com/dra-exporter/dra-exporter/internal/clusterread"

	"github.com/dra-exporter/dra-exporter/collector/cluster"
	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/internal/words"
)

// Explain describes the subject. It fails with a *NotFoundError if there is no such
// object, with an *UnreadError if that is unknown, and with an *AmbiguousError if
// there are several.
func Explain(facts clusterread.Facts, subject clusterread.Subject) (*Report, error) {
	report := &Report{
		APIVersion: apiVersion, Kind: subject.Kind, Namespace: subject.Namespace, Name: subject.Name, At: facts.Now.UTC(),
		Pending: []PendingRef{}, Claims: []Claim{}, Pods: []Pod{}, NotRead: []clusterread.Gap{},
	}
	report.NotRead = append(report.NotRead, facts.Gaps...)
	e := explainer{&facts}
	describe := e.claim
	switch subject.Kind {
	case clusterread.KindPod:
		describe = e.pod
	case clusterread.KindWorkload:
		describe = func(report *Report) error { return e.workload(report, subject.WorkloadKind) }
	}
	if err := describe(report); err != nil {
		return report, err
	}
	report.Bugs = knownBugs(&facts, report)
	return report, nil
}

// explainer fills in a report by one builder for each of its parts.
type explainer struct{ facts *clusterread.Facts }

// claim describes one claim and the pods that use it.
func (e explainer) claim(report *Report) error {
	ref := dra.ClaimRef{Namespace: report.Namespace, Name: report.Name}
	lifecycle, ok := e.facts.Objects.Claims[ref]
	if !ok {
		return absent(e.facts, clusterread.Subject{Kind: clusterread.KindClaim, Namespace: ref.Namespace, Name: ref.Name})
	}
	for _, pending := range e.facts.Pending {
		if pending.Pod.Namespace == ref.Namespace && pending.Claim == ref.Name {
			report.Pending = merge(report.Pending, e.pending(pending), true)
		}
	}
	users := e.facts.Objects.Users(ref)
	for _, user := range users {
		report.Pods = append(report.Pods, podBuilder(e).build(user, ref.Name))
	}
	report.Claims = []Claim{claimBuilder(e).build(lifecycle, users)}
	report.State = report.Claims[0].State
	report.events = e.events(users)
	report.Domains = listDomains(e.facts.Objects, users)
	summarizer(e).claim(report, lifecycle)
	return nil
}

// pod describes one pod, its pending references and its claims.
func (e explainer) pod(report *Report) error {
	ref := dra.PodRef{Namespace: report.Namespace, Name: report.Name}
	lifecycle, ok := e.facts.Objects.Pods[ref]
	if !ok {
		return absent(e.facts, clusterread.Subject{Kind: clusterread.KindPod, Namespace: ref.Namespace, Name: ref.Name})
	}
	for _, pending := range e.facts.Pending {
		if pending.Pod == ref && pending.PodUID == lifecycle.UID {
			report.Pending = append(report.Pending, e.pending(pending))
		}
	}
	position := func(r PendingRef) int {
		if i := slices.IndexFunc(lifecycle.Claims, func(claim dra.PodClaim) bool { return claim.Name == r.PodClaim }); i >= 0 {
			return i
		}
		return len(lifecycle.Claims) // requests of extended resources come last
	}
	slices.SortStableFunc(report.Pending, func(x, y PendingRef) int { return position(x) - position(y) })
	for _, reference := range lifecycle.Claims {
		name := e.facts.Objects.ClaimName(lifecycle, reference)
		if claim, ok := e.facts.Objects.Claims[dra.ClaimRef{Namespace: ref.Namespace, Name: name}]; ok {
			report.Claims = append(report.Claims, claimBuilder(e).build(claim, e.facts.Objects.Users(claim.Ref)))
		}
	}
	report.Pods = []Pod{podBuilder(e).build(lifecycle, "")}
	report.State = report.Pods[0].State
	report.events = e.events([]*dra.PodLifecycle{lifecycle})
	report.Domains = listDomains(e.facts.Objects, []*dra.PodLifecycle{lifecycle})
	summarizer(e).pod(report, lifecycle)
	return nil
}

// pending describes one reference and what would help it.
func (e explainer) pending(w cluster.PendingRef) PendingRef {
	builder := pendingBuilder(e)
	w = builder.withoutGuess(w)
	ref := builder.build(w)
	ref.Help = adviser(e).advise(w, &ref)
	return ref
}

// merge adds a pending reference to those of other pods that are pending for the same
// reason with the same evidence, and for the same claim if that counts.
func merge(all []PendingRef, ref PendingRef, byClaim bool) []PendingRef {
	for i := range all {
		if (!byClaim || all[i].Claim == ref.Claim) && all[i].Reason == ref.Reason && all[i].Message == ref.Message {
			all[i].Pods = append(all[i].Pods, ref.Pods...)
			if ref.Since.Before(all[i].Since) {
				all[i].Since = ref.Since
			}
			return all
		}
	}
	return append(all, ref)
}

// events returns what events report about the preparation of the pods' claims, while
// these have not started, the newest first. What reports a claim that could not be
// created is in the message of its reference.
func (e explainer) events(pods []*dra.PodLifecycle) []failureEvent {
	var all []failureEvent
	for _, warning := range e.facts.Objects.Warnings {
		i := slices.IndexFunc(pods, func(pod *dra.PodLifecycle) bool {
			return pod.Ref == warning.Pod && (warning.PodUID == "" || warning.PodUID == pod.UID)
		})
		if i < 0 || warning.Kind != dra.WarningPreparation || !pods[i].Started.IsZero() || pods[i].Terminal {
			continue
		}
		all = append(all, failureEvent{"kubelet", max(warning.Count, 1), warning.Last.UTC(), warning.Message})
	}
	slices.SortFunc(all, func(a, b failureEvent) int {
		return cmp.Or(b.last.Compare(a.last), cmp.Compare(a.message, b.message))
	})
	return all
}

// Supposed explains why a pod that does not exist would be pending; nil if its devices
// could be allocated.
func Supposed(facts clusterread.Facts, subject clusterread.Subject) (*clusterread.Shortage, error) {
	report, err := Explain(facts, subject)
	if err != nil {
		return nil, err
	}
	for i := range report.Pending {
		ref := &report.Pending[i]
		if ref.Reason == string(dra.ReasonOther) || ref.Reason == "" {
			continue // its devices could be allocated, but not those of another claim
		}
		answer := report.Answer()
		return &clusterread.Shortage{
			Reason: ref.Reason, Meaning: ref.Meaning, Message: ref.Message, Remedies: answer.Remedies,
			Evidence: slices.DeleteFunc(answer.Evidence, func(fact words.Fact) bool { return fact.Label == "not read" || fact.Label == "reason" }),
		}, nil
	}
	return nil, nil
}
