package cluster

import (
	"testing"

	"github.com/dra-exporter/dra-exporter/collector/dra"
)

func TestTracesOfPodsThatNeverStart(t *testing.T) {
	for _, test := range []traceCase{
		{"deleted while it waits", func(s *testCluster) {
			s.claim("c").pod("a", uses("c")).at(100).gonePod("a")
		}, `
			c of a, class gpu
			- ready 0 to 100 pod_deleted: the pod was deleted before one of its containers started; last: unknown: the scheduler has not reported anything yet
			- allocation 0 to 100 pod_deleted: the pod was deleted before one of its containers started; last: unknown: the scheduler has not reported anything yet
			! 0 pending unknown: the scheduler has not reported anything yet`},
		{"deleted behind a gate", func(s *testCluster) {
			gated := func(p *dra.PodLifecycle) { p.Gated = true }
			s.claim("c").pod("a", uses("c"), gated).at(100).gonePod("a")
		}, `
			c of a, class gpu
			- ready 0 to 100 pod_deleted: the pod was deleted before one of its containers started; last: scheduling_gated: the pod has scheduling gates
			- allocation 0 to 100 pod_deleted: the pod was deleted before one of its containers started; last: scheduling_gated: the pod has scheduling gates
			! 0 pending scheduling_gated: the pod has scheduling gates`},
		{"deleted before its claim was made", func(s *testCluster) { s.pod("a", fromTemplate("gpu")).at(100).gonePod("a") }, ``},
		{"deleted while conditions are awaited", func(s *testCluster) {
			s.claim("c").pod("a", uses("c")).at(1).claim("c", s.allocated("a"), binding(dra.BindingWaiting)).at(30).gonePod("a")
		}, `
			c of a, class gpu
			- ready 0 to 30 pod_deleted: the pod was deleted before one of its containers started; last: binding_conditions: allocated; the binding conditions of its devices are not all true yet
			- allocation 0 to 1
			- binding 1 to 30 pod_deleted: the pod was deleted before one of its containers started; last: binding_conditions: allocated; the binding conditions of its devices are not all true yet
			! 1 pending binding_conditions: allocated; the binding conditions of its devices are not all true yet`},
		{"deleted before it is bound", func(s *testCluster) {
			s.claim("c").pod("a", uses("c")).at(1).claim("c", s.allocated("a")).at(30).gonePod("a")
		}, `
			c of a, class gpu
			- ready 0 to 30 pod_deleted: the pod was deleted before one of its containers started
			- allocation 0 to 1
			- scheduling 1 to 30 pod_deleted: the pod was deleted before one of its containers started`},
		{"deleted while devices are prepared, with time to end", func(s *testCluster) {
			s.claim("c").pod("a", uses("c")).at(1).claim("c", s.allocated("a")).at(2).pod("a", s.bound("new"))
			s.at(10).pod("a", deletedNow(s)).at(35).pod("a", terminal).expectTraces(`
			c of a, class gpu, on new
			- ready 0 to 10 pod_deleted: the pod was deleted before one of its containers started
			- allocation 0 to 1
			- scheduling 1 to 2
			- preparation 2 to 10 pod_deleted: the pod was deleted before one of its containers started`)
			s.at(36).gonePod("a").goneClaim("c").idleUntil(60)
		}, ``},
		{"deleted while images are pulled", func(s *testCluster) {
			s.claim("c").pod("a", uses("c")).at(1).claim("c", s.allocated("a")).at(2).pod("a", s.bound("new")).at(3).pod("a", s.sandbox).at(10).gonePod("a")
		}, `
			c of a, class gpu, on new
			- ready 0 to 10 pod_deleted: the pod was deleted before one of its containers started
			- allocation 0 to 1
			- scheduling 1 to 2
			- preparation 2 to 3
			- start 3 to 10 pod_deleted: the pod was deleted before one of its containers started`},
		{"deleted on an older node", func(s *testCluster) {
			s.claim("c").pod("a", uses("c")).at(1).claim("c", s.allocated("a")).at(2).pod("a", s.bound("old")).at(10).gonePod("a")
		}, `
			c of a, class gpu, on old
			- ready 0 to 10 pod_deleted: the pod was deleted before one of its containers started
			- allocation 0 to 1
			- scheduling 1 to 2
			- preparation_start 2 to 10 pod_deleted: the pod was deleted before one of its containers started`},
		{"deletion is asked for, and it starts all the same", func(s *testCluster) {
			s.claim("c").pod("a", uses("c")).at(1).claim("c", s.allocated("a")).at(2).pod("a", s.bound("new")).at(3).pod("a", s.sandbox)
			s.at(3.5).pod("a", deletedNow(s)).at(4).pod("a", s.started).at(5).pod("a", terminal).gonePod("a")
		}, `
			c of a, class gpu, on new
			- ready 0 to 4
			- allocation 0 to 1
			- scheduling 1 to 2
			- preparation 2 to 3
			- start 3 to 4`},
		{"evicted", func(s *testCluster) {
			s.claim("c").pod("a", uses("c")).at(1).claim("c", s.allocated("a")).at(2).pod("a", s.bound("new"))
			s.at(5).pod("a", func(p *dra.PodLifecycle) { p.Evicted = true }).at(5.1).pod("a", deletedNow(s)).at(7).gonePod("a")
		}, `
			c of a, class gpu, on new
			- ready 0 to 5.1 evicted: the pod was evicted because of a device taint before one of its containers started
			- allocation 0 to 1
			- scheduling 1 to 2
			- preparation 2 to 5.1 evicted: the pod was evicted because of a device taint before one of its containers started`},
		{"failed", func(s *testCluster) {
			s.claim("c").pod("a", uses("c")).at(1).claim("c", s.allocated("a")).at(2).pod("a", s.bound("new"))
			s.at(5).pod("a", terminal).at(600).gonePod("a")
		}, `
			c of a, class gpu, on new
			- ready 0 to 5 pod_failed: the pod ended before one of its containers started
			- allocation 0 to 1
			- scheduling 1 to 2
			- preparation 2 to 5 pod_failed: the pod ended before one of its containers started`},
		{"its claim is deleted", func(s *testCluster) {
			s.claim("c").pod("a", uses("c")).at(50).goneClaim("c").expectTraces("").idleUntil(50.9).expectTraces("").idleUntil(51).expectTraces(`
			c of a, class gpu
			- ready 0 to 50 claim_deleted: the claim was deleted before a container of the pod started; last: unknown: the scheduler has not reported anything yet
			- allocation 0 to 50 claim_deleted: the claim was deleted before a container of the pod started; last: unknown: the scheduler has not reported anything yet
			! 0 pending unknown: the scheduler has not reported anything yet`)
			s.at(60).claim("c").at(61).claim("c", s.allocated("a")).run("a", "new", 62, 63, 64)
		}, `
			c of a, class gpu, on new
			- ready 60 to 64
			! 50 pending claim_missing: resourceclaim c does not exist
			- allocation 60 to 61
			- scheduling 61 to 62
			- preparation 62 to 63
			- start 63 to 64`},
		{"its claim is deleted with it, and reported first", func(s *testCluster) {
			s.claim("c").pod("a", uses("c")).at(50).goneClaim("c").at(50.2).gonePod("a")
		}, `
			c of a, class gpu
			- ready 0 to 50 pod_deleted: the pod was deleted before one of its containers started; last: unknown: the scheduler has not reported anything yet
			- allocation 0 to 50 pod_deleted: the pod was deleted before one of its containers started; last: unknown: the scheduler has not reported anything yet
			! 0 pending unknown: the scheduler has not reported anything yet`},
		{"its reservation is taken back because it is deleted", func(s *testCluster) {
			s.claim("c").pod("a", uses("c")).at(1).claim("c", s.allocated("a")).at(10).claim("c", unallocated).at(10.1).gonePod("a")
		}, `
			c of a, class gpu
			- ready 0 to 10.1 pod_deleted: the pod was deleted before one of its containers started; last: unknown: the scheduler has not reported anything yet
			- allocation 0 to 1
			- scheduling 1 to 10.1 pod_deleted: the pod was deleted before one of its containers started; last: unknown: the scheduler has not reported anything yet
			! 10 pending unknown: the scheduler has not reported anything yet`},
		{"its reservation is taken back, and it is deleted", func(s *testCluster) {
			s.claim("c").pod("a", uses("c")).at(1).claim("c", s.allocated("a")).at(10).claim("c", unallocated).at(20).gonePod("a")
		}, `
			c of a, class gpu
			- ready 0 to 20 pod_deleted: the pod was deleted before one of its containers started; last: unknown: the scheduler has not reported anything yet
			- allocation 0 to 1
			- scheduling 1 to 10 reservation_lost: the reservation was removed
			- allocation#2 10 to 20 pod_deleted: the pod was deleted before one of its containers started; last: unknown: the scheduler has not reported anything yet
			! 10 pending unknown: the scheduler has not reported anything yet`},
		{"deleted on its node, and its claim is reported first", func(s *testCluster) {
			s.claim("c").pod("a", uses("c")).at(1).claim("c", s.allocated("a")).at(2).pod("a", s.bound("new"))
			s.at(10).claim("c", unallocated).at(12).gonePod("a")
		}, `
			c of a, class gpu, on new
			- ready 0 to 12 pod_deleted: the pod was deleted before one of its containers started
			- allocation 0 to 1
			- scheduling 1 to 2
			- preparation 2 to 12 pod_deleted: the pod was deleted before one of its containers started`},
		{"deleted while others have its claim", func(s *testCluster) {
			s.claim("c").pod("a", uses("c")).at(1).claim("c", s.allocated("a")).run("a", "new", 2, 3, 4).expectTraces("c of a, class gpu, on new\n- ready 0 to 4\n- allocation 0 to 1\n- scheduling 1 to 2\n- preparation 2 to 3\n- start 3 to 4")
			s.at(10).pod("b", uses("c")).at(20).gonePod("b")
		}, `
			c of b, class gpu
			- ready 10 to 20 pod_deleted: the pod was deleted before one of its containers started; last: unknown: allocated, but not for this pod yet
			- scheduling 10 to 20 pod_deleted: the pod was deleted before one of its containers started; last: unknown: allocated, but not for this pod yet
			! 10 pending unknown: allocated, but not for this pod yet`},
		{"made again under its name", func(s *testCluster) {
			s.claim("c").pod("a", uses("c"))
			delete(s.pods, "a")
			s.at(20).pod("a", uses("c")).at(30).gonePod("a")
		}, `
			c of a, class gpu
			- ready 20 to 30 pod_deleted: the pod was deleted before one of its containers started; last: unknown: the scheduler has not reported anything yet
			- allocation 20 to 30 pod_deleted: the pod was deleted before one of its containers started; last: unknown: the scheduler has not reported anything yet
			! 20 pending unknown: the scheduler has not reported anything yet`},
	} {
		test.run(t)
	}
}
