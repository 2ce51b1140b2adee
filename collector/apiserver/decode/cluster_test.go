package decode

import (
	"reflect"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dra-exporter/dra-exporter/collector/dra"
)

func TestSandboxPrompt(t *testing.T) {
	for version, want := range map[string]bool{
		"v1.37.1": true, "v1.36.0": true, "v1.36.0-alpha.1": true, "v1.36.3+k3s1": true, "v2.0.0": true, "v1.36.2-eks-1234": true,
		"v1.35.4": false, "v1.34.4-gke.100": false, "": false, "latest": false, "v1.4.36": false,
	} {
		made := &corev1.Node{}
		made.Name, made.Status.NodeInfo.KubeletVersion = "n", version
		if got := Node(made, DefaultTopology()); got != (dra.Node{Name: "n", SandboxPrompt: want, Kubelet: version}) {
			t.Errorf("%q: %+v", version, got)
		}
	}
}

func TestEvents(t *testing.T) {
	made := &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: "train.17", CreationTimestamp: second(0)}, Reason: "FailedResourceClaimCreation", Message: "exceeded quota",
		InvolvedObject: corev1.ObjectReference{Namespace: "lab", Name: "train", UID: "pod-1"},
	}
	want := dra.Warning{
		Name: "lab/train.17", Kind: dra.WarningCreation, Pod: dra.PodRef{Namespace: "lab", Name: "train"}, PodUID: "pod-1",
		Message: "exceeded quota", Count: 1, Last: on(0),
	}
	check := func(what string) {
		t.Helper()
		if got, ok := Warning(made); !ok || got != want {
			t.Errorf("%s: %+v", what, got)
		}
	}
	check("bare")
	made.FirstTimestamp, want.Last = second(1), on(1)
	made.Reason, want.Kind = "FailedPrepareDynamicResources", dra.WarningPreparation
	check("reported once")
	made.LastTimestamp, made.Count, want.Last, want.Count = second(9), 4, on(9), 4
	check("counted")
	made.Series = &corev1.EventSeries{Count: 12, LastObservedTime: metav1.NewMicroTime(on(20).Add(time.Millisecond))}
	want.Count, want.Last = 12, on(20)
	check("a series")
	made.Reason = "Started"
	if _, ok := Warning(made); ok {
		t.Error("any event is a warning about a claim")
	}
}

func TestGroup(t *testing.T) {
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
	if got := Group(group); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v", got)
	}
}
