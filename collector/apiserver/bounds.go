package apiserver

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	resourcev1 "k8s.io/api/resource/v1"
)

// Limits of what is kept of one object, where whoever may create the object
// decides how much of it there is. Beyond them objects are read as if they had
// no more.
const (
	maxName       = 253  // bytes of a name that the API server does not check: the longest that one can have
	maxUID        = 128  // bytes of a UID in a reference to another object; those of Kubernetes have 36
	maxMessage    = 4096 // bytes of what a scheduler, controller or kubelet wrote
	maxClasses    = 8    // device classes of one claim
	maxFinalizers = 16   // of one claim
	maxReferences = 64   // references to claims of one pod, or group of pods, in the cluster role
	maxExtended   = 16   // extended resources of one pod, in the cluster role

	// In the node role, whose pods are as many as the kubelet runs.
	maxNodeReferences = 256 // references to claims of one pod
	maxContainers     = 512 // containers of one pod, of init containers and others each
)

// cut makes foreign text valid UTF-8 of at most so many bytes, and holds no
// more of it in memory.
func cut(text string, most int) string {
	if len(text) <= most {
		return clean(text)
	}
	kept := strings.ToValidUTF8(text[:most], "")
	if len(kept) == most {
		return strings.Clone(kept) // else it would hold the whole text
	}
	return kept
}

// atMost is the beginning of a list, which holds no more in memory.
func atMost[T any](all []T, most int) []T {
	if len(all) <= most {
		return all
	}
	return slices.Clone(all[:most])
}

// first is the beginning of a list that is not kept itself.
func first[T any](all []T, most int) []T { return all[:min(len(all), most)] }

// finalizersOf are a claim's finalizers. That of Kubernetes itself is among
// them if the claim has it.
func finalizersOf(claim *resourcev1.ResourceClaim) []string {
	kept := atMost(claim.Finalizers, maxFinalizers)
	if len(kept) < len(claim.Finalizers) && !slices.Contains(kept, resourcev1.Finalizer) && slices.Contains(claim.Finalizers, resourcev1.Finalizer) {
		kept[len(kept)-1] = resourcev1.Finalizer
	}
	var finalizers []string
	for _, finalizer := range kept {
		finalizers = append(finalizers, cut(finalizer, maxName+64)) // domain and name
	}
	return finalizers
}

// boundExtended leaves the extended resources of a pod that come first by
// name; those that are named by a device class before others.
func boundExtended(all map[string]int64) map[string]int64 {
	if len(all) <= maxExtended {
		return all
	}
	other := func(name string) int {
		if strings.HasPrefix(name, resourcev1.ResourceDeviceClassPrefix) {
			return 0
		}
		return 1
	}
	names := slices.SortedFunc(maps.Keys(all), func(a, b string) int {
		return cmp.Or(cmp.Compare(other(a), other(b)), cmp.Compare(a, b))
	})
	bounded := make(map[string]int64, maxExtended)
	for _, name := range names[:maxExtended] {
		bounded[strings.Clone(name)] = all[name]
	}
	return bounded
}
