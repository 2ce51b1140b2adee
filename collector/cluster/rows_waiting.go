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
	b.In(f.pendingRequested)
	for _, wr := range order {
		wr.labelRequests(f)
		wr.requestedRows(b)
	}
	b.In(f.pendingCandidates)
	for _, wr := range order {
		wr.candidateRows(b, s.waits.synced.Nodes)
	}
}

// labelRequests labels what is shown of each request of the verdict, once. A
// request that is there twice has no labels the second time: no page may hold
// it twice.
func (wr *waiter) labelRequests(f *families) {
	if wr.verdict == nil || wr.labels.requested != nil {
		return
	}
	funnel := wr.verdict.Funnel
	wr.labels.requested = make([]*metric.Labels, len(funnel))
	wr.labels.candidates = make([]*metric.Labels, len(funnel)*dra.Stages)
	for i := range funnel {
		request := funnel[i].Request
		if slices.ContainsFunc(funnel[:i], func(r dra.RequestFunnel) bool { return r.Request == request }) {
			continue
		}
		wr.labels.requested[i] = metric.NewLabels(f.pendingRequested.Labels, wr.ref.Namespace, wr.ref.Name, wr.name, request)
		for stage := range dra.Stage(dra.Stages) {
			wr.labels.candidates[i*dra.Stages+int(stage)] = metric.NewLabels(f.pendingCandidates.Labels, wr.ref.Namespace, wr.ref.Name, wr.name, request, stage.String())
		}
	}
}

func (wr *waiter) requestedRows(b *metric.Builder) {
	for i, labels := range wr.labels.requested {
		if asked := wr.verdict.Funnel[i].Asked; labels != nil && asked > 0 {
			b.Add(labels, float64(asked))
		}
	}
}

// candidateRows leaves out what one node can reach where no node can be read.
func (wr *waiter) candidateRows(b *metric.Builder, nodes bool) {
	for i, labels := range wr.labels.candidates {
		if labels != nil && (nodes || dra.Stage(i%dra.Stages) != dra.StageBestNode) {
			b.Add(labels, float64(wr.verdict.Funnel[i/dra.Stages].Left[i%dra.Stages]))
		}
	}
}
