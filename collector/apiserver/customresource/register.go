package customresource

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// KueueV1beta2 is the version of Kueue's API since its version 0.15.
func KueueV1beta2() schema.GroupVersion {
	return schema.GroupVersion{Group: "kueue.x-k8s.io", Version: "v1beta2"}
}

// KueueV1beta1 is the version of Kueue's API before. What is read is the same.
func KueueV1beta1() schema.GroupVersion {
	return schema.GroupVersion{Group: "kueue.x-k8s.io", Version: "v1beta1"}
}

// NVIDIAV1beta1 is the version of the API of NVIDIA's DRA driver.
func NVIDIAV1beta1() schema.GroupVersion {
	return schema.GroupVersion{Group: "resource.nvidia.com", Version: "v1beta1"}
}

// Groups are the versions of the APIs, each with what registers its types.
func Groups() map[schema.GroupVersion]func(*runtime.Scheme) error {
	return map[schema.GroupVersion]func(*runtime.Scheme) error{
		KueueV1beta2():  register(KueueV1beta2(), &Workload{}, &WorkloadList{}),
		KueueV1beta1():  register(KueueV1beta1(), &Workload{}, &WorkloadList{}),
		NVIDIAV1beta1(): register(NVIDIAV1beta1(), &ComputeDomain{}, &ComputeDomainList{}),
	}
}

func register(group schema.GroupVersion, types ...runtime.Object) func(*runtime.Scheme) error {
	return func(scheme *runtime.Scheme) error {
		scheme.AddKnownTypes(group, types...)
		metav1.AddToGroupVersion(scheme, group)
		return nil
	}
}
