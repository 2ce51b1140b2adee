package kubelet

import (
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	podsv1alpha1 "k8s.io/kubelet/pkg/apis/pods/v1alpha1"

	"github.com/dra-exporter/dra-exporter/collector/objectfields"
	"github.com/dra-exporter/dra-exporter/collector/source"
)

// podEvent is the kind of an event of the Pods API.
type podEvent int

const (
	podUnknown podEvent = iota
	podPresent
	podEnded
)

// sourceAnnotation is the source of a pod of the kubelet; all except "api" are
// static (pkg/kubelet/types, ConfigSourceAnnotationKey).
const sourceAnnotation = "kubernetes.io/config.source"

// The most bytes of a pod's namespace and name, and of its UID: more than the API
// server accepts and the kubelet generates.
const (
	maxName = 253
	maxUID  = 128
)

// decodeEvent decodes an event. Its pod is an encoded v1.Pod; one that has ended has
// only namespace, name and UID. A pod without a name or a UID, or with more fields
// than an object may have, is an error.
func decodeEvent(event *podsv1alpha1.WatchPodsEvent) (podEvent, *corev1.Pod, error) {
	var kind podEvent
	switch event.GetType() {
	case podsv1alpha1.EventType_ADDED, podsv1alpha1.EventType_MODIFIED:
		kind = podPresent
	case podsv1alpha1.EventType_DELETED:
		kind = podEnded
	default:
		return podUnknown, nil, nil
	}
	if objectfields.Count(event.GetPod(), objectfields.Max+1) > objectfields.Max {
		return podUnknown, nil, tooLarge("it has more than %d fields", objectfields.Max)
	}
	pod := &corev1.Pod{}
	if err := pod.Unmarshal(event.GetPod()); err != nil {
		return podUnknown, nil, fmt.Errorf("decode the bytes of a pod: %w", err)
	}
	if pod.Namespace == "" || pod.Name == "" || pod.UID == "" {
		return podUnknown, nil, errors.New("decode the bytes of a pod: it has no namespace, no name or no UID")
	}
	if len(pod.Namespace) > maxName || len(pod.Name) > maxName || len(pod.UID) > maxUID {
		return podUnknown, nil, tooLarge("its names have more than %d bytes or its UID more than %d bytes", maxName, maxUID)
	}
	return kind, pod, nil
}

func tooLarge(text string, limits ...any) error {
	return &source.Failure{Reason: source.ReasonResourceExhausted, Err: fmt.Errorf("decode the bytes of a pod: "+text, limits...)}
}

// isStatic reports whether the kubelet has the pod from a file or a URL. The UID of
// such a pod is a hash of its text: a pod that is removed and added again has the
// same one.
func isStatic(pod *corev1.Pod) bool {
	source, ok := pod.Annotations[sourceAnnotation]
	return ok && source != "api"
}
