package cluster

import (
	"fmt"
	"testing"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/dra"
)

// expectNoAnomalies fails the test if clocks contradicted each other in any
// phase.
func (s *testCluster) expectNoAnomalies() *testCluster {
	s.t.Helper()
	for _, phase := range s.state.lifecycle.contradictions {
		s.expectAnomalies(phase.Name, 0)
	}
	return s
}

// Synchronized clocks differ by milliseconds, and timestamps that are cut to
// seconds turn that into a second. Neither is an anomaly.
func TestSynchronizedClocksHaveNoAnomalies(t *testing.T) {
	for _, which := range []string{"scheduler", "server", "kubelet", "driver"} {
		for _, off := range []int{-50, -10, 10, 50} {
			for _, restart := range []bool{false, true} {
				t.Run(fmt.Sprint(which, off, restart), func(t *testing.T) {
					s := newTestCluster(t)
					s.off[which] = time.Duration(off) * time.Millisecond
					for i := range 120 {
						s.runLifecycle(float64(i)*1.0137, fmt.Sprint(i), restart)
					}
					if s.expectNoAnomalies(); len(s.observed) != 120*6 {
						t.Errorf("%d phases observed, want 720", len(s.observed))
					}
				})
			}
		}
	}
}

// runLifecycle runs the lifecycle of a claim with binding conditions and of its
// pod, with a restart of the exporter before each observed end of a phase.
func (s *testCluster) runLifecycle(at float64, name string, restart bool) {
	after := func(seconds float64) *testCluster {
		if restart {
			s.restart()
		}
		return s.at(at + seconds)
	}
	s.at(at).pod(name, uses(name)).at(at + .006).claim(name)
	after(.02).claim(name, s.allocated(name), binding(dra.BindingWaiting))
	after(.03).claim(name, s.bindingDone)
	after(.036).pod(name, s.bound("new"))
	after(.1).pod(name, s.sandbox)
	after(.15).pod(name, s.started).gonePod(name).goneClaim(name)
}

func TestLaggingWatch(t *testing.T) {
	for name, test := range map[string]func(*testCluster){
		"the claims', all the while": func(s *testCluster) {
			made := s.stamp("server")
			dated := func(c *dra.ClaimLifecycle) { c.AllocatedAt = s.began.Wall.Add(time.Second) }
			s.pod("a", uses("c")).at(1.006).pod("a", s.bound("new"))
			s.at(1.5).claim("c", func(c *dra.ClaimLifecycle) { c.Created = made }).at(2.5).claim("c", s.allocated("a"), dated)
			s.at(3).pod("a", s.sandbox).at(4).pod("a", s.started)
			s.expectObserved("allocation gpu 1s", "scheduling gpu 0s", "preparation gpu 1.994s", "start gpu 1s", "ready gpu 2.5s").expectNoAnomalies()
		},
		"the stamps say how long it took": func(s *testCluster) {
			s.claim("x").claim("x", s.allocated()).pod("a", uses("c")).claim("c").at(10)
			allocated := s.allocated("a")
			s.unreported(func(s *testCluster) { s.claim("c", allocated) })
			s.at(17).pod("a", s.bound("new")).at(20)
			late := s.claims["c"]
			s.deliver(Change{Live: true, Claim: late}).expectObserved("allocation gpu 20s", "scheduling gpu 7s").expectNoAnomalies()
		},
		"not those of a driver": func(s *testCluster) {
			s.off["driver"] = -5 * time.Minute
			s.pod("a", uses("c")).claim("c").at(1).claim("c", s.allocated("a"), binding(dra.BindingWaiting)).at(400)
			s.unreported(func(s *testCluster) { s.claim("c", s.bindingDone) })
			s.at(401).pod("a", s.bound("new")).at(410).deliver(Change{Live: true, Claim: s.claims["c"]})
			s.expectObserved("allocation gpu 1s", "binding gpu 6m49s", "scheduling gpu 0s").expectNoAnomalies()
		},
		"stamps in the wrong order are an anomaly": func(s *testCluster) {
			s.off["scheduler"] = 5 * time.Minute
			s.pod("a", uses("c")).claim("c").at(1).pod("a", s.bound("new")).at(4).claim("c", s.allocated("a"))
			s.expectObserved("allocation gpu 4s").expectAnomalies("scheduling", 1)
		},
	} {
		t.Run(name, func(t *testing.T) { test(newTestCluster(t)) })
	}
}

// A late report of a kubelet is no evidence of its clock. A start in the future
// is.
func TestStartsReportedLate(t *testing.T) {
	s := newTestCluster(t)
	for i := range 2 {
		at, pod := float64(i*400), fmt.Sprint("p", i)
		s.at(at).pod(pod, uses(pod)).claim(pod).at(at+1).claim(pod, s.allocated(pod)).at(at+2).pod(pod, s.bound("old")).at(at + 4)
		started := s.stamp("kubelet")
		s.at(at+240).pod(pod, func(p *dra.PodLifecycle) { p.Started = started })
		s.expectObserved("allocation gpu 1s", "scheduling gpu 1s", "preparation_start gpu 3s", "ready gpu 5s").expectNoAnomalies()
	}
	if len(s.state.lifecycle.clocks.nodes) != 0 {
		t.Error("a late report is evidence of a clock")
	}
	s.off["kubelet"] = 5 * time.Minute
	s.at(1000).pod("b", uses("d")).claim("d").at(1001).claim("d", s.allocated("b")).at(1002).pod("b", s.bound("old")).at(1003).pod("b", s.started)
	s.expectObserved("allocation gpu 1s", "scheduling gpu 1s", "preparation_start gpu 1s", "ready gpu 3s")
	started := s.at(1010).pod("e", uses("d")).pod("e", s.bound("old")).at(1012).stamp("kubelet")
	s.at(1100).claim("d", s.reserved("e")).pod("e", func(p *dra.PodLifecycle) { p.Started = started })
	s.expectObserved("scheduling gpu 0s", "preparation_start gpu 3s", "ready gpu 3s")
}

// Evidence of a clock expires if no new evidence follows: when it is read, and
// when other nodes are observed.
func TestExpiredClockEvidence(t *testing.T) {
	s := newTestCluster(t)
	s.off["server"] = 10 * time.Minute
	s.claim("x")
	s.off["server"] = 0
	s.at(10 * 3600).unreported(func(s *testCluster) { s.claim("c").pod("a", uses("c")) }).at(10*3600 + 1).relist()
	s.at(10*3600+5).claim("c", s.allocated("a")).expectObserved("allocation gpu 5s").expectNoAnomalies()
	s.claim("y").at(10*3600 + 6).unreported(func(s *testCluster) { s.claim("d").pod("b", uses("d")) }).at(10*3600 + 7).relist()
	s.at(10*3600+10).claim("d", s.allocated("b")).expectObserved("allocation gpu 4s").expectNoAnomalies()

	c := newClocks()
	since := func(after time.Duration) clock.Instant {
		return clock.Instant{Wall: s.began.Wall.Add(after), Elapsed: after}
	}
	c.observe(clockServer, "", s.began.Wall.Add(5*time.Minute), since(0))
	c.observe(clockServer, "", s.began.Wall.Add(16*time.Minute), since(16*time.Minute)) // corrected
	for after, want := range map[time.Duration]time.Duration{30 * time.Minute: -5 * time.Minute, 32 * time.Minute: 0} {
		if got := c.elapsed(clockServer, "", s.began.Wall, since(after)); got != want {
			t.Errorf("after %v the clock is believed to have been %v off", after, got)
		}
	}
	most := 0
	for i := range 10000 {
		at := since(time.Duration(i) * time.Minute)
		c.observe(clockNode, fmt.Sprint("node-", i), at.Wall, at)
		most = max(most, len(c.nodes))
	}
	if most > 46 {
		t.Errorf("%d nodes are remembered, each observed once, one in a minute", most)
	}
}

// If nodes cannot be read, preparation_start also exists from 0.
func TestHistogramsWithoutNodes(t *testing.T) {
	for _, unread := range []bool{true, false} {
		state, synced := NewState(Config{}), allSynced()
		synced.Nodes = !unread
		c := dra.ClaimLifecycle{Ref: dra.ClaimRef{Namespace: "ns", Name: "c"}, UID: "c", Classes: []string{"gpu"}}
		_, snapshot, _ := Step(state, Facts{Changes: []Change{{Claim: &c}}, Synced: synced}, clock.Instant{Elapsed: time.Second})
		opened := false
		for _, o := range snapshot.Opened {
			opened = opened || o.Phase == phasePreparationStart
		}
		if opened != unread {
			t.Errorf("nodes unread %v, but preparation_start exists %v", unread, opened)
		}
	}
}
