package apiserver

import (
	"cmp"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/dra-exporter/dra-exporter/collector/dra"
)

// The reasons of the events that are read: by the kubelet, and by the
// controller manager.
const (
	reasonPreparation = "FailedPrepareDynamicResources"
	reasonCreation    = "FailedResourceClaimCreation"
)

// decodeTrouble returns what an event tells of a claim's trouble; false if it
// is of another kind. The controller manager writes such events about groups
// of pods, too: then Pod and PodUID are the group's.
func decodeTrouble(event *corev1.Event) (dra.Trouble, bool) {
	trouble := dra.Trouble{
		Name:    clean(event.Namespace + "/" + event.Name),
		Pod:     dra.PodRef{Namespace: cut(event.InvolvedObject.Namespace, maxName), Name: cut(event.InvolvedObject.Name, maxName)},
		PodUID:  cut(string(event.InvolvedObject.UID), maxUID),
		Message: cut(event.Message, maxMessage),
		Count:   countOf(event),
		Last:    lastOf(event),
	}
	switch event.Reason {
	case reasonPreparation:
		trouble.Kind = dra.TroublePreparation
	case reasonCreation:
		trouble.Kind = dra.TroubleCreation
	default:
		return dra.Trouble{}, false
	}
	return trouble, true
}

// countOf: recorders count either in the event or in its series, and an event
// that says nothing has happened once.
func countOf(event *corev1.Event) int64 {
	count := max(int64(event.Count), 1)
	if event.Series != nil {
		count = max(count, int64(event.Series.Count))
	}
	return count
}

func lastOf(event *corev1.Event) time.Time {
	series := time.Time{}
	if event.Series != nil {
		series = event.Series.LastObservedTime.Time
	}
	last := cmp.Or(series, event.LastTimestamp.Time, event.EventTime.Time, event.FirstTimestamp.Time, event.CreationTimestamp.Time)
	if last.IsZero() {
		return time.Time{}
	}
	return last.UTC().Truncate(time.Second)
}
