package customresource

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Workload is Kueue's object for a job, or a group of pods, that waits in a queue
// (sigs.k8s.io/kueue v0.19.2, apis/kueue/v1beta2).
type Workload struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec struct {
		PodSets   []PodSet `json:"podSets,omitempty"`
		QueueName string   `json:"queueName,omitempty"`
	} `json:"spec"`
	Status struct {
		Conditions []metav1.Condition `json:"conditions,omitempty"`
	} `json:"status"`
}

// PodSet is pods of a Workload that are alike.
type PodSet struct {
	Count    int32  `json:"count"`
	MinCount *int32 `json:"minCount,omitempty"` // of how many pods at least are admitted together; nil: Count
	Template struct {
		Spec PodSpec `json:"spec"`
	} `json:"template"`
}

// PodSpec is what the pods of a PodSet request.
type PodSpec struct {
	ResourceClaims []corev1.PodResourceClaim `json:"resourceClaims,omitempty"`
	InitContainers []Container               `json:"initContainers,omitempty"`
	Containers     []Container               `json:"containers,omitempty"`
}

// Container is what a container requests.
type Container struct {
	Resources struct {
		Requests map[corev1.ResourceName]AnyQuantity `json:"requests,omitempty"`
		Limits   map[corev1.ResourceName]AnyQuantity `json:"limits,omitempty"`
	} `json:"resources"`
}

// AnyQuantity is a quantity that is not read: what matters is that there is one.
type AnyQuantity struct{}

// UnmarshalJSON accepts any value.
func (*AnyQuantity) UnmarshalJSON([]byte) error { return nil }

// WorkloadList is a list of Workloads.
type WorkloadList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Workload `json:"items"`
}

// DeepCopyObject implements runtime.Object.
func (w *Workload) DeepCopyObject() runtime.Object {
	copied := *w
	w.ObjectMeta.DeepCopyInto(&copied.ObjectMeta)
	copied.Spec.PodSets = slices.Clone(w.Spec.PodSets)
	for i := range copied.Spec.PodSets {
		set := &copied.Spec.PodSets[i]
		if set.MinCount != nil {
			minimum := *set.MinCount
			set.MinCount = &minimum
		}
		spec := &set.Template.Spec
		spec.ResourceClaims = slices.Clone(spec.ResourceClaims)
		for j := range spec.ResourceClaims {
			spec.ResourceClaims[j] = *spec.ResourceClaims[j].DeepCopy()
		}
		spec.InitContainers, spec.Containers = cloneContainers(spec.InitContainers), cloneContainers(spec.Containers)
	}
	copied.Status.Conditions = slices.Clone(w.Status.Conditions)
	return &copied
}

func cloneContainers(all []Container) []Container {
	cloned := slices.Clone(all)
	for i := range cloned {
		resources := &cloned[i].Resources
		resources.Requests, resources.Limits = maps.Clone(resources.Requests), maps.Clone(resources.Limits)
	}
	return cloned
}

// DeepCopyObject implements runtime.Object.
func (l *WorkloadList) DeepCopyObject() runtime.Object {
	copied := *l
	l.ListMeta.DeepCopyInto(&copied.ListMeta)
	copied.Items = nil
	for i := range l.Items {
		copied.Items = append(copied.Items, *l.Items[i].DeepCopyObject().(*Workload))
	}
	return &copied
}
