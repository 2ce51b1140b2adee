package apiserver

import (
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/dra-exporter/dra-exporter/collector/dra"
)

func quantities(asks map[string]string) corev1.ResourceList {
	list := make(corev1.ResourceList)
	for name, amount := range asks {
		list[corev1.ResourceName(name)] = resource.MustParse(amount)
	}
	return list
}

// second is a moment that an API server would write.
func second(n int) metav1.Time { return metav1.Unix(1_800_000_000+int64(n), 0) }

func on(n int) time.Time { return second(n).UTC() }

func TestDecodesLivesOfARealCluster(t *testing.T) {
	for _, name := range append(moments(), "07a-example-drivers-binding-pending") {
		t.Run(name, func(t *testing.T) {
			var pods corev1.PodList
			var claims resourcev1.ResourceClaimList
			for file, list := range map[string]any{"pods": &pods, "resourceclaims": &claims} {
				text, err := os.ReadFile(filepath.Join("testdata", "moments", name, file+".yaml"))
				if err == nil {
					err = yaml.Unmarshal(text, list)
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			var lives struct {
				Claims []dra.ClaimLife
				Pods   []dra.PodLife
			}
			for i := range claims.Items {
				lives.Claims = append(lives.Claims, decodeClaimLife(&claims.Items[i]))
			}
			for i := range pods.Items {
				lives.Pods = append(lives.Pods, decodePodLife(&pods.Items[i]))
			}
			compareGolden(t, filepath.Join("testdata", "moments", name, "lives.json"), lives)
		})
	}
}

func TestDecodesTheLifeOfAClaim(t *testing.T) {
	yes, grace := true, int64(30)
	allocatedAt, deletion := second(3), second(40)
	claim := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{
		Namespace: "lab", Name: "train-gpu-x7k2p", UID: "claim-1", CreationTimestamp: second(0),
		DeletionTimestamp: &deletion, DeletionGracePeriodSeconds: &grace,
		Annotations:     map[string]string{"resource.kubernetes.io/pod-claim-name": "gpu", "resource.kubernetes.io/extended-resource-claim": "true"},
		OwnerReferences: []metav1.OwnerReference{{Kind: "Job", Name: "j"}, {APIVersion: "v1", Kind: "Pod", Name: "train", UID: "pod-1", Controller: &yes}},
		Finalizers:      []string{"resource.kubernetes.io/delete-protection"},
	}}
	claim.Spec.Devices.Requests = []resourcev1.DeviceRequest{
		{Name: "main", FirstAvailable: []resourcev1.DeviceSubRequest{{Name: "big", DeviceClassName: "z-large"}, {Name: "small", DeviceClassName: "a-small"}}},
		{Name: "watch", Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: "z-large"}},
	}
	claim.Status.Allocation = &resourcev1.AllocationResult{
		AllocationTimestamp: &allocatedAt,
		NodeSelector: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
			MatchFields: []corev1.NodeSelectorRequirement{{Key: "metadata.name", Operator: "In", Values: []string{"node-a"}}},
		}}},
	}
	claim.Status.Allocation.Devices.Results = []resourcev1.DeviceRequestAllocationResult{
		{Request: "main/small", Driver: "gpu.example.com", Pool: "node-a", Device: "gpu-3"},
		{Request: "watch", Driver: "gpu.example.com", Pool: "node-a", Device: "gpu-4", AdminAccess: &yes},
	}
	claim.Status.ReservedFor = []resourcev1.ResourceClaimConsumerReference{{Resource: "pods", Name: "train", UID: "pod-1"}}
	want := dra.ClaimLife{
		Ref: dra.ClaimRef{Namespace: "lab", Name: "train-gpu-x7k2p"}, UID: "claim-1",
		Created: on(0), Deleted: on(10),
		MadeFor:  dra.Consumer{Resource: "pods", Name: "train", UID: "pod-1"},
		PodClaim: "gpu", ExtendedResource: true,
		Classes:   []string{"a-small", "z-large"},
		Allocated: true, AllocatedAt: on(3), Node: "node-a",
		Results: []dra.AllocatedDevice{
			{Request: "main/small", Class: "a-small", Device: dra.DeviceID{Driver: "gpu.example.com", Pool: "node-a", Name: "gpu-3"}},
			{Request: "watch", Class: "z-large", Device: dra.DeviceID{Driver: "gpu.example.com", Pool: "node-a", Name: "gpu-4"}, AdminAccess: true},
		},
		ReservedFor: []dra.Consumer{{Resource: "pods", Name: "train", UID: "pod-1"}},
		Finalizers:  []string{"resource.kubernetes.io/delete-protection"},
	}
	if got := decodeClaimLife(claim); !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

func TestKnowsForWhomAClaimWasMade(t *testing.T) {
	yes, no := true, false
	for name, c := range map[string]struct {
		owner metav1.OwnerReference
		want  dra.Consumer
	}{
		"a pod":                          {metav1.OwnerReference{APIVersion: "v1", Kind: "Pod", Name: "a", UID: "1", Controller: &yes}, dra.Consumer{Resource: "pods", Name: "a", UID: "1"}},
		"a group":                        {metav1.OwnerReference{APIVersion: "scheduling.k8s.io/v1alpha2", Kind: "PodGroup", Name: "a", UID: "1", Controller: &yes}, dra.Consumer{Resource: "podgroups", Name: "a", UID: "1"}},
		"an owner that is no controller": {metav1.OwnerReference{APIVersion: "v1", Kind: "Pod", Name: "a", UID: "1", Controller: &no}, dra.Consumer{}},
		"another kind of pod":            {metav1.OwnerReference{APIVersion: "example.com/v1", Kind: "Pod", Name: "a", UID: "1", Controller: &yes}, dra.Consumer{}},
		"another kind of group":          {metav1.OwnerReference{APIVersion: "example.com/v1", Kind: "PodGroup", Name: "a", UID: "1", Controller: &yes}, dra.Consumer{}},
		"an operator":                    {metav1.OwnerReference{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "a", UID: "1", Controller: &yes}, dra.Consumer{}},
	} {
		claim := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{c.owner}}}
		if got := madeFor(claim); got != c.want {
			t.Errorf("%s: made for %+v", name, got)
		}
	}
}

func TestKnowsTheOnlyNodeOfAnAllocation(t *testing.T) {
	byName := func(operator corev1.NodeSelectorOperator, values ...string) corev1.NodeSelectorTerm {
		return corev1.NodeSelectorTerm{MatchFields: []corev1.NodeSelectorRequirement{{Key: "metadata.name", Operator: operator, Values: values}}}
	}
	byLabel := corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "kubernetes.io/hostname", Operator: "In", Values: []string{"node-a"}}}}
	for name, c := range map[string]struct {
		terms []corev1.NodeSelectorTerm
		want  string
	}{
		"by name":          {[]corev1.NodeSelectorTerm{byName("In", "node-a")}, "node-a"},
		"by two names":     {[]corev1.NodeSelectorTerm{byName("In", "node-a", "node-b")}, ""},
		"by all but one":   {[]corev1.NodeSelectorTerm{byName("NotIn", "node-a")}, ""},
		"by label":         {[]corev1.NodeSelectorTerm{byLabel}, ""},
		"by another field": {[]corev1.NodeSelectorTerm{{MatchFields: []corev1.NodeSelectorRequirement{{Key: "metadata.uid", Operator: "In", Values: []string{"node-a"}}}}}, ""},
		"by one or other":  {[]corev1.NodeSelectorTerm{byName("In", "node-a"), byLabel}, ""},
		"everywhere":       {nil, ""},
	} {
		if got := onlyNode(&corev1.NodeSelector{NodeSelectorTerms: c.terms}); got != c.want {
			t.Errorf("%s: %q", name, got)
		}
	}
	if got := onlyNode(nil); got != "" {
		t.Errorf("without a selector: %q", got)
	}
}

func TestJudgesBindingConditionsAsTheSchedulerDoes(t *testing.T) {
	changed := map[string]metav1.Time{"Ready": second(5), "Attached": second(4), "Broken": second(9)}
	device := func(name string, conditions, failures []string) resourcev1.DeviceRequestAllocationResult {
		return resourcev1.DeviceRequestAllocationResult{Driver: "d", Pool: "p", Device: name, BindingConditions: conditions, BindingFailureConditions: failures}
	}
	status := func(device string, conditions map[string]metav1.ConditionStatus) resourcev1.AllocatedDeviceStatus {
		made := resourcev1.AllocatedDeviceStatus{Driver: "d", Pool: "p", Device: device}
		for name, is := range conditions {
			made.Conditions = append(made.Conditions, metav1.Condition{Type: name, Status: is, ObservedGeneration: 7, LastTransitionTime: changed[name]})
		}
		return made
	}
	type is = map[string]metav1.ConditionStatus
	since := map[dra.Binding]time.Time{dra.BindingDone: on(5), dra.BindingFailed: on(9)}
	ready, broken := []string{"Ready", "Attached"}, []string{"Broken"}
	for name, c := range map[string]struct {
		devices  []resourcev1.DeviceRequestAllocationResult
		statuses []resourcev1.AllocatedDeviceStatus
		want     dra.Binding
	}{
		"none":                             {[]resourcev1.DeviceRequestAllocationResult{device("a", nil, nil)}, nil, dra.BindingNone},
		"no word yet":                      {[]resourcev1.DeviceRequestAllocationResult{device("a", ready, broken)}, nil, dra.BindingWaiting},
		"one of two":                       {[]resourcev1.DeviceRequestAllocationResult{device("a", ready, broken)}, []resourcev1.AllocatedDeviceStatus{status("a", is{"Ready": "True", "Attached": "False"})}, dra.BindingWaiting},
		"both":                             {[]resourcev1.DeviceRequestAllocationResult{device("a", ready, broken)}, []resourcev1.AllocatedDeviceStatus{status("a", is{"Ready": "True", "Attached": "True", "Broken": "False"})}, dra.BindingDone},
		"of another device":                {[]resourcev1.DeviceRequestAllocationResult{device("a", ready, broken)}, []resourcev1.AllocatedDeviceStatus{status("b", is{"Ready": "True", "Attached": "True"})}, dra.BindingWaiting},
		"broken though ready":              {[]resourcev1.DeviceRequestAllocationResult{device("a", ready, broken)}, []resourcev1.AllocatedDeviceStatus{status("a", is{"Ready": "True", "Attached": "True", "Broken": "True"})}, dra.BindingFailed},
		"one waits, one is done":           {[]resourcev1.DeviceRequestAllocationResult{device("a", ready, nil), device("b", ready, nil)}, []resourcev1.AllocatedDeviceStatus{status("b", is{"Ready": "True", "Attached": "True"})}, dra.BindingWaiting},
		"one waits, one is broken":         {[]resourcev1.DeviceRequestAllocationResult{device("a", ready, nil), device("b", ready, broken)}, []resourcev1.AllocatedDeviceStatus{status("b", is{"Broken": "True"})}, dra.BindingFailed},
		"failures without conditions":      {[]resourcev1.DeviceRequestAllocationResult{device("a", nil, broken)}, []resourcev1.AllocatedDeviceStatus{status("a", is{"Broken": "True"})}, dra.BindingNone},
		"one without conditions, one done": {[]resourcev1.DeviceRequestAllocationResult{device("a", nil, nil), device("b", ready, nil)}, []resourcev1.AllocatedDeviceStatus{status("b", is{"Ready": "True", "Attached": "True"})}, dra.BindingDone},
	} {
		claim := &resourcev1.ResourceClaim{}
		claim.Status.Allocation = &resourcev1.AllocationResult{}
		claim.Status.Allocation.Devices.Results, claim.Status.Devices = c.devices, c.statuses
		if got := decodeClaimLife(claim); got.Binding != c.want || !got.BindingSince.Equal(since[c.want]) {
			t.Errorf("%s: %d since %v, want %d since %v", name, got.Binding, got.BindingSince, c.want, since[c.want])
		}
	}
}

func TestDecodesTheLifeOfAPod(t *testing.T) {
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
	want := dra.PodLife{
		Ref: dra.PodRef{Namespace: "lab", Name: "train"}, UID: "pod-1", Created: on(0), Deleted: on(30),
		Node: "node-a", Terminal: true, Group: "gang",
		Claims:    []dra.PodClaim{{Name: "gpu", Template: "t", Claim: claimed}, {Name: "later", Template: "t"}},
		Scheduled: on(5), Sandbox: on(7), Started: on(8), Evicted: true,
	}
	if got := decodePodLife(pod); !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

// Of a container that could not be started runtimes say that it started when
// computers' time began.
func TestAContainerThatCouldNotStart(t *testing.T) {
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
		var told corev1.Pod // as it comes over the wire
		if err := told.Unmarshal(data); err != nil {
			t.Fatal(err)
		}
		if got := decodePodLife(&told).Started; !got.Equal(c.want) {
			t.Errorf("%s: started %v, want %v", name, got, c.want)
		}
	}
}

func TestDecodesWhatKeepsAPodFromRunning(t *testing.T) {
	pod := &corev1.Pod{}
	pod.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "quota"}}
	for name, c := range map[string]struct {
		condition corev1.PodCondition
		want      dra.PodLife
	}{
		"unschedulable":     {corev1.PodCondition{Type: "PodScheduled", Status: "False", Reason: "Unschedulable", Message: "0/1 nodes", LastTransitionTime: second(1)}, dra.PodLife{Gated: true, Unschedulable: "0/1 nodes"}},
		"gated":             {corev1.PodCondition{Type: "PodScheduled", Status: "False", Reason: "SchedulingGated", Message: "gates"}, dra.PodLife{Gated: true}},
		"sandbox not ready": {corev1.PodCondition{Type: "PodReadyToStartContainers", Status: "False", LastTransitionTime: second(1)}, dra.PodLife{Gated: true}},
		"preempted":         {corev1.PodCondition{Type: "DisruptionTarget", Status: "True", Reason: "PreemptionByScheduler"}, dra.PodLife{Gated: true}},
		"not evicted":       {corev1.PodCondition{Type: "DisruptionTarget", Status: "False", Reason: "DeletionByDeviceTaintManager"}, dra.PodLife{Gated: true}},
	} {
		pod.Status.Conditions = []corev1.PodCondition{c.condition}
		if got := decodePodLife(pod); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func TestSumsUpExtendedResourcesAsTheSchedulerDoes(t *testing.T) {
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
		if got := decodePodLife(pod).Extended; !maps.Equal(got, map[string]int64{"example.com/gpu": c.want}) {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestKnowsKubeletsThatTellOfSandboxesAtOnce(t *testing.T) {
	for version, want := range map[string]bool{
		"v1.37.1": true, "v1.36.0": true, "v1.36.0-alpha.1": true, "v1.36.3+k3s1": true, "v2.0.0": true, "v1.36.2-eks-1234": true,
		"v1.35.4": false, "v1.34.4-gke.100": false, "": false, "latest": false, "v1.4.36": false,
	} {
		made := &corev1.Node{}
		made.Name, made.Status.NodeInfo.KubeletVersion = "n", version
		if got := decodeNodeLife(made); got != (dra.NodeLife{Name: "n", SandboxPrompt: want}) {
			t.Errorf("%q: %+v", version, got)
		}
	}
}

func TestDecodesEventsOfBothKindsOfRecorders(t *testing.T) {
	made := &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: "train.17", CreationTimestamp: second(0)}, Reason: "FailedResourceClaimCreation", Message: "exceeded quota",
		InvolvedObject: corev1.ObjectReference{Namespace: "lab", Name: "train", UID: "pod-1"},
	}
	want := dra.Trouble{
		Name: "lab/train.17", Kind: dra.TroubleCreation, Pod: dra.PodRef{Namespace: "lab", Name: "train"}, PodUID: "pod-1",
		Message: "exceeded quota", Count: 1, Last: on(0),
	}
	check := func(what string) {
		t.Helper()
		if got, ok := decodeTrouble(made); !ok || got != want {
			t.Errorf("%s: %+v", what, got)
		}
	}
	check("bare")
	made.FirstTimestamp, want.Last = second(1), on(1)
	made.Reason, want.Kind = "FailedPrepareDynamicResources", dra.TroublePreparation
	check("told once")
	made.LastTimestamp, made.Count, want.Last, want.Count = second(9), 4, on(9), 4
	check("counted")
	made.Series = &corev1.EventSeries{Count: 12, LastObservedTime: metav1.NewMicroTime(on(20).Add(time.Millisecond))}
	want.Count, want.Last = 12, on(20)
	check("a series")
	made.Reason = "Started"
	if _, ok := decodeTrouble(made); ok {
		t.Error("any event is a trouble")
	}
}

func TestDecodesGroups(t *testing.T) {
	template, named, made := "t", "shared", "gang-gpu-x7k2p"
	group := &schedulingv1beta1.PodGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: "gang", UID: "group-1"}}
	group.Spec.ResourceClaims = []schedulingv1beta1.PodGroupResourceClaim{
		{Name: "gpu", ResourceClaimTemplateName: &template}, {Name: "nic", ResourceClaimName: &named},
		{Name: "later", ResourceClaimTemplateName: &template}, {Name: "unneeded", ResourceClaimTemplateName: &template},
	}
	group.Status.ResourceClaimStatuses = []schedulingv1beta1.PodGroupResourceClaimStatus{{Name: "gpu", ResourceClaimName: &made}, {Name: "unneeded"}}
	want := dra.Group{
		Ref: dra.PodRef{Namespace: "lab", Name: "gang"}, UID: "group-1",
		Claims: []dra.PodClaim{{Name: "gpu", Template: "t", Claim: made}, {Name: "nic", Claim: named}, {Name: "later", Template: "t"}},
	}
	if got := decodeGroup(group); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v", got)
	}
}
