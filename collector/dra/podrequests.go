package dra

// PodRequests is what a pod takes of its node besides devices.
type PodRequests struct {
	Node   string // empty until bound
	CPU    int64  // millicores
	Memory int64  // bytes
	Others []Amount

	Repels []Repelled // by required anti-affinity

	User *ClaimUser // of a pod that uses claims; nil: it uses none

	// Why Cluster Autoscaler and Karpenter do not evict the pod, so that they do not
	// remove its node.
	KeptByClusterAutoscaler, KeptByKarpenter RemovalObstacle
}

// Amount is how much of a resource of a node other than CPU, memory and the number of
// pods: ephemeral storage, huge pages, what a device plugin offers.
type Amount struct {
	Resource string
	Units    int64
}

// Repelled is which pods a required anti-affinity keeps from nodes.
type Repelled struct {
	Namespace string // empty: any, because a selector of namespaces decides
	Labels    string // a selector as in a URL; empty: all
}

// Annotations and a label of nodes that decide whether an autoscaler removes them.
const (
	DoNotDisrupt      = "karpenter.sh/do-not-disrupt" // an annotation of pods, too
	ScaleDownDisabled = "cluster-autoscaler.kubernetes.io/scale-down-disabled"
	KarpenterPool     = "karpenter.sh/nodepool" // the label of nodes that Karpenter has made
)

// RemovalObstacle is what keeps an autoscaler from removing a node.
type RemovalObstacle uint8

// What keeps autoscalers from removing a node; RemovalNone: nothing does. Cluster
// Autoscaler knows all of them (its FAQ, "What types of pods can prevent CA from removing
// a node?"), Karpenter only annotations (its documentation of disruption).
const (
	RemovalNone           RemovalObstacle = iota
	RemovalNodeAnnotation                 // an annotation of the node
	RemovalPodAnnotation                  // an annotation of a pod
	RemovalNoController                   // a pod without a controller would not be created again
	RemovalLocalStorage                   // a pod has data on the node
	RemovalSystemPod                      // a pod of kube-system, unless it has a PodDisruptionBudget
	removalObstacles
)

// String returns the label value.
func (o RemovalObstacle) String() string {
	return [removalObstacles]string{"", "node_annotation", "pod_annotation", "no_controller", "local_storage", "system_pod"}[o]
}

// RemovalObstacles returns all but RemovalNone, in their order.
func RemovalObstacles() []RemovalObstacle {
	return []RemovalObstacle{RemovalNodeAnnotation, RemovalPodAnnotation, RemovalNoController, RemovalLocalStorage, RemovalSystemPod}
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
