package dra

import "time"

// Autoscaling is a Kubernetes event by which a node autoscaler reports what it does about
// a pod that cannot be scheduled.
type Autoscaling struct {
	Name       string // namespace/name of the Event object
	Pod        PodRef
	PodUID     string
	Autoscaler Autoscaler
	State      AutoscalingState
	Message    string
	Last       time.Time // of the last occurrence
}

// Autoscaler is a program that adds nodes.
type Autoscaler string

// The autoscalers whose events are read.
const (
	ClusterAutoscaler Autoscaler = "cluster_autoscaler"
	Karpenter         Autoscaler = "karpenter" // also as part of EKS Auto Mode
)

// Title is what people call the autoscaler.
func (a Autoscaler) Title() string {
	if a == Karpenter {
		return "Karpenter"
	}
	return "Cluster Autoscaler"
}

// AutoscalingState is what an autoscaler does about a pod.
type AutoscalingState string

// The states.
const (
	AutoscalingScaleUp  AutoscalingState = "scale_up" // it adds a node, or has one for the pod
	AutoscalingDeclined AutoscalingState = "declined" // it adds none: none would help, or it may not
)
