package apiserver

import (
	"log/slog"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/dra-exporter/dra-exporter/collector/clock"
)

// The state of a pod from the kubelet is also limited.
func TestLargePodOnNode(t *testing.T) {
	pod := pendingPod("a", "crowded", 3000)
	yes, long := true, strings.Repeat("l", 5000)
	for i := range 3000 {
		name := strconv.Itoa(i)
		container := corev1.Container{Name: name, Resources: corev1.ResourceRequirements{Claims: []corev1.ResourceClaim{{Name: name}}}}
		status := corev1.ContainerStatus{Name: name, ContainerID: "containerd://" + name, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}
		pod.Spec.Containers, pod.Spec.InitContainers = append(pod.Spec.Containers, container), append(pod.Spec.InitContainers, container)
		pod.Status.ContainerStatuses, pod.Status.InitContainerStatuses = append(pod.Status.ContainerStatuses, status), append(pod.Status.InitContainerStatuses, status)
		pod.OwnerReferences = append(pod.OwnerReferences, metav1.OwnerReference{APIVersion: long, Kind: long, Name: long, UID: types.UID(long), Controller: &yes})
	}
	node, err := New(Options{Config: &rest.Config{Host: "http://127.0.0.1:1"}, Node: "node-a", Clock: clock.System(), Log: slog.New(slog.DiscardHandler), PodsFed: true})
	if err != nil {
		t.Fatal(err)
	}
	node.PodFeed().Pod(pod)
	if pods := node.Latest().Pods; len(pods) != 1 || len(pods[0].Claims) != 256 {
		t.Errorf("from the kubelet: %d pods", len(pods))
	}
}
