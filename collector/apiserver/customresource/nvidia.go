package customresource

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// ComputeDomain is NVIDIA's object for a set of nodes whose GPUs exchange data over
// NVLink (sigs.k8s.io/dra-driver-nvidia-gpu v0.5.0, api/nvidia.com/resource/v1beta1).
// Its controller copies the daemons of ComputeDomainCliques into its status.
type ComputeDomain struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec struct {
		NumNodes int64 `json:"numNodes,omitempty"` // 0: any number
		Channel  struct {
			ResourceClaimTemplate struct {
				Name string `json:"name"`
			} `json:"resourceClaimTemplate"`
		} `json:"channel"`
	} `json:"spec"`
	Status struct {
		Status string              `json:"status,omitempty"` // ComputeDomainReady, NotReady, or empty
		Nodes  []ComputeDomainNode `json:"nodes,omitempty"`
	} `json:"status"`
}

// ComputeDomainReady is the status of a ComputeDomain, and of a node of one, that is
// ready.
const ComputeDomainReady = "Ready"

// ComputeDomainNode is a node that has joined a ComputeDomain.
type ComputeDomainNode struct {
	Name     string `json:"name"`
	CliqueID string `json:"cliqueID"` // <cluster UUID>.<clique>; empty without NVLink between nodes
	Status   string `json:"status,omitempty"`
}

// ComputeDomainList is a list of ComputeDomains.
type ComputeDomainList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []ComputeDomain `json:"items"`
}

// DeepCopyObject implements runtime.Object.
func (d *ComputeDomain) DeepCopyObject() runtime.Object {
	copied := *d
	d.ObjectMeta.DeepCopyInto(&copied.ObjectMeta)
	copied.Status.Nodes = slices.Clone(d.Status.Nodes)
	return &copied
}

// DeepCopyObject implements runtime.Object.
func (l *ComputeDomainList) DeepCopyObject() runtime.Object {
	copied := *l
	l.ListMeta.DeepCopyInto(&copied.ListMeta)
	copied.Items = nil
	for i := range l.Items {
		copied.Items = append(copied.Items, *l.Items[i].DeepCopyObject().(*ComputeDomain))
	}
	return &copied
}
