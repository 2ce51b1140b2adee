package explain

import (
	"context"
	"slices"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/cluster"
	"github.com/dra-exporter/dra-exporter/collector/diagnosis"
	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/collector/metric"
)

// maxDiagnosed bounds the pods that are diagnosed one by one: the pods of a shared
// claim are pending for the same reason.
const maxDiagnosed = 16

// diagnose takes two steps of the reducer: the first finds what is pending, and the
// second, with the diagnoses, why.
func (r Reader) diagnose(ctx context.Context, read *reading, facts *Facts, subject Subject) {
	now := r.Clock()
	known := cluster.Facts{Changes: read.changes, Synced: read.synced, Supply: facts.Supply, Sources: read.statuses}
	state, first, _ := cluster.Step(cluster.NewState(cluster.Config{Once: true}), known, now)
	diagnoser := diagnosis.New(diagnosis.Options{Inventory: read.inventory, Clock: r.Clock, Log: r.Log, Budget: 1})
	var diagnoses []dra.Diagnosis
	diagnosing, cancel := context.WithTimeout(ctx, r.Timeout)
	defer cancel()
	questions := Diagnosable(concerning(first, subject), facts.Gaps)
	for _, question := range questions[:min(len(questions), maxDiagnosed)] {
		diagnoses = append(diagnoses, diagnoser.Explain(diagnosing, question)...)
	}
	diagnoses = append(diagnoses, sharedDiagnoses(questions, diagnoses, subject)...)
	sure, unsure := SplitByGaps(diagnoses, facts.Gaps)
	known.Changes, known.Diagnoses = nil, sure
	_, second, _ := cluster.Step(state, known, r.Clock())
	for _, ref := range second.Pending {
		facts.Pending = append(facts.Pending, *ref)
	}
	AddUncertain(facts.Pending, unsure)
	facts.Phases = phasesOf(second.Rows())
	facts.Now = now.Wall
}

// phasesOf reads the phases that have started and not ended from the rows of a
// snapshot, so that they agree with the metrics.
func phasesOf(rows []metric.Row) []Phase {
	var phases []Phase
	for _, row := range rows {
		if row.Family.Name != metric.ClaimPhaseSinceTimestampSeconds {
			continue
		}
		phases = append(phases, Phase{
			Pod:   dra.PodRef{Namespace: row.Labels.Get("namespace"), Name: row.Labels.Get("pod")},
			Claim: row.Labels.Get("resourceclaim"),
			Phase: row.Labels.Get("phase"),
			Since: time.Unix(int64(row.Value), 0).UTC(),
		})
	}
	return phases
}

// concerning returns the questions about the pod, or about the pods that are
// pending for the claim.
func concerning(snapshot cluster.Snapshot, subject Subject) []dra.Question {
	var questions []dra.Question
	for _, question := range snapshot.Questions {
		if question.Pod.Namespace != subject.Namespace {
			continue
		}
		asks := slices.ContainsFunc(question.Refs, func(asked dra.PendingRef) bool { return asked.Claim == subject.Name })
		if subject.Kind == KindPod && question.Pod.Name == subject.Name || subject.Kind == KindClaim && asks {
			questions = append(questions, question)
		}
	}
	return questions
}

// sharedDiagnoses gives the pods that were not diagnosed the diagnosis of one that
// is pending for the same claim.
func sharedDiagnoses(questions []dra.Question, diagnoses []dra.Diagnosis, subject Subject) []dra.Diagnosis {
	var model *dra.Diagnosis
	var more []dra.Diagnosis
	for i, question := range questions {
		for _, asked := range question.Refs {
			if asked.Claim != subject.Name {
				continue
			}
			if i >= maxDiagnosed && model != nil {
				same := *model
				same.Pod, same.PodUID, same.PodClaim = question.Pod, question.PodUID, asked.PodClaim
				more = append(more, same)
			}
			for j := range diagnoses {
				if model == nil && diagnoses[j].PodUID == question.PodUID && diagnoses[j].PodClaim == asked.PodClaim {
					model = &diagnoses[j]
				}
			}
		}
	}
	return more
}
