package customresource

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// PodGroup is the object of Volcano (volcano.sh/apis v1.15,
// pkg/apis/scheduling/v1beta1), or of KAI (NVIDIA/KAI-Scheduler,
// pkg/apis/scheduling/v2alpha2), for pods that its scheduler places at once. That of
// Kubernetes is another one.
type PodGroup struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec struct {
		MinMember int32 `json:"minMember,omitempty"`
	} `json:"spec"`
	Status struct {
		Conditions           []PodGroupCondition `json:"conditions,omitempty"`
		SchedulingConditions []PodGroupCondition `json:"schedulingConditions,omitempty"` // of KAI, one for each node pool
	} `json:"status"`
}

// PodGroupCondition is a condition of a PodGroup.
type PodGroupCondition struct {
	Type    string                 `json:"type,omitempty"`
	Status  metav1.ConditionStatus `json:"status,omitempty"`
	Message string                 `json:"message,omitempty"`
}

// The types of the conditions of a PodGroup that could not be placed: of Volcano, and
// of KAI.
const (
	VolcanoUnschedulable = "Unschedulable"
	KAIUnschedulable     = "UnschedulableOnNodePool"
)

// PodGroupList is a list of PodGroups.
type PodGroupList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []PodGroup `json:"items"`
}

// DeepCopyObject implements runtime.Object.
func (g *PodGroup) DeepCopyObject() runtime.Object {
	copied := *g
	g.ObjectMeta.DeepCopyInto(&copied.ObjectMeta)
	copied.Status.Conditions = slices.Clone(g.Status.Conditions)
	copied.Status.SchedulingConditions = slices.Clone(g.Status.SchedulingConditions)
	return &copied
}

// DeepCopyObject implements runtime.Object.
func (l *PodGroupList) DeepCopyObject() runtime.Object {
	copied := *l
	l.ListMeta.DeepCopyInto(&copied.ListMeta)
	copied.Items = nil
	for i := range l.Items {
		copied.Items = append(copied.Items, *l.Items[i].DeepCopyObject().(*PodGroup))
	}
	return &copied
}
