package cluster

import (
	"testing"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/dra"
)

// TestAutoscaling counts the pods with pending claims by the newest event of an
// autoscaler about them.
func TestAutoscaling(t *testing.T) {
	h := newHarness(t)
	newPod := func(name string) dra.PodLifecycle { return pod(name, 10, "gpu=wanted") }
	event := func(name, pod string, state dra.AutoscalingState, at int) dra.Autoscaling {
		of := newPod(pod)
		return dra.Autoscaling{Name: name, Pod: of.Ref, PodUID: of.UID, Autoscaler: dra.ClusterAutoscaler, State: state, Message: "m", Last: second(at)}
	}
	expect := func(what, want string) {
		t.Helper()
		h.step(time.Second)
		t.Log(what)
		h.expectRows(want, "dra_autoscaler_")
	}
	a, b := newPod("a/one"), newPod("a/two")
	h.update(claim("a/wanted", 5), a, b)
	expect("no autoscaler has reported anything", "")
	first := event("a/e1", "a/one", dra.AutoscalingDeclined, 20)
	h.update(first, event("a/e2", "a/unknown", dra.AutoscalingDeclined, 20))
	expect("one declines", `dra_autoscaler_pending_pods{autoscaler="cluster_autoscaler",state="declined"} 1`)
	second := event("a/e3", "a/one", dra.AutoscalingScaleUp, 30)
	h.update(second, first)
	expect("and then adds a node; an older event is delivered again", `dra_autoscaler_pending_pods{autoscaler="cluster_autoscaler",state="declined"} 0
		dra_autoscaler_pending_pods{autoscaler="cluster_autoscaler",state="scale_up"} 1`)
	h.remove(first)
	h.update(event("a/e4", "a/two", dra.AutoscalingScaleUp, 31))
	expect("the older event expires", `dra_autoscaler_pending_pods{autoscaler="cluster_autoscaler",state="declined"} 0
		dra_autoscaler_pending_pods{autoscaler="cluster_autoscaler",state="scale_up"} 2`)
	h.remove(second)
	expect("and the newer one", `dra_autoscaler_pending_pods{autoscaler="cluster_autoscaler",state="declined"} 0
		dra_autoscaler_pending_pods{autoscaler="cluster_autoscaler",state="scale_up"} 1`)
	b.Node = "node-a"
	h.update(b)
	expect("the pod is bound", `dra_autoscaler_pending_pods{autoscaler="cluster_autoscaler",state="declined"} 0
		dra_autoscaler_pending_pods{autoscaler="cluster_autoscaler",state="scale_up"} 0`)
	h.facts.Synced.Events = false
	expect("events cannot be read", "")
}
