package cluster

import (
	"slices"

	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/collector/metric"
)

// waitingRows shows who waits, the oldest wait first: so a cap keeps those.
func (s *State) waitingRows() {
	b, f, order := s.rows, s.families, s.waits.order
	b.In(f.pendingSince)
	for _, wr := range order {
		if wr.labels.since == nil {
			wr.labels.since = metric.NewLabels(f.pendingSince.Labels, wr.ref.Namespace, wr.ref.Name, wr.name, wr.claim, wr.class)
		}
		b.Add(wr.labels.since, float64(wr.since.Unix()))
	}
	b.In(f.pendingReason)
	for _, wr := range order {
		if wr.labels.reason == nil {
			wr.labels.reason = metric.NewLabels(f.pendingReason.Labels, wr.ref.Namespace, wr.ref.Name, wr.name, string(wr.reason))
		}
		b.Add(wr.labels.reason, 1)
	}
	b.In(f.pendingCandidates)
	for _, wr := range order {
		wr.candidateRows(b)
	}
}

func (wr *waiter) candidateRows(b *metric.Builder) {
	if wr.verdict == nil {
		return
	}
	funnel := wr.verdict.Funnel
	if wr.labels.candidates == nil {
		for i := range funnel {
			wr.labels.candidates = append(wr.labels.candidates, wr.labelStages(b.Family(), funnel, i)...)
		}
	}
	for i := range funnel {
		for stage, left := range funnel[i].Left {
			if labels := wr.labels.candidates[i*dra.Stages+stage]; labels != nil {
				b.Add(labels, float64(left))
			}
		}
	}
}

// labelStages labels the stages of one request; nil for a request that is
// there twice, which no page may hold.
func (wr *waiter) labelStages(f *metric.Family, funnel []dra.RequestFunnel, i int) []*metric.Labels {
	labels := make([]*metric.Labels, dra.Stages)
	if slices.ContainsFunc(funnel[:i], func(r dra.RequestFunnel) bool { return r.Request == funnel[i].Request }) {
		return labels
	}
	for stage := range dra.Stage(dra.Stages) {
		labels[stage] = metric.NewLabels(f.Labels, wr.ref.Namespace, wr.ref.Name, wr.name, funnel[i].Request, stage.String())
	}
	return labels
}
