package explain

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/dra-exporter/dra-exporter/internal/clusterread"

	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/internal/words"
)

// sinceShort is a time for one line: the time of day, with its date if that is not
// today, and how long ago it was.
func sinceShort(moment, now time.Time) string {
	moment, now = moment.UTC(), now.UTC()
	layout := "15:04 MST"
	if moment.YearDay() != now.YearDay() || moment.Year() != now.Year() {
		layout = "2006-01-02 15:04 MST"
	}
	return fmt.Sprintf("since %s (%s)", moment.Format(layout), words.Age(now.Sub(moment)))
}

// cause returns why the reference is pending, in the plainest words that its counts
// and objects allow; without any, the sentence of the reason.
func (b pendingBuilder) cause(ref *PendingRef, podClaim dra.PodClaim, namespace string) string {
	switch dra.PendingReason(ref.Reason) {
	case dra.ReasonClaimMissing:
		if name := cmp.Or(ref.Claim, podClaim.Claim); name != "" {
			return fmt.Sprintf("ResourceClaim %s does not exist", name)
		}
	case dra.ReasonQueueQuota:
		if held := kueueWorkload(b.facts.Objects, dra.PodRef{Namespace: namespace, Name: ref.Pods[0]}); held != nil && held.Waiting != nil {
			return fmt.Sprintf("queue %s has not admitted it: %s", held.Workload.Queue, held.Waiting.Reason)
		}
	case dra.ReasonClaimNotCreated:
		_, ok := b.facts.Templates[clusterread.Template{Namespace: namespace, Name: ref.Template}]
		if ref.Template != "" && !ok && !b.facts.Gaps.Lack(clusterread.SourceTemplates) {
			return fmt.Sprintf("ResourceClaimTemplate %s does not exist", ref.Template)
		}
		return "its claim has not been created"
	case dra.ReasonClaimUnusable:
		claim, ok := b.facts.Objects.Claims[dra.ClaimRef{Namespace: namespace, Name: ref.Claim}]
		switch {
		case ok && !claim.Deleted.IsZero():
			return "its claim is being deleted"
		case ok:
			return "its claim was created for another pod"
		}
	case dra.ReasonConstraints:
		if ref.Asked.TooMany() {
			return "it requests more devices than a claim may have"
		}
		return "no node has free devices that meet its constraints"
	case dra.ReasonPoolIncomplete:
		return "pools with matching devices are not completely published"
	case dra.ReasonOther:
		return "devices are available; something else prevents scheduling"
	case dra.ReasonBinding:
		return "its devices are allocated, and not ready for binding"
	case dra.ReasonUnknown:
		if len(b.facts.Gaps) > 0 {
			return "unknown, because not everything could be read"
		}
	default:
		if text := ref.countedCause(b.facts.Classes); text != "" {
			return text
		}
	}
	return ref.Meaning
}

// countedCause returns what the counts of the request that decides say; empty if no
// request fails by its counts.
func (r *PendingRef) countedCause(classes []string) string {
	all, decisive := r.failures()
	if decisive == nil {
		return ""
	}
	counts, stage := decisive.counts, decisive.stage
	switch dra.PendingReason(r.Reason) {
	case dra.ReasonNoDeviceClass:
		for _, group := range r.groups() {
			for _, counts := range group {
				if counts.DeviceClass != "" && !slices.Contains(classes, counts.DeviceClass) {
					return fmt.Sprintf("DeviceClass %s does not exist", counts.DeviceClass)
				}
			}
		}
	case dra.ReasonNoMatchingDevice:
		switch {
		case len(r.Broken) > 0 && r.Broken[0].Device == "":
			return fmt.Sprintf("the CEL expression of %s does not compile", r.Broken[0].Where)
		case len(r.Broken) > 0:
			return fmt.Sprintf("the CEL expression of %s fails for a device", r.Broken[0].Where)
		case counts.Left[dra.StagePublished.String()] == 0:
			return "no driver publishes any device"
		case stage == dra.StageClass:
			return fmt.Sprintf("class %s selects no device", counts.DeviceClass)
		case stage == dra.StageSelectors:
			return fmt.Sprintf("no device of class %s matches its selectors", counts.DeviceClass)
		}
	case dra.ReasonTainted:
		if len(all) == 1 && counts.Left[dra.StageUntainted.String()] == 0 {
			return "all matching devices have taints"
		}
		return "too many matching devices have taints"
	case dra.ReasonInsufficient:
		switch {
		case stage <= dra.StageSelectors:
			return "the cluster has too few matching devices"
		case stage == dra.StageFree && r.futile(counts):
			return "no node has that many usable devices, held or not"
		case stage == dra.StageFree && len(all) == 1 && counts.Left[stage.String()] == 0:
			return "no matching device is free"
		case stage == dra.StageFree:
			return "too few matching devices are free"
		}
	case dra.ReasonFragmented:
		if r.futile(counts) {
			return "no node has that many usable devices, held or not"
		}
	}
	return ""
}

// main returns the reference that has been pending for longest; one that waits for
// its gang only if no other does, and a gated one only if no other is pending. It is
// nil if none is.
func (r *Report) main() *PendingRef {
	var oldest *PendingRef
	for i := range r.Pending {
		next := &r.Pending[i]
		switch {
		case oldest == nil, next.rank() < oldest.rank():
			oldest = next
		case next.rank() == oldest.rank() && next.Since.Before(oldest.Since):
			oldest = next
		}
	}
	return oldest
}

// conclusion returns the answer in one line.
func (r *Report) conclusion() string {
	subject := fmt.Sprintf("%s %s/%s", words.Capital(string(r.Kind)), r.Namespace, r.Name)
	if r.Workload != nil {
		subject = fmt.Sprintf("%s %s/%s", r.Workload.Kind, r.Namespace, r.Name)
	}
	if main := r.main(); main != nil {
		return fmt.Sprintf("%s is %s %s: %s", subject, main.status(), sinceShort(main.Since, r.At), main.cause)
	}
	phase, pod := r.oldestPhase()
	if phase == nil || r.State == StateTerminating {
		return subject + " " + r.short
	}
	text := subject + ": " + strings.ReplaceAll(phase.Phase, "_", " and ")
	if r.Kind != clusterread.KindPod {
		text += " of pod " + pod.Name
	}
	text += " in progress " + sinceShort(phase.Since, r.At)
	if len(r.events) > 0 {
		text += ", with errors"
	}
	return text
}
