package decode

import (
	"slices"
	"strings"
)

// Limits of the kept part of one object, for fields whose size is set by the
// creator of the object. The excess is ignored.
const (
	maxName        = 253  // bytes of a name that the API server does not check: the longest that one can have
	maxUID         = 128  // bytes of a UID in a reference to another object; those of Kubernetes have 36
	maxMessage     = 4096 // bytes of a message of a scheduler, controller or kubelet
	maxHealth      = 1024 // bytes of a message about a device's health: what the kubelet truncates it to
	maxClasses     = 8    // device classes of one claim
	maxFinalizers  = 16   // of one claim
	maxReferences  = 64   // references to claims of one pod, or group of pods, in the cluster role
	maxAllocatable = 16   // resources of a node that one claim of a pod takes
	maxExtended    = 16   // extended resources of one pod, in the cluster role

	// In the node role, whose pods are as many as the kubelet runs.
	maxNodeReferences = 256 // references to claims of one pod
	maxContainers     = 512 // containers of one pod, of init containers and others each
)

// Text returns valid UTF-8: protobuf bodies are not checked for it, and label
// values must be. Text that is valid is not copied.
func Text(text string) string { return strings.ToValidUTF8(text, "\uFFFD") }

// OptionalText returns the text behind a pointer, empty for nil.
func OptionalText(text *string) string {
	if text == nil {
		return ""
	}
	return Text(*text)
}

// shortText returns valid UTF-8 of at most so many bytes of text that is
// already valid, and does not retain the rest in memory.
func shortText(text string, most int) string {
	if len(text) <= most {
		return Text(text)
	}
	kept := strings.ToValidUTF8(text[:most], "")
	if len(kept) == most {
		return strings.Clone(kept) // a substring would retain the whole text
	}
	return kept
}

// atMost returns the beginning of a list and does not retain the rest in memory.
func atMost[T any](all []T, most int) []T {
	if len(all) <= most {
		return all
	}
	return slices.Clone(all[:most])
}

// first returns the beginning of a list that is not kept itself.
func first[T any](all []T, most int) []T { return all[:min(len(all), most)] }
