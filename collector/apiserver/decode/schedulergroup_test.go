package decode

import (
	"encoding/json"
	"reflect"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/dra-exporter/dra-exporter/collector/apiserver/customresource"
	"github.com/dra-exporter/dra-exporter/collector/dra"
)

func TestSchedulerGroup(t *testing.T) {
	for name, test := range map[string]struct {
		api, text string
		want      dra.Group
		gang      bool
	}{
		"Volcano": {
			"scheduling.volcano.sh", `"spec":{"minMember":3,"minTaskMember":{"worker":2},"queue":"q"},"status":{"phase":"Pending","conditions":[
{"type":"Unschedulable","status":"True","transitionID":"1","reason":"NotEnoughResources","message":"3/3 tasks in gang unschedulable"}]}`,
			dra.Group{MinPods: 3, Unschedulable: "3/3 tasks in gang unschedulable"}, true,
		},
		"Volcano, placed": {
			"scheduling.volcano.sh", `"spec":{"minMember":3},"status":{"phase":"Running","conditions":[{"type":"Scheduled","status":"True","message":"tasks in gang are ready to be scheduled"}]}`,
			dra.Group{MinPods: 3}, true,
		},
		"KAI": {
			"scheduling.run.ai", `"spec":{"minMember":2},"status":{"schedulingConditions":[{"type":"UnschedulableOnNodePool","nodePool":"default","status":"True","message":"no node has 8 GPUs"}]}`,
			dra.Group{MinPods: 2, Unschedulable: "no node has 8 GPUs"}, true,
		},
		"single":    {"scheduling.run.ai", `"spec":{"minMember":1}`, dra.Group{MinPods: 1}, false},
		"no number": {"scheduling.volcano.sh", `"spec":{"minMember":-4}`, dra.Group{}, false},
	} {
		t.Run(name, func(t *testing.T) {
			test.want.Ref, test.want.UID = dra.PodRef{Namespace: "lab", Name: "podgroup." + test.api + "/train"}, "g-1"
			object := &customresource.PodGroup{}
			if err := json.Unmarshal([]byte(`{"metadata":{"namespace":"lab","name":"train","uid":"g-1"},`+test.text+`}`), object); err != nil {
				t.Fatal(err)
			}
			if got, gang := SchedulerGroup(test.api, object); gang != test.gang || !reflect.DeepEqual(got, test.want) {
				t.Errorf("%+v, a gang: %v\nwant %+v", got, gang, test.want)
			}
			if got, _ := SchedulerGroup(test.api, object.DeepCopyObject().(*customresource.PodGroup)); !reflect.DeepEqual(got, test.want) {
				t.Errorf("a copy is %+v", got)
			}
		})
	}
}

func TestGroupOfPod(t *testing.T) {
	own := "own"
	for name, test := range map[string]struct {
		annotations map[string]string
		group       *string
		want        string
	}{
		"none":       {},
		"Kubernetes": {group: &own, want: "own"},
		"Volcano":    {annotations: map[string]string{"scheduling.k8s.io/group-name": "train-1"}, want: "podgroup.scheduling.volcano.sh/train-1"},
		"KAI":        {annotations: map[string]string{"pod-group-name": "pg-train"}, want: "podgroup.scheduling.run.ai/pg-train"},
		"both":       {annotations: map[string]string{"pod-group-name": "pg-train"}, group: &own, want: "own"},
	} {
		pod := &corev1.Pod{}
		pod.Annotations = test.annotations
		if test.group != nil {
			pod.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: test.group}
		}
		if got := PodLifecycle(pod, DefaultWorkloads()).Group; got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}
