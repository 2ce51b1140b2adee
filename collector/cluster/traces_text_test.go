package cluster

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/collector/trace"
)

// expectTraces fails the test unless exactly these traces were reported since
// the last call. Times are in seconds after the start; "~" precedes a server's
// timestamp, with its error behind "±" unless that is one second.
func (s *testCluster) expectTraces(want string) *testCluster {
	s.t.Helper()
	var text strings.Builder
	for i := range s.traced {
		s.write(&text, &s.traced[i])
	}
	s.traced = nil
	if got, want := strings.TrimSpace(text.String()), unindented(want); got != want {
		s.t.Errorf("reported\n%s\nwant\n%s", got, want)
	}
	return s
}

func (s *testCluster) text(t *trace.Trace) string {
	var text strings.Builder
	s.write(&text, t)
	return text.String()
}

func (s *testCluster) write(text *strings.Builder, t *trace.Trace) {
	fmt.Fprintf(text, "%s of %s, class %s", t.Claim.Name, t.Pod.Name, t.Claim.Class)
	if t.Pod.Node != "" {
		fmt.Fprint(text, ", on ", t.Pod.Node)
	}
	if t.Lost > 0 {
		fmt.Fprintf(text, ", %d attempts lost", t.Lost)
	}
	fmt.Fprintln(text)
	for i := range t.Spans {
		span := &t.Spans[i]
		fmt.Fprintf(text, "- %s %s to %s", span.Name(), s.timestampText(span.Begin), s.timestampText(span.End))
		if span.Failed != "" {
			fmt.Fprintf(text, " %s: %s", span.Failed, span.Message)
		}
		if span.Lost > 0 {
			fmt.Fprintf(text, ", %d events lost", span.Lost)
		}
		fmt.Fprintln(text)
		for _, e := range span.Events {
			fmt.Fprintf(text, "! %s %s %s: %s\n", s.timestampText(trace.Timestamp{At: e.At}), e.Name, e.Reason, e.Message)
		}
	}
}

func (s *testCluster) timestampText(m trace.Timestamp) string {
	text := fmt.Sprint(m.At.Sub(s.began.Wall).Round(time.Millisecond).Seconds())
	if m.Evidence == trace.EvidenceTimestamp {
		text = "~" + text
	}
	if m.Evidence == trace.EvidenceTimestamp && m.Error != time.Second {
		text += fmt.Sprint("±", m.Error.Seconds())
	}
	return text
}

// checkSpans fails the test if the spans of a trace are out of order, outside
// of the root span, or too many; with strictly, also if there is a gap between
// them.
func (s *testCluster) checkSpans(t *trace.Trace, strictly bool) {
	s.t.Helper()
	root := t.Spans[0]
	if root.Phase != phaseReady || root.End.At.Before(root.Begin.At) {
		s.t.Errorf("the whole is %+v", root)
	}
	covered, live := root.Begin.At, strictly && root.Begin.Evidence == trace.EvidenceWatch
	for i, span := range t.Spans[1:] {
		if span.Begin.At.Before(t.Spans[i].Begin.At) || span.Begin.At.Before(root.Begin.At) || span.End.At.After(root.End.At) || span.End.At.Before(span.Begin.At) {
			s.t.Errorf("%s is out of order:\n%s", span.Name(), s.text(t))
		}
		over := min(covered.Sub(span.Begin.At), span.End.At.Sub(span.Begin.At))
		if live && (covered.Before(span.Begin.At) || over > seconds(2*latency)) {
			s.t.Errorf("%s begins %v before the end of what was before it:\n%s", span.Name(), over, s.text(t))
		}
		if span.End.At.After(covered) {
			covered = span.End.At
		}
		if len(span.Events) > maxEvents {
			s.t.Errorf("%d events", len(span.Events))
		}
	}
	if live && !covered.Equal(root.End.At) {
		s.t.Errorf("nothing until the end:\n%s", s.text(t))
	}
	if len(t.Spans) > 3*(maxAttempts+1)+3 {
		s.t.Errorf("%d spans", len(t.Spans))
	}
}

func seconds(of float64) time.Duration { return time.Duration(of * float64(time.Second)) }

// warning delivers a Kubernetes event about a pod.
func (s *testCluster) warning(kind dra.WarningKind, name, pod, message string, count int64) *testCluster {
	return s.deliver(Change{Live: true, Warning: &dra.Warning{
		Name: name, Kind: kind, Pod: dra.PodRef{Namespace: "ns", Name: pod}, PodUID: s.pods[pod].UID, Message: message, Count: count, Last: s.stamp("kubelet"),
	}})
}

// idleUntil advances the time without changes.
func (s *testCluster) idleUntil(until float64) *testCluster {
	s.at(until).step()
	return s
}

func deletedNow(s *testCluster) func(*dra.PodLifecycle) {
	return func(p *dra.PodLifecycle) { p.Deleted = s.now.Wall }
}

func terminal(p *dra.PodLifecycle) { p.Terminal = true }

// traceCase is a scenario and its expected traces.
type traceCase struct {
	name     string
	scenario func(*testCluster)
	want     string
}

func (test traceCase) run(t *testing.T) {
	t.Run(test.name, func(t *testing.T) {
		s := newTestCluster(t)
		test.scenario(s)
		s.expectTraces(test.want)
		if left := s.state.traces; len(left.started) > 0 || len(left.held) > 0 {
			t.Errorf("%d traces are still open, %d held", len(left.started), len(left.held))
		}
	})
}
