package apiserver

import (
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/dra-exporter/dra-exporter/collector/clock"
)

func TestCut(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"", ""}, {"abcd", "abcd"}, {"abcde", "abcd"}, {"abcé", "abc"}, {"é", "é"}, {"a\xffb", "a\uFFFDb"}, {"abc\xffe", "abc"},
	} {
		if got := cut(c.text, 4); got != c.want || !utf8.ValidString(got) {
			t.Errorf("%q became %q, want %q", c.text, got, c.want)
		}
	}
}

// TestFinalizersOfAClaim: Kubernetes' own is among them wherever it stands,
// because explain says what keeps a claim.
func TestFinalizersOfAClaim(t *testing.T) {
	claim := &resourcev1.ResourceClaim{}
	for i := range 30 {
		claim.Finalizers = append(claim.Finalizers, fmt.Sprintf("example.com/%d", i))
	}
	if got := finalizersOf(claim); len(got) != maxFinalizers || got[15] != "example.com/15" {
		t.Errorf("%q", got)
	}
	claim.Finalizers = append(claim.Finalizers, resourcev1.Finalizer)
	if got := finalizersOf(claim); len(got) != maxFinalizers || !slices.Contains(got, resourcev1.Finalizer) || claim.Finalizers[15] != "example.com/15" {
		t.Errorf("%q of %q", got, claim.Finalizers)
	}
	claim.Finalizers = nil
	if got := finalizersOf(claim); got != nil {
		t.Errorf("%q", got)
	}
}

// TestExtendedResourcesOfAPod: those that a class names for certain come first.
func TestExtendedResourcesOfAPod(t *testing.T) {
	all := map[string]int64{resourcev1.ResourceDeviceClassPrefix + "gpu": 1}
	for i := range 40 {
		all[fmt.Sprintf("a.example.com/%02d", i)] = 1
	}
	bounded := boundExtended(all)
	if len(bounded) != maxExtended || bounded[resourcev1.ResourceDeviceClassPrefix+"gpu"] != 1 || bounded["a.example.com/14"] != 1 || bounded["a.example.com/15"] != 0 {
		t.Errorf("%v", bounded)
	}
	few := map[string]int64{strings.Repeat("x", 3): 2}
	if got := boundExtended(few); len(got) != 1 {
		t.Errorf("%v", got)
	}
}

// TestCrowdedPodOnANode: what the node role keeps of a pod is limited, while
// pods are listed and after, and is the same either way.
func TestCrowdedPodOnANode(t *testing.T) {
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
	light := stripPod(pod).(*corev1.Pod)
	if size := light.Size(); size > 400_000 {
		t.Errorf("while pods are listed, %d bytes of %d are held", size, pod.Size())
	}
	whole, _ := recordPod(pod)
	stripped, _ := recordPod(light)
	if !reflect.DeepEqual(whole, stripped) {
		t.Error("stripped, the pod is another")
	}
	if len(whole.pod.Claims) != maxNodeReferences || len(whole.pod.Containers) != 2*maxContainers || len(whole.pod.OwnerName) != maxName {
		t.Errorf("%d claims, %d containers, an owner of %d bytes", len(whole.pod.Claims), len(whole.pod.Containers), len(whole.pod.OwnerName))
	}
	node, err := New(Options{Config: &rest.Config{Host: "http://127.0.0.1:1"}, Node: "node-a", Clock: clock.System(), Log: slog.New(slog.DiscardHandler), PodsFed: true})
	if err != nil {
		t.Fatal(err)
	}
	node.PodFeed().Pod(pod)
	if pods := node.Latest().Pods; len(pods) != 1 || len(pods[0].Claims) != maxNodeReferences {
		t.Errorf("from the kubelet: %d pods", len(pods))
	}
}
