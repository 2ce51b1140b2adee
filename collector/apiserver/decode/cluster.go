package decode

import (
	"cmp"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubeversion "k8s.io/apimachinery/pkg/util/version"

	"github.com/dra-exporter/dra-exporter/collector/dra"
)

// The reasons of the events that are watched, written by the kubelet and by the
// controller manager.
const (
	ReasonPreparation = "FailedPrepareDynamicResources"
	ReasonCreation    = "FailedResourceClaimCreation"
)

// Warning returns the failure that an event reports, and false for an event with
// another reason. The controller manager writes such events about PodGroups too:
// then Pod and PodUID are the group's.
func Warning(event *corev1.Event) (dra.Warning, bool) {
	warning := dra.Warning{
		Name:    Text(event.Namespace + "/" + event.Name),
		Pod:     dra.PodRef{Namespace: shortText(event.InvolvedObject.Namespace, maxName), Name: shortText(event.InvolvedObject.Name, maxName)},
		PodUID:  shortText(string(event.InvolvedObject.UID), maxUID),
		Message: shortText(event.Message, maxMessage),
		Count:   eventCount(event),
		Last:    lastSeen(event),
	}
	switch event.Reason {
	case ReasonPreparation:
		warning.Kind = dra.WarningPreparation
	case ReasonCreation:
		warning.Kind = dra.WarningCreation
	default:
		return dra.Warning{}, false
	}
	return warning, true
}

// eventCount returns how often the event occurred: recorders count either in the
// event or in its series, and an event without a count occurred once.
func eventCount(event *corev1.Event) int64 {
	count := max(int64(event.Count), 1)
	if event.Series != nil {
		count = max(count, int64(event.Series.Count))
	}
	return count
}

func lastSeen(event *corev1.Event) time.Time {
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

// podGroupScheduled is the condition PodGroupInitiallyScheduled in Kubernetes 1.36.
const podGroupScheduled = "PodGroupScheduled"

// Group returns the claims of a PodGroup for its pods, how many of them form a
// gang, and why the scheduler has not scheduled it. It neither keeps nor changes anything of the group.
func Group(group *schedulingv1beta1.PodGroup) dra.Group {
	decoded := dra.Group{
		Ref: dra.PodRef{Namespace: Text(group.Namespace), Name: Text(group.Name)},
		UID: Text(string(group.UID)),
	}
	if gang := group.Spec.SchedulingPolicy.Gang; gang != nil {
		decoded.MinPods = max(gang.MinCount, 0)
	}
	created, unneeded := make(map[string]string), make(map[string]bool)
	for _, status := range group.Status.ResourceClaimStatuses {
		created[status.Name], unneeded[status.Name] = OptionalText(status.ResourceClaimName), status.ResourceClaimName == nil
	}
	for _, reference := range group.Spec.ResourceClaims {
		claim := dra.PodClaim{
			Name:     Text(reference.Name),
			Template: OptionalText(reference.ResourceClaimTemplateName),
			Claim:    OptionalText(reference.ResourceClaimName),
		}
		if claim.Claim == "" {
			claim.Claim = created[reference.Name]
		}
		if claim.Claim != "" || !unneeded[reference.Name] {
			decoded.Claims = append(decoded.Claims, claim)
		}
	}
	decoded.Claims = atMost(decoded.Claims, maxReferences)
	scheduled := cmp.Or(
		meta.FindStatusCondition(group.Status.Conditions, schedulingv1beta1.PodGroupInitiallyScheduled),
		meta.FindStatusCondition(group.Status.Conditions, podGroupScheduled),
	)
	if scheduled != nil && scheduled.Status == metav1.ConditionFalse {
		decoded.Unschedulable = shortText(scheduled.Message, maxMessage)
	}
	return decoded
}

// Node returns the name of a node, the version of its kubelet, whether this reports
// ready sandboxes immediately, and the node's domains.
func Node(node *corev1.Node, topology *Topology) dra.Node {
	released, _ := dra.FindRelease(node.Labels, dra.ReleaseLabels())
	return dra.Node{
		Release:       dra.ReleaseLabel{Key: released.Key, Value: Text(released.Value)},
		Name:          Text(node.Name),
		SandboxPrompt: isSandboxPrompt(node.Status.NodeInfo.KubeletVersion),
		Kubelet:       shortText(node.Status.NodeInfo.KubeletVersion, maxName),
		Domains:       topology.domains(node),
	}
}

// isSandboxPrompt reports whether the kubelet sets PodReadyToStartContainers at
// once, as it does from 1.36 on, pre-releases included. A version that cannot be
// parsed counts as older.
func isSandboxPrompt(kubelet string) bool {
	parsed, err := kubeversion.ParseGeneric(kubelet)
	return err == nil && (parsed.Major() > 1 || parsed.Major() == 1 && parsed.Minor() >= 36)
}
