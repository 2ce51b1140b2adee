package explain_test

import (
	"time"

	"github.com/dra-exporter/dra-exporter/internal/clusterread"

	"github.com/dra-exporter/dra-exporter/collector/cluster"
	"github.com/dra-exporter/dra-exporter/collector/dra"
)

// now is the time of all text cases.
var now = time.Date(2026, 11, 21, 22, 43, 40, 500_000_000, time.UTC)

// ago is a server's timestamp.
func ago(d time.Duration) time.Time { return now.Add(-d).Truncate(time.Second) }

func gpu(node, name string) dra.DeviceID {
	return dra.DeviceID{Driver: "gpu.example.com", Pool: node, Name: name}
}

// testObjects returns a namespace with a pod that is pending for a claim of a
// template, and another namespace whose pod holds devices.
func testObjects() *clusterread.Objects {
	w := clusterread.NewObjects()
	w.Apply(dra.Change{Claim: createdClaim()})
	w.Apply(dra.Change{Pod: &dra.PodLifecycle{
		Ref: dra.PodRef{Namespace: "team-a", Name: "train-0"}, UID: "train-0", Created: ago(4 * time.Minute),
		Claims:        []dra.PodClaim{{Name: "gpus", Template: "gpus", Claim: "train-0-gpus-x7k2p"}},
		Unschedulable: "0/2 nodes are available: 2 cannot allocate all claims.",
	}})
	w.Apply(dra.Change{Claim: &dra.ClaimLifecycle{
		Ref: dra.ClaimRef{Namespace: "team-b", Name: "serve"}, UID: "claim-serve", Created: ago(3 * time.Hour), Classes: []string{"gpu.example.com"},
		Allocated: true, AllocatedAt: ago(3*time.Hour - time.Second), Node: "node-a",
		Results:     []dra.AllocatedDevice{{Request: "gpu", Class: "gpu.example.com", Device: gpu("node-a", "gpu-0")}, {Request: "gpu", Class: "gpu.example.com", Device: gpu("node-a", "gpu-1")}},
		ReservedFor: []dra.Consumer{{Resource: "pods", Name: "serve-0", UID: "serve-0"}},
		Finalizers:  []string{"resource.kubernetes.io/delete-protection"},
	}})
	w.Apply(dra.Change{Pod: &dra.PodLifecycle{
		Ref: dra.PodRef{Namespace: "team-b", Name: "serve-0"}, UID: "serve-0", Created: ago(3 * time.Hour), Node: "node-a",
		Claims:    []dra.PodClaim{{Name: "gpu", Claim: "serve"}},
		Scheduled: ago(3*time.Hour - time.Second), Sandbox: ago(3*time.Hour - 2*time.Second), Started: ago(3*time.Hour - 4*time.Second),
	}})
	w.Apply(dra.Change{Claim: &dra.ClaimLifecycle{
		Ref: dra.ClaimRef{Namespace: "team-c", Name: "leftover"}, UID: "claim-leftover", Created: ago(9 * time.Hour), Classes: []string{"gpu.example.com"},
		Allocated: true, AllocatedAt: ago(8 * time.Hour), Node: "node-a",
		Results: []dra.AllocatedDevice{{Request: "gpu", Class: "gpu.example.com", Device: gpu("node-a", "gpu-2")}},
	}})
	return w
}

// createdClaim returns the claim of the pending pod.
func createdClaim() *dra.ClaimLifecycle {
	return &dra.ClaimLifecycle{
		Ref: dra.ClaimRef{Namespace: "team-a", Name: "train-0-gpus-x7k2p"}, UID: "claim-train-0", Created: ago(4 * time.Minute),
		MadeFor: dra.Consumer{Resource: "pods", Name: "train-0", UID: "train-0"}, PodClaim: "gpus", Classes: []string{"gpu.example.com"},
	}
}

// spec requests a number of GPUs with much memory.
func spec(count int64) clusterread.Spec {
	return clusterread.Spec{Requests: []clusterread.Request{{
		Name: "gpus", DeviceClass: "gpu.example.com", Count: count,
		Selectors: []string{`device.capacity["gpu.example.com"].memory.compareTo(quantity("40Gi")) >= 0`},
	}}}
}

// pendingRef is the reference of the pending pod.
func pendingRef(reason dra.PendingReason, message string, diagnosis *dra.Diagnosis) cluster.PendingRef {
	return cluster.PendingRef{
		Pod: dra.PodRef{Namespace: "team-a", Name: "train-0"}, PodUID: "train-0", PodClaim: "gpus", Claim: "train-0-gpus-x7k2p",
		DeviceClass: "gpu.example.com", Since: ago(4 * time.Minute), Reason: reason, Message: message, Diagnosis: diagnosis,
	}
}

// diagnosis is the diagnosis of the pending pod's only request.
func diagnosis(reason dra.PendingReason, asked int64, left [dra.Stages]int, detail dra.Detail) *dra.Diagnosis {
	return &dra.Diagnosis{
		Pod: dra.PodRef{Namespace: "team-a", Name: "train-0"}, PodUID: "train-0", PodClaim: "gpus", Reason: reason,
		Requests: []dra.RequestStages{{Request: "gpus", Class: "gpu.example.com", Count: asked, Left: left}}, Detail: &detail,
	}
}

// facts returns the objects with one pending reference.
func facts(count int64, waiting ...cluster.PendingRef) clusterread.Facts {
	return clusterread.Facts{
		Now: now, Objects: testObjects(), Pending: waiting,
		Claims: map[dra.ClaimRef]clusterread.Spec{
			{Namespace: "team-a", Name: "train-0-gpus-x7k2p"}: spec(count),
		},
		Templates: map[clusterread.Template]clusterread.Spec{{Namespace: "team-a", Name: "gpus"}: spec(count)},
		Classes:   []string{"gpu.example.com", "nic.example.com"},
	}
}

var (
	pod   = clusterread.Subject{Kind: clusterread.KindPod, Namespace: "team-a", Name: "train-0"}
	claim = clusterread.Subject{Kind: clusterread.KindClaim, Namespace: "team-a", Name: "train-0-gpus-x7k2p"}
	job   = clusterread.Subject{Kind: clusterread.KindWorkload, Namespace: "team-a", Name: "train"}
)

// leftover is a claim that holds a device and is not reserved.
var leftover = dra.Holder{Request: "gpus", Claim: dra.ClaimRef{Namespace: "team-c", Name: "leftover"}, Devices: []dra.DeviceID{gpu("node-a", "gpu-2")}}

// serve is a pod that holds two of the devices that the pending pod could use.
var serve = dra.Holder{
	Request: "gpus", Claim: dra.ClaimRef{Namespace: "team-b", Name: "serve"}, Pods: []string{"serve-0"},
	Devices: []dra.DeviceID{gpu("node-a", "gpu-0"), gpu("node-a", "gpu-1")},
}
