package cluster

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/collector/trace"
)

// Of many attempts the first and the last are reported, with their own numbers,
// and the number of the others.
func TestManyAttempts(t *testing.T) {
	s := newTestCluster(t)
	s.claim("c").pod("a", uses("c"))
	for i := range 40 {
		s.at(float64(10*i+1)).claim("c", s.allocated("a")).at(float64(10*i+2)).claim("c", unallocated)
	}
	s.at(401).claim("c", s.allocated("a")).run("a", "new", 402, 403, 404)
	reported := s.traced[0]
	s.checkSpans(&reported, false)
	var names []string
	for _, span := range reported.Spans {
		if span.Phase == phaseScheduling {
			names = append(names, strings.TrimPrefix(span.Name(), "scheduling#"))
		}
	}
	if got, want := strings.Join(names, " "), "scheduling 2 3 4 5 6 7 8 33 34 35 36 37 38 39 40 41"; got != want || reported.Lost != 24 {
		t.Errorf("attempts %s, and %d lost; want %s", got, reported.Lost, want)
	}
	if o := s.observed[len(s.observed)-4]; o.Phase != phaseScheduling || o.Trace.Span != trace.NewSpanID(reported.Claim.UID, reported.Pod.UID, "scheduling#41") {
		t.Errorf("the last attempt is observed as %+v", o)
	}
}

// Of many events the first and the last are reported, and the number of all.
func TestManyEvents(t *testing.T) {
	for _, events := range []int{31, 32, 33, 64, 65, 500} {
		s := newTestCluster(t)
		s.claim("c").pod("a", uses("c"))
		for i := range events {
			s.at(float64(3*i)).pod("a", func(p *dra.PodLifecycle) {
				p.Unschedulable = fmt.Sprintf("0/%d nodes are available: %d Insufficient cpu-%d.", i+2, i+2, i)
			})
		}
		if kept := len(s.history("a").refs[0].notes); kept > maxNotes {
			t.Errorf("%d notes are kept", kept)
		}
		s.at(2000).gonePod("a")
		span := s.traced[0].Spans[1]
		if len(span.Events) != min(events, maxEvents) || len(span.Events)+span.Lost != events {
			t.Errorf("of %d events %d are reported, and %d lost", events, len(span.Events), span.Lost)
		}
		if first, last := span.Events[0].Message, span.Events[len(span.Events)-1].Message; first != "Insufficient cpu-0" || last != fmt.Sprint("Insufficient cpu-", events-1) {
			t.Errorf("of %d events the first is %q, the last %q", events, first, last)
		}
	}
}

func TestLongMessages(t *testing.T) {
	for _, message := range []string{strings.Repeat("x", 5000), strings.Repeat("ü", 5000), "a" + strings.Repeat("€", 5000), strings.Repeat("x", maxMessageBytes), ""} {
		short := shorten(message)
		if len(short) > maxMessageBytes || !utf8.ValidString(short) || len(message) <= maxMessageBytes && short != message {
			t.Errorf("%d bytes, %q", len(short), short)
		}
		if !strings.HasPrefix(message, strings.TrimSuffix(short, "…")) {
			t.Errorf("%q says something else", short)
		}
	}
}

// No history is kept if traces are not exported.
func TestNoHistoriesWithoutTraces(t *testing.T) {
	s := newTestCluster(t)
	s.config.Traces = false
	s.state = NewState(s.config)
	s.claim("c").pod("a", uses("c")).at(5).warning(dra.WarningPreparation, "ns/e", "a", "no", 1)
	if histories := len(s.state.traces.histories); histories > 0 {
		t.Errorf("%d histories are kept", histories)
	}
	s.at(6).claim("c", s.allocated("a"), binding(dra.BindingWaiting)).claim("c", binding(dra.BindingFailed)).claim("c", unallocated)
	s.claim("c", s.allocated("a")).run("a", "new", 7, 8, 9).expectTraces("")
	s.claim("d").pod("b", uses("d")).at(20).goneClaim("d").at(30).gonePod("b").idleUntil(40).expectTraces("")
	for _, o := range s.observed {
		if o.Trace != (trace.Point{}) {
			t.Errorf("%+v points to a trace", o)
		}
	}
}
