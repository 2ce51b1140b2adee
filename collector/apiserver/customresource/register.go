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

// VolcanoV1beta1 is the version of the PodGroups of Volcano.
func VolcanoV1beta1() schema.GroupVersion {
	return schema.GroupVersion{Group: "scheduling.volcano.sh", Version: "v1beta1"}
}

// KAIV2alpha2 is the version of the PodGroups of KAI.
func KAIV2alpha2() schema.GroupVersion {
	return schema.GroupVersion{Group: "scheduling.run.ai", Version: "v2alpha2"}
}

// Groups are the versions of the APIs, each with what registers its types.
func Groups() map[schema.GroupVersion]func(*runtime.Scheme) error {
	return map[schema.GroupVersion]func(*runtime.Scheme) error{
		KueueV1beta2():   register(KueueV1beta2(), &Workload{}, &WorkloadList{}),
		KueueV1beta1():   register(KueueV1beta1(), &Workload{}, &WorkloadList{}),
		NVIDIAV1beta1():  register(NVIDIAV1beta1(), &ComputeDomain{}, &ComputeDomainList{}),
		VolcanoV1beta1(): register(VolcanoV1beta1(), &PodGroup{}, &PodGroupList{}),
		KAIV2alpha2():    register(KAIV2alpha2(), &PodGroup{}, &PodGroupList{}),
	}
}

func register(group schema.GroupVersion, types ...runtime.Object) func(*runtime.Scheme) error {
	return func(scheme *runtime.Scheme) error {
		scheme.AddKnownTypes(group, types...)
		metav1.AddToGroupVersion(scheme, group)
		return nil
	}
}
