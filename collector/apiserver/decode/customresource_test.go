package decode

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/dra-exporter/dra-exporter/collector/apiserver/customresource"
	"github.com/dra-exporter/dra-exporter/collector/dra"
)

// jobWorkload is what Kueue 0.19 makes of a Job whose pods use a claim and an extended
// resource, shortened.
const jobWorkload = `{"apiVersion":"kueue.x-k8s.io/v1beta2","kind":"Workload",
"metadata":{"name":"job-train-7c1e2","namespace":"lab","uid":"w-1","creationTimestamp":"2027-01-15T08:00:01Z",
 "ownerReferences":[{"apiVersion":"batch/v1","kind":"Job","name":"train","uid":"j-1","controller":true,"blockOwnerDeletion":true}]},
"spec":{"active":true,"queueName":"gpus","priority":0,"podSets":[
 {"name":"main","count":3,"template":{"metadata":{},"spec":{"restartPolicy":"Never",
  "containers":[{"name":"c","image":"x","resources":{"requests":{"cpu":"1","example.com/gpu":"2"},"claims":[{"name":"gpu"}]}}],
  "resourceClaims":[{"name":"gpu","resourceClaimTemplateName":"one"}]}}},
 {"name":"driver","count":4,"minCount":1,"template":{"spec":{"containers":[{"name":"c","resources":{"limits":{"nvidia.com/gpu":4}}}]}}}]},
"status":{"conditions":[
 {"type":"QuotaReserved","status":"False","reason":"WaitingForQuota","message":"couldn't assign flavors","lastTransitionTime":"2027-01-15T08:00:05Z","observedGeneration":1}]}}`

func workloadOf(t *testing.T, text string) *customresource.Workload {
	t.Helper()
	object := &customresource.Workload{}
	if err := json.Unmarshal([]byte(text), object); err != nil {
		t.Fatal(err)
	}
	return object
}

func TestKueueWorkload(t *testing.T) {
	want := dra.KueueWorkload{
		Ref: dra.PodRef{Namespace: "lab", Name: "job-train-7c1e2"}, UID: "w-1", Workload: dra.Workload{Kind: "Job", Name: "train", Queue: "gpus"},
		Pods: 4, Claims: true, Extended: []string{"example.com/gpu", "nvidia.com/gpu"},
		Waiting: &dra.KueueWaiting{Reason: "WaitingForQuota", Message: "couldn't assign flavors", Since: on(5)},
	}
	object := workloadOf(t, jobWorkload)
	if got, keep := KueueWorkload(object); !keep || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v\nwant %+v", got, want)
	}
	if got, _ := KueueWorkload(object.DeepCopyObject().(*customresource.Workload)); !reflect.DeepEqual(got, want) {
		t.Errorf("a copy is %+v", got)
	}
	for name, test := range map[string]struct{ conditions, want string }{
		"new":         {``, "Queued: Kueue has not reported on it yet"},
		"reserved":    {`{"type":"QuotaReserved","status":"True"},{"type":"Admitted","status":"False","reason":"UnsatisfiedAdmissionChecks","message":"provisioning"}`, "UnsatisfiedAdmissionChecks: provisioning"},
		"admitted":    {`{"type":"QuotaReserved","status":"True"},{"type":"Admitted","status":"True"}`, ""},
		"evicted":     {`{"type":"QuotaReserved","status":"False","reason":"Pending","message":"preempted"},{"type":"Evicted","status":"True","reason":"Preempted"},{"type":"Admitted","status":"False","reason":"NoReservation","message":"none"}`, "Pending: preempted"},
		"in progress": {`{"type":"Requeued","status":"True"}`, "Queued: Kueue has not reported on it yet"},
	} {
		object := workloadOf(t, `{"metadata":{"name":"x"},"status":{"conditions":[`+test.conditions+`]}}`)
		got, keep := KueueWorkload(object)
		text := ""
		if got.Waiting != nil {
			text = got.Waiting.Reason + ": " + got.Waiting.Message
		}
		if !keep || text != test.want {
			t.Errorf("%s: %q, kept %v", name, text, keep)
		}
	}
	if _, keep := KueueWorkload(workloadOf(t, `{"status":{"conditions":[{"type":"Finished","status":"True"}]}}`)); keep {
		t.Error("one that has finished is kept")
	}
}

// Of many extended resources those are kept that a device class has, and always the same.
func TestKueueExtendedResources(t *testing.T) {
	requests := `"deviceclass.resource.kubernetes.io/gpu":1`
	for i := range 40 {
		requests += fmt.Sprintf(`,"example.com/r-%02d":1`, i)
	}
	var before []string
	for range 5 {
		got, _ := KueueWorkload(workloadOf(t, `{"spec":{"podSets":[{"template":{"spec":{"initContainers":[{"resources":{"requests":{`+requests+`}}}]}}}]}}`))
		if len(got.Extended) != maxExtended || got.Extended[0] != "deviceclass.resource.kubernetes.io/gpu" || before != nil && !slices.Equal(got.Extended, before) {
			t.Errorf("%d: %q", len(got.Extended), got.Extended)
		}
		before = got.Extended
	}
}

func TestKueueOwners(t *testing.T) {
	pod := dra.Consumer{Resource: "pods", Name: "p", UID: "p-1"}
	for name, test := range map[string]struct {
		metadata string
		workload dra.Workload
		pod      dra.Consumer
	}{
		"one pod":       {`"name":"pod-p-1","ownerReferences":[{"kind":"Pod","name":"p","uid":"p-1","controller":true}]`, dra.Workload{}, pod},
		"group of pods": {`"name":"g","annotations":{"kueue.x-k8s.io/is-group-workload":"true"},"ownerReferences":[{"kind":"Pod","name":"p","uid":"p-1"},{"kind":"Pod","name":"q","uid":"q-1"}]`, dra.Workload{Kind: "PodGroup", Name: "g"}, dra.Consumer{}},
		"set":           {`"name":"jobset-s-1","ownerReferences":[{"kind":"ConfigMap","name":"x"},{"kind":"JobSet","name":"s","controller":true}]`, dra.Workload{Kind: "JobSet", Name: "s"}, dra.Consumer{}},
		"nothing":       {`"name":"lonely"`, dra.Workload{}, dra.Consumer{}},
	} {
		got, _ := KueueWorkload(workloadOf(t, `{"metadata":{`+test.metadata+`}}`))
		if got.Workload != test.workload || got.Pod != test.pod {
			t.Errorf("%s: %+v, %+v", name, got.Workload, got.Pod)
		}
	}
}

func TestHeldByKueue(t *testing.T) {
	pod := &corev1.Pod{}
	expect := func(held bool, workload string) {
		t.Helper()
		switch got := PodLifecycle(pod, DefaultWorkloads()).HeldBy; {
		case got == nil && held, got != nil && (!held || *got != workload):
			t.Errorf("held %v, want %q", got, workload)
		}
	}
	pod.Labels = map[string]string{"kueue.x-k8s.io/pod-group-name": "g"}
	expect(false, "")
	pod.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "example.com/wait"}}
	expect(false, "")
	pod.Spec.SchedulingGates = append(pod.Spec.SchedulingGates, corev1.PodSchedulingGate{Name: "kueue.x-k8s.io/admission"})
	expect(true, "g")
	pod.Annotations = map[string]string{"kueue.x-k8s.io/workload": "leaderworkerset-llm-0"}
	expect(true, "leaderworkerset-llm-0")
	pod.Labels, pod.Annotations = nil, nil
	expect(true, "")
}

// readyDomain is a ComputeDomain of NVIDIA's driver 0.4, shortened.
const readyDomain = `{"apiVersion":"resource.nvidia.com/v1beta1","kind":"ComputeDomain",
"metadata":{"name":"nvl","namespace":"lab","uid":"d-1","creationTimestamp":"2027-01-15T08:00:01Z","finalizers":["resource.nvidia.com/computeDomain"]},
"spec":{"numNodes":2,"channel":{"allocationMode":"Single","resourceClaimTemplate":{"name":"nvl-channel"}}},
"status":{"status":"Ready","nodes":[
 {"name":"node-b","ipAddress":"10.0.0.2","cliqueID":"a1b2.4","index":1,"status":"Ready"},
 {"name":"node-a","ipAddress":"10.0.0.1","cliqueID":"a1b2.4","index":0,"status":"NotReady"}]}}`

func TestComputeDomain(t *testing.T) {
	object := &customresource.ComputeDomain{}
	if err := json.Unmarshal([]byte(readyDomain), object); err != nil {
		t.Fatal(err)
	}
	want := dra.ComputeDomain{
		Ref: dra.PodRef{Namespace: "lab", Name: "nvl"}, UID: "d-1", Created: on(1), Template: "nvl-channel", NumNodes: 2, Ready: true,
		Nodes: []dra.ComputeDomainNode{{Name: "node-a", Clique: "a1b2.4"}, {Name: "node-b", Clique: "a1b2.4", Ready: true}},
	}
	for _, of := range []*customresource.ComputeDomain{object, object.DeepCopyObject().(*customresource.ComputeDomain)} {
		if got := ComputeDomain(of); !reflect.DeepEqual(got, want) {
			t.Errorf("%+v\nwant %+v", got, want)
		}
	}
	if got := ComputeDomain(&customresource.ComputeDomain{}); got.Ready || got.NumNodes != 0 || len(got.Nodes) != 0 {
		t.Errorf("an empty one is %+v", got)
	}
}

// FuzzCustomResources decodes what writers of custom resources decide on.
func FuzzCustomResources(f *testing.F) {
	f.Add([]byte(jobWorkload))
	f.Add([]byte(readyDomain))
	f.Add([]byte(`{"metadata":{"ownerReferences":[{"kind":"Pod"}]},"spec":{"podSets":[{"count":-7},{"count":2147483647},{"count":2147483647,"minCount":-1}]}}`))
	f.Add([]byte(`{"spec":{"numNodes":-1},"status":{"nodes":[{},{}]}}`))
	f.Add([]byte(`{"spec":{"queueName":"` + strings.Repeat("q", 300) + "\xff" + `"}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		workload := &customresource.Workload{}
		if json.Unmarshal(data, workload) == nil {
			decoded, _ := KueueWorkload(workload)
			checkText(t, decoded)
			if decoded.Pods < 0 || len(decoded.Extended) > maxExtended || len(decoded.Workload.Queue) > maxName {
				t.Errorf("%+v", decoded)
			}
			if copied, _ := KueueWorkload(workload.DeepCopyObject().(*customresource.Workload)); !reflect.DeepEqual(copied, decoded) {
				t.Errorf("a copy decodes to %+v, not %+v", copied, decoded)
			}
		}
		domain := &customresource.ComputeDomain{}
		if json.Unmarshal(data, domain) == nil {
			decoded := ComputeDomain(domain)
			checkText(t, decoded)
			if decoded.NumNodes < 0 || len(decoded.Nodes) > maxDomainNodes {
				t.Errorf("%+v", decoded)
			}
		}
	})
}
