package cluster

import (
	"testing"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/dra"
)

func TestRestartReportsNoTraceTwice(t *testing.T) {
	for _, test := range []traceCase{
		{"after all of it", func(s *testCluster) {
			s.claim("c").pod("a", uses("c")).at(1).claim("c", s.allocated("a")).run("a", "new", 2, 3, 4)
			s.traced = nil
			s.at(5).restart().at(6).pod("a").claim("c").relist().at(7).pod("a", terminal).gonePod("a").goneClaim("c").idleUntil(30)
		}, ``},
		{"between each two", func(s *testCluster) {
			s.at(0.75).claim("c").pod("a", uses("c")).at(10.75).claim("c", s.allocated("a"), binding(dra.BindingWaiting)).restart()
			s.at(20.75).claim("c", s.bindingDone).restart().at(30.75).pod("a", s.bound("new")).restart().at(40.75).pod("a", s.sandbox).restart()
			s.expectTraces("").at(50.75).pod("a", s.started)
		}, `
			c of a, class gpu, on new
			- ready ~0±3 to 50.75
			- allocation ~0±3 to ~10±3
			- binding ~10±3 to ~20±3
			- scheduling ~20±3 to ~30±3
			- preparation ~30±3 to ~40±3
			- start ~40±3 to 50.75`},
		{"a sandbox made again while it waits for a claim's watch", func(s *testCluster) {
			s.claim("c").pod("a", uses("c", "d")).at(1).claim("c", s.allocated("a")).at(2).pod("a", s.bound("new")).at(3).pod("a", s.sandbox).restart()
			s.at(10).pod("a", s.started).at(12).pod("a", func(p *dra.PodLifecycle) { p.Sandbox = time.Time{} }).at(13).pod("a", s.sandbox).expectTraces("").idleUntil(20)
		}, `
			c of a, class gpu, on new
			- ready ~0±3 to 10
			- allocation ~0±3 to ~1±3
			- scheduling ~1±3 to ~2±3
			- preparation ~2±3 to ~3±3
			- start ~3±3 to 10`},
		{"while it waits", func(s *testCluster) {
			s.at(0.75).claim("c").pod("a", uses("c")).at(100).restart().at(200.5).claim("c", s.allocated("a")).run("a", "new", 201, 202, 203)
		}, `
			c of a, class gpu, on new
			- ready ~0 to 203
			- allocation ~0 to 200.5
			! 100 pending unknown: the scheduler has not reported anything yet
			- scheduling 200.5 to 201
			- preparation 201 to 202
			- start 202 to 203`},
		{"without the scheduler's word", func(s *testCluster) { // before Kubernetes 1.36
			unsaid := func(c *dra.ClaimLifecycle) { c.AllocatedAt = time.Time{} }
			s.claim("c").at(2).pod("a", uses("c")).at(4).claim("c", s.allocated("a"), unsaid).restart()
			s.at(5).pod("a", s.bound("old")).at(8).pod("a", s.started)
		}, `
			c of a, class gpu, on old
			- ready ~2 to 8
			- preparation_start 5 to 8`},
		{"deleted meanwhile", func(s *testCluster) {
			s.claim("c").pod("a", uses("c")).at(5).pod("a", deletedNow(s)).restart().expectTraces("").at(8).gonePod("a")
		}, `
			c of a, class gpu
			- ready ~0±3 to 8 pod_deleted: the pod was deleted before one of its containers started
			- allocation ~0±3 to 8 pod_deleted: the pod was deleted before one of its containers started`},
		{"started while the watch was broken", func(s *testCluster) {
			s.claim("c").pod("a", uses("c")).at(1).claim("c", s.allocated("a")).run("a", "new", 2, 3, 3.5)
			s.traced = nil
			s.claim("d").pod("b", uses("d")).unreported(func(s *testCluster) { s.pod("b", s.started) }).relist().at(5).gonePod("b").idleUntil(30)
		}, ``},
		{"failed while the watch was broken", func(s *testCluster) {
			s.claim("d").pod("b", uses("d")).unreported(func(s *testCluster) { s.pod("b", terminal) }).relist().at(5).pod("b").gonePod("b").idleUntil(30)
		}, ``},
		{"gone while the watch was broken", func(s *testCluster) {
			s.claim("d").pod("b", uses("d")).deliver(Change{Gone: true, Pod: s.pods["b"]}).deliver(Change{Gone: true, Claim: s.claims["d"]}).idleUntil(30)
		}, ``},
		{"its claim gone while the watch was broken", func(s *testCluster) {
			s.claim("d").pod("b", uses("d")).deliver(Change{Gone: true, Claim: s.claims["d"]}).idleUntil(30).gonePod("b").idleUntil(40)
		}, ``},
		{"its claim gone while the watch was broken, just after it has started", func(s *testCluster) {
			s.claim("c").pod("a", uses("c", "d")).at(1).claim("c", s.allocated("a")).run("a", "new", 2, 3, 4)
			s.at(5).deliver(Change{Gone: true, Claim: s.claims["c"]}).idleUntil(20)
		}, `
			c of a, class gpu, on new
			- ready 0 to 4
			- allocation 0 to 1
			- scheduling 1 to 2
			- preparation 2 to 3
			- start 3 to 4`},
		{"a reservation lost while the watch was broken", func(s *testCluster) {
			s.claim("c").pod("a", uses("c")).at(1).claim("c", s.allocated("a"), binding(dra.BindingWaiting))
			s.at(2).unreported(func(s *testCluster) { s.claim("c", unallocated) }).at(50).relist().at(60).claim("c", s.allocated("a")).run("a", "new", 61, 62, 63)
		}, `
			c of a, class gpu, on new
			- ready 0 to 63
			! 1 pending binding_conditions: allocated; the binding conditions of its devices are not all true yet
			! 50 pending unknown: the scheduler has not reported anything yet
			- allocation 0 to 1
			- scheduling#2 60 to 61
			- preparation 61 to 62
			- start 62 to 63`},
		{"the clock of the server contradicts itself", func(s *testCluster) {
			s.off["server"] = 10 * time.Minute
			s.claim("c").pod("a", uses("c")).restart().at(10).claim("c", s.allocated("a")).run("a", "new", 11, 12, 13)
		}, ``},
	} {
		test.run(t)
	}
}
