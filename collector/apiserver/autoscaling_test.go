package apiserver

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// TestAutoscalingEvents: events of autoscalers about pods are read, by their reasons, and
// those of the scheduler with the same reason are not.
func TestAutoscalingEvents(t *testing.T) {
	f := startClusterTest(t, nil)
	made := 0
	event := func(reason, source, kind string) *corev1.Event {
		made++
		e := &corev1.Event{Reason: reason, Message: "m", Type: "Normal"}
		e.Namespace, e.Name, e.UID = "lab", fmt.Sprintf("e%d", made), "uid"
		e.InvolvedObject = corev1.ObjectReference{Kind: kind, Namespace: "lab", Name: "pod", UID: "pod-uid"}
		e.Source.Component = source
		return e
	}
	later := event("Nominated", "karpenter", "Pod")
	later.ReportingController, later.Source.Component = later.Source.Component, ""
	f.put(
		event("TriggeredScaleUp", "cluster-autoscaler", "Pod"), event("NotTriggerScaleUp", "cluster-autoscaler", "Pod"), // e2, e3
		event("FailedScheduling", "karpenter", "Pod"), event("FailedScheduling", "eks-auto-mode/compute", "Pod"), // e4, e5
		event("FailedScheduling", "default-scheduler", "Pod"), event("Nominated", "karpenter", "NodeClaim"), later,
	)
	want := map[string]string{"e1": "scale_up", "e2": "scale_up", "e3": "declined", "e4": "declined", "e5": "declined", "e6": "", "e7": ""}
	f.until("the events are known", func() bool {
		for name, state := range want {
			if f.state["autoscaling lab/"+name] != state {
				return false
			}
		}
		return true
	})
	f.untilSynced()
	for name, state := range want {
		if got := f.state["autoscaling lab/"+name]; got != state {
			t.Errorf("event %s: %q, want %q", name, got, state)
		}
	}
	if status, found := f.status("events"); !found || !status.Up || status.Errors != 0 {
		t.Errorf("the source is %+v", status)
	}
}
