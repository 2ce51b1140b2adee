package decode

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/dra-exporter/dra-exporter/collector/dra"
)

func TestPod(t *testing.T) {
	yes, named, template, made := true, "shared", "one-gpu", "p-gpu-x7"
	uses := func(references ...corev1.ResourceClaim) corev1.ResourceRequirements {
		return corev1.ResourceRequirements{Claims: references}
	}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: "p", UID: "pod-1", OwnerReferences: []metav1.OwnerReference{
			{Kind: "Other", Name: "no"}, {Kind: "Job", Name: "train", Controller: &yes},
		}},
		Spec: corev1.PodSpec{
			NodeName: "node-a",
			ResourceClaims: []corev1.PodResourceClaim{
				{Name: "direct", ResourceClaimName: &named},
				{Name: "made", ResourceClaimTemplateName: &template},
				{Name: "coming", ResourceClaimTemplateName: &template},
				{Name: "unneeded", ResourceClaimTemplateName: &template},
			},
			InitContainers: []corev1.Container{{Name: "init", Resources: uses(corev1.ResourceClaim{Name: "direct"})}},
			Containers: []corev1.Container{
				{Name: "main", Resources: uses(corev1.ResourceClaim{Name: "made", Request: "r"}, corev1.ResourceClaim{Name: "coming"})},
				{Name: "idle"},
			},
		},
		Status: corev1.PodStatus{
			Phase:                 corev1.PodFailed,
			ResourceClaimStatuses: []corev1.PodResourceClaimStatus{{Name: "made", ResourceClaimName: &made}, {Name: "unneeded"}},
			ExtendedResourceClaimStatus: &corev1.PodExtendedResourceClaimStatus{
				ResourceClaimName: "p-ext", RequestMappings: []corev1.ContainerExtendedResourceRequest{{ContainerName: "main", ResourceName: "nvidia.com/gpu", RequestName: "r0"}},
			},
		},
	}
	want := dra.Pod{
		Ref: dra.PodRef{Namespace: "lab", Name: "p"}, UID: "pod-1", Node: "node-a", Terminal: true, OwnerKind: "Job", OwnerName: "train",
		Claims: []dra.PodClaim{
			{Name: "direct", Claim: "shared"},
			{Name: "made", Template: "one-gpu", Claim: "p-gpu-x7"},
			{Name: "coming", Template: "one-gpu"},
			{Name: "unneeded", Template: "one-gpu"},
			{Claim: "p-ext"},
		},
		Containers: []dra.Container{
			{Name: "init", Uses: []dra.Use{{Claim: "shared"}}},
			{Name: "main", Uses: []dra.Use{{Claim: "p-gpu-x7", Request: "r"}, {Claim: "p-ext", Request: "r0"}}},
			{Name: "idle"},
		},
	}
	if got := Pod(pod, PodFields{}); !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

func TestPodsThatMayHoldDevices(t *testing.T) {
	for resourceName, want := range map[string]bool{
		"nvidia.com/gpu": true,
		"deviceclass.resource.kubernetes.io/gpu.nvidia.com": true,
		"cpu": false, "hugepages-2Mi": false, "attachable.kubernetes.io/disk": false,
	} {
		pod := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{
			Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{corev1.ResourceName(resourceName): resource.MustParse("1")}},
		}}}}
		if _, got := NewPodRecord(pod, PodFields{}); got != want {
			t.Errorf("a pod with %s: %v, want %v", resourceName, got, want)
		}
	}
}

// health returns an entry of allocatedResourcesStatus for devices of one claim,
// or of one request.
func health(name string, is corev1.ResourceHealthStatus, ids ...corev1.ResourceID) corev1.ResourceStatus {
	status := corev1.ResourceStatus{Name: corev1.ResourceName(name)}
	for _, id := range ids {
		status.Resources = append(status.Resources, corev1.ResourceHealth{ResourceID: id, Health: is})
	}
	return status
}

func TestDeviceHealth(t *testing.T) {
	const healthy, unhealthy, unknown = corev1.ResourceHealthStatusHealthy, corev1.ResourceHealthStatusUnhealthy, corev1.ResourceHealthStatusUnknown
	for name, test := range map[string]struct {
		status []corev1.ResourceStatus
		want   string
	}{
		"nothing":                     {nil, ""},
		"of a claim":                  {[]corev1.ResourceStatus{health("claim:gpu", healthy, "d/p/gpu-0")}, "gpu//d/p/gpu-0=true"},
		"of a request":                {[]corev1.ResourceStatus{health("claim:gpu/one", unhealthy, "nvidia.com/gpu=0")}, "gpu/one/nvidia.com/gpu=0=false"},
		"of a subrequest":             {[]corev1.ResourceStatus{health("claim:gpu/one/big", healthy, "x")}, "gpu/one/big/x=true"},
		"of an extended resource":     {[]corev1.ResourceStatus{health("claim:p-ext/r0", unhealthy, "x")}, "/r0/x=false"},
		"neither":                     {[]corev1.ResourceStatus{health("claim:gpu", unknown, "x"), health("claim:gpu", "", "y"), health("claim:gpu", "PermanentlyUnhealthy", "z")}, ""},
		"of a device plugin's device": {[]corev1.ResourceStatus{health("nvidia.com/gpu", unhealthy, "GPU-1"), health("gpu", unhealthy, "x")}, ""},
		"of a claim of another pod":   {[]corev1.ResourceStatus{health("claim:other", unhealthy, "x"), health("claim:", unhealthy, "x"), health("claim:named", unhealthy, "x")}, ""},
		"in any order, twice": {[]corev1.ResourceStatus{
			health("claim:gpu/two", healthy, "b", "a"), health("claim:gpu/one", healthy, "b"), health("claim:gpu/one", unhealthy, "b"),
			health("claim:gpu/two", healthy, "a"), health("claim:gpu", healthy, "z"),
		}, "gpu//z=true gpu/one/b=false gpu/one/b=true gpu/two/a=true gpu/two/b=true"},
		"no text": {[]corev1.ResourceStatus{health("claim:gpu/\xff", healthy, "\xfe")}, "gpu/\uFFFD/\uFFFD=true"},
	} {
		pod := podWithClaim("p", "pod-1", "named")
		pod.Status.ExtendedResourceClaimStatus = &corev1.PodExtendedResourceClaimStatus{ResourceClaimName: "p-ext"}
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", AllocatedResourcesStatus: test.status}}
		if got := written(Pod(pod, PodFields{}).Health); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

func written(all []dra.ResourceHealth) string {
	var entries []string
	for _, entry := range all {
		entries = append(entries, fmt.Sprintf("%s/%s/%s=%t", entry.PodClaim, entry.Request, entry.ResourceID, entry.Healthy))
	}
	return strings.Join(entries, " ")
}

// The message is that of an unhealthy device, valid and short. The cluster role
// has no use for it.
func TestDeviceHealthMessage(t *testing.T) {
	const healthy, unhealthy = corev1.ResourceHealthStatusHealthy, corev1.ResourceHealthStatusUnhealthy
	for name, test := range map[string]struct {
		health  corev1.ResourceHealthStatus
		message string
		want    string
	}{
		"unhealthy":  {unhealthy, "fan 2 has stopped", "fan 2 has stopped"},
		"healthy":    {healthy, "fan 2 runs", ""},
		"no message": {unhealthy, "", ""},
		"no text":    {unhealthy, "fan \xff", "fan \uFFFD"},
		"too long":   {unhealthy, strings.Repeat("é", 600), strings.Repeat("é", 512)},
	} {
		pod := podWithClaim("p", "pod-1", "named")
		status := health("claim:gpu", test.health, "x")
		status.Resources[0].Message = &test.message
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", AllocatedResourcesStatus: []corev1.ResourceStatus{status}}}
		for _, decoded := range []dra.Pod{Pod(pod, PodFields{}), Pod(StripPod(pod, PodFields{}), PodFields{})} {
			if len(decoded.Health) != 1 || decoded.Health[0].Message != test.want {
				t.Errorf("%s: %+v, want %q", name, decoded.Health, test.want)
			}
		}
		if lifecycle := PodLifecycle(pod, DefaultWorkloads()); len(lifecycle.Health) != 1 || lifecycle.Health[0].Message != "" {
			t.Errorf("%s: the cluster role has %+v", name, lifecycle.Health)
		}
	}
}

func TestDeviceHealthOfEveryKindOfContainer(t *testing.T) {
	pod := podWithClaim("p", "pod-1", "named")
	status := func(id corev1.ResourceID) []corev1.ContainerStatus {
		return []corev1.ContainerStatus{{AllocatedResourcesStatus: []corev1.ResourceStatus{health("claim:gpu", corev1.ResourceHealthStatusHealthy, id)}}}
	}
	pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses, pod.Status.EphemeralContainerStatuses = status("a"), status("b"), status("c")
	const want = "gpu//a=true gpu//b=true gpu//c=true"
	if got := written(Pod(pod, PodFields{}).Health); got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := written(Pod(StripPod(pod, PodFields{}), PodFields{}).Health); got != want {
		t.Errorf("stripped: %q, want %q", got, want)
	}
	pod.Spec.ResourceClaims = nil
	if got := Pod(pod, PodFields{}); got.Health != nil {
		t.Errorf("a pod without claims has the health of %+v", got.Health)
	}
}

// The devices of a captured pod, whose health was unknown, become unhealthy, with
// the names and ids that the kubelet wrote.
func TestDeviceHealthOfARealPod(t *testing.T) {
	captured := readSnapshot(t, "01-round1")
	found := false
	for i := range captured.pods {
		pod := &captured.pods[i]
		if got := Pod(pod, PodFields{}); got.Health != nil {
			t.Errorf("%s: its health was unknown and is decoded to %+v", pod.Name, got.Health)
		}
		for j := range pod.Status.ContainerStatuses {
			for _, status := range pod.Status.ContainerStatuses[j].AllocatedResourcesStatus {
				for k := range status.Resources {
					status.Resources[k].Health = corev1.ResourceHealthStatusUnhealthy
				}
			}
		}
		light := StripPod(pod, PodFields{})
		if got, want := Pod(light, PodFields{}), Pod(pod, PodFields{}); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: stripped it decodes to %+v, want %+v", pod.Name, got, want)
		}
		for _, entry := range Pod(pod, PodFields{}).Health {
			found = true
			if entry.PodClaim == "" || entry.ResourceID == "" || entry.Healthy {
				t.Errorf("%s: %+v", pod.Name, entry)
			}
		}
	}
	if !found {
		t.Error("no pod has a health")
	}
}

func TestContainerIDs(t *testing.T) {
	for written, want := range map[string]string{
		"containerd://0a1b": "0a1b", "cri-o://2c": "2c", "docker://3d": "3d",
		"": "", "0a1b": "", "containerd://": "", "containerd://\xff": "\uFFFD",
	} {
		pod := podWithClaim("train", "pod-1", "gpu")
		pod.Spec.InitContainers = []corev1.Container{{Name: "sidecar"}, {Name: "init"}}
		pod.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: "init", ContainerID: "containerd://of-init"}, {Name: "main", ContainerID: "containerd://wrong"}}
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "other", ContainerID: "containerd://wrong"}, {
			Name: "main", ContainerID: written,
			LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ContainerID: "containerd://before"}},
		}}
		got := []string{}
		for _, container := range Pod(pod, PodFields{}).Containers {
			got = append(got, container.Name+"="+container.ID)
		}
		if text := strings.Join(got, " "); text != "sidecar= init=of-init main="+want {
			t.Errorf("%q: %s", written, text)
		}
	}
}

func TestPodLabels(t *testing.T) {
	pod := podWithClaim("train", "pod-1", "gpu")
	pod.Labels = map[string]string{"team": "vision", "app.kubernetes.io/name": "a\xffb", "pod-template-hash": "5d6f"}
	wanted := []string{"app.kubernetes.io/name", "missing", "team"}
	want := []string{"a\uFFFDb", "", "vision"}
	if got := Pod(pod, PodFields{Labels: wanted}).Labels; !reflect.DeepEqual(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	light := StripPod(pod, PodFields{Labels: wanted})
	if got := Pod(light, PodFields{Labels: wanted}).Labels; !reflect.DeepEqual(got, want) || len(light.Labels) != 2 {
		t.Errorf("stripped: got %q of %q, want %q", got, light.Labels, want)
	}
	if got := Pod(pod, PodFields{}).Labels; got != nil {
		t.Errorf("unasked for: %q", got)
	}
}

// The kept part of a pod is limited, before and after the list of pods.
func TestPodWithManyContainers(t *testing.T) {
	pod := podWithClaims(3000)
	yes, long := true, strings.Repeat("l", 5000)
	for i := range 3000 {
		name := strconv.Itoa(i)
		container := corev1.Container{Name: name, Resources: corev1.ResourceRequirements{Claims: []corev1.ResourceClaim{{Name: name}}}}
		status := corev1.ContainerStatus{Name: name, ContainerID: "containerd://" + name, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}
		pod.Spec.Containers, pod.Spec.InitContainers = append(pod.Spec.Containers, container), append(pod.Spec.InitContainers, container)
		pod.Status.ContainerStatuses, pod.Status.InitContainerStatuses = append(pod.Status.ContainerStatuses, status), append(pod.Status.InitContainerStatuses, status)
		pod.OwnerReferences = append(pod.OwnerReferences, metav1.OwnerReference{APIVersion: long, Kind: long, Name: long, UID: types.UID(long), Controller: &yes})
	}
	light := StripPod(pod, PodFields{})
	if size := light.Size(); size > 400_000 {
		t.Errorf("while pods are listed, %d bytes of %d are held", size, pod.Size())
	}
	whole, _ := NewPodRecord(pod, PodFields{})
	stripped, _ := NewPodRecord(light, PodFields{})
	if !reflect.DeepEqual(whole, stripped) {
		t.Error("stripped, the pod is another")
	}
	if len(whole.Pod.Claims) != maxNodeReferences || len(whole.Pod.Containers) != 2*maxContainers || len(whole.Pod.OwnerName) != maxName {
		t.Errorf("%d claims, %d containers, an owner of %d bytes", len(whole.Pod.Claims), len(whole.Pod.Containers), len(whole.Pod.OwnerName))
	}
}

// podWithClaim returns a running pod of node-a that uses a claim by name.
func podWithClaim(name, uid, claim string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: name, UID: types.UID(uid)},
		Spec: corev1.PodSpec{
			NodeName:       "node-a",
			ResourceClaims: []corev1.PodResourceClaim{{Name: "gpu", ResourceClaimName: &claim}},
			Containers:     []corev1.Container{{Name: "main", Resources: corev1.ResourceRequirements{Claims: []corev1.ResourceClaim{{Name: "gpu"}}}}},
		},
		Status: corev1.PodStatus{Phase: corev1.PodRunning},
	}
}

// podWithClaims returns a pod that references this many claims and is not
// bound.
func podWithClaims(count int) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "b", UID: "ab"}}
	for i := range count {
		claim := fmt.Sprintf("b-%d", i)
		pod.Spec.ResourceClaims = append(pod.Spec.ResourceClaims, corev1.PodResourceClaim{Name: strconv.Itoa(i), ResourceClaimName: &claim})
	}
	return pod
}
