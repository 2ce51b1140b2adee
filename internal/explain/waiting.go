package explain

import (
	"fmt"

	"github.com/dra-exporter/dra-exporter/collector/dra"
)

// waiting tells of one reference that is not satisfied.
func (a account) waiting(w Reference) Waiting {
	if a.unsureOfGroup(w) {
		w.Reason, w.Message = dra.ReasonUnknown, "the PodGroups could not be read, so it is not known whether the claim that the pod shares with its group exists"
	}
	told := Waiting{
		Pods: []string{w.Pod.Name}, PodClaim: w.PodClaim, Claim: w.Claim, DeviceClass: w.DeviceClass,
		Since: w.Since.UTC(), Reason: string(w.Reason), Meaning: meaning(w.Reason), Message: w.Message,
	}
	reference := a.reference(w)
	told.Template = reference.Template
	if reference.Name == "" {
		told.ExtendedResource, told.PodClaim = w.PodClaim, ""
	}
	told.Asked = a.spec(w.Claim, reference.Template)
	if w.Verdict != nil {
		a.judged(&told, w.Verdict)
	}
	if told.Asked == nil {
		told.Asked = askedBy(told.Funnel)
	}
	if w.Reason == dra.ReasonConstraints && told.Asked.tooMany() {
		told.Meaning = "more devices are asked for than a claim may have"
	}
	told.Help = a.help(w, &told)
	return told
}

// unsureOfGroup reports whether the reference may stand for a claim of the
// pod's group, which could not be read.
func (a account) unsureOfGroup(w Reference) bool {
	pod, known := a.facts.World.pods[w.Pod]
	return known && pod.Group != "" && w.Claim == "" && w.Reason == dra.ReasonClaimNotCreated && !a.facts.Gaps.sees(sourceGroups, w.Pod.Namespace)
}

// reference is the pod's own entry of the reference that waits; without a
// name where it is a request of an extended resource.
func (a account) reference(w Reference) dra.PodClaim {
	pod, known := a.facts.World.pods[w.Pod]
	if !known {
		return dra.PodClaim{Name: w.PodClaim}
	}
	for _, reference := range pod.Claims {
		if reference.Name != "" && reference.Name == w.PodClaim {
			return reference
		}
	}
	return dra.PodClaim{}
}

// judged adds what the verdict says.
func (a account) judged(told *Waiting, verdict *dra.Verdict) {
	for _, request := range verdict.Funnel {
		told.Funnel = append(told.Funnel, a.funnel(request))
	}
	detail := verdict.Detail
	if detail == nil {
		return
	}
	for _, selector := range detail.Selectors {
		told.Broken = append(told.Broken, BrokenSelector(selector))
	}
	for _, removal := range detail.Removed {
		told.Removed = append(told.Removed, removed(removal, verdict.Funnel))
	}
	if told.lacksDevices() {
		for _, holder := range detail.Holders {
			told.Holders = append(told.Holders, a.holder(holder))
		}
		told.InAll = max(detail.HoldersInAll, len(told.Holders))
	}
	if a.facts.Gaps.lack(sourceNodes) {
		return
	}
	told.onOneNode = detail.OnOneNode
	for _, node := range detail.Nodes {
		told.Nodes = append(told.Nodes, Node{Name: node.Node, Free: node.Free, Message: node.Message})
	}
	told.Fits = detail.Fits
}

// lacksDevices reports whether what others hold is in the way.
func (w *Waiting) lacksDevices() bool {
	switch dra.PendingReason(w.Reason) {
	case dra.ReasonInsufficient, dra.ReasonPoolIncomplete, dra.ReasonFragmented, dra.ReasonConstraints:
		return true
	default:
		return false
	}
}

// funnel leaves out the stages that cannot be known.
func (a account) funnel(request dra.RequestFunnel) Funnel {
	told := Funnel{Request: request.Request, DeviceClass: request.Class, Asked: request.Asked, Left: make(map[string]int, dra.Stages)}
	for stage := range dra.Stage(dra.Stages) {
		if stage == dra.StageBestNode && a.facts.Gaps.lack(sourceNodes) {
			continue
		}
		told.Left[stage.String()] = request.Left[stage]
	}
	return told
}

func removed(removal dra.Removal, funnels []dra.RequestFunnel) Removal {
	told := Removal{Request: removal.Request, Stage: removal.Stage.String(), Count: removal.Count, Because: removal.Because, Rule: removal.Rule, Examples: deviceNames(removal.Examples)}
	if removal.Taint != nil {
		told.Taint, told.taint = taintText(*removal.Taint), removal.Taint
	}
	for _, funnel := range funnels {
		if funnel.Request == removal.Request && removal.Stage > dra.StagePublished {
			told.Of = funnel.Left[removal.Stage-1]
		}
	}
	return told
}

func (a account) holder(holder dra.Holder) Holder {
	told := Holder{Request: holder.Request, Namespace: holder.Claim.Namespace, Claim: holder.Claim.Name, Pods: holder.Pods, Devices: deviceNames(holder.Devices), used: usage{pods: holder.Pods}}
	if claim, known := a.facts.World.claims[holder.Claim]; known {
		told.Since, told.used = moment(claim.AllocatedAt), a.usage(claim)
		told.Pods, told.Others, told.PodsGone = told.used.pods, told.used.others, told.used.gone
	}
	return told
}

func deviceNames(devices []dra.DeviceID) []string {
	names := make([]string, 0, len(devices))
	for _, device := range devices {
		names = append(names, device.String())
	}
	return names
}

// askedBy makes of a funnel what is known of the specification, where that
// cannot be read: of an extended resource there is none.
func askedBy(funnels []Funnel) *Spec {
	if len(funnels) == 0 {
		return nil
	}
	spec := &Spec{}
	for _, funnel := range funnels {
		spec.Requests = append(spec.Requests, Request{Name: funnel.Request, DeviceClass: funnel.DeviceClass, Count: funnel.Asked, All: funnel.Asked == 0})
	}
	return spec
}

// meaning puts a reason into words.
func meaning(reason dra.PendingReason) string {
	switch reason {
	case dra.ReasonGated:
		return "the pod has scheduling gates"
	case dra.ReasonClaimMissing:
		return "the ResourceClaim that the pod names does not exist"
	case dra.ReasonClaimNotCreated:
		return "the ResourceClaim has not been made from its template"
	case dra.ReasonQuota:
		return "a quota forbids making the ResourceClaim"
	case dra.ReasonNoDeviceClass:
		return "the device class does not exist"
	case dra.ReasonNoMatchingDevice:
		return "no published device is what is asked for"
	case dra.ReasonTainted:
		return "too few devices are without a taint that is not tolerated"
	case dra.ReasonInsufficient:
		return "too few devices are there or free"
	case dra.ReasonPoolIncomplete:
		return "the devices that would do are in pools that are not complete"
	case dra.ReasonFragmented:
		return "enough devices are free, but not on one node"
	case dra.ReasonConstraints:
		return "the free devices do not satisfy the claim's constraints together"
	case dra.ReasonBinding:
		return "the devices are allocated, and their binding conditions are not met"
	case dra.ReasonOther:
		return "the devices would do; something else keeps the pod from being scheduled"
	case dra.ReasonUndetermined:
		return "finding the reason would take more work than is allowed"
	case dra.ReasonPendingDiagnosis:
		return "the diagnosis was cut short"
	default:
		return "no reason has been found"
	}
}

// gated reports whether the reference's pod has scheduling gates.
func (w *Waiting) gated() bool { return w.Reason == string(dra.ReasonGated) }

// status is what docs/glossary.md calls a reference that is not satisfied. One
// of a gated pod is not pending.
func (w *Waiting) status() string {
	if w.gated() {
		return "gated"
	}
	return "pending"
}

// where names a reference in a sentence.
func (w *Waiting) where() string {
	switch {
	case w.ExtendedResource != "":
		return fmt.Sprintf("extended resource %s", w.ExtendedResource)
	case w.Claim != "":
		return fmt.Sprintf("reference %q, ResourceClaim %s", w.PodClaim, w.Claim)
	case w.Template != "":
		return fmt.Sprintf("reference %q, from template %s", w.PodClaim, w.Template)
	default:
		return fmt.Sprintf("reference %q", w.PodClaim)
	}
}
