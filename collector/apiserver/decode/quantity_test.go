package decode

import (
	"reflect"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// huge are quantities that Kubernetes accepts.
func huge() []resource.Quantity {
	return []resource.Quantity{resource.MustParse("1e2147483647"), resource.MustParse("1e40"), resource.MustParse("15e400")}
}

// fillQuantities sets each quantity within a value, of lists and maps one, to the same.
func fillQuantities(of reflect.Value, with resource.Quantity, depth int) {
	if quantity, ok := of.Addr().Interface().(*resource.Quantity); ok {
		*quantity = with
		return
	}
	if depth > 20 {
		return
	}
	switch of.Kind() {
	case reflect.Pointer:
		of.Set(reflect.New(of.Type().Elem()))
		fillQuantities(of.Elem(), with, depth+1)
	case reflect.Slice:
		of.Set(reflect.MakeSlice(of.Type(), 1, 1))
		fillQuantities(of.Index(0), with, depth+1)
	case reflect.Map:
		value := reflect.New(of.Type().Elem()).Elem()
		fillQuantities(value, with, depth+1)
		of.Set(reflect.MakeMap(of.Type()))
		of.SetMapIndex(reflect.Zero(of.Type().Key()), value)
	case reflect.Struct:
		for i := range of.NumField() {
			if of.Field(i).CanSet() {
				fillQuantities(of.Field(i), with, depth+1)
			}
		}
	}
}

// eachQuantity calls yield with the path of each quantity within a value.
func eachQuantity(of reflect.Value, path string, yield func(path string, quantity resource.Quantity)) {
	if quantity, ok := of.Interface().(resource.Quantity); ok {
		yield(path, quantity)
		return
	}
	switch of.Kind() {
	case reflect.Pointer:
		if !of.IsNil() {
			eachQuantity(of.Elem(), path, yield)
		}
	case reflect.Slice:
		for i := range of.Len() {
			eachQuantity(of.Index(i), path, yield)
		}
	case reflect.Map:
		for _, key := range of.MapKeys() {
			eachQuantity(of.MapIndex(key), path, yield)
		}
	case reflect.Struct:
		for i := range of.NumField() {
			if field := of.Type().Field(i); field.IsExported() {
				eachQuantity(of.Field(i), path+"."+field.Name, yield)
			}
		}
	}
}

// No quantity with which anything is computed is left too large, in any field of the
// API's types.
func TestLimitQuantities(t *testing.T) {
	unused := map[string]bool{ // nothing is computed with them
		".Spec.Volumes.VolumeSource.EmptyDir.SizeLimit":                                             true,
		".Spec.Volumes.VolumeSource.Ephemeral.VolumeClaimTemplate.Spec.Resources.Limits":            true,
		".Spec.Volumes.VolumeSource.Ephemeral.VolumeClaimTemplate.Spec.Resources.Requests":          true,
		".Spec.EphemeralContainers.EphemeralContainerCommon.Resources.Limits":                       true,
		".Spec.EphemeralContainers.EphemeralContainerCommon.Resources.Requests":                     true,
		".Spec.Volumes.VolumeSource.DownwardAPI.Items.ResourceFieldRef.Divisor":                     true,
		".Spec.Volumes.VolumeSource.Projected.Sources.DownwardAPI.Items.ResourceFieldRef.Divisor":   true,
		".Spec.InitContainers.Env.ValueFrom.ResourceFieldRef.Divisor":                               true,
		".Spec.Containers.Env.ValueFrom.ResourceFieldRef.Divisor":                                   true,
		".Spec.EphemeralContainers.EphemeralContainerCommon.Env.ValueFrom.ResourceFieldRef.Divisor": true,
		".Status.EphemeralContainerStatuses.AllocatedResources":                                     true,
		".Status.EphemeralContainerStatuses.Resources.Limits":                                       true,
		".Status.EphemeralContainerStatuses.Resources.Requests":                                     true,
	}
	for _, with := range huge() {
		for _, object := range []any{&corev1.Pod{}, &corev1.Node{}, &resourcev1.ResourceClaim{}, &resourcev1.ResourceClaimTemplate{}, &resourcev1.ResourceSlice{}} {
			fillQuantities(reflect.ValueOf(object).Elem(), with, 0)
			LimitQuantities(object)
			count := 0
			eachQuantity(reflect.ValueOf(object).Elem(), "", func(path string, quantity resource.Quantity) {
				if count++; quantity.AsApproximateFloat64() > maxCapacity && !unused[path] {
					t.Errorf("%T%s is %s", object, path, quantity.String())
				}
			})
			if count == 0 {
				t.Errorf("%T has no quantities", object)
			}
		}
	}
}

// Requests that exceed an int64 are not taken for nothing.
func TestRequestsBeyondNumbers(t *testing.T) {
	for _, text := range []string{"1e19", "9223372036854775808", "1e2147483647", "8Ei"} {
		amount := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(text), corev1.ResourceMemory: resource.MustParse(text), "example.com/gpu": resource.MustParse(text)}
		pod := &corev1.Pod{Spec: corev1.PodSpec{NodeName: "n", Containers: make([]corev1.Container, 20)}}
		for i := range pod.Spec.Containers {
			pod.Spec.Containers[i].Resources.Requests = amount.DeepCopy()
		}
		LimitQuantities(pod)
		if got := PodRequests(pod); got.CPU != maxAmount || got.Memory != maxAmount {
			t.Errorf("%s: %+v", text, got)
		}
		if got := extendedRequests(pod); got["example.com/gpu"] != maxAmount {
			t.Errorf("%s: %v", text, got)
		}
	}
	ordinary := resource.MustParse("1500m")
	if got := Whole(&ordinary, resource.Milli); got != 1500 {
		t.Errorf("got %d", got)
	}
}
