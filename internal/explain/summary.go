package explain

import (
	"fmt"

	"github.com/dra-exporter/dra-exporter/internal/clusterread"

	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/internal/words"
)

// summarizer writes the answer in one sentence.
type summarizer struct{ facts *clusterread.Facts }

// claim sets the summaries of a claim's report.
func (s summarizer) claim(report *Report, lifecycle *dra.ClaimLifecycle) {
	claim := report.Claims[0]
	switch {
	case len(report.Pending) > 0:
		report.Summary = pendingSummary(report)
	case claim.State == StateTerminating:
		report.Summary = "is being deleted " + since(*claim.DeletedSince, report.At)
		report.short = "is being deleted " + sinceShort(*claim.DeletedSince, report.At)
	default:
		report.short = s.claimState(claim, lifecycle)
		report.Summary = report.short
		if claim.State == StateReserved {
			report.Summary += reportPhase(report)
		}
		if lifecycle.Binding == dra.BindingFailed {
			report.short += "; its binding has failed"
		}
	}
}

// claimState describes a claim that is not pending.
func (s summarizer) claimState(claim Claim, lifecycle *dra.ClaimLifecycle) string {
	switch claim.State {
	case StateUnused:
		return "is unused"
	case StatePending:
		if !usages(s).known(lifecycle) {
			return "is not allocated; whether a pod needs it is unknown"
		}
		return "is not allocated; no pod needs it currently"
	}
	text := "has " + words.Count(len(claim.Devices), "device", "devices") + suffix(" on ", claim.Node)
	if claim.State == StateAllocated {
		return text + ", not reserved"
	}
	text += ", reserved for " + words.List(claim.ReservedFor, 3)
	if usages(s).orphaned(lifecycle) {
		text += words.Plural(len(claim.ReservedFor), ", which does not exist", ", none of which exists")
	}
	return text
}

// pod sets the summaries of a pod's report.
func (s summarizer) pod(report *Report, lifecycle *dra.PodLifecycle) {
	if len(report.Pending) > 0 {
		report.Summary = pendingSummary(report)
		return
	}
	text := map[string]string{
		StateFinished: "has ended", StateTerminating: "is being deleted", StateRunning: "runs",
		StateStarting: "has all its claims and has not started",
		StateUnknown:  "has not started; whether it has its claims is unknown",
	}[report.State]
	text += suffix(" on ", lifecycle.Node)
	if s.facts.Gaps.Lack(clusterread.SourceClaims) && report.State != StateUnknown {
		text += "; its claims are unknown"
	}
	report.short = text
	report.Summary = text + reportPhase(report)
}

// oldestPhase returns the phase that started first, and its pod; nil if none is in
// progress.
func (r *Report) oldestPhase() (oldest *PodPhase, pod *Pod) {
	for i := range r.Pods {
		for j := range r.Pods[i].Phases {
			phase := &r.Pods[i].Phases[j]
			if oldest == nil || phase.Since.Before(oldest.Since) {
				oldest, pod = phase, &r.Pods[i]
			}
		}
	}
	return oldest, pod
}

// reportPhase describes the phase that started first.
func reportPhase(report *Report) string {
	oldest, pod := report.oldestPhase()
	switch {
	case oldest == nil:
		return ""
	case report.Kind == clusterread.KindPod:
		return fmt.Sprintf("; %s in progress %s", oldest.Phase, since(oldest.Since, report.At))
	default:
		return fmt.Sprintf("; %s of pod %s in progress %s", oldest.Phase, pod.Name, since(oldest.Since, report.At))
	}
}

// pendingSummary describes the main reference that is pending.
func pendingSummary(report *Report) string {
	oldest := report.main()
	text := fmt.Sprintf("is %s %s: %s", oldest.status(), since(oldest.Since, report.At), oldest.Meaning)
	if more := len(report.Pending) - 1; more > 0 && report.Kind == clusterread.KindPod {
		text += "; " + words.Count(more, "more "+oldest.status()+" claim", "more "+oldest.status()+" claims")
	}
	return text
}
