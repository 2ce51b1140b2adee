package cluster

import (
	"testing"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/dra"
)

func TestClockSkewOfMinutes(t *testing.T) {
	for name, test := range map[string]func(*testCluster){
		"live events need no clock but the exporter's": func(s *testCluster) {
			s.off["server"], s.off["scheduler"], s.off["kubelet"] = 5*time.Minute, -7*time.Minute, 11*time.Minute
			s.pod("a", uses("c")).claim("c").at(1).claim("c", s.allocated("a")).run("a", "new", 2, 3, 4)
			s.expectObserved("allocation gpu 1s", "scheduling gpu 1s", "preparation gpu 1s", "start gpu 1s", "ready gpu 4s")
			s.expectAnomalies("allocation", 1).expectAnomalies("scheduling", 0).expectAnomalies("preparation", 0)
		},
		"a scheduler that dates allocations before their claims is noticed": func(s *testCluster) {
			s.off["scheduler"] = -2 * time.Minute
			s.pod("a", uses("c")).claim("c").at(1).claim("c", s.allocated("a")).expectObserved("allocation gpu 1s").expectAnomalies("allocation", 1)
			s.at(10).pod("b", uses("d")).claim("d").at(20).restart().at(30).claim("d", s.allocated("b")).expectObserved().expectAnomalies("allocation", 1)
		},
		"one second is no contradiction, nor are two within one": func(s *testCluster) {
			s.at(0.9)
			s.pod("a", uses("c")).claim("c").at(1.1).claim("c", s.allocated("a")).expectAnomalies("allocation", 0).expectObserved("allocation gpu 200ms")
			s.pod("b", uses("d")).claim("d").at(1.2).claim("d", s.allocated("b")).expectAnomalies("allocation", 0).expectObserved("allocation gpu 100ms")
		},
		"the clock of an API server that is behind is known from its live events": func(s *testCluster) {
			s.off["server"], s.off["scheduler"] = -5*time.Minute, -5*time.Minute
			s.pod("a", uses("c")).claim("c").at(10).restart()
			s.at(15).claim("other").at(60).claim("c", s.allocated("a")).expectObserved("allocation gpu 1m0s").expectAnomalies("allocation", 0)
		},
		"one that is ahead likewise": func(s *testCluster) {
			s.off["server"], s.off["scheduler"] = 5*time.Minute, 5*time.Minute
			s.pod("a", uses("c")).claim("c").at(10).restart()
			s.at(15).claim("other").at(60).claim("c", s.allocated("a")).expectObserved("allocation gpu 1m0s").expectAnomalies("allocation", 0)
		},
		"nothing is observed by clocks that are not known and disagree": func(s *testCluster) {
			s.off["server"], s.off["scheduler"] = -5*time.Minute, -5*time.Minute
			s.pod("a", uses("c")).claim("c").at(10).restart()
			s.at(60).claim("c", s.allocated("a")).expectObserved().expectAnomalies("allocation", 1)
		},
		"nor what would be negative": func(s *testCluster) {
			s.off["server"], s.off["scheduler"] = 5*time.Minute, 5*time.Minute
			s.pod("a", uses("c")).claim("c").at(10).restart()
			s.at(60).claim("c", s.allocated("a"), func(c *dra.ClaimLifecycle) { c.AllocatedAt = time.Time{} }).expectObserved().expectAnomalies("allocation", 1)
		},
		"nor by dates that two of them wrote": func(s *testCluster) {
			s.off["server"], s.off["scheduler"] = 5*time.Minute, 7*time.Minute
			s.pod("a", uses("c")).claim("c").at(10).restart()
			s.at(60).claim("c", s.allocated("a")).expectObserved().expectAnomalies("allocation", 1)
		},
		"nor a binding by a scheduler's clock that the driver's contradicts": func(s *testCluster) {
			s.off["scheduler"] = -5 * time.Minute
			s.pod("a", uses("c")).claim("c").at(1).claim("c", s.allocated("a"), binding(dra.BindingWaiting))
			s.restart().expectObserved("allocation gpu 1s")
			s.at(9).claim("c", s.bindingDone).expectObserved().expectAnomalies("binding", 1)
		},
		"our own wall clock may be the one that jumps": func(s *testCluster) {
			s.pod("a", uses("c")).claim("c").at(10).restart().at(11).claim("other")
			s.began.Wall = s.began.Wall.Add(10 * time.Minute)
			s.off["server"], s.off["scheduler"] = -10*time.Minute, -10*time.Minute
			s.at(60).claim("c", s.allocated("a")).expectObserved("allocation gpu 1m0s").expectAnomalies("allocation", 0)
		},
		"a kubelet's clock is known from its sandboxes": func(s *testCluster) {
			s.off["kubelet"] = -5 * time.Minute
			s.pod("a", uses("c")).claim("c").at(1).claim("c", s.allocated("a")).at(2).pod("a", s.bound("new")).at(3).pod("a", s.sandbox).at(9).pod("a", s.started)
			s.expectObserved("allocation gpu 1s", "scheduling gpu 1s", "preparation gpu 1s", "start gpu 6s", "ready gpu 9s").expectAnomalies("start", 0).expectAnomalies("preparation", 1)
		},
		"a kubelet without prompt sandboxes that reports the first start late": func(s *testCluster) {
			s.pod("a", uses("c")).claim("c").at(1).claim("c", s.allocated("a")).at(2).pod("a", s.bound("old"))
			s.at(243).pod("a", func(p *dra.PodLifecycle) { p.Started = s.began.Wall.Add(4 * time.Second) })
			s.expectObserved("allocation gpu 1s", "scheduling gpu 1s", "preparation_start gpu 3s", "ready gpu 5s").expectAnomalies("preparation_start", 0)
		},
		"a start that its kubelet dates before the binding happened when it was reported": func(s *testCluster) {
			s.off["kubelet"] = -5 * time.Minute
			s.pod("a", uses("c")).claim("c").at(1).claim("c", s.allocated("a")).at(2).pod("a", s.bound("old")).at(9).pod("a", s.started)
			s.expectObserved("allocation gpu 1s", "scheduling gpu 1s", "preparation_start gpu 7s", "ready gpu 9s").expectAnomalies("preparation_start", 1)
		},
	} {
		t.Run(name, func(t *testing.T) { test(newTestCluster(t)) })
	}
}

// A clock that was set back has its new skew after two windows.
func TestClockEvidenceExpires(t *testing.T) {
	c := newClocks()
	wall := time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)
	at := func(after time.Duration) clock.Instant {
		return clock.Instant{Wall: wall.Add(after), Elapsed: time.Hour + after}
	}
	c.observe(clockServer, "", wall.Add(4*time.Minute), at(0))         // reported a minute late
	c.observe(clockServer, "", wall.Add(5*time.Minute), at(0))         // five minutes ahead
	c.observe(clockServer, "", wall.Add(time.Minute), at(time.Minute)) // reported five minutes late
	if got := c.elapsed(clockServer, "", wall.Add(5*time.Minute), at(time.Minute)); got != time.Hour {
		t.Errorf("by the best evidence %v, want an hour", got)
	}
	var believed time.Duration
	for after := time.Minute; after < time.Hour && believed == 0; after += time.Minute {
		c.observe(clockServer, "", wall.Add(after), at(after)) // right
		if c.elapsed(clockServer, "", wall, at(after)) == time.Hour {
			believed = after
		}
	}
	if believed <= clockWindow || believed > 2*clockWindow+2*time.Minute {
		t.Errorf("the clock is believed after %v, want after one or two windows", believed)
	}
	if got := c.elapsed(clockNode, "unknown", wall, at(time.Minute)); got != time.Hour || len(c.nodes) != 0 {
		t.Errorf("a clock that was never observed: %v, %d remembered", got, len(c.nodes))
	}
	c.observe(clockNode, "n", wall, at(0))
	c.observe(clockNode, "n", time.Time{}, at(0))
	if c.evict("n"); len(c.nodes) != 0 {
		t.Error("a node that is gone is remembered")
	}
}
