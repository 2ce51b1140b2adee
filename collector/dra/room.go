package dra

// PodRequests is what a pod takes of its node besides devices.
type PodRequests struct {
	Node   string // empty until bound
	CPU    int64  // millicores
	Memory int64  // bytes

	User *ClaimUser // of a pod that uses claims; nil: it uses none
}

// ClaimUser is a pod that uses claims. It is immutable.
type ClaimUser struct {
	Pod         PodRef
	Tolerations []Toleration
}

// Toleration is a toleration of node taints, as Kubernetes has it. An empty operator
// is Equal, an empty key with Exists tolerates every taint, and an empty effect is
// every effect.
type Toleration struct{ Key, Operator, Value, Effect string }
