package explain

import (
	"slices"
	"strings"

	"github.com/dra-exporter/dra-exporter/internal/clusterread"

	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/internal/words"
)

// orphanHelp is the advice for reservations for pods that do not exist.
const orphanHelp = "check that kube-controller-manager runs, which removes such reservations, and its log"

// usage is which pods and other objects use a claim, or are pending for it.
type usage struct {
	pods   []string // that exist and that it is reserved for, that refer to it, or that it was made for
	others []string // PodGroups and whatever else it is reserved or was made for
	gone   bool     // it is reserved for pods none of which exists
	known  bool     // all objects that could use it have been read
}

func (u *usage) add(consumer dra.Consumer) {
	list, text := &u.others, consumerText(consumer)
	if consumer.Resource == "pods" {
		list, text = &u.pods, consumer.Name
	}
	if !slices.Contains(*list, text) {
		*list = append(*list, text)
	}
}

// empty reports whether nothing is known to use the claim or to be pending for
// it.
func (u usage) empty() bool { return len(u.pods) == 0 && len(u.others) == 0 }

// idle reports whether it is certain that nothing uses the claim, so that it can be
// deleted.
func (u usage) idle() bool { return u.known && !u.gone && u.empty() }

// text returns the users in a sentence: "pods a, b; PodGroup gang".
func (u usage) text() string {
	var parts []string
	if len(u.pods) > 0 {
		parts = append(parts, pods(u.pods))
	}
	if len(u.others) > 0 {
		parts = append(parts, words.List(u.others, 4))
	}
	return strings.Join(parts, "; ")
}

// usages finds the users of a claim, among the objects that could be read.
type usages struct{ facts *clusterread.Facts }

// of returns the users of a claim. A claim may be used by a pod that it is not
// reserved for yet, and may be reserved for other objects than pods.
func (u usages) of(lifecycle *dra.ClaimLifecycle) usage {
	found := usage{gone: u.orphaned(lifecycle), known: u.known(lifecycle)}
	if !found.gone {
		for _, consumer := range lifecycle.ReservedFor {
			found.add(consumer)
		}
	}
	for _, pod := range u.facts.Objects.Users(lifecycle.Ref) {
		found.add(dra.Consumer{Resource: "pods", Name: pod.Ref.Name})
	}
	owner, ref := lifecycle.MadeFor, dra.PodRef{Namespace: lifecycle.Ref.Namespace, Name: lifecycle.MadeFor.Name}
	switch owner.Resource {
	case "":
	case "pods":
		if pod, ok := u.facts.Objects.Pods[ref]; ok && pod.UID == owner.UID && !pod.Terminal {
			found.add(owner)
		}
	case "podgroups":
		if group, ok := u.facts.Objects.Groups[ref]; ok && group.UID == owner.UID {
			found.add(owner)
		}
	default:
		found.add(owner) // objects of other kinds are not read
	}
	return found
}

// known reports whether everything that could use the claim has been read.
func (u usages) known(lifecycle *dra.ClaimLifecycle) bool {
	gaps, namespace := u.facts.Gaps, lifecycle.Ref.Namespace
	return gaps.See(clusterread.SourcePods, namespace) && (lifecycle.MadeFor.Resource != "podgroups" || gaps.See(clusterread.SourceGroups, namespace))
}

// orphaned reports whether the claim is reserved for pods none of which exists.
// It is false if the pods could not be read.
func (u usages) orphaned(lifecycle *dra.ClaimLifecycle) bool {
	if !u.facts.Gaps.See(clusterread.SourcePods, lifecycle.Ref.Namespace) || len(lifecycle.ReservedFor) == 0 {
		return false
	}
	return !slices.ContainsFunc(lifecycle.ReservedFor, func(consumer dra.Consumer) bool {
		if consumer.Resource != "pods" {
			return true
		}
		pod, ok := u.facts.Objects.Pods[dra.PodRef{Namespace: lifecycle.Ref.Namespace, Name: consumer.Name}]
		return ok && pod.UID == consumer.UID
	})
}
