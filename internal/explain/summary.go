package explain

import (
	"fmt"

	"github.com/dra-exporter/dra-exporter/collector/dra"
)

// summarizer writes the answer in one sentence.
type summarizer struct {
	facts  *Facts
	usages usages
}

func (s summarizer) claim(report *Report, lifecycle *dra.ClaimLifecycle) string {
	claim := report.Claims[0]
	if len(report.Pending) > 0 {
		return pendingSummary(report)
	}
	switch claim.State {
	case StateTerminating:
		return "is being deleted " + since(*claim.DeletedSince, report.At)
	case StateUnused:
		return "is unused"
	case StatePending:
		if !s.usages.known(lifecycle) {
			return "is not allocated; whether a pod needs it is unknown"
		}
		return "is not allocated; no pod needs it currently"
	}
	text := fmt.Sprintf("has %s", counted(len(claim.Devices), "device", "devices"))
	if claim.Node != "" {
		text += " on " + claim.Node
	}
	if claim.State == StateAllocated {
		return text + ", not reserved"
	}
	text += ", reserved for " + some(claim.ReservedFor, 3)
	if s.usages.orphaned(lifecycle) {
		text += verb(len(claim.ReservedFor), ", which does not exist", ", none of which exists")
	}
	return text + phaseOf(report)
}

func (s summarizer) pod(report *Report, lifecycle *dra.PodLifecycle) string {
	if len(report.Pending) > 0 {
		return pendingSummary(report)
	}
	text := map[string]string{
		StateFinished: "has ended", StateTerminating: "is being deleted", StateRunning: "runs",
		StateStarting: "has all its claims and has not started",
		StateUnknown:  "has not started; whether it has its claims is unknown",
	}[report.State]
	if lifecycle.Node != "" {
		text += " on " + lifecycle.Node
	}
	if s.facts.Gaps.lack(sourceClaims) && report.State != StateUnknown {
		text += "; its claims are unknown"
	}
	return text + phaseOf(report)
}

// phaseOf describes the phase that started first.
func phaseOf(report *Report) string {
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
		return fmt.Sprintf("; %s in progress %s", oldest.Phase, since(oldest.Since, report.At))
	default:
		return fmt.Sprintf("; %s of pod %s in progress %s", oldest.Phase, pod, since(oldest.Since, report.At))
	}
}

// pendingSummary describes the reference that has been pending for longest; a gated
// one only if no other is pending.
func pendingSummary(report *Report) string {
	oldest := report.Pending[0]
	for _, next := range report.Pending[1:] {
		if next.gated() != oldest.gated() {
			if oldest.gated() {
				oldest = next
			}
			continue
		}
		if next.Since.Before(oldest.Since) {
			oldest = next
		}
	}
	text := fmt.Sprintf("is %s %s: %s", oldest.status(), since(oldest.Since, report.At), oldest.Meaning)
	if more := len(report.Pending) - 1; more > 0 && report.Kind == KindPod {
		text += "; " + counted(more, "more "+oldest.status()+" claim", "more "+oldest.status()+" claims")
	}
	return text
}
