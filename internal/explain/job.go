package explain

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/dra-exporter/dra-exporter/collector/dra"
)

// Workload is the workload of a report about a job, and how its pods are.
type Workload struct {
	Kind    string         `json:"kind"`
	Queue   string         `json:"queue,omitempty"`
	MinPods int            `json:"minPods,omitempty"` // that its gangs need; left out without a gang
	Counts  map[string]int `json:"podsByState"`
}

// The states of pods that a report about a job tells apart beside those of pods.
const (
	stateGated   = "gated"
	statePending = "pending"
)

// jobStates are the states of a job's pods, those that need attention first.
func jobStates() []string {
	return []string{stateGated, statePending, StateUnknown, StateStarting, StateRunning, StateTerminating, StateFinished}
}

// AmbiguousError means that several workloads of a namespace have the name.
type AmbiguousError struct {
	Subject Subject
	Kinds   []string
}

func (e *AmbiguousError) Error() string {
	return fmt.Sprintf("%s are workloads of this name: name one with --workload-kind", join(e.described(), "and"))
}

func (e *AmbiguousError) described() []string {
	names := make([]string, len(e.Kinds))
	for i, kind := range e.Kinds {
		names[i] = fmt.Sprintf("%s %s/%s", kind, e.Subject.Namespace, e.Subject.Name)
	}
	return names
}

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

// members returns the pods of workloads with the subject's name, by role, replica,
// rank and name, and the kinds of the workloads.
func (o *Objects) members(subject Subject) (members []*dra.PodLifecycle, kinds []string) {
	found := make(map[string]bool)
	for ref, pod := range o.pods {
		workload := pod.Member.Workload
		if workload == nil || ref.Namespace != subject.Namespace || workload.Name != subject.Name ||
			subject.WorkloadKind != "" && !strings.EqualFold(workload.Kind, subject.WorkloadKind) {
			continue
		}
		members, found[workload.Kind] = append(members, pod), true
	}
	slices.SortFunc(members, func(a, b *dra.PodLifecycle) int {
		x, y := &a.Member, &b.Member
		return cmp.Or(cmp.Compare(x.Role, y.Role), compareIndices(x.Replica, y.Replica), compareIndices(x.Rank, y.Rank),
			cmp.Compare(a.Ref.Name, b.Ref.Name))
	})
	return members, slices.Sorted(maps.Keys(found))
}

// compareIndices compares numbers as numbers, and what is none as text.
func compareIndices(a, b string) int {
	x, notX := strconv.Atoi(a)
	y, notY := strconv.Atoi(b)
	if notX != nil || notY != nil {
		return cmp.Compare(a, b)
	}
	return cmp.Compare(x, y)
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

// text says how many pods are in which state.
func (w *Workload) text() string {
	var parts []string
	total := 0
	for _, state := range jobStates() {
		if count := w.Counts[state]; count > 0 {
			parts, total = append(parts, fmt.Sprintf("%d %s", count, state)), total+count
		}
	}
	text := "has " + counted(total, "pod", "pods") + ": " + strings.Join(parts, ", ")
	if w.MinPods > 0 {
		text += fmt.Sprintf("; its gang needs %d", w.MinPods)
	}
	return text
}

// nodesFact lists the nodes of the pods that are bound, with how many each has.
func (r *Report) nodesFact() []evidence {
	nodes := make(map[string]int)
	for i := range r.Pods {
		if node := r.Pods[i].Node; node != "" {
			nodes[node]++
		}
	}
	if len(nodes) == 0 {
		return nil
	}
	return []evidence{{"nodes", some(sortedPairs(nodes), 8), 1}}
}
