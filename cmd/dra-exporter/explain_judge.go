package main

import (
	"context"
	"slices"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/cluster"
	"github.com/dra-exporter/dra-exporter/collector/diagnosis"
	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/collector/metric"
	"github.com/dra-exporter/dra-exporter/collector/source"
	"github.com/dra-exporter/dra-exporter/internal/explain"
)

// mostJudged bounds the pods that are judged one by one: those of a claim that
// many share wait for the same.
const mostJudged = 16

// facts reads the cluster and has judged what concerns the subject.
func (q inquiry) facts(ctx context.Context, subject explain.Subject) (*explain.Facts, error) {
	found, err := q.read(ctx, subject, "")
	if err != nil {
		return nil, err
	}
	var everywhere []source.Status
	if confined(found.statuses) {
		everywhere = found.statuses
		if found, err = q.read(ctx, subject, subject.Namespace); err != nil {
			return nil, err
		}
	}
	if err := reachable(q.config.Host, found.statuses); err != nil {
		return nil, err
	}
	facts := &explain.Facts{
		World: worldOf(found.changes), Supply: found.inventory.Supply(),
		Gaps: explain.GapsOf(found.statuses, everywhere, subject.Namespace),
	}
	found.asked.tell(facts)
	q.judge(ctx, found, facts, subject)
	return facts, nil
}

func worldOf(changes []cluster.Change) *explain.World {
	world := explain.NewWorld()
	for _, change := range changes {
		switch {
		case change.Claim != nil:
			world.Claim(change.Claim, change.Gone)
		case change.Pod != nil:
			world.Pod(change.Pod, change.Gone)
		case change.Group != nil:
			world.Group(change.Group, change.Gone)
		case change.Trouble != nil:
			world.Trouble(change.Trouble, change.Gone)
		}
	}
	return world
}

// judge takes the reducer's two steps: what waits, and, with the verdicts,
// why.
func (q inquiry) judge(ctx context.Context, found *reading, facts *explain.Facts, subject explain.Subject) {
	now := q.clock()
	known := cluster.Facts{Changes: found.changes, Synced: found.synced, Supply: facts.Supply, Sources: found.statuses}
	state, first, _ := cluster.Step(cluster.NewState(cluster.Config{Once: true}), known, now)
	judge := diagnosis.New(diagnosis.Options{Inventory: found.inventory, Clock: q.clock, Log: q.log, Budget: 1})
	var verdicts []dra.Verdict
	diagnosing, cancel := context.WithTimeout(ctx, q.timeout)
	defer cancel()
	questions := explain.Askable(concerning(first, subject), facts.Gaps)
	for _, question := range questions[:min(len(questions), mostJudged)] {
		verdicts = append(verdicts, judge.Explain(diagnosing, question)...)
	}
	verdicts = append(verdicts, likewise(questions, verdicts, subject)...)
	sure, unsure := explain.Trust(verdicts, facts.Gaps)
	known.Changes, known.Verdicts = nil, sure
	_, second, _ := cluster.Step(state, known, q.clock())
	for _, waiting := range second.Waiting {
		facts.Waiting = append(facts.Waiting, explain.Reference(waiting))
	}
	explain.Doubted(facts.Waiting, unsure)
	facts.Phases = phasesOf(second.Rows)
	facts.Now = now.Wall
}

// phasesOf reads the phases under way off a snapshot's rows, so that they are
// told as the metrics tell them.
func phasesOf(rows []metric.Row) []explain.Phase {
	var phases []explain.Phase
	for _, row := range rows {
		if row.Family.Name != "dra_claim_phase_since_timestamp_seconds" {
			continue
		}
		phases = append(phases, explain.Phase{
			Pod:   dra.PodRef{Namespace: row.Labels.Get("namespace"), Name: row.Labels.Get("pod")},
			Claim: row.Labels.Get("resourceclaim"),
			Phase: row.Labels.Get("phase"),
			Since: time.Unix(int64(row.Value), 0).UTC(),
		})
	}
	return phases
}

// concerning picks the questions of the pod, or of the pods that wait for the
// claim.
func concerning(snapshot cluster.Snapshot, subject explain.Subject) []dra.Question {
	var questions []dra.Question
	for _, question := range snapshot.Questions {
		if question.Pod.Namespace != subject.Namespace {
			continue
		}
		asks := slices.ContainsFunc(question.Asked, func(asked dra.Asked) bool { return asked.Claim == subject.Name })
		if subject.Kind == explain.KindPod && question.Pod.Name == subject.Name || subject.Kind == explain.KindClaim && asks {
			questions = append(questions, question)
		}
	}
	return questions
}

// likewise gives the pods that were not judged the verdict of one that waits
// for the same claim.
func likewise(questions []dra.Question, verdicts []dra.Verdict, subject explain.Subject) []dra.Verdict {
	var model *dra.Verdict
	var more []dra.Verdict
	for i, question := range questions {
		for _, asked := range question.Asked {
			if asked.Claim != subject.Name {
				continue
			}
			if i >= mostJudged && model != nil {
				same := *model
				same.Pod, same.PodUID, same.PodClaim = question.Pod, question.PodUID, asked.PodClaim
				more = append(more, same)
			}
			for j := range verdicts {
				if model == nil && verdicts[j].PodUID == question.PodUID && verdicts[j].PodClaim == asked.PodClaim {
					model = &verdicts[j]
				}
			}
		}
	}
	return more
}
