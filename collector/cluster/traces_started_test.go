package cluster

import (
	"testing"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/dra"
)

func TestTracesOfPodsThatStart(t *testing.T) {
	for _, test := range []traceCase{
		{"one claim", func(s *testCluster) {
			s.claim("c").pod("a", uses("c")).at(1).claim("c", s.allocated("a")).run("a", "new", 2, 3, 4)
			s.at(5).pod("a").at(6).pod("a", terminal).gonePod("a").goneClaim("c").idleUntil(20)
		}, `
			c of a, class gpu, on new
			- ready 0 to 4
			- allocation 0 to 1
			- scheduling 1 to 2
			- preparation 2 to 3
			- start 3 to 4`},
		{"binding conditions", func(s *testCluster) {
			s.pod("a", uses("c")).claim("c").at(1).claim("c", s.allocated("a"), binding(dra.BindingWaiting))
			s.at(5).claim("c", s.bindingDone).run("a", "new", 7, 8, 8.5)
		}, `
			c of a, class gpu, on new
			- ready 0 to 8.5
			- allocation 0 to 1
			- binding 1 to 5
			! 1 pending binding_conditions: allocated; the binding conditions of its devices are not all true yet
			- scheduling 5 to 7
			- preparation 7 to 8
			- start 8 to 8.5`},
		{"a kubelet before 1.36", func(s *testCluster) {
			s.pod("a", uses("c")).claim("c").at(1).claim("c", s.allocated("a")).run("a", "old", 2, 90, 90.5)
		}, `
			c of a, class gpu, on old
			- ready 0 to 90.5
			- allocation 0 to 1
			- scheduling 1 to 2
			- preparation_start 2 to 90.5`},
		{"a claim that is prepared, and one that skips preparation", func(s *testCluster) {
			s.pod("a", uses("c", "d")).claim("c").claim("d").at(1).claim("c", s.allocated("a")).claim("d", s.allocated("a"), unprepared)
			s.run("a", "new", 2, 3, 4)
		}, `
			c of a, class gpu, on new
			- ready 0 to 4
			- allocation 0 to 1
			- scheduling 1 to 2
			- preparation 2 to 3
			- start 3 to 4
			d of a, class gpu, on new
			- ready 0 to 4
			- allocation 0 to 1
			- scheduling 1 to 2
			- start 2 to 4`},
		{"several claims", func(s *testCluster) {
			s.pod("a", uses("c", "d")).claim("c").at(0.5).claim("d", func(c *dra.ClaimLifecycle) { c.Classes = []string{"nic"} })
			s.at(1).claim("c", s.allocated("a")).at(2).claim("d", s.allocated("a")).run("a", "new", 4, 5, 6)
		}, `
			c of a, class gpu, on new
			- ready 0 to 6
			- allocation 0 to 1
			- scheduling 2 to 4
			- preparation 4 to 5
			- start 5 to 6
			d of a, class nic, on new
			- ready 0.5 to 6
			- allocation 0.5 to 2
			- scheduling 2 to 4
			- preparation 4 to 5
			- start 5 to 6`},
		{"a shared claim, joined later", func(s *testCluster) {
			s.claim("c").pod("a", uses("c")).at(1).claim("c", s.allocated("a")).run("a", "new", 2, 3, 4)
			s.at(1000).pod("b", uses("c")).at(1001).claim("c", s.reserved("b")).run("b", "new", 1002, 1003, 1004)
		}, `
			c of a, class gpu, on new
			- ready 0 to 4
			- allocation 0 to 1
			- scheduling 1 to 2
			- preparation 2 to 3
			- start 3 to 4
			c of b, class gpu, on new
			- ready 1000 to 1004
			- scheduling 1000 to 1002
			- preparation 1002 to 1003
			- start 1003 to 1004`},
		{"a failed binding, and another", func(s *testCluster) {
			s.claim("c").pod("a", uses("c")).at(1).claim("c", s.allocated("a"), binding(dra.BindingWaiting))
			s.at(600).claim("c", binding(dra.BindingFailed)).at(601).claim("c", unreserved).at(601.05).claim("c", unallocated)
			s.at(603).claim("c", s.allocated("a"), binding(dra.BindingWaiting)).at(610).claim("c", s.bindingDone).run("a", "new", 611, 612, 613)
		}, `
			c of a, class gpu, on new
			- ready 0 to 613
			- allocation 0 to 1
			- binding 1 to 601 binding_failed: a failure condition of a device became true, and the reservation was removed
			! 1 pending binding_conditions: allocated; the binding conditions of its devices are not all true yet
			! 600 binding_failed binding_failed: a failure condition of a device has become true
			- allocation#2 601 to 603
			- binding#2 603 to 610
			! 603 pending binding_conditions: allocated; the binding conditions of its devices are not all true yet
			- scheduling#2 610 to 611
			- preparation 611 to 612
			- start 612 to 613`},
		{"a reservation that was taken back", func(s *testCluster) {
			s.claim("c").pod("a", uses("c")).at(1).claim("c", s.allocated("a")).at(10).claim("c", unallocated)
			s.at(20).pod("b", uses("c")).at(22).claim("c", s.allocated("b")).at(30).claim("c", unallocated)
			s.at(40).claim("c", s.allocated("a")).run("a", "new", 41, 42, 43)
		}, `
			c of a, class gpu, on new
			- ready 0 to 43
			- allocation 0 to 1
			- scheduling 1 to 10 reservation_lost: the reservation was removed
			- allocation#2 10 to 40
			! 10 pending unknown: the scheduler has not reported anything yet
			! 22 pending unknown: allocated, but not for this pod yet
			! 30 pending unknown: the scheduler has not reported anything yet
			- scheduling#2 40 to 41
			- preparation 41 to 42
			- start 42 to 43`},
		{"a name of the node in the pod", func(s *testCluster) {
			s.claim("c").pod("b", uses("c")).at(1).claim("c", s.allocated("b"))
			s.at(2).pod("a", uses("c"), s.bound("new")).claim("c", s.reserved("a")).at(3).pod("a", s.sandbox).at(4).pod("a", s.started)
		}, `
			c of a, class gpu, on new
			- ready 2 to 4
			- preparation 2 to 3
			- start 3 to 4`},
		{"an extended resource", func(s *testCluster) {
			s.pod("a", usesExtended("example.com/gpu"))
			s.at(30).claim("a-ext", func(c *dra.ClaimLifecycle) {
				c.MadeFor, c.ExtendedResource = dra.Consumer{Resource: "pods", Name: "a", UID: s.pods["a"].UID}, true
			}).at(30.01).claim("a-ext", s.allocated("a"))
			s.at(30.02).pod("a", func(p *dra.PodLifecycle) { p.Claims = []dra.PodClaim{{Claim: "a-ext"}} })
			s.run("a", "new", 30.03, 31, 32)
		}, `
			a-ext of a, class gpu, on new
			- ready 0 to 32
			- allocation 0 to 30.01
			- scheduling 30.01 to 30.03
			- preparation 30.03 to 31
			- start 31 to 32`},
		{"a device plugin's resource alone", func(s *testCluster) { s.pod("a", usesExtended("example.com/nic")).run("a", "new", 1, 2, 3) }, ``},
		{"the first container is reported late", func(s *testCluster) {
			s.pod("a", uses("c")).claim("c").at(1).claim("c", s.allocated("a")).at(2).pod("a", s.bound("new")).at(3).pod("a", s.sandbox)
			s.at(243).pod("a", func(p *dra.PodLifecycle) { p.Started = s.began.Wall.Add(4 * time.Second) })
		}, `
			c of a, class gpu, on new
			- ready 0 to ~5
			- allocation 0 to 1
			- scheduling 1 to 2
			- preparation 2 to 3
			- start 3 to ~5`},
		{"sandbox and start are reported together", func(s *testCluster) {
			s.pod("a", uses("c")).claim("c").at(1).claim("c", s.allocated("a")).at(2).pod("a", s.bound("new"))
			s.at(9).pod("a", func(p *dra.PodLifecycle) {
				p.Started, p.Sandbox = s.stamp("kubelet"), s.stamp("kubelet").Add(-5*time.Second)
			})
		}, `
			c of a, class gpu, on new
			- ready 0 to 9
			- allocation 0 to 1
			- scheduling 1 to 2
			- preparation 2 to ~4
			- start ~4 to 9`},
		{"watches in the wrong order", func(s *testCluster) {
			s.pod("a", uses("c")).claim("c").at(1.004).pod("a", s.bound("new"))
			s.at(1.007).claim("c", s.allocated("a")).at(2).pod("a", s.sandbox).at(2.5).pod("a", s.started)
		}, `
			c of a, class gpu, on new
			- ready 0 to 2.5
			- allocation 0 to 1.007
			- scheduling 1.004 to 1.004
			- preparation 1.004 to 2
			- start 2 to 2.5`},
		{"a pod is reported after its claim", func(s *testCluster) {
			s.claim("c").at(0.5)
			s.pods["a"] = &dra.PodLifecycle{Ref: dra.PodRef{Namespace: "ns", Name: "a"}, UID: "uid-a", Created: s.stamp("server")}
			uses("c")(s.pods["a"])
			s.at(1).claim("c", s.allocated("a")).at(1.1).pod("a").run("a", "new", 2, 3, 4)
		}, `
			c of a, class gpu, on new
			- ready 1.1 to 4
			- allocation 1.1 to 1.1
			- scheduling 1.1 to 2
			- preparation 2 to 3
			- start 3 to 4`},
		{"the watch of claims lags behind", func(s *testCluster) {
			made := s.stamp("server")
			dated := func(c *dra.ClaimLifecycle) { c.AllocatedAt = s.began.Wall.Add(time.Second) }
			s.pod("a", uses("c")).at(1.006).pod("a", s.bound("new")).at(1.3).pod("a", s.sandbox).at(1.4).pod("a", s.started).expectTraces("")
			s.at(1.5).claim("c", func(c *dra.ClaimLifecycle) { c.Created = made }).expectTraces("").at(2.5).claim("c", s.allocated("a"), dated)
		}, `
			c of a, class gpu, on new
			- ready 0 to 1.4
			- allocation 0 to 1.006
			- scheduling 1.006 to 1.006
			- preparation 1.006 to 1.3
			- start 1.3 to 1.4`},
		{"the watch of claims lags behind, with conditions", func(s *testCluster) {
			s.claim("c").pod("a", uses("c")).run("a", "new", 1.2, 1.3, 1.4).at(2.5).claim("c", s.allocated("a"), binding(dra.BindingWaiting)).expectTraces("")
			s.at(2.6).claim("c", s.bindingDone)
		}, `
			c of a, class gpu, on new
			- ready 0 to 1.4
			- allocation 0 to 1.2
			- binding 1.1 to 1.2
			- scheduling 1.2 to 1.2
			- preparation 1.2 to 1.3
			- start 1.3 to 1.4`},
		{"a pod that changes while it waits for its claims' watch", func(s *testCluster) {
			broken := func(p *dra.PodLifecycle) { p.Sandbox = time.Time{} }
			s.claim("c").pod("a", uses("c")).run("a", "new", 1.2, 1.3, 1.4).at(1.5).pod("a", broken).at(1.6).pod("a", terminal, deletedNow(s)).at(2.5).claim("c", s.allocated("a"))
		}, `
			c of a, class gpu, on new
			- ready 0 to 1.4
			- allocation 0 to 1.2
			- scheduling 1.2 to 1.2
			- preparation 1.2 to 1.3
			- start 1.3 to 1.4`},
		{"a claim that is never reported", func(s *testCluster) {
			s.pod("a", uses("c", "d")).claim("c").at(1).claim("c", s.allocated("a")).run("a", "new", 2, 3, 4).idleUntil(13.9).expectTraces("").idleUntil(14)
		}, `
			c of a, class gpu, on new
			- ready 0 to 4
			- allocation 0 to 1
			- scheduling 1 to 2
			- preparation 2 to 3
			- start 3 to 4`},
		{"a pod that starts and is gone at once", func(s *testCluster) {
			s.pod("a", uses("c", "d")).claim("c").at(1).claim("c", s.allocated("a")).run("a", "new", 2, 3, 4).at(5).gonePod("a").idleUntil(20)
		}, `
			c of a, class gpu, on new
			- ready 0 to 4
			- allocation 0 to 1
			- scheduling 1 to 2
			- preparation 2 to 3
			- start 3 to 4`},
		{"a jump of the wall clock", func(s *testCluster) {
			s.claim("c").pod("a", uses("c")).at(1).claim("c", s.allocated("a")).at(2).pod("a", s.bound("new")).at(3).pod("a", s.sandbox)
			s.at(4).now.Wall = s.now.Wall.Add(time.Hour)
			s.pod("a", func(p *dra.PodLifecycle) { p.Started = s.now.Wall.Truncate(time.Second) })
		}, `
			c of a, class gpu, on new
			- ready 3600 to 3604
			- allocation 3600 to 3601
			- scheduling 3601 to 3602
			- preparation 3602 to 3603
			- start 3603 to 3604`},
	} {
		test.run(t)
	}
}
