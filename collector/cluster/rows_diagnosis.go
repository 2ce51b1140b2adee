package cluster

import (
	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/collector/metric"
)

// Why a reference has no diagnosis.
const (
	causeQueued    = "queued"
	causeOverLimit = "over_limit"
)

// diagnosisRows adds what diagnoses have cost, and since when the oldest
// reference has had none.
func (s *State) diagnosisRows(facts Facts) {
	b, f := s.rows, s.families
	b.In(f.diagnosisSeconds)
	for _, cost := range facts.Costs {
		labels := s.costLabels[cost.Namespace]
		if labels == nil {
			labels = metric.NewLabels(f.diagnosisSeconds.Labels, cost.Namespace)
			s.costLabels[cost.Namespace] = labels
		}
		b.AddFrom(labels, cost.Took.Seconds(), s.opened)
	}
	if !facts.Synced.Claims || !facts.Synced.Pods {
		return
	}
	b.In(f.undiagnosedSince)
	queued, over := s.waits.undiagnosed()
	s.undiagnosedRow(causeQueued, queued)
	s.undiagnosedRow(causeOverLimit, over)
}

func (s *State) undiagnosedRow(cause string, oldest *waiter) {
	if oldest != nil {
		s.rows.Add(metric.NewLabels(s.families.undiagnosedSince.Labels, cause), float64(oldest.known.Wall.UnixMilli())/1000)
	}
}

// undiagnosed finds who has waited longest for a diagnosis, and whose diagnosis
// has been over its limit for longest.
func (w *waits) undiagnosed() (queued, over *waiter) {
	for _, wr := range w.order {
		switch wr.reason {
		case dra.ReasonPendingDiagnosis:
			queued = older(queued, wr)
		case dra.ReasonUndetermined:
			over = older(over, wr)
		}
	}
	return queued, over
}

func older(a, b *waiter) *waiter {
	if a == nil || b.known.Elapsed < a.known.Elapsed {
		return b
	}
	return a
}
