package explain

import (
	"fmt"

	"github.com/dra-exporter/dra-exporter/collector/dra"
)

// claimSummary is the answer in one sentence.
func (a account) claimSummary(report *Report, life *dra.ClaimLife) string {
	claim := report.Claims[0]
	if len(report.Waiting) > 0 {
		return a.waits(report)
	}
	switch claim.State {
	case StateTerminating:
		return "is being deleted " + since(*claim.DeletedSince, report.At)
	case StateUnused:
		return "is unused"
	case StatePending:
		if !a.seesUsers(life) {
			return "is not allocated; whether a pod waits for it is not known"
		}
		return "is not allocated; no pod waits for it at present"
	}
	text := fmt.Sprintf("has %s", counted(len(claim.Devices), "device", "devices"))
	if claim.Node != "" {
		text += " on " + claim.Node
	}
	if claim.State == StateAllocated {
		return text + ", reserved for nobody"
	}
	text += ", reserved for " + some(claim.ReservedFor, 3)
	if a.orphaned(life) {
		text += verb(len(claim.ReservedFor), ", which does not exist", ", none of which exists")
	}
	return text + a.phaseOf(report)
}

// podSummary is the answer in one sentence.
func (a account) podSummary(report *Report, life *dra.PodLife) string {
	if len(report.Waiting) > 0 {
		return a.waits(report)
	}
	text := map[string]string{
		StateFinished: "has ended", StateTerminating: "is being deleted", StateRunning: "runs",
		StateStarting: "has all its claims and has not started",
		StateUnknown:  "has not started; whether it has its claims is not known",
	}[report.State]
	if life.Node != "" {
		text += " on " + life.Node
	}
	if a.facts.Gaps.lack(sourceClaims) && report.State != StateUnknown {
		text += "; what it is given is not known"
	}
	return text + a.phaseOf(report)
}

// phaseOf tells the phase that has been under way for longest.
func (a account) phaseOf(report *Report) string {
	var oldest *PodPhase
	pod := ""
	for i := range report.Pods {
		for j := range report.Pods[i].Phases {
			phase := &report.Pods[i].Phases[j]
			if oldest == nil || phase.Since.Before(oldest.Since) {
				oldest, pod = phase, report.Pods[i].Name
			}
		}
	}
	switch {
	case oldest == nil:
		return ""
	case report.Kind == KindPod:
		return fmt.Sprintf("; %s under way %s", oldest.Phase, since(oldest.Since, report.At))
	default:
		return fmt.Sprintf("; %s of pod %s under way %s", oldest.Phase, pod, since(oldest.Since, report.At))
	}
}

// waits tells of the claim that is pending for longest; of a gated one only
// where no other is pending.
func (a account) waits(report *Report) string {
	oldest := report.Waiting[0]
	for _, waiting := range report.Waiting[1:] {
		if waiting.gated() != oldest.gated() {
			if oldest.gated() {
				oldest = waiting
			}
			continue
		}
		if waiting.Since.Before(oldest.Since) {
			oldest = waiting
		}
	}
	text := fmt.Sprintf("is %s %s: %s", oldest.status(), since(oldest.Since, report.At), oldest.Meaning)
	if more := len(report.Waiting) - 1; more > 0 && report.Kind == KindPod {
		text += "; " + counted(more, "more "+oldest.status()+" claim", "more "+oldest.status()+" claims")
	}
	return text
}
