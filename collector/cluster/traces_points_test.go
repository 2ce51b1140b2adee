package cluster

import (
	"testing"

	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/collector/trace"
)

// The exemplar of an observation refers to the pod and to the claim that the
// pod waited for longest.
func TestExemplarTargets(t *testing.T) {
	gated := func(p *dra.PodLifecycle) { p.Gated = true }
	s := newTestCluster(t)
	s.claim("c").pod("gated", uses("c"), gated).at(1).pod("late", uses("c")).at(2).pod("later", uses("c"))
	s.at(5).claim("c", s.allocated("late"), binding(dra.BindingWaiting)).at(6).claim("c", s.bindingDone)
	s.expectExemplars("late c allocation", "late c binding")
	s.run("late", "new", 7, 8, 9).expectExemplars("late c scheduling", "late c preparation", "late c start", "late c ready")
	s.at(10).claim("d").at(11).pod("two", uses("d", "e")).at(12).claim("e").claim("d", s.allocated("two")).claim("e", s.allocated("two"))
	s.run("two", "old", 13, 0, 14).expectExemplars("two d allocation", "two e allocation", "two d scheduling", "two d preparation_start", "two d ready")
	s.at(20).claim("f").pod("x", uses("f")).at(21).claim("f", s.allocated("x")).at(22).claim("f", unallocated).at(23).claim("f", s.allocated("x"), binding(dra.BindingWaiting))
	s.at(24).claim("f", s.bindingDone).expectExemplars("x f allocation", "x f allocation#2", "x f binding#2")
}

// expectExemplars fails the test unless the observations since the last call
// refer to these spans: "pod claim span".
func (s *testCluster) expectExemplars(want ...string) {
	s.t.Helper()
	names := map[trace.Point]string{}
	for claim := range s.claims {
		for pod := range s.pods {
			for _, span := range []string{"allocation", "allocation#2", "binding", "binding#2", "scheduling", "preparation", "start", "preparation_start", "ready"} {
				of := trace.Point{Trace: trace.NewID(s.claims[claim].UID, s.pods[pod].UID), Span: trace.NewSpanID(s.claims[claim].UID, s.pods[pod].UID, span)}
				names[of] = pod + " " + claim + " " + span
			}
		}
	}
	for i, o := range s.observed {
		if i >= len(want) || names[o.Trace] != want[i] {
			s.t.Errorf("observation %d, of %q, points to %q", i, o.Phase, names[o.Trace])
		}
	}
	if len(s.observed) != len(want) {
		s.t.Errorf("%d observations, want %d", len(s.observed), len(want))
	}
	s.observed = nil
}
