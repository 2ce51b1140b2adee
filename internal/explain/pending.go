package explain

import (
	"cmp"

	"github.com/dra-exporter/dra-exporter/internal/clusterread"
	"github.com/dra-exporter/dra-exporter/internal/words"

	"github.com/dra-exporter/dra-exporter/collector/cluster"
	"github.com/dra-exporter/dra-exporter/collector/dra"
)

// pendingBuilder describes claim references that are not satisfied.
type pendingBuilder struct{ facts *clusterread.Facts }

// withoutGuess returns the reference without a reason where the claim may be that
// of the pod's group, which could not be read.
func (b pendingBuilder) withoutGuess(w cluster.PendingRef) cluster.PendingRef {
	pod, ok := b.facts.Objects.Pods[w.Pod]
	if ok && pod.Group != "" && w.Claim == "" && w.Reason == dra.ReasonClaimNotCreated && !b.facts.Gaps.See(clusterread.SourceGroups, w.Pod.Namespace) {
		w.Reason, w.Message = dra.ReasonUnknown, "the PodGroups could not be read, so it is unknown whether the claim that the pod shares with its group exists"
	}
	return w
}

// build describes one reference, all but what would help it.
func (b pendingBuilder) build(w cluster.PendingRef) PendingRef {
	ref := PendingRef{
		Pods: []string{w.Pod.Name}, PodClaim: w.PodClaim, Claim: w.Claim, DeviceClass: w.DeviceClass,
		Since: w.Since.UTC(), Reason: string(w.Reason), Meaning: cmp.Or(w.Reason.Info().Meaning, dra.ReasonUnknown.Info().Meaning), Message: w.Message,
	}
	podClaim := b.facts.Objects.PodClaim(w.Pod, w.PodClaim)
	ref.Template = podClaim.Template
	if podClaim.Name == "" {
		ref.ExtendedResource, ref.PodClaim = w.PodClaim, ""
	}
	ref.Asked = b.facts.Spec(w.Pod.Namespace, w.Claim, podClaim.Template)
	if w.Diagnosis != nil {
		b.addDiagnosis(&ref, w.Diagnosis)
	}
	if ref.Asked == nil {
		ref.Asked = specOfCounts(ref.Counts)
	}
	if w.Reason == dra.ReasonConstraints && ref.Asked.TooMany() {
		ref.Meaning = "the claim requests more devices than a claim may have"
	}
	if !ref.gated() {
		ref.Autoscaler = podAutoscaling(b.facts.Objects, w.PodUID)
	}
	ref.cause = b.cause(&ref, podClaim, w.Pod.Namespace)
	return ref
}

// addDiagnosis adds the counts and details of the diagnosis.
func (b pendingBuilder) addDiagnosis(ref *PendingRef, diagnosis *dra.Diagnosis) {
	for _, request := range diagnosis.Requests {
		ref.Counts = append(ref.Counts, b.counts(request))
	}
	detail := diagnosis.Detail
	if detail == nil {
		return
	}
	for _, selector := range detail.Selectors {
		ref.Broken = append(ref.Broken, BrokenSelector(selector))
	}
	for _, removal := range detail.Removed {
		removed := newRemoval(removal, diagnosis.Requests)
		removed.Eviction = b.eviction(removed.Rule)
		ref.Removed = append(ref.Removed, removed)
	}
	if ref.lacksDevices() {
		for _, holder := range detail.Holders {
			ref.Holders = append(ref.Holders, b.holder(holder))
		}
		ref.HolderCount = max(detail.HoldersInAll, len(ref.Holders))
	}
	if b.facts.Gaps.Lack(clusterread.SourceNodes) {
		return
	}
	ref.onOneNode = detail.OnOneNode
	for _, node := range detail.Nodes {
		ref.Nodes = append(ref.Nodes, Node{Name: node.Node, Free: node.Free, Message: node.Message})
	}
	ref.Fits = detail.Fits
}

// counts leaves out the stages that are unknown.
func (b pendingBuilder) counts(request dra.RequestStages) RequestCounts {
	counts := RequestCounts{Request: request.Request, DeviceClass: request.Class, Asked: request.Count, Left: make(map[string]int, dra.Stages)}
	for stage := range dra.Stage(dra.Stages) {
		if stage == dra.StageBestNode && b.facts.Gaps.Lack(clusterread.SourceNodes) {
			continue
		}
		counts.Left[stage.String()] = request.Left[stage]
	}
	return counts
}

func newRemoval(r dra.Removal, requests []dra.RequestStages) Removal {
	removal := Removal{Request: r.Request, Stage: r.Stage.String(), Count: r.Count, Because: r.Because, Rule: r.Rule, Examples: words.Names(r.Examples, dra.DeviceID.String)}
	if r.Taint != nil {
		removal.Taint, removal.taint = taintText(*r.Taint), r.Taint
	}
	for _, request := range requests {
		if request.Request == r.Request && r.Stage > dra.StagePublished {
			removal.Of = request.Left[r.Stage-1]
		}
	}
	return removal
}

// eviction returns what is reported of the eviction by a DeviceTaintRule; empty
// if nothing is.
func (b pendingBuilder) eviction(rule string) string {
	if rule == "" || b.facts.Supply == nil {
		return ""
	}
	for _, eviction := range b.facts.Supply.Evictions {
		if eviction.Rule != rule {
			continue
		}
		if eviction.Message == "" {
			return eviction.Reason
		}
		return eviction.Reason + ": " + eviction.Message
	}
	return ""
}

func (b pendingBuilder) holder(h dra.Holder) Holder {
	holder := Holder{Request: h.Request, Namespace: h.Claim.Namespace, Claim: h.Claim.Name, Pods: h.Pods, Devices: words.Names(h.Devices, dra.DeviceID.String), used: usage{pods: h.Pods}}
	if claim, ok := b.facts.Objects.Claims[h.Claim]; ok {
		holder.Since, holder.used = moment(claim.AllocatedAt), usages(b).of(claim)
		holder.Pods, holder.Others, holder.PodsGone = holder.used.pods, holder.used.others, holder.used.gone
	}
	return holder
}

// specOfCounts returns what the counts show of a specification that could not be
// read; an extended resource has none.
func specOfCounts(counts []RequestCounts) *clusterread.Spec {
	if len(counts) == 0 {
		return nil
	}
	spec := &clusterread.Spec{}
	for _, c := range counts {
		spec.Requests = append(spec.Requests, clusterread.Request{Name: c.Request, DeviceClass: c.DeviceClass, Count: c.Asked, All: c.Asked == 0})
	}
	return spec
}
