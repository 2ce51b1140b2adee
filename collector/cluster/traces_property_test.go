package cluster

import (
	"slices"

	"github.com/dra-exporter/dra-exporter/collector/trace"
)

// compareTraces compares the traces of a history with the actual phases: one
// trace for each pod whose start was observed live, with all observations.
func (c *randomHistory) compareTraces(byIndex []historyEvent) {
	reported := map[trace.ID]*trace.Trace{}
	for i := range c.traced {
		t := &c.traced[i]
		if reported[t.ID()] != nil {
			c.t.Errorf("%s of %s is reported twice", t.Claim.Name, t.Pod.Name)
		}
		reported[t.ID()] = t
		if t.Spans[0].Failed != "" {
			c.t.Errorf("a pod that started has failed:\n%s", c.text(t))
		}
		c.checkSpans(t, len(c.off) == 0)
	}
	wanted := 0
	for _, actual := range c.phases {
		if actual.phase != phaseReady || !byIndex[actual.ended].live {
			continue
		}
		pod := byIndex[actual.ended].reported.Pod
		claim := pod.Claims[0].Claim
		if reported[trace.NewID(c.claims[claim].UID, pod.UID)] != nil {
			wanted++
			continue
		}
		if len(c.off) > 0 {
			continue // clocks contradict the begin
		}
		c.t.Errorf("no trace of %s, which started live", pod.Ref.Name)
	}
	if len(reported) != wanted {
		c.t.Errorf("%d traces, want %d", len(reported), wanted)
	}
	c.kinds["in traces"] += c.matchSpans(reported)
}

// matchSpans counts the observations that have a span of the same duration:
// exactly if our own clock measured both ends, else within the span's error.
func (c *randomHistory) matchSpans(reported map[trace.ID]*trace.Trace) (found int) {
	for _, o := range c.observed {
		t := reported[o.Trace.Trace]
		if o.Trace == (trace.Point{}) || t == nil {
			continue // its pod started before the exporter, or its start was not observed live
		}
		at := slices.IndexFunc(t.Spans, func(span trace.Span) bool {
			return trace.NewSpanID(t.Claim.UID, t.Pod.UID, span.Name()) == o.Trace.Span
		})
		if at < 0 && len(c.off) > 0 {
			continue
		}
		if at < 0 {
			c.t.Errorf("%s of %v is not in the trace:\n%s", o.Phase, o.Took, c.text(t))
			continue
		}
		span := &t.Spans[at]
		within := span.Begin.Error + span.End.Error
		if root := t.Spans[0]; span.Begin.At.Equal(root.Begin.At) || span.End.At.Equal(root.End.At) {
			within += seconds(latency) // cut because watches delivered in the wrong order
		}
		if off := span.End.At.Sub(span.Begin.At) - o.Took; off.Abs() > within {
			c.t.Errorf("%s took %v, but is %v long:\n%s", span.Name(), o.Took, off+o.Took, c.text(t))
		}
		found++
	}
	return found
}
