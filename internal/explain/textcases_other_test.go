package explain_test

import (
	"fmt"
	"strconv"
	"time"

	"github.com/dra-exporter/dra-exporter/internal/clusterread"

	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/collector/model"
	"github.com/dra-exporter/dra-exporter/collector/source"
)

// otherTextCases returns cases that are pending for something else than
// devices.
func otherTextCases() map[string]textCase {
	missing := pendingRef(dra.ReasonClaimMissing, "resourceclaim \"traning\" not found", nil)
	missing.Claim = ""
	missingFacts := facts(2, missing)
	missingFacts.Objects.Apply(dra.Change{Pod: &dra.PodLifecycle{Ref: missing.Pod, UID: "train-0", Created: ago(4 * time.Minute), Claims: []dra.PodClaim{{Name: "gpus", Claim: "train-0-gpus-x7k2"}}}})
	notMade := pendingRef(dra.ReasonClaimNotCreated, "", nil)
	notMade.Claim, notMade.DeviceClass = "", ""
	noTemplate := withoutClaim(facts(2, notMade))
	noTemplate.Objects.Apply(dra.Change{Pod: &dra.PodLifecycle{Ref: notMade.Pod, UID: "train-0", Created: ago(4 * time.Minute), Claims: []dra.PodClaim{{Name: "gpus", Template: "gpu"}}}})
	const denied = "admission webhook \"policy.example.com\" denied the request"
	refused := notMade
	refused.Message = denied
	notMadeYet := withoutClaim(facts(2, refused))
	notMadeYet.Objects.Apply(dra.Change{Pod: &dra.PodLifecycle{Ref: notMade.Pod, UID: "train-0", Created: ago(4 * time.Minute), Claims: []dra.PodClaim{{Name: "gpus", Template: "gpus"}}}})
	notMadeYet.Objects.Apply(dra.Change{Warning: &dra.Warning{Name: "team-a/old", Kind: dra.WarningCreation, Pod: notMade.Pod, PodUID: "train-0", Message: "an older word", Count: 1, Last: ago(3 * time.Minute)}})
	notMadeYet.Objects.Apply(dra.Change{Warning: &dra.Warning{Name: "team-a/new", Kind: dra.WarningCreation, Pod: notMade.Pod, PodUID: "train-0", Message: denied, Count: 4, Last: ago(time.Minute)}})
	unusableFacts := facts(2, pendingRef(dra.ReasonClaimUnusable, "resourceclaim train-0-gpus-x7k2p is being deleted", nil))
	unusableFacts.Objects.Apply(dra.Change{Claim: &dra.ClaimLifecycle{
		Ref: dra.ClaimRef{Namespace: "team-a", Name: "train-0-gpus-x7k2p"}, UID: "claim-train-0", Created: ago(4 * time.Minute),
		Deleted: ago(2 * time.Minute), Finalizers: []string{"example.com/keep"}, Classes: []string{"gpu.example.com"},
	}})
	quota := pendingRef(dra.ReasonQuota, "PodResourceClaim gpus: resource claim creation: resourceclaims is forbidden: exceeded quota: gpus, requested: count/resourceclaims=1", nil)
	quota.Claim = ""
	quotaFacts := withoutClaim(facts(2, quota))
	quotaFacts.Objects.Apply(dra.Change{Claim: &dra.ClaimLifecycle{Ref: dra.ClaimRef{Namespace: "team-a", Name: "spare"}, UID: "claim-spare", Created: ago(time.Hour)}})
	quotaFacts.Objects.Apply(dra.Change{Pod: &dra.PodLifecycle{Ref: quota.Pod, UID: "train-0", Created: ago(4 * time.Minute), Claims: []dra.PodClaim{{Name: "gpus", Template: "gpus"}}}})
	binding := facts(2, pendingRef(dra.ReasonBinding, "", nil))
	binding.Objects.Apply(dra.Change{Claim: &dra.ClaimLifecycle{
		Ref: dra.ClaimRef{Namespace: "team-a", Name: "train-0-gpus-x7k2p"}, UID: "claim-train-0", Created: ago(4 * time.Minute), Classes: []string{"gpu.example.com"},
		Allocated: true, AllocatedAt: ago(3 * time.Minute), Node: "node-a", Binding: dra.BindingWaiting,
		Results:     []dra.AllocatedDevice{{Request: "gpus", Class: "gpu.example.com", Device: gpu("node-a", "gpu-3")}},
		ReservedFor: []dra.Consumer{{Resource: "pods", Name: "train-0", UID: "train-0"}},
	}})
	binding.Phases = []*model.Phase{{Pod: dra.PodRef{Namespace: "team-a", Name: "train-0"}, Claim: "train-0-gpus-x7k2p", Name: "binding", Since: ago(3 * time.Minute)}}
	other := facts(2, pendingRef(dra.ReasonOther, "0/2 nodes are available: 2 Insufficient cpu.",
		diagnosis(dra.ReasonNone, 2, [dra.Stages]int{8, 8, 8, 8, 6, 4}, dra.Detail{Fits: "node-b"})))
	return map[string]textCase{
		"claim-missing":       {pod, missingFacts},
		"template-missing":    {pod, noTemplate},
		"claim-not-created":   {pod, notMadeYet},
		"claim-unusable":      {pod, unusableFacts},
		"quota":               {pod, quotaFacts},
		"gated":               {pod, facts(2, pendingRef(dra.ReasonGated, "", nil))},
		"binding-conditions":  {pod, binding},
		"other-constraints":   {pod, other},
		"known-bug":           {clusterread.Subject{Kind: clusterread.KindPod, Namespace: "team-b", Name: "serve-0"}, unevicted("v1.37.1+k3s1")},
		"known-bug-possible":  {clusterread.Subject{Kind: clusterread.KindClaim, Namespace: "team-b", Name: "serve"}, unevicted("")},
		"known-bug-fixed":     {clusterread.Subject{Kind: clusterread.KindPod, Namespace: "team-b", Name: "serve-0"}, unevicted("v1.37.2")},
		"known-bug-elsewhere": {pod, unevicted("v1.37.1")},
		"autoscaler-declined": {pod, autoscaled(dra.ClusterAutoscaler, dra.AutoscalingDeclined, "pod didn't trigger scale-up: 1 max node group size reached, 2 node(s) had untolerated taint(s)")},
		"autoscaler-scale-up": {pod, autoscaled(dra.Karpenter, dra.AutoscalingScaleUp, "Pod should schedule on: nodeclaim/gpu-v278f")},
		"gang-quorum":         {pod, gang(dra.ReasonGangQuorum, "gang train is placed when 4 of its pods can be; bound: 0; devices of class gpu.example.com that its pods request together: 8, free: 6")},
		"gang-quorum-blocked": {pod, gang(dra.ReasonTainted, "gang train is placed when 4 of its pods can be; bound: 0; pod train-1 is pending because of tainted: as diagnosed")},
		"queue":               {pod, queuedPod()},
		"compute-domain":      {pod, domainFacts(dra.ReasonComputeDomain)},
		"domain-not-ready":    {pod, domainFacts("")},
		"job-queued":          {job, queuedJob()},
		"job-waits":           {job, jobFacts(3, true)},
		"job-runs":            {job, jobFacts(4, false)},
		"undetermined": {pod, facts(2, pendingRef(dra.ReasonUndetermined, "the diagnosis needs more than 250ms for one evaluation of a selector of request gpus",
			diagnosis(dra.ReasonUndetermined, 2, [dra.Stages]int{8, 8}, dra.Detail{})))},
		"cut-short": {pod, facts(2, pendingRef(dra.ReasonPendingDiagnosis, "the diagnosis was cancelled",
			diagnosis(dra.ReasonPendingDiagnosis, 2, [dra.Stages]int{8, 8}, dra.Detail{})))},
		"unknown-forbidden":    {claim, oneNamespaceFacts()},
		"unknown-silent":       {pod, silent()},
		"two-pods-one-claim":   {claim, twoPods()},
		"nodes-forbidden":      {pod, nodesForbidden()},
		"waits-under-the-line": {pod, hostile()},
	}
}

// gang returns the facts of a pod that waits for its gang, of which another pod is
// pending for a reason.
func gang(reason dra.PendingReason, message string) clusterread.Facts {
	ref := pendingRef(dra.ReasonGangQuorum, message, diagnosis(dra.ReasonNone, 2, [dra.Stages]int{8, 8, 8, 8, 6, 4}, dra.Detail{Fits: "node-b"}))
	other := pendingRef(reason, "as diagnosed", nil)
	other.Pod.Name, other.PodUID, other.Claim = "train-1", "train-1", "train-1-gpus"
	f := facts(2, ref)
	f.Pending = append(f.Pending, other)
	for _, pod := range []string{"train-0", "train-1"} {
		f.Objects.Apply(dra.Change{Pod: &dra.PodLifecycle{
			Ref: dra.PodRef{Namespace: "team-a", Name: pod}, UID: pod, Created: ago(4 * time.Minute), Group: "train",
			Claims: []dra.PodClaim{{Name: "gpus", Template: "gpus", Claim: map[string]string{"train-0": "train-0-gpus-x7k2p", "train-1": "train-1-gpus"}[pod]}},
		}})
	}
	return f
}

// autoscaled returns the facts of a pod of which an autoscaler has reported twice.
func autoscaled(by dra.Autoscaler, state dra.AutoscalingState, message string) clusterread.Facts {
	ref := pendingRef(dra.ReasonInsufficient, "request gpus asks for 2 devices; of 8 devices that match and have no untolerated taint, 1 can still be allocated", diagnosis(dra.ReasonInsufficient, 2, [dra.Stages]int{8, 8, 8, 8, 1, 1}, dra.Detail{}))
	f := facts(2, ref)
	f.Objects.Apply(dra.Change{Autoscaling: &dra.Autoscaling{Name: "team-a/new", Pod: ref.Pod, PodUID: ref.PodUID, Autoscaler: by, State: state, Message: message, Last: ago(3 * time.Minute)}})
	f.Objects.Apply(dra.Change{Autoscaling: &dra.Autoscaling{Name: "team-a/old", Pod: ref.Pod, PodUID: ref.PodUID, Autoscaler: by, State: state, Message: "of before", Last: ago(9 * time.Minute)}})
	return f
}

// queuedPod returns the facts of a pod that Kueue holds.
func queuedPod() clusterread.Facts {
	f := facts(2, pendingRef(dra.ReasonQueueQuota, "workload pod-train-0-1a2b3 waits in queue research of Kueue: WaitingForQuota: couldn't assign flavors to pod set main: insufficient unused quota for gpus in flavor h200, 2 more needed", nil))
	f.Objects.Apply(dra.Change{Pod: &dra.PodLifecycle{Ref: dra.PodRef{Namespace: "team-a", Name: "train-0"}, UID: "train-0", Created: ago(4 * time.Minute), Gated: true, HeldBy: new(""), Claims: []dra.PodClaim{{Name: "gpus", Template: "gpus", Claim: "train-0-gpus-x7k2p"}}}})
	f.Objects.Apply(dra.Change{KueueWorkload: &dra.KueueWorkload{
		Ref: dra.PodRef{Namespace: "team-a", Name: "pod-train-0-1a2b3"}, UID: "w", Workload: dra.Workload{Queue: "research"}, Pod: dra.Consumer{Resource: "pods", Name: "train-0", UID: "train-0"},
		Pods: 1, Claims: true, Waiting: &dra.KueueWaiting{Reason: "WaitingForQuota", Message: "couldn't assign flavors", Since: ago(4 * time.Minute)},
	}})
	return f
}

// queuedJob returns the facts of a job that Kueue has suspended.
func queuedJob() clusterread.Facts {
	f := facts(2)
	f.Objects.Apply(dra.Change{KueueWorkload: &dra.KueueWorkload{
		Ref: dra.PodRef{Namespace: "team-a", Name: "jobset-train-4d5e6"}, UID: "w", Workload: dra.Workload{Kind: "JobSet", Name: "train", Queue: "research"}, Pods: 8, Claims: true,
		Waiting: &dra.KueueWaiting{Reason: "WaitingForQuota", Message: "couldn't assign flavors to pod set workers: insufficient unused quota for gpus in flavor h200, 2 more needed", Since: ago(40 * time.Minute)},
	}})
	return f
}

// domainFacts returns the facts of a pod with the channel of a ComputeDomain: one whose
// template does not exist, or a pod whose node is not ready in the domain.
func domainFacts(reason dra.PendingReason) clusterread.Facts {
	f := facts(2)
	p := &dra.PodLifecycle{Ref: dra.PodRef{Namespace: "team-a", Name: "train-0"}, UID: "train-0", Created: ago(4 * time.Minute), Claims: []dra.PodClaim{{Name: "gpus", Template: "nvl-channel"}}}
	domain := &dra.ComputeDomain{Ref: dra.PodRef{Namespace: "team-a", Name: "nvl"}, UID: "6f7a-nvl", Created: ago(5 * time.Minute), Template: "nvl-channel", NumNodes: 4}
	if reason != "" {
		ref := pendingRef(reason, "the controller of ComputeDomain nvl has not made template nvl-channel yet", nil)
		ref.Claim, ref.DeviceClass = "", ""
		f = withoutClaim(facts(2, ref))
	} else {
		p.Node, p.Claims[0].Claim = "node-b", "train-0-gpus-x7k2p"
		domain.Nodes = []dra.ComputeDomainNode{{Name: "node-a", Clique: "a1b2.4", Ready: true}, {Name: "node-b", Clique: "a1b2.4"}, {Name: "node-c", Clique: "a1b2.7", Ready: true}}
		f.Phases = []*model.Phase{{Pod: p.Ref, Name: "preparation", Since: ago(2 * time.Minute)}}
		f.Objects.Apply(dra.Change{Warning: &dra.Warning{Name: "team-a/e", Kind: dra.WarningPreparation, Pod: p.Ref, PodUID: "train-0", Message: "Failed to prepare dynamic resources: prepare devices failed: current node not ready in ComputeDomain", Count: 3, Last: ago(time.Minute)}})
	}
	f.Objects.Apply(dra.Change{Pod: p})
	f.Objects.Apply(dra.Change{ComputeDomain: domain})
	return f
}

// jobFacts returns the facts of a JobSet with a gang of four, of which so many pods
// run. The others are pending: one of them for a reason of its own.
func jobFacts(running int, waits bool) clusterread.Facts {
	f := facts(2, pendingRef(dra.ReasonInsufficient, "", nil))
	f.Pending = nil
	f.Objects.Apply(dra.Change{Group: &dra.Group{Ref: dra.PodRef{Namespace: "team-a", Name: "train-workers"}, UID: "group", MinPods: 4}})
	workload := &dra.Workload{Kind: "JobSet", Name: "train", Queue: "research"}
	f.Objects.Apply(dra.Change{Pod: &dra.PodLifecycle{Ref: dra.PodRef{Namespace: "team-a", Name: "train-0"}}, Gone: true}) // of all other cases
	for rank := range 5 {
		name := fmt.Sprintf("train-workers-%d", rank)
		p := &dra.PodLifecycle{
			Ref: dra.PodRef{Namespace: "team-a", Name: name}, UID: name, Created: ago(time.Hour), Group: "train-workers",
			Claims: []dra.PodClaim{{Name: "gpus", Template: "gpus", Claim: name + "-gpus"}},
			Member: dra.Member{Workload: workload, Role: "workers", Replica: "0", Rank: strconv.Itoa(rank)},
		}
		switch {
		case rank < running:
			p.Node, p.Started = []string{"node-a", "node-b"}[rank%2], ago(30*time.Minute)
		case rank == 4 && !waits:
			p.Terminal = true
		default:
			reason, message := dra.ReasonGangQuorum, "gang train-workers is placed when 4 of its pods can be; bound: 3; pod train-workers-4 is pending because of tainted: as diagnosed"
			if rank == 4 {
				reason, message = dra.ReasonTainted, "as diagnosed"
			}
			ref := pendingRef(reason, message, nil)
			ref.Pod, ref.PodUID, ref.Claim = p.Ref, p.UID, name+"-gpus"
			f.Pending = append(f.Pending, ref)
		}
		f.Objects.Apply(dra.Change{Pod: p})
	}
	return f
}

// withoutClaim removes the pending pod's claim.
func withoutClaim(f clusterread.Facts) clusterread.Facts {
	f.Objects.Apply(dra.Change{Claim: createdClaim(), Gone: true})
	return f
}

// oneNamespaceFacts returns the facts of a user who may read only one
// namespace.
func oneNamespaceFacts() clusterread.Facts {
	f := facts(2, pendingRef(dra.ReasonUnknown, "the claims of other namespaces could not be read, so it is unknown which of the matching devices are free",
		diagnosis(dra.ReasonUnknown, 2, [dra.Stages]int{8, 8, 8, 8, 8, 4}, dra.Detail{})))
	deny := func(name string) source.Status {
		return source.Status{Name: name, Reason: source.ReasonPermission, Errors: 1, Message: "list " + name + ": " + name + " is forbidden: User \"jane\" cannot list resource \"" + name + "\" at the cluster scope"}
	}
	here := []source.Status{{Name: "pods", Up: true}, {Name: "resourceclaims", Up: true}, deny("devicetaintrules")}
	f.Gaps = clusterread.NewGaps(here, []source.Status{deny("pods"), deny("resourceclaims"), deny("devicetaintrules")}, "team-a")
	return f
}

func silent() clusterread.Facts {
	f := facts(2, pendingRef(dra.ReasonUnknown, "", nil))
	f.Objects.Apply(dra.Change{Pod: &dra.PodLifecycle{Ref: dra.PodRef{Namespace: "team-a", Name: "train-0"}, UID: "train-0", Created: ago(4 * time.Minute), Claims: []dra.PodClaim{{Name: "gpus", Template: "gpus", Claim: "train-0-gpus-x7k2p"}}}})
	return f
}

// nodesForbidden returns facts without nodes: it is unknown which devices one
// node can reach.
func nodesForbidden() clusterread.Facts {
	f := facts(4, pendingRef(dra.ReasonInsufficient, "request gpus asks for 4 devices; of 4 devices that match and have no untolerated taint, 2 can still be allocated",
		diagnosis(dra.ReasonInsufficient, 4, [dra.Stages]int{8, 8, 4, 4, 2, 0}, dra.Detail{Nodes: []dra.NodeDiagnosis{{Node: "node-a"}}})))
	f.Gaps = clusterread.NewGaps([]source.Status{{Name: "nodes", Reason: source.ReasonPermission, Errors: 1, Message: "nodes is forbidden"}}, nil, "")
	return f
}

// twoPods returns two pods that share one claim that is not allocated; one of
// them is gated.
func twoPods() clusterread.Facts {
	v := diagnosis(dra.ReasonInsufficient, 4, [dra.Stages]int{8, 8, 4, 4, 2, 2}, dra.Detail{})
	first := pendingRef(dra.ReasonInsufficient, "request gpus asks for 4 devices; of 4 devices that match and have no untolerated taint, 2 can still be allocated", v)
	second, third := first, first
	second.Pod.Name, second.PodUID, second.Since = "train-1", "train-1", ago(5*time.Minute)
	third.Pod.Name, third.PodUID, third.Reason, third.Message, third.Diagnosis = "train-2", "train-2", dra.ReasonGated, "", nil
	f := facts(4, first, second, third)
	for _, name := range []string{"train-1", "train-2"} {
		f.Objects.Apply(dra.Change{Pod: &dra.PodLifecycle{Ref: dra.PodRef{Namespace: "team-a", Name: name}, UID: name, Created: ago(5 * time.Minute), Gated: name == "train-2", Claims: []dra.PodClaim{{Name: "gpus", Claim: "train-0-gpus-x7k2p"}}}})
	}
	return f
}

// hostile has text that would draw over the terminal.
func hostile() clusterread.Facts {
	f := facts(2, pendingRef(dra.ReasonOther, "0/2 nodes\x1b[2J are available:\r\n\tno\u202e room\x07.", nil))
	ugly := spec(2)
	ugly.Requests[0].Selectors = []string{"device.driver == \"gpu.example.com\" // this is a comment\n&&\n  device.attributes[\"gpu.example.com\"].model.matches(\"^NVIDIA (H100|H200|B200|GB200)( NVL| SXM)?$\")"}
	f.Claims[dra.ClaimRef{Namespace: "team-a", Name: "train-0-gpus-x7k2p"}] = ugly
	return f
}

// unevicted is a cluster in which a taint does not evict the pod of an extended
// resource.
func unevicted(server string) clusterread.Facts {
	f := facts(2)
	f.Server = server
	f.Objects.Apply(dra.Change{Claim: &dra.ClaimLifecycle{
		Ref: dra.ClaimRef{Namespace: "team-b", Name: "serve"}, UID: "claim-serve", Created: ago(3 * time.Hour), Classes: []string{"gpu.example.com"},
		Allocated: true, AllocatedAt: ago(3*time.Hour - time.Second), Node: "node-a", ExtendedResource: true,
		Results:     []dra.AllocatedDevice{{Request: "gpu", Class: "gpu.example.com", Device: gpu("node-a", "gpu-0")}},
		ReservedFor: []dra.Consumer{{Resource: "pods", Name: "serve-0", UID: "serve-0"}},
	}})
	f.Supply = &dra.Supply{Tainted: []dra.TaintedDevice{{
		Device: gpu("node-a", "gpu-0"), ByRules: []dra.Taint{{Key: "lost", Effect: "NoExecute"}}, Holders: []dra.ClaimRef{{Namespace: "team-b", Name: "serve"}},
	}}}
	return f
}
