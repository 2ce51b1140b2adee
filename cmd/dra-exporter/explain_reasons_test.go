package main

import (
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/dra-exporter/dra-exporter/internal/demo/apiserver"
)

// smallCluster serves the cluster of testdata/explain.yaml and the objects of a
// test.
func smallCluster(t *testing.T, more ...apiserver.Object) string {
	t.Helper()
	return smallClusterWith(t, apiserver.Options{}, more...)
}

func smallClusterWith(t *testing.T, options apiserver.Options, more ...apiserver.Object) string {
	t.Helper()
	server, err := apiserver.Start(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Stop)
	text, err := os.ReadFile("testdata/explain.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Put(append(objectsOf(t, text), more...)...); err != nil {
		t.Fatal(err)
	}
	return kubeconfigOf(t, server.Config().Host)
}

// objectsOf decodes a List of the kinds that the tests use.
func objectsOf(t *testing.T, text []byte) []apiserver.Object {
	t.Helper()
	var list struct {
		Items []map[string]any `json:"items"`
	}
	if err := yaml.Unmarshal(text, &list); err != nil {
		t.Fatal(err)
	}
	var objects []apiserver.Object
	for _, item := range list.Items {
		object, known := map[string]apiserver.Object{
			"Node": &corev1.Node{}, "Pod": &corev1.Pod{}, "DeviceClass": &resourcev1.DeviceClass{},
			"ResourceSlice": &resourcev1.ResourceSlice{}, "ResourceClaim": &resourcev1.ResourceClaim{},
		}[fmt.Sprint(item["kind"])]
		if !known {
			t.Fatalf("no kind %v", item["kind"])
		}
		one, err := yaml.Marshal(item)
		if err == nil {
			err = yaml.UnmarshalStrict(one, object)
		}
		if err != nil {
			t.Fatal(err)
		}
		objects = append(objects, object)
	}
	return objects
}

// pendingPodObjects returns a pod that is pending for a claim with the
// specification.
func pendingPodObjects(t *testing.T, specification string) []apiserver.Object {
	t.Helper()
	claim := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Name: "train", Namespace: "team-a"}}
	if err := yaml.UnmarshalStrict([]byte(specification), &claim.Spec); err != nil {
		t.Fatal(err)
	}
	return []apiserver.Object{claim, pendingPod("train-0", "train")}
}

func pendingPod(name, claim string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "team-a"},
		Spec: corev1.PodSpec{
			Containers:     []corev1.Container{{Name: "main", Image: "i"}},
			ResourceClaims: []corev1.PodResourceClaim{{Name: "gpu", ResourceClaimName: &claim}},
		},
		Status: corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{{
			Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable,
			Message: "0/3 nodes are available: 3 cannot allocate all claims.",
		}}},
	}
}

// singleRequest returns a specification of a single request.
func singleRequest(terms string) string {
	return "devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu.example.com, allocationMode: ExactCount, " + terms + "}}]}"
}

// Each reason that depends on devices, from real objects to its text and
// advice.
func TestExplainEachReason(t *testing.T) {
	for name, test := range map[string]struct {
		specification string
		want          []string
	}{
		"insufficient_devices": {singleRequest("count: 6"), []string{"pending since", "asks for 6 devices, and only 5 of the", "add 1 matching device", "1 of 5 devices for request gpu has a taint that is not tolerated"}},
		"fragmented":           {singleRequest("count: 2"), []string{"2 are free, but no node has more than 1", "request gpu needs 2 devices on one node", "team-b/serve (pod serve-0)"}},
		"tainted": {singleRequest(`count: 1, selectors: [{cel: {expression: 'device.attributes["gpu.example.com"].model == "B200"'}}]`), []string{
			"taint example.com/cooling=broken:NoSchedule of the driver", "`tolerations: [{key: example.com/cooling, operator: Exists, effect: NoSchedule}]`", "such as gpu.example.com/node-c/gpu-0"}},
		"no_matching_device": {singleRequest(`count: 1, selectors: [{cel: {expression: 'device.attributes["gpu.example.com"].model == "TPU"'}}]`), []string{
			"widen the selectors of request gpu: they match none of 5 devices of class gpu.example.com", `selected by device.attributes["gpu.example.com"].model == "TPU"`}},
		"no_matching_device, for CEL that does not compile": {singleRequest(`count: 1, selectors: [{cel: {expression: 'device.atributes["x"].y'}}]`), []string{
			"CEL expressions that fail", "request gpu:", `device.atributes["x"].y`, "correct the CEL expression of request gpu: it does not compile"}},
		"no_matching_device, for CEL that fails": {singleRequest(`count: 1, selectors: [{cel: {expression: 'device.attributes["gpu.example.com"].flavour == "x"'}}]`), []string{
			"fails for gpu.example.com/", "no such key: flavour", "check first that the attribute or capacity exists"}},
		"undetermined": {singleRequest(`count: 1, selectors: [{cel: {expression: 'device.attributes["gpu.example.com"].model == "TPU" // ` + strings.Repeat("long ", 1000) + `'}}]`), []string{
			"cannot be diagnosed: one of its selectors has 5055 bytes, more than the limit of 4096", "exceeds a"}},
		"no_device_class": {"devices: {requests: [{name: gpu, exactly: {deviceClassName: gpus.example.com, allocationMode: ExactCount, count: 1}}]}", []string{
			"create DeviceClass gpus.example.com", "similar to gpus.example.com: gpu.example.com"}},
		"pool_incomplete": {"devices: {requests: [{name: nic, exactly: {deviceClassName: nic.example.com, allocationMode: ExactCount, count: 1}}]}", []string{
			"check the log of driver nic.example.com on node-b: pool node-b has 1 slice, fewer than announced"}},
		"constraints_unsatisfiable": {`devices:
  requests:
  - {name: one, exactly: {deviceClassName: gpu.example.com, allocationMode: ExactCount, count: 1, adminAccess: true}}
  - {name: two, exactly: {deviceClassName: gpu.example.com, allocationMode: ExactCount, count: 1}}
  constraints: [{requests: [one, two], matchAttribute: gpu.example.com/fabric}]`, []string{
			"relax the constraint that the devices of one and two have the same gpu.example.com/fabric"}},
		"insufficient_devices, of a prioritized list": {`devices: {requests: [{name: gpu, firstAvailable: [
  {name: large, deviceClassName: gpu.example.com, allocationMode: ExactCount, count: 9},
  {name: small, deviceClassName: gpu.example.com, allocationMode: ExactCount, count: 4}]}]}`, []string{
			"gpu: the first of these that can be allocated", "gpu/large", "gpu/small", "one alternative of a prioritized list is enough"}},
	} {
		t.Run(name, func(t *testing.T) {
			kubeconfig := smallCluster(t, pendingPodObjects(t, test.specification)...)
			code, stdout, stderr := runExplainCommand(kubeconfig, "claim", "team-a/train")
			reason, _, _ := strings.Cut(name, ",")
			for _, want := range append(test.want, "Pending: "+reason) {
				if !strings.Contains(flat(stdout), want) {
					t.Errorf("no %q", want)
				}
			}
			if code != 0 || stderr != "" {
				t.Errorf("exit code %d, %q", code, stderr)
			}
			t.Logf("\n%s", stdout)
		})
	}
}

// flat replaces line breaks by spaces.
func flat(text string) string { return strings.Join(strings.Fields(text), " ") }

// The holders of a claim's device are looked up beyond its reservations, before
// the advice is to delete it.
func TestExplainDeviceHolders(t *testing.T) {
	held := func(name, node string, reserved ...resourcev1.ResourceClaimConsumerReference) *resourcev1.ResourceClaim {
		claim := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "team-a"}}
		claim.Status.Allocation = &resourcev1.AllocationResult{Devices: resourcev1.DeviceAllocationResult{Results: []resourcev1.DeviceRequestAllocationResult{
			{Request: "gpu", Driver: "gpu.example.com", Pool: node, Device: "gpu-1"},
		}}}
		claim.Status.ReservedFor = reserved
		return claim
	}
	group := resourcev1.ResourceClaimConsumerReference{APIGroup: "scheduling.k8s.io", Resource: "podgroups", Name: "gang", UID: "gang"}
	for name, test := range map[string]struct {
		more  []apiserver.Object
		want  string
		never string
	}{
		"a group":          {[]apiserver.Object{held("other", "node-a", group)}, "team-a/other (PodGroup gang)", "kubectl delete resourceclaim"},
		"a pod that waits": {[]apiserver.Object{held("other", "node-a"), pendingPod("next-0", "other")}, "team-a/other (pod next-0)", "kubectl delete resourceclaim"},
		"pods that are gone": {[]apiserver.Object{held("other", "node-a", resourcev1.ResourceClaimConsumerReference{Resource: "pods", Name: "gone-0", UID: "gone-0"})},
			"the pods of team-a/other no longer exist: check that kube-controller-manager runs", "gone-0"},
		"unused": {[]apiserver.Object{held("other", "node-a")}, "no pod uses team-a/other, which holds 1: `kubectl delete resourceclaim -n team-a other`", "(no pod)"},
	} {
		_, stdout, _ := runExplainCommand(smallCluster(t, append(test.more, pendingPodObjects(t, singleRequest("count: 2"))...)...), "claim", "team-a/train")
		if text := flat(stdout); !strings.Contains(text, test.want) || strings.Contains(text, test.never) {
			t.Errorf("%s: want %q and not %q in\n%s", name, test.want, test.never, stdout)
		}
	}
}

// A pod that requests an extended resource has no claim while it is pending.
func TestExplainExtendedResource(t *testing.T) {
	pod := pendingPod("infer", "")
	pod.Spec.ResourceClaims = nil
	pod.Spec.Containers[0].Resources.Requests = corev1.ResourceList{"example.com/gpu": resource.MustParse("2")}
	_, stdout, _ := runExplainCommand(smallCluster(t, pod), "pod", "team-a/infer")
	for _, want := range []string{"Extended resource example.com/gpu: fragmented", "2 devices of class gpu.example.com", "recreate the pod"} {
		if !strings.Contains(flat(stdout), want) {
			t.Errorf("no %q in\n%s", want, stdout)
		}
	}
}

// Pods that share a claim have one explanation, however many they are.
func TestExplainClaimOfManyPods(t *testing.T) {
	objects := pendingPodObjects(t, singleRequest("count: 6"))
	for i := range 40 {
		objects = append(objects, pendingPod(fmt.Sprintf("train-%d", i+1), "train"))
	}
	_, stdout, _ := runExplainCommand(smallCluster(t, objects...), "claim", "team-a/train")
	if strings.Count(stdout, "Pending: insufficient_devices") != 1 || strings.Contains(stdout, "unknown") || !strings.Contains(flat(stdout), "and 37 more: pending since") {
		t.Errorf("not shown once:\n%s", stdout)
	}
}

// A pod that has its devices and is not running has its current phase
// explained.
func TestExplainCurrentPhase(t *testing.T) {
	kubeconfig := smallCluster(t)
	for _, args := range [][]string{{"claim", "team-b/preparing"}, {"pod", "team-b/preparing-0"}} {
		_, stdout, _ := runExplainCommand(kubeconfig, args...)
		for _, want := range []string{"preparation", "in progress since 2026-11-20 09:00:02 UTC", "on node-b, gpu.example.com prepares the devices"} {
			if !strings.Contains(flat(stdout), want) {
				t.Errorf("%v: no %q in\n%s", args, want, stdout)
			}
		}
	}
}

// A device taint rule is named, with advice on how to remove it.
func TestExplainTaintRule(t *testing.T) {
	driver := "gpu.example.com"
	rule := &resourcev1.DeviceTaintRule{ObjectMeta: metav1.ObjectMeta{Name: "maintenance"}}
	rule.Spec.DeviceSelector = &resourcev1.DeviceTaintSelector{Driver: &driver}
	rule.Spec.Taint = resourcev1.DeviceTaint{Key: "example.com/maintenance", Value: "planned", Effect: resourcev1.DeviceTaintEffectNoSchedule}
	_, stdout, _ := runExplainCommand(smallCluster(t, append(pendingPodObjects(t, singleRequest("count: 2")), rule)...), "claim", "team-a/train")
	for _, want := range []string{
		"Pending: tainted", "taint example.com/maintenance=planned:NoSchedule of the rule maintenance", "gpu: 5 of 5 have taint",
		"{key: example.com/maintenance, operator: Exists, effect: NoSchedule}", "`kubectl delete devicetaintrule maintenance`",
	} {
		if !strings.Contains(flat(stdout), want) {
			t.Errorf("no %q in\n%s", want, stdout)
		}
	}
}

// With access to one namespace only, devices held by others appear free: the
// output does not claim that devices suffice.
func TestExplainWithoutOtherNamespaces(t *testing.T) {
	confined := apiserver.Options{Intercept: func(request apiserver.Request) int {
		if request.Namespace == "" && request.Resource == "resourceclaims" {
			return http.StatusForbidden
		}
		return 0
	}}
	code, stdout, stderr := runExplainCommand(smallClusterWith(t, confined, pendingPodObjects(t, singleRequest("count: 2"))...), "claim", "team-a/train")
	for _, want := range []string{"Pending: unknown", "3 cannot allocate all claims", "the claims of other namespaces could not be read", "gpu 2 6 5 5 4 4 2"} {
		if !strings.Contains(flat(stdout), want) {
			t.Errorf("no %q", want)
		}
	}
	if code != 0 || strings.Contains(stdout, "suffice") || strings.Contains(stdout, "Node with matching devices") {
		t.Errorf("exit code %d\n%s%s", code, stdout, stderr)
	}
}
