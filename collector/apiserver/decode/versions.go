package decode

import (
	"slices"
	"strings"

	resourcev1 "k8s.io/api/resource/v1"
	resourcev1alpha3 "k8s.io/api/resource/v1alpha3"
	resourcev1beta2 "k8s.io/api/resource/v1beta2"
	schedulingv1alpha3 "k8s.io/api/scheduling/v1alpha3"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TaintRule converts a DeviceTaintRule of v1beta2 (Kubernetes 1.36) or v1alpha3
// (before) to v1. The result is false for another object, and for a rule that
// cannot be expressed in v1.
func TaintRule(object any) (*resourcev1.DeviceTaintRule, bool) {
	switch rule := object.(type) {
	case *resourcev1beta2.DeviceTaintRule:
		taint := rule.Spec.Taint
		return &resourcev1.DeviceTaintRule{ObjectMeta: rule.ObjectMeta, Spec: resourcev1.DeviceTaintRuleSpec{
			DeviceSelector: (*resourcev1.DeviceTaintSelector)(rule.Spec.DeviceSelector),
			Taint:          resourcev1.DeviceTaint{Key: taint.Key, Value: taint.Value, Effect: resourcev1.DeviceTaintEffect(taint.Effect), TimeAdded: taint.TimeAdded},
		}, Status: resourcev1.DeviceTaintRuleStatus(rule.Status)}, true
	case *resourcev1alpha3.DeviceTaintRule:
		taint := rule.Spec.Taint
		return &resourcev1.DeviceTaintRule{ObjectMeta: rule.ObjectMeta, Spec: resourcev1.DeviceTaintRuleSpec{
			DeviceSelector: (*resourcev1.DeviceTaintSelector)(rule.Spec.DeviceSelector),
			Taint:          resourcev1.DeviceTaint{Key: taint.Key, Value: taint.Value, Effect: resourcev1.DeviceTaintEffect(taint.Effect), TimeAdded: taint.TimeAdded},
		}, Status: resourcev1.DeviceTaintRuleStatus(rule.Status)}, !selectsByClass(rule)
	default:
		return nil, false
	}
}

// selectsByClass reports whether a rule selects by class or by CEL, which
// v1alpha3 could until Kubernetes 1.34. Its type no longer has these fields, so
// that without them the rule would seem to taint more than it does. The managed
// fields show that they are set.
func selectsByClass(rule *resourcev1alpha3.DeviceTaintRule) bool {
	return slices.ContainsFunc(rule.ManagedFields, func(managed metav1.ManagedFieldsEntry) bool {
		if managed.FieldsV1 == nil {
			return false
		}
		fields := managed.FieldsV1.GetRawString()
		return strings.Contains(fields, `"f:deviceClassName"`) || strings.Contains(fields, `"f:selectors"`)
	})
}

// PodGroup converts what Group reads of a PodGroup of v1alpha3 or v1alpha2 to v1beta1. The
// result is false for another object.
func PodGroup(object any) (*schedulingv1beta1.PodGroup, bool) {
	group, ok := object.(*schedulingv1alpha3.PodGroup)
	if !ok {
		return nil, false
	}
	converted := &schedulingv1beta1.PodGroup{ObjectMeta: group.ObjectMeta}
	for _, claim := range group.Spec.ResourceClaims {
		converted.Spec.ResourceClaims = append(converted.Spec.ResourceClaims, schedulingv1beta1.PodGroupResourceClaim(claim))
	}
	for _, status := range group.Status.ResourceClaimStatuses {
		converted.Status.ResourceClaimStatuses = append(converted.Status.ResourceClaimStatuses, schedulingv1beta1.PodGroupResourceClaimStatus(status))
	}
	if gang := group.Spec.SchedulingPolicy.Gang; gang != nil {
		converted.Spec.SchedulingPolicy.Gang = &schedulingv1beta1.GangSchedulingPolicy{MinCount: gang.MinCount}
	}
	converted.Status.Conditions = group.Status.Conditions
	return converted, true
}
