package cluster

import (
	"slices"

	"github.com/dra-exporter/dra-exporter/collector/trace"
)

// compareTraces holds the traces of a chronicle against the truth: one for each
// pod whose start was told live, in which all that was observed is found again.
func (c *chronicle) compareTraces(byIndex []happening) {
	told := map[trace.ID]*trace.Trace{}
	for i := range c.traced {
		t := &c.traced[i]
		if told[t.ID()] != nil {
			c.t.Errorf("%s of %s is told twice", t.Claim.Name, t.Pod.Name)
		}
		told[t.ID()] = t
		if t.Spans[0].Failed != "" {
			c.t.Errorf("a pod that started has failed:\n%s", c.text(t))
		}
		c.sound(t, len(c.off) == 0)
	}
	wanted := 0
	for _, truth := range c.truths {
		if truth.phase != phaseReady || !byIndex[truth.ended].live {
			continue
		}
		pod := byIndex[truth.ended].told.Pod
		claim := pod.Claims[0].Claim
		if told[trace.NewID(c.claims[claim].UID, pod.UID)] != nil {
			wanted++
			continue
		}
		if len(c.off) > 0 {
			continue // since when it had waited is contradicted
		}
		c.t.Errorf("no trace of %s, which started live", pod.Ref.Name)
	}
	if len(told) != wanted {
		c.t.Errorf("%d traces, want %d", len(told), wanted)
	}
	c.kinds["in traces"] += c.found(told)
}

// found counts the observations that are spans, of the same duration: exactly
// where our own clock told both ends, else within what the span says.
func (c *chronicle) found(told map[trace.ID]*trace.Trace) (found int) {
	for _, o := range c.observed {
		t := told[o.Trace.Trace]
		if o.Trace == (trace.Point{}) || t == nil {
			continue // of one that started before the exporter, or whose start was not told live
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
			within += seconds(latency) // cut where watches told in the wrong order
		}
		if off := span.End.At.Sub(span.Begin.At) - o.Took; off.Abs() > within {
			c.t.Errorf("%s took %v, but is %v long:\n%s", span.Name(), o.Took, off+o.Took, c.text(t))
		}
		found++
	}
	return found
}
