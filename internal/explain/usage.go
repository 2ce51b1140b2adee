package explain

import (
	"slices"
	"strings"

	"github.com/dra-exporter/dra-exporter/collector/dra"
)

// usage is who has a claim, or waits for it.
type usage struct {
	pods   []string // that exist and that it is reserved for, that refer to it, or that it was made for
	others []string // PodGroups and whatever else it is reserved or was made for
	gone   bool     // it is reserved for pods none of which exists
	known  bool     // whoever could use it could be read
}

// usage finds who uses a claim. A pod may have a claim without its being
// reserved for it yet, and a claim may be reserved for what is no pod.
func (a account) usage(life *dra.ClaimLife) usage {
	found := usage{gone: a.orphaned(life), known: a.seesUsers(life)}
	if !found.gone {
		for _, consumer := range life.ReservedFor {
			found.add(consumer)
		}
	}
	for _, pod := range a.facts.World.users(life.Ref) {
		found.add(dra.Consumer{Resource: "pods", Name: pod.Ref.Name})
	}
	owner, ref := life.MadeFor, dra.PodRef{Namespace: life.Ref.Namespace, Name: life.MadeFor.Name}
	switch owner.Resource {
	case "":
	case "pods":
		if pod, exists := a.facts.World.pods[ref]; exists && pod.UID == owner.UID && !pod.Terminal {
			found.add(owner)
		}
	case "podgroups":
		if group, exists := a.facts.World.groups[ref]; exists && group.UID == owner.UID {
			found.add(owner)
		}
	default:
		found.add(owner) // nobody looks whether it exists
	}
	return found
}

// seesUsers reports whether all could be read that might use the claim.
func (a account) seesUsers(life *dra.ClaimLife) bool {
	gaps, namespace := a.facts.Gaps, life.Ref.Namespace
	return gaps.sees(sourcePods, namespace) && (life.MadeFor.Resource != "podgroups" || gaps.sees(sourceGroups, namespace))
}

func (u *usage) add(consumer dra.Consumer) {
	to, text := &u.others, consumerText(consumer)
	if consumer.Resource == "pods" {
		to, text = &u.pods, consumer.Name
	}
	if !slices.Contains(*to, text) {
		*to = append(*to, text)
	}
}

// nobody reports whether none is known to use the claim or to wait for it.
func (u usage) nobody() bool { return len(u.pods) == 0 && len(u.others) == 0 }

// idle reports whether nobody uses the claim, for sure: only then it can be
// deleted without asking anybody.
func (u usage) idle() bool { return u.known && !u.gone && u.nobody() }

// text names the users in a sentence: "pods a, b; PodGroup gang".
func (u usage) text() string {
	var parts []string
	if len(u.pods) > 0 {
		parts = append(parts, pods(u.pods))
	}
	if len(u.others) > 0 {
		parts = append(parts, some(u.others, 4))
	}
	return strings.Join(parts, "; ")
}

// orphaned reports whether the claim is reserved for pods none of which
// exists. Without the pods nobody knows.
func (a account) orphaned(life *dra.ClaimLife) bool {
	if !a.facts.Gaps.sees(sourcePods, life.Ref.Namespace) || len(life.ReservedFor) == 0 {
		return false
	}
	return !slices.ContainsFunc(life.ReservedFor, func(consumer dra.Consumer) bool {
		if consumer.Resource != "pods" {
			return true
		}
		pod, found := a.facts.World.pods[dra.PodRef{Namespace: life.Ref.Namespace, Name: consumer.Name}]
		return found && pod.UID == consumer.UID
	})
}
