package decode

import (
	"cmp"

	corev1 "k8s.io/api/core/v1"

	"github.com/dra-exporter/dra-exporter/collector/dra"
)

// The reasons of events by which autoscalers report on a pod: Cluster Autoscaler
// (kubernetes/autoscaler, cluster-autoscaler/processors/status), and Karpenter
// (kubernetes-sigs/karpenter, pkg/controllers/provisioning/scheduling/events.go).
const (
	ReasonScaleUp   = "TriggeredScaleUp"
	ReasonNoScaleUp = "NotTriggerScaleUp"
	ReasonNominated = "Nominated"

	// ReasonFailedScheduling is also the scheduler's: only Karpenter's events count.
	ReasonFailedScheduling = "FailedScheduling"
)

// KarpenterSources are the components as which Karpenter writes events: its own name,
// and that of EKS Auto Mode.
func KarpenterSources() []string { return []string{"karpenter", "eks-auto-mode/compute"} }

// Autoscaling returns what an autoscaler reports of a pod, and false for another event.
func Autoscaling(event *corev1.Event) (dra.Autoscaling, bool) {
	decoded := dra.Autoscaling{
		Name:    Text(event.Namespace + "/" + event.Name),
		Pod:     dra.PodRef{Namespace: shortText(event.InvolvedObject.Namespace, maxName), Name: shortText(event.InvolvedObject.Name, maxName)},
		PodUID:  shortText(string(event.InvolvedObject.UID), maxUID),
		Message: shortText(event.Message, maxMessage),
		Last:    lastSeen(event),
	}
	karpenter := false
	for _, name := range KarpenterSources() {
		karpenter = karpenter || cmp.Or(event.Source.Component, event.ReportingController) == name
	}
	switch event.Reason {
	case ReasonScaleUp:
		decoded.Autoscaler, decoded.State = dra.ClusterAutoscaler, dra.AutoscalingScaleUp
	case ReasonNoScaleUp:
		decoded.Autoscaler, decoded.State = dra.ClusterAutoscaler, dra.AutoscalingDeclined
	case ReasonNominated:
		decoded.Autoscaler, decoded.State = dra.Karpenter, dra.AutoscalingScaleUp
	case ReasonFailedScheduling:
		if !karpenter {
			return dra.Autoscaling{}, false
		}
		decoded.Autoscaler, decoded.State = dra.Karpenter, dra.AutoscalingDeclined
	default:
		return dra.Autoscaling{}, false
	}
	return decoded, event.InvolvedObject.Kind == "Pod"
}
