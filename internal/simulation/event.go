package simulation

import (
	"fmt"
	"hash/fnv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// newEvent is a warning about a pod. Its name follows from the pod and the
// reason, so that the same is told of again by one event.
func newEvent(pod *corev1.Pod, reason, component, message string, at time.Time) *corev1.Event {
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(string(pod.UID) + reason)) // never fails
	return &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: pod.Namespace, Name: fmt.Sprintf("%s.%016x", pod.Name, hash.Sum64()), CreationTimestamp: metav1.NewTime(at),
		},
		InvolvedObject: corev1.ObjectReference{Kind: "Pod", APIVersion: "v1", Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID},
		Type:           corev1.EventTypeWarning, Reason: reason, Message: message,
		Source: corev1.EventSource{Component: component}, ReportingController: component,
		Count: 1, FirstTimestamp: metav1.NewTime(at), LastTimestamp: metav1.NewTime(at),
	}
}
