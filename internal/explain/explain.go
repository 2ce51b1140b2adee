package explain

import (
	"fmt"
	"slices"

	"github.com/dra-exporter/dra-exporter/collector/dra"
)

// Explain answers the question about the subject. It fails with a
// *NotFoundError where there is no such object, and with an *UnreadError
// where it cannot be known.
func Explain(facts Facts, subject Subject) (*Report, error) {
	report := &Report{
		APIVersion: apiVersion, Kind: subject.Kind, Namespace: subject.Namespace, Name: subject.Name, At: facts.Now.UTC(),
		Waiting: []Waiting{}, Claims: []Claim{}, Pods: []Pod{}, NotRead: []Gap{},
	}
	report.NotRead = append(report.NotRead, facts.Gaps...)
	about := account{facts: &facts, namespace: subject.Namespace}
	if subject.Kind == KindPod {
		return report, about.pod(report)
	}
	return report, about.claim(report)
}

// UnreadError says that what the answer is about could not be read.
type UnreadError struct {
	Subject Subject
	Gap     Gap
}

func (e *UnreadError) Error() string {
	text := fmt.Sprintf("cannot say anything of %s: %s could not be read", e.Subject, e.Gap.Source)
	if e.Gap.Message != "" {
		text += ": " + e.Gap.Message
	}
	return text
}

// account gathers what is known about one subject.
type account struct {
	facts     *Facts
	namespace string
}

// claim tells of one claim and of the pods that use it.
func (a account) claim(report *Report) error {
	ref := dra.ClaimRef{Namespace: report.Namespace, Name: report.Name}
	life, found := a.facts.World.claims[ref]
	if !found {
		return a.absent(Subject{KindClaim, ref.Namespace, ref.Name})
	}
	for _, waiting := range a.facts.Waiting {
		if waiting.Pod.Namespace == ref.Namespace && waiting.Claim == ref.Name {
			report.Waiting = merge(report.Waiting, a.waiting(waiting))
		}
	}
	users := a.facts.World.users(ref)
	for _, user := range users {
		report.Pods = append(report.Pods, a.podOf(user, ref.Name))
	}
	report.Claims = []Claim{a.claimOf(life, users)}
	report.State = report.Claims[0].State
	report.Summary = a.claimSummary(report, life)
	return nil
}

// pod tells of one pod, of its references that wait and of its claims.
func (a account) pod(report *Report) error {
	ref := dra.PodRef{Namespace: report.Namespace, Name: report.Name}
	life, found := a.facts.World.pods[ref]
	if !found {
		return a.absent(Subject{KindPod, ref.Namespace, ref.Name})
	}
	for _, waiting := range a.facts.Waiting {
		if waiting.Pod == ref && waiting.PodUID == life.UID {
			report.Waiting = append(report.Waiting, a.waiting(waiting))
		}
	}
	slices.SortStableFunc(report.Waiting, func(x, y Waiting) int { return place(life, x.PodClaim) - place(life, y.PodClaim) })
	for _, reference := range life.Claims {
		name := a.facts.World.claimOf(life, reference)
		if claim, known := a.facts.World.claims[dra.ClaimRef{Namespace: ref.Namespace, Name: name}]; known {
			report.Claims = append(report.Claims, a.claimOf(claim, a.facts.World.users(claim.Ref)))
		}
	}
	report.Pods = []Pod{a.podOf(life, "")}
	report.State = report.Pods[0].State
	report.Summary = a.podSummary(report, life)
	return nil
}

// place is where a reference stands in the pod's specification.
func place(pod *dra.PodLife, name string) int {
	i := slices.IndexFunc(pod.Claims, func(reference dra.PodClaim) bool { return reference.Name == name })
	if i < 0 {
		return len(pod.Claims) // requests of extended resources come last
	}
	return i
}

// merge adds a waiting reference to those of other pods that wait for the
// same claim for the same reason.
func merge(all []Waiting, one Waiting) []Waiting {
	for i := range all {
		if all[i].Claim == one.Claim && all[i].Reason == one.Reason && all[i].Message == one.Message {
			all[i].Pods = append(all[i].Pods, one.Pods...)
			if one.Since.Before(all[i].Since) {
				all[i].Since = one.Since
			}
			return all
		}
	}
	return append(all, one)
}

// absent is the error for an object that is not known.
func (a account) absent(subject Subject) error {
	name := subject.Namespace + "/" + subject.Name
	collection, known := sourceClaims, []string{}
	missing := &NotFoundError{Subject: subject}
	switch subject.Kind {
	case KindPod:
		collection = sourcePods
		for ref := range a.facts.World.pods {
			known = append(known, ref.String())
		}
	default:
		for ref := range a.facts.World.claims {
			known = append(known, ref.String())
		}
		for _, pod := range a.facts.World.users(dra.ClaimRef{Namespace: subject.Namespace, Name: subject.Name}) {
			missing.NamedBy = append(missing.NamedBy, pod.Ref.Name)
		}
	}
	for _, gap := range a.facts.Gaps {
		if gap.Source == collection && (gap.Only == "" || gap.Only != subject.Namespace) {
			return &UnreadError{Subject: subject, Gap: gap}
		}
	}
	missing.Near = near(name, known)
	return missing
}

// spec is what a reference asks for; nil where that is not known.
func (a account) spec(claim, template string) *Spec {
	if claim != "" {
		if spec, known := a.facts.Claims[dra.ClaimRef{Namespace: a.namespace, Name: claim}]; known {
			return &spec
		}
		return nil
	}
	if spec, known := a.facts.Templates[Template{a.namespace, template}]; known {
		return &spec
	}
	return nil
}
