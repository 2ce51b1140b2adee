package dra

// PodRequests is what a pod takes of its node besides devices.
type PodRequests struct {
	Pod    PodRef
	Node   string // empty until bound
	CPU    int64  // millicores
	Memory int64  // bytes

	// Claims reports whether the pod uses claims. Tolerations are those of such a pod;
	// they are shared and must not be changed.
	Claims      bool
	Tolerations []Toleration
}

// Toleration is a toleration of node taints, as Kubernetes has it. An empty operator
// is Equal, an empty key with Exists tolerates every taint, and an empty effect is
// every effect.
type Toleration struct{ Key, Operator, Value, Effect string }
