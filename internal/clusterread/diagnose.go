package clusterread

import (
	"context"
	"slices"

	"github.com/dra-exporter/dra-exporter/collector/cluster"
	"github.com/dra-exporter/dra-exporter/collector/diagnosis"
	"github.com/dra-exporter/dra-exporter/collector/dra"
)

// maxDiagnosed bounds the pods that are diagnosed one by one: the pods of a shared
// claim are pending for the same reason.
const maxDiagnosed = 16

// Facts reads the cluster and diagnoses what concerns the subject. If this identity
// may not list all namespaces, it reads the subject's alone.
func (r Reader) Facts(ctx context.Context, subject Subject) (*Facts, error) {
	read, gaps, err := r.readAllowed(ctx, subject)
	if err != nil {
		return nil, err
	}
	facts := &Facts{Server: r.Server, Objects: NewObjects(read.changes...), Supply: read.inventory.Supply(), Gaps: gaps}
	read.specs.addTo(facts)
	r.diagnose(ctx, read, facts, subject)
	return facts, nil
}

// diagnose takes two steps of the reducer: the first finds what is pending, and the
// second, with the diagnoses, why.
func (r Reader) diagnose(ctx context.Context, read *objectsRead, facts *Facts, subject Subject) {
	now := r.Clock()
	known := cluster.Facts{Changes: read.changes, Synced: read.synced, Supply: facts.Supply, Sources: read.statuses}
	state, first, _ := cluster.Step(cluster.NewState(cluster.Config{Once: true}), known, now)
	diagnoser := diagnosis.New(diagnosis.Options{Inventory: read.inventory, Clock: r.Clock, Log: r.Log, Budget: 1})
	var diagnoses []dra.Diagnosis
	diagnosing, cancel := context.WithTimeout(ctx, r.Timeout)
	defer cancel()
	questions := Diagnosable(concerning(first, subject, facts.Objects), facts.Gaps)
	for _, question := range questions[:min(len(questions), maxDiagnosed)] {
		diagnoses = append(diagnoses, diagnoser.Explain(diagnosing, question)...)
	}
	diagnoses = append(diagnoses, sharedDiagnoses(questions, diagnoses)...)
	sure, unsure := SplitByGaps(diagnoses, facts.Gaps)
	known.Changes, known.Diagnoses = nil, sure
	_, second, _ := cluster.Step(state, known, r.Clock())
	for _, ref := range second.Pending {
		facts.Pending = append(facts.Pending, *ref)
	}
	AddUncertain(facts.Pending, unsure)
	facts.Phases = second.Model.Phases
	facts.Now = now.Wall
}

// concerning returns the questions about the pod and the others of its gang, about the
// pods that are pending for the claim, or about the pods of the workload.
func concerning(snapshot cluster.Snapshot, subject Subject, objects *Objects) []dra.Question {
	var questions []dra.Question
	for _, question := range snapshot.Questions {
		if question.Pod.Namespace == subject.Namespace && concerns(&question, subject, objects) {
			questions = append(questions, question)
		}
	}
	if subject.Kind == KindPod { // itself first: only so many are diagnosed
		if at := slices.IndexFunc(questions, func(q dra.Question) bool { return q.Pod.Name == subject.Name }); at > 0 {
			questions = slices.Insert(slices.Delete(questions, at, at+1), 0, questions[at])
		}
	}
	return questions
}

func concerns(question *dra.Question, subject Subject, objects *Objects) bool {
	pod := objects.Pods[question.Pod]
	switch subject.Kind {
	case KindPod:
		p := objects.Pods[dra.PodRef{Namespace: subject.Namespace, Name: subject.Name}]
		return question.Pod.Name == subject.Name || pod != nil && p != nil && pod.Group != "" && pod.Group == p.Group
	case KindWorkload:
		return pod != nil && pod.Member.Workload != nil && pod.Member.Workload.Name == subject.Name
	default:
		return slices.ContainsFunc(question.Refs, func(asked dra.PendingRef) bool { return asked.Claim == subject.Name })
	}
}

// sharedDiagnoses gives the pods that were not diagnosed the diagnoses of references
// to the same claim, or to claims of the same template.
func sharedDiagnoses(questions []dra.Question, diagnoses []dra.Diagnosis) []dra.Diagnosis {
	type source struct{ claim, template string }
	sourceOf := func(asked *dra.PendingRef) source {
		if asked.Template != "" {
			return source{template: asked.Template}
		}
		return source{claim: asked.Claim}
	}
	models := make(map[source]*dra.Diagnosis)
	var more []dra.Diagnosis
	for i, question := range questions {
		for j := range question.Refs {
			asked := &question.Refs[j]
			model := models[sourceOf(asked)]
			switch {
			case i >= maxDiagnosed && model != nil:
				same := *model
				same.Pod, same.PodUID, same.PodClaim = question.Pod, question.PodUID, asked.PodClaim
				more = append(more, same)
			case model == nil:
				at := slices.IndexFunc(diagnoses, func(d dra.Diagnosis) bool { return d.PodUID == question.PodUID && d.PodClaim == asked.PodClaim })
				if at >= 0 && asked.Extended == 0 {
					models[sourceOf(asked)] = &diagnoses[at]
				}
			}
		}
	}
	return more
}
