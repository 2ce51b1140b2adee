package apiserver

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// TestPodRequests follows what pods take of a node: pods with and without claims, that
// change, finish and are deleted.
func TestPodRequests(t *testing.T) {
	f := startClusterTest(t, nil)
	plain := func(name, cpu string) *corev1.Pod {
		pod := &corev1.Pod{}
		pod.Namespace, pod.Name, pod.UID = "lab", name, "uid"
		pod.Spec.NodeName = "node-a"
		pod.Spec.Containers = []corev1.Container{{Name: "c"}}
		pod.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}
		return pod
	}
	expect := func(what string, cpu int64, pods int) {
		t.Helper()
		f.until(what, func() bool {
			gotCPU, gotPods := f.keeper.taken("node-a")
			return gotCPU == cpu && gotPods == pods
		})
	}
	f.put(plain("a", "1500m"))
	expect("a pod without claims is counted", 1500, 1)
	claimed := podWithClaim("b", "uid-b", "gpu")
	claimed.Spec.NodeName = "node-a"
	claimed.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2")}
	f.put(claimed)
	expect("and one with claims", 3500, 2)
	f.put(plain("a", "500m"))
	expect("a change is counted", 2500, 2)
	finished := claimed.DeepCopy()
	finished.Status.Phase = corev1.PodSucceeded
	f.put(finished)
	expect("a finished pod takes nothing", 500, 1)
	unbound := plain("c", "3")
	unbound.Spec.NodeName = ""
	f.put(unbound)
	if err := f.server.Delete(plain("a", "1")); err != nil {
		t.Fatal(err)
	}
	expect("nor do pods that are deleted, or not bound", 0, 0)
}
