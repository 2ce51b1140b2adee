package apiserver

import (
	"time"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dra-exporter/dra-exporter/collector/dra"
)

// bindingOf judges the binding conditions of an allocated claim (KEP-5007) as
// the scheduler does, which decides when the pod is bound: failure conditions
// count only of devices that have binding conditions, and neither the
// generation that a condition was observed at nor the share of the device is
// looked at. since is when it came to be done, or failed, and may be unknown.
func bindingOf(claim *resourcev1.ResourceClaim) (binding dra.Binding, since time.Time) {
	var waiting, failed bool
	var done, failure time.Time
	results := claim.Status.Allocation.Devices.Results
	for i := range results {
		if len(results[i].BindingConditions) == 0 {
			continue
		}
		binding = dra.BindingDone
		conditions := conditionsOf(claim, &results[i])
		for _, awaited := range results[i].BindingConditions {
			at, fulfilled := trueSince(conditions, awaited)
			waiting = waiting || !fulfilled
			done = later(done, at)
		}
		for _, feared := range results[i].BindingFailureConditions {
			if at, happened := trueSince(conditions, feared); happened {
				if !failed || at.Before(failure) {
					failure = at
				}
				failed = true
			}
		}
	}
	switch {
	case failed:
		return dra.BindingFailed, failure
	case waiting:
		return dra.BindingWaiting, time.Time{}
	default:
		return binding, done
	}
}

// trueSince is when a condition became true; not, if it is not.
func trueSince(conditions []metav1.Condition, kind string) (since time.Time, is bool) {
	condition := meta.FindStatusCondition(conditions, kind)
	if condition == nil || condition.Status != metav1.ConditionTrue {
		return time.Time{}, false
	}
	return instant(condition.LastTransitionTime), true
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// conditionsOf are those that the driver wrote of a device.
func conditionsOf(claim *resourcev1.ResourceClaim, device *resourcev1.DeviceRequestAllocationResult) []metav1.Condition {
	for i := range claim.Status.Devices {
		status := &claim.Status.Devices[i]
		if status.Driver == device.Driver && status.Pool == device.Pool && status.Device == device.Device {
			return status.Conditions
		}
	}
	return nil
}
