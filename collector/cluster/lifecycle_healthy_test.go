package cluster

import (
	"fmt"
	"testing"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/dra"
)

// quiet fails the test if any clock was contradicted.
func (s *saga) quiet() *saga {
	s.t.Helper()
	for _, phase := range s.state.lifecycle.contradictions {
		s.anomalies(phase.phase, 0)
	}
	return s
}

// Clocks that agree are some milliseconds apart all the same, and stamps that
// are cut to seconds make a second of that.
func TestClocksThatAgreeAreNoAnomaly(t *testing.T) {
	for _, which := range []string{"scheduler", "server", "kubelet", "driver"} {
		for _, off := range []int{-50, -10, 10, 50} {
			for _, restart := range []bool{false, true} {
				t.Run(fmt.Sprint(which, off, restart), func(t *testing.T) {
					s := newSaga(t)
					s.off[which] = time.Duration(off) * time.Millisecond
					for i := range 120 {
						s.life(float64(i)*1.0137, fmt.Sprint(i), restart)
					}
					if s.quiet(); len(s.observed) != 120*6 {
						t.Errorf("%d phases observed, want 720", len(s.observed))
					}
				})
			}
		}
	}
}

// life is that of a claim with binding conditions and its pod, with a restart
// before each end that is told.
func (s *saga) life(at float64, name string, restart bool) {
	after := func(seconds float64) *saga {
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

func TestAWatchThatLags(t *testing.T) {
	for name, test := range map[string]func(*saga){
		"the claims', all the while": func(s *saga) {
			made := s.stamp("server")
			dated := func(c *dra.ClaimLife) { c.AllocatedAt = s.began.Wall.Add(time.Second) }
			s.pod("a", uses("c")).at(1.006).pod("a", s.bound("new"))
			s.at(1.5).claim("c", func(c *dra.ClaimLife) { c.Created = made }).at(2.5).claim("c", s.allocated("a"), dated)
			s.at(3).pod("a", s.sandbox).at(4).pod("a", s.started)
			s.saw("allocation gpu 1s", "scheduling gpu 0s", "preparation gpu 1.994s", "start gpu 1s", "ready gpu 2.5s").quiet()
		},
		"the stamps say how long it took": func(s *saga) {
			s.claim("x").claim("x", s.allocated()).pod("a", uses("c")).claim("c").at(10)
			allocated := s.allocated("a")
			s.missed(func(s *saga) { s.claim("c", allocated) })
			s.at(17).pod("a", s.bound("new")).at(20)
			late := s.claims["c"]
			s.tell(Change{Live: true, Claim: late}).saw("allocation gpu 20s", "scheduling gpu 7s").quiet()
		},
		"not those of a driver": func(s *saga) {
			s.off["driver"] = -5 * time.Minute
			s.pod("a", uses("c")).claim("c").at(1).claim("c", s.allocated("a"), binding(dra.BindingWaiting)).at(400)
			s.missed(func(s *saga) { s.claim("c", s.bindingDone) })
			s.at(401).pod("a", s.bound("new")).at(410).tell(Change{Live: true, Claim: s.claims["c"]})
			s.saw("allocation gpu 1s", "binding gpu 6m49s", "scheduling gpu 0s").quiet()
		},
		"stamps in the wrong order are an anomaly": func(s *saga) {
			s.off["scheduler"] = 5 * time.Minute
			s.pod("a", uses("c")).claim("c").at(1).pod("a", s.bound("new")).at(4).claim("c", s.allocated("a"))
			s.saw("allocation gpu 4s").anomalies("scheduling", 1)
		},
	} {
		t.Run(name, func(t *testing.T) { test(newSaga(t)) })
	}
}

// A kubelet that tells late shows nothing of its clock; one that dates a start
// in the future does.
func TestStartsThatAreToldLate(t *testing.T) {
	s := newSaga(t)
	for i := range 2 {
		at, pod := float64(i*400), fmt.Sprint("p", i)
		s.at(at).pod(pod, uses(pod)).claim(pod).at(at+1).claim(pod, s.allocated(pod)).at(at+2).pod(pod, s.bound("old")).at(at + 4)
		started := s.stamp("kubelet")
		s.at(at+240).pod(pod, func(p *dra.PodLife) { p.Started = started })
		s.saw("allocation gpu 1s", "scheduling gpu 1s", "preparation_start gpu 3s", "ready gpu 5s").quiet()
	}
	if len(s.state.clocks.nodes) != 0 {
		t.Error("a late telling is evidence of a clock")
	}
	s.off["kubelet"] = 5 * time.Minute
	s.at(1000).pod("b", uses("d")).claim("d").at(1001).claim("d", s.allocated("b")).at(1002).pod("b", s.bound("old")).at(1003).pod("b", s.started)
	s.saw("allocation gpu 1s", "scheduling gpu 1s", "preparation_start gpu 1s", "ready gpu 3s")
	started := s.at(1010).pod("e", uses("d")).pod("e", s.bound("old")).at(1012).stamp("kubelet")
	s.at(1100).claim("d", s.reserved("e")).pod("e", func(p *dra.PodLife) { p.Started = started })
	s.saw("scheduling gpu 0s", "preparation_start gpu 3s", "ready gpu 3s")
}

// What is told of a clock is forgotten when nothing more is, also where it is
// asked and where nodes come and go unread.
func TestEvidenceThatIsTooOld(t *testing.T) {
	s := newSaga(t)
	s.off["server"] = 10 * time.Minute
	s.claim("x")
	s.off["server"] = 0
	s.at(10 * 3600).missed(func(s *saga) { s.claim("c").pod("a", uses("c")) }).at(10*3600 + 1).relist()
	s.at(10*3600+5).claim("c", s.allocated("a")).saw("allocation gpu 5s").quiet()
	s.claim("y").at(10*3600 + 6).missed(func(s *saga) { s.claim("d").pod("b", uses("d")) }).at(10*3600 + 7).relist()
	s.at(10*3600+10).claim("d", s.allocated("b")).saw("allocation gpu 4s").quiet()

	c := newClocks()
	since := func(after time.Duration) clock.Instant {
		return clock.Instant{Wall: s.began.Wall.Add(after), Elapsed: after}
	}
	c.observe(clockServer, "", s.began.Wall.Add(5*time.Minute), since(0))
	c.observe(clockServer, "", s.began.Wall.Add(16*time.Minute), since(16*time.Minute)) // set right
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
		t.Errorf("%d nodes are remembered, each heard once, one in a minute", most)
	}
}

// Where nodes cannot be read, preparation_start exists from 0, too.
func TestHistogramsWhereNodesAreUnread(t *testing.T) {
	for _, unread := range []bool{true, false} {
		state, synced := NewState(Config{}), everything()
		synced.Nodes = !unread
		c := dra.ClaimLife{Ref: dra.ClaimRef{Namespace: "ns", Name: "c"}, UID: "c", Classes: []string{"gpu"}}
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
