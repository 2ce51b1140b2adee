package decode

import (
	"fmt"
	"maps"
	"reflect"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dra-exporter/dra-exporter/collector/dra"
)

func quantities(asks map[string]string) corev1.ResourceList {
	list := make(corev1.ResourceList)
	for name, amount := range asks {
		list[corev1.ResourceName(name)] = resource.MustParse(amount)
	}
	return list
}

func TestPodLifecycle(t *testing.T) {
	template, group, claimed := "t", "gang", "train-gpu-x7k2p"
	deletion, grace := second(60), int64(30)
	running := func(n int) corev1.ContainerState {
		return corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: second(n)}}
	}
	ended := func(n int) corev1.ContainerState {
		return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{StartedAt: second(n)}}
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: "lab", Name: "train", UID: "pod-1", CreationTimestamp: second(0), DeletionTimestamp: &deletion, DeletionGracePeriodSeconds: &grace,
	}}
	pod.Spec = corev1.PodSpec{
		NodeName: "node-a", SchedulingGroup: &corev1.PodSchedulingGroup{PodGroupName: &group},
		ResourceClaims: []corev1.PodResourceClaim{{Name: "gpu", ResourceClaimTemplateName: &template}, {Name: "later", ResourceClaimTemplateName: &template}, {Name: "unneeded", ResourceClaimTemplateName: &template}},
	}
	pod.Status = corev1.PodStatus{
		Phase:                 corev1.PodFailed,
		ResourceClaimStatuses: []corev1.PodResourceClaimStatus{{Name: "gpu", ResourceClaimName: &claimed}, {Name: "unneeded"}},
		Conditions: []corev1.PodCondition{
			{Type: "PodScheduled", Status: "True", LastTransitionTime: second(5), Message: "of old"},
			{Type: "PodReadyToStartContainers", Status: "True", LastTransitionTime: second(7)},
			{Type: "DisruptionTarget", Status: "True", Reason: "DeletionByDeviceTaintManager"},
		},
		InitContainerStatuses: []corev1.ContainerStatus{{State: ended(9)}},
		ContainerStatuses:     []corev1.ContainerStatus{{State: running(20), LastTerminationState: ended(8)}, {State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{}}}},
	}
	want := dra.PodLifecycle{
		Ref: dra.PodRef{Namespace: "lab", Name: "train"}, UID: "pod-1", Created: on(0), Deleted: on(30), Grace: 30 * time.Second,
		Node: "node-a", Terminal: true, Group: "gang", Member: dra.Member{Workload: &dra.Workload{Kind: "PodGroup", Name: "gang"}},
		Claims:    []dra.PodClaim{{Name: "gpu", Template: "t", Claim: claimed}, {Name: "later", Template: "t"}},
		Scheduled: on(5), Sandbox: on(7), Started: on(8), Evicted: true,
	}
	if got := PodLifecycle(pod, DefaultWorkloads()); !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

// Runtimes report a start in 1970 for a container that could not be started.
func TestContainerStartOf1970(t *testing.T) {
	running := corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: second(9)}}
	failed := corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Reason: "StartError", ExitCode: 128, StartedAt: metav1.Unix(0, 0)}}
	for name, c := range map[string]struct {
		statuses []corev1.ContainerStatus
		want     time.Time
	}{
		"alone":                {[]corev1.ContainerStatus{{State: failed}}, time.Time{}},
		"and is tried again":   {[]corev1.ContainerStatus{{State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{}}, LastTerminationState: failed}}, time.Time{}},
		"and did":              {[]corev1.ContainerStatus{{State: running, LastTerminationState: failed}}, on(9)},
		"beside one that runs": {[]corev1.ContainerStatus{{State: failed}, {State: running}}, on(9)},
	} {
		pod := &corev1.Pod{Status: corev1.PodStatus{ContainerStatuses: c.statuses}}
		data, err := pod.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		var received corev1.Pod // as it comes over the wire
		if err := received.Unmarshal(data); err != nil {
			t.Fatal(err)
		}
		if got := PodLifecycle(&received, DefaultWorkloads()).Started; !got.Equal(c.want) {
			t.Errorf("%s: started %v, want %v", name, got, c.want)
		}
	}
}

// A pod has ended with the last of its containers, once its phase says so.
func TestEndOfPod(t *testing.T) {
	ended := func(at metav1.Time) corev1.ContainerStatus {
		return corev1.ContainerStatus{State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{FinishedAt: at}}}
	}
	pod := &corev1.Pod{}
	pod.Status.InitContainerStatuses = []corev1.ContainerStatus{ended(second(3))}
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{ended(second(9)), ended(second(7)), ended(metav1.Unix(0, 0))}
	for phase, want := range map[corev1.PodPhase]time.Time{corev1.PodRunning: {}, corev1.PodSucceeded: on(9), corev1.PodFailed: on(9)} {
		pod.Status.Phase = phase
		if got := PodLifecycle(pod, DefaultWorkloads()).Ended; !got.Equal(want) {
			t.Errorf("%s: ended at %s, want %s", phase, got, want)
		}
	}
	pod.Status.ContainerStatuses, pod.Status.InitContainerStatuses = nil, nil
	if got := PodLifecycle(pod, DefaultWorkloads()).Ended; !got.IsZero() {
		t.Errorf("no container has started, and the pod ended at %s", got)
	}
}

func TestPodConditions(t *testing.T) {
	pod := &corev1.Pod{}
	pod.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "quota"}}
	for name, c := range map[string]struct {
		condition corev1.PodCondition
		want      dra.PodLifecycle
	}{
		"unschedulable":     {corev1.PodCondition{Type: "PodScheduled", Status: "False", Reason: "Unschedulable", Message: "0/1 nodes", LastTransitionTime: second(1)}, dra.PodLifecycle{Gated: true, Unschedulable: "0/1 nodes"}},
		"gated":             {corev1.PodCondition{Type: "PodScheduled", Status: "False", Reason: "SchedulingGated", Message: "gates"}, dra.PodLifecycle{Gated: true}},
		"sandbox not ready": {corev1.PodCondition{Type: "PodReadyToStartContainers", Status: "False", LastTransitionTime: second(1)}, dra.PodLifecycle{Gated: true}},
		"preempted":         {corev1.PodCondition{Type: "DisruptionTarget", Status: "True", Reason: "PreemptionByScheduler"}, dra.PodLifecycle{Gated: true}},
		"not evicted":       {corev1.PodCondition{Type: "DisruptionTarget", Status: "False", Reason: "DeletionByDeviceTaintManager"}, dra.PodLifecycle{Gated: true}},
	} {
		pod.Status.Conditions = []corev1.PodCondition{c.condition}
		if got := PodLifecycle(pod, DefaultWorkloads()); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func TestExtendedResources(t *testing.T) {
	always := corev1.ContainerRestartPolicyAlways
	container := func(asks map[string]string) corev1.Container {
		return corev1.Container{Resources: corev1.ResourceRequirements{Requests: quantities(asks)}}
	}
	sidecar := container(map[string]string{"example.com/gpu": "1"})
	sidecar.RestartPolicy = &always
	pod := &corev1.Pod{}
	pod.Spec.Containers = []corev1.Container{container(map[string]string{"example.com/gpu": "2", "cpu": "4", "requests.kubernetes.io/x": "1"}), container(map[string]string{"example.com/gpu": "1", "example.com/none": "0"})}
	for name, c := range map[string]struct {
		inits []corev1.Container
		want  int64
	}{
		"containers together":             {nil, 3},
		"a small init container":          {[]corev1.Container{container(map[string]string{"example.com/gpu": "2"})}, 3},
		"a large one":                     {[]corev1.Container{container(map[string]string{"example.com/gpu": "8"})}, 8},
		"a sidecar beside the containers": {[]corev1.Container{sidecar}, 4},
		"a sidecar beside a large one":    {[]corev1.Container{sidecar, container(map[string]string{"example.com/gpu": "8"})}, 9},
	} {
		pod.Spec.InitContainers = c.inits
		if got := PodLifecycle(pod, DefaultWorkloads()).Extended; !maps.Equal(got, map[string]int64{"example.com/gpu": c.want}) {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// TestLimitOfExtendedResources: resources that a class names explicitly come
// first.
func TestLimitOfExtendedResources(t *testing.T) {
	all := map[string]int64{resourcev1.ResourceDeviceClassPrefix + "gpu": 1}
	for i := range 40 {
		all[fmt.Sprintf("a.example.com/%02d", i)] = 1
	}
	bounded := limitExtended(all)
	if len(bounded) != maxExtended || bounded[resourcev1.ResourceDeviceClassPrefix+"gpu"] != 1 || bounded["a.example.com/14"] != 1 || bounded["a.example.com/15"] != 0 {
		t.Errorf("%v", bounded)
	}
	few := map[string]int64{strings.Repeat("x", 3): 2}
	if got := limitExtended(few); len(got) != 1 {
		t.Errorf("%v", got)
	}
}
