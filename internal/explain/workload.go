package explain

import (
	"cmp"
	"slices"

	"github.com/dra-exporter/dra-exporter/internal/clusterread"

	"github.com/dra-exporter/dra-exporter/collector/dra"
)

// workload describes all pods of one workload, and its queue.
func (e explainer) workload(report *Report, kind string) error {
	members, kind, err := e.members(clusterread.Subject{Kind: clusterread.KindWorkload, Namespace: report.Namespace, Name: report.Name, WorkloadKind: kind})
	if err != nil {
		return err
	}
	ofJob := make(map[dra.PodRef]string, len(members))
	workload := &Workload{Kind: kind, MinPods: e.minPods(members), Counts: make(map[string]int), Queued: queued(e.facts.Objects, kind, report.Namespace, report.Name)}
	for _, member := range members {
		pod := podBuilder(e).build(member, "")
		report.Pods = append(report.Pods, pod)
		ofJob[member.Ref] = member.UID
		workload.Counts[podState(member, pod.State)]++
		workload.Queue = cmp.Or(workload.Queue, member.Member.Workload.Queue)
	}
	for _, pending := range e.facts.Pending {
		if uid, ok := ofJob[pending.Pod]; ok && uid == pending.PodUID {
			report.Pending = merge(report.Pending, e.pending(pending), false)
		}
	}
	report.Workload = workload
	report.Domains = listDomains(e.facts.Objects, members)
	report.State = workloadState(workload.Counts)
	report.events = e.events(members)
	report.short = workload.text()
	report.Summary = report.short
	switch queued := workload.Queued; {
	case report.main() != nil:
		report.Summary += "; " + pendingSummary(report)
	case queued != nil:
		workload.Queue, report.State = cmp.Or(workload.Queue, queued.Queue), StatePending
		report.Summary += "; it " + queued.text()
		report.short += "; it has waited " + sinceShort(queued.Since, report.At) + " in queue " + queued.Queue + " of Kueue: " + queued.Reason
	default:
		report.Summary += reportPhase(report)
	}
	return nil
}

// members returns the pods of a workload, by role, replica, rank and name, and the
// workload's kind. A workload that waits in a queue may have none.
func (e explainer) members(subject clusterread.Subject) (members []*dra.PodLifecycle, kind string, err error) {
	members, kinds := workloadPods(e.facts.Objects, subject)
	for _, queued := range queuedKinds(e.facts.Objects, subject) {
		if !slices.Contains(kinds, queued) {
			kinds = append(kinds, queued)
		}
	}
	switch len(kinds) {
	case 0:
		return nil, "", absent(e.facts, subject)
	case 1:
		return members, kinds[0], nil
	default:
		slices.Sort(kinds)
		return nil, "", &AmbiguousError{subject, kinds}
	}
}

// minPods is how many pods the gangs of the members need, as in
// dra_workload_min_pods; 0 without a gang.
func (e explainer) minPods(members []*dra.PodLifecycle) int {
	gangs := make(map[string]int)
	for _, pod := range members {
		group := e.facts.Objects.Groups[dra.PodRef{Namespace: pod.Ref.Namespace, Name: pod.Group}]
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

func podState(pod *dra.PodLifecycle, state string) string {
	switch {
	case state != StatePending && (state != StateStarting || pod.Node != ""):
		return state
	case pod.Gated:
		return stateGated
	default:
		return StatePending
	}
}

// workloadState is the state of the pods that need most attention.
func workloadState(counts map[string]int) string {
	if counts[stateGated]+counts[StatePending] > 0 {
		return StatePending
	}
	for _, state := range podStates() {
		if counts[state] > 0 {
			return state
		}
	}
	return StateUnknown
}
