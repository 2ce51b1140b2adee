package cluster

import (
	"testing"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/dra"
)

func queued(name, kind, of string, reason string) dra.KueueWorkload {
	k := dra.KueueWorkload{Ref: dra.PodRef{Namespace: "lab", Name: name}, UID: "uid-" + name, Pods: 4, Claims: true, Workload: dra.Workload{Kind: kind, Name: of, Queue: "gpus"}}
	if reason != "" {
		k.Waiting = &dra.KueueWaiting{Reason: reason, Message: "insufficient quota", Since: second(5)}
	}
	return k
}

// A job that Kueue has suspended has no pods, and is a workload all the same. Its
// pods belong to it once it is admitted.
func TestQueuedJob(t *testing.T) {
	h := newHarness(t)
	h.update(queued("job-train-1", "Job", "train", "WaitingForQuota"))
	h.step(time.Second)
	h.expectRows(`
		dra_workload_info{namespace="lab",queue="gpus",workload="train",workload_kind="Job"} 1
		dra_workload_min_pods{namespace="lab",workload="train",workload_kind="Job"} 4
		dra_workload_queued_since_timestamp_seconds{namespace="lab",reason="WaitingForQuota",workload="train",workload_kind="Job"} 1.795168805e+09`, "dra_workload_")
	h.update(queued("job-train-1", "Job", "train", "NoMatchingFlavor"))
	h.step(time.Second)
	h.expectRows(`dra_workload_queued_since_timestamp_seconds{namespace="lab",reason="NoMatchingFlavor",workload="train",workload_kind="Job"} 1.795168805e+09`, "dra_workload_queued")
	p := member(pod("lab/p", 20, "gpu<one"), "Job/train", "", 0)
	h.update(queued("job-train-1", "Job", "train", ""), p)
	h.step(time.Second)
	h.expectRows(`
		dra_workload_info{namespace="lab",queue="q",workload="train",workload_kind="Job"} 1
		dra_workload_min_pods{namespace="lab",workload="train",workload_kind="Job"} 4
		dra_workload_pods{namespace="lab",state="pending",workload="train",workload_kind="Job"} 1`, "dra_workload_")
	h.remove(p)
	h.step(time.Second)
	h.expectRows(``, "dra_workload_") // it is admitted
	h.remove(queued("job-train-1", "Job", "train", ""))
	h.step(time.Second)
	h.expectRows(``, "dra_workload_")
}

// Of jobs that use no claims, those are shown that request an extended resource which
// a device class has, once that is known.
func TestQueuedExtendedResource(t *testing.T) {
	h := newHarness(t)
	job := queued("job-train-1", "Job", "train", "WaitingForQuota")
	job.Claims, job.Extended = false, []string{"example.com/gpu"}
	other := queued("job-web-1", "Job", "web", "WaitingForQuota")
	other.Claims, other.Extended = false, []string{"example.com/fpga"}
	h.update(job, other)
	h.step(time.Second)
	h.expectRows(``, "dra_workload_")
	h.facts.Supply = testSupply()
	h.step(time.Second)
	h.expectRows(`dra_workload_info{namespace="lab",queue="gpus",workload="train",workload_kind="Job"} 1`, "dra_workload_info")
}

// A StatefulSet is a group of pods to Kueue: the pods say what they belong to, in
// whichever order they and the Workload are observed.
func TestQueuedPodsOfAnotherKind(t *testing.T) {
	p := member(pod("lab/p", 20, "gpu<one"), "StatefulSet/web", "", 0)
	p.Gated, p.HeldBy = true, new("web")
	k := queued("web", "PodGroup", "web", "WaitingForQuota")
	for name, order := range map[string][2]any{"pod first": {p, k}, "pod last": {k, p}} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t)
			for _, object := range order {
				h.update(object)
				h.step(time.Second)
			}
			h.expectRows(`
				dra_workload_queued_since_timestamp_seconds{namespace="lab",reason="WaitingForQuota",workload="web",workload_kind="StatefulSet"} 1.795168805e+09`, "dra_workload_queued")
			if w := h.onlyPending(); w.Reason != dra.ReasonQueueQuota {
				t.Errorf("the pod is pending because of %s", w.Reason)
			}
			k := k
			k.Waiting = nil
			h.update(k)
			h.step(time.Second)
			h.expectRows(``, "dra_workload_queued")
			if w := h.onlyPending(); w.Reason != dra.ReasonGated {
				t.Errorf("the pod is pending because of %s", w.Reason)
			}
		})
	}
}
