package explain

import (
	"github.com/dra-exporter/dra-exporter/collector/dra"
)

// job describes all pods of one workload.
func (e explainer) job(report *Report, kind string) error {
	members, err := e.members(Subject{KindJob, report.Namespace, report.Name, kind})
	if err != nil {
		return err
	}
	ofJob := make(map[dra.PodRef]string, len(members))
	workload := &Workload{Kind: members[0].Member.Workload.Kind, Queue: members[0].Member.Workload.Queue, MinPods: e.minPods(members), Counts: make(map[string]int)}
	for _, member := range members {
		pod := podBuilder{e.facts}.build(member, "")
		report.Pods = append(report.Pods, pod)
		ofJob[member.Ref] = member.UID
		workload.Counts[jobState(member, pod.State)]++
	}
	for _, pending := range e.facts.Pending {
		if uid, is := ofJob[pending.Pod]; is && uid == pending.PodUID {
			report.Pending = mergeReasons(report.Pending, e.pending(pending))
		}
	}
	report.Workload = workload
	report.State = jobReportState(workload.Counts)
	report.events = e.facts.events(members)
	report.short = workload.text()
	report.Summary = report.short
	if main := report.main(); main != nil {
		report.Summary += "; " + pendingSummary(report)
	} else {
		report.Summary += phaseOf(report)
	}
	return nil
}

// members returns the pods of a workload, by role, replica, rank and name.
func (e explainer) members(subject Subject) ([]*dra.PodLifecycle, error) {
	members, kinds := e.facts.Objects.members(subject)
	switch {
	case len(members) == 0:
		return nil, e.facts.absent(subject)
	case len(kinds) > 1:
		return nil, &AmbiguousError{subject, kinds}
	}
	return members, nil
}

// minPods is how many pods the gangs of the members need, as in
// dra_workload_min_pods; 0 without a gang.
func (e explainer) minPods(members []*dra.PodLifecycle) int {
	gangs := make(map[string]int)
	for _, pod := range members {
		group := e.facts.Objects.groups[dra.PodRef{Namespace: pod.Ref.Namespace, Name: pod.Group}]
		switch {
		case pod.Group != "" && group != nil && group.MinPods > 0:
			gangs["group/"+pod.Group] = int(group.MinPods)
		case pod.Member.Size > 0:
			gangs["replica/"+pod.Member.Replica] = int(pod.Member.Size)
		}
	}
	minimum := 0
	for _, pods := range gangs {
		minimum += pods
	}
	return minimum
}

func jobState(pod *dra.PodLifecycle, state string) string {
	switch {
	case state != StateWaiting && (state != StateStarting || pod.Node != ""):
		return state
	case pod.Gated:
		return stateGated
	default:
		return statePending
	}
}

// jobReportState is the state of the pods that need most attention.
func jobReportState(counts map[string]int) string {
	if counts[stateGated]+counts[statePending] > 0 {
		return StateWaiting
	}
	for _, state := range jobStates() {
		if counts[state] > 0 {
			return state
		}
	}
	return StateUnknown
}

// mergeReasons adds a pending reference to those of other pods that are pending for
// the same reason with the same evidence.
func mergeReasons(all []PendingRef, one PendingRef) []PendingRef {
	for i := range all {
		if all[i].Reason == one.Reason && all[i].Message == one.Message {
			all[i].Pods = append(all[i].Pods, one.Pods...)
			if one.Since.Before(all[i].Since) {
				all[i].Since = one.Since
			}
			return all
		}
	}
	return append(all, one)
}
