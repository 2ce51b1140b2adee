package decode

import (
	"reflect"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dra-exporter/dra-exporter/collector/dra"
)

// TestRemovalObstacles: which pods Cluster Autoscaler and Karpenter do not evict.
func TestRemovalObstacles(t *testing.T) {
	owned := func(kind string) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.OwnerReferences = []metav1.OwnerReference{{Kind: kind, Name: "o", Controller: new(true)}}
		}
	}
	annotated := func(key, value string) func(*corev1.Pod) {
		return func(p *corev1.Pod) { metav1.SetMetaDataAnnotation(&p.ObjectMeta, key, value) }
	}
	volume := func(name string, source corev1.VolumeSource) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: name, VolumeSource: source})
		}
	}
	system := func(p *corev1.Pod) { p.Namespace = "kube-system" }
	scratch := volume("scratch", corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}})
	replicas := owned("ReplicaSet")
	for name, tt := range map[string]struct {
		changes                      []func(*corev1.Pod)
		clusterAutoscaler, karpenter dra.RemovalObstacle
	}{
		"a pod of a Deployment":          {[]func(*corev1.Pod){replicas}, dra.RemovalNone, dra.RemovalNone},
		"a bare pod":                     {nil, dra.RemovalNoController, dra.RemovalNone},
		"an owner that is no controller": {[]func(*corev1.Pod){func(p *corev1.Pod) { p.OwnerReferences = []metav1.OwnerReference{{Kind: "Node"}} }}, dra.RemovalNoController, dra.RemovalNone},
		"a bare pod that may go":         {[]func(*corev1.Pod){annotated("cluster-autoscaler.kubernetes.io/safe-to-evict", "true")}, dra.RemovalNone, dra.RemovalNone},
		"a pod that may not go":          {[]func(*corev1.Pod){replicas, annotated("cluster-autoscaler.kubernetes.io/safe-to-evict", "false")}, dra.RemovalPodAnnotation, dra.RemovalNone},
		"a pod not to be disrupted":      {[]func(*corev1.Pod){replicas, annotated("karpenter.sh/do-not-disrupt", "true")}, dra.RemovalNone, dra.RemovalPodAnnotation},
		"for some time only":             {[]func(*corev1.Pod){replicas, annotated("karpenter.sh/do-not-disrupt", "5m")}, dra.RemovalNone, dra.RemovalNone},
		"a system pod":                   {[]func(*corev1.Pod){replicas, system}, dra.RemovalSystemPod, dra.RemovalNone},
		"of a DaemonSet":                 {[]func(*corev1.Pod){owned("DaemonSet"), system, scratch}, dra.RemovalNone, dra.RemovalNone},
		"a static pod":                   {[]func(*corev1.Pod){system, annotated("kubernetes.io/config.mirror", "x"), annotated("karpenter.sh/do-not-disrupt", "true")}, dra.RemovalNone, dra.RemovalNone},
		"data on the node":               {[]func(*corev1.Pod){replicas, scratch}, dra.RemovalLocalStorage, dra.RemovalNone},
		"a folder of the node":           {[]func(*corev1.Pod){replicas, volume("host", corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{}})}, dra.RemovalLocalStorage, dra.RemovalNone},
		"in memory":                      {[]func(*corev1.Pod){replicas, volume("shm", corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{Medium: "Memory"}})}, dra.RemovalNone, dra.RemovalNone},
		"configuration":                  {[]func(*corev1.Pod){replicas, volume("config", corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{}})}, dra.RemovalNone, dra.RemovalNone},
		"data that may be lost":          {[]func(*corev1.Pod){replicas, scratch, annotated("cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes", "a,scratch")}, dra.RemovalNone, dra.RemovalNone},
		"other data":                     {[]func(*corev1.Pod){replicas, scratch, annotated("cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes", "a")}, dra.RemovalLocalStorage, dra.RemovalNone},
	} {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "p"}}
		pod.Spec.NodeName = "node-a"
		for _, change := range tt.changes {
			change(pod)
		}
		got := PodRequests(pod)
		if got.KeptByClusterAutoscaler != tt.clusterAutoscaler || got.KeptByKarpenter != tt.karpenter {
			t.Errorf("%s: %q and %q, want %q and %q", name, got.KeptByClusterAutoscaler, got.KeptByKarpenter, tt.clusterAutoscaler, tt.karpenter)
		}
	}
	if dra.RemovalNone.String() != "" || len(dra.RemovalObstacles()) != 5 {
		t.Error("the obstacles are incomplete")
	}
}

// TestOtherRequests: resources besides CPU and memory, and amounts that no node has.
func TestOtherRequests(t *testing.T) {
	requests := func(amounts map[corev1.ResourceName]string) *corev1.Pod {
		pod := &corev1.Pod{}
		pod.Spec.NodeName = "node-a"
		list := corev1.ResourceList{}
		for name, amount := range amounts {
			list[name] = apiresource.MustParse(amount)
		}
		pod.Spec.Containers = []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: list}}}
		return pod
	}
	for name, test := range map[string]struct {
		amounts map[corev1.ResourceName]string
		want    dra.PodRequests
	}{
		"CPU and memory": {map[corev1.ResourceName]string{"cpu": "100m", "memory": "1Ki"}, dra.PodRequests{CPU: 100, Memory: 1024}},
		"others":         {map[corev1.ResourceName]string{"nvidia.com/gpu": "2", "ephemeral-storage": "1Ki", "hugepages-2Mi": "0"}, dra.PodRequests{Others: []dra.Amount{{Resource: "ephemeral-storage", Units: 1024}, {Resource: "nvidia.com/gpu", Units: 2}}}},
		"absurd amounts": {map[corev1.ResourceName]string{"cpu": "9000000000E", "memory": "-1", "nvidia.com/gpu": "9223372036854775807"}, dra.PodRequests{CPU: maxAmount, Others: []dra.Amount{{Resource: "nvidia.com/gpu", Units: maxAmount}}}},
	} {
		test.want.Node, test.want.KeptByClusterAutoscaler = "node-a", dra.RemovalNoController
		if got := PodRequests(requests(test.amounts)); !reflect.DeepEqual(*got, test.want) {
			t.Errorf("%s: %+v\nwant %+v", name, *got, test.want)
		}
	}
	node := &corev1.Node{Status: corev1.NodeStatus{Allocatable: corev1.ResourceList{"cpu": apiresource.MustParse("1"), "nvidia.com/gpu": apiresource.MustParse("4"), "amd.com/gpu": apiresource.MustParse("0")}}}
	if kept := StripNode(node).Status.Allocatable; len(kept) != 2 || kept.Name("nvidia.com/gpu", apiresource.DecimalSI).Value() != 4 {
		t.Errorf("kept of a node: %v", kept)
	}
}
