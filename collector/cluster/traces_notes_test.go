package cluster

import (
	"fmt"
	"testing"

	"github.com/dra-exporter/dra-exporter/collector/dra"
)

func TestEventsOfTraces(t *testing.T) {
	for _, test := range []traceCase{
		{"what the scheduler says", func(s *testCluster) {
			says := func(words string) func(*dra.PodLifecycle) {
				return func(p *dra.PodLifecycle) { p.Unschedulable = words }
			}
			s.claim("c").pod("a", uses("c")).at(1).pod("a", says("0/3 nodes are available: 3 cannot allocate all claims."))
			s.at(30).pod("a", says("0/3 nodes are available: 3 Insufficient cpu."))
			s.at(40).pod("a", says("0/4 nodes are available: 4 Insufficient cpu.")).at(41).pod("a", says("0/5 nodes are available: 5 Insufficient cpu."))
			s.at(50).pod("a", says("0/5 nodes are available: 5 Insufficient cpu.")).relist().at(60).claim("c", s.allocated("a")).run("a", "new", 61, 62, 63)
		}, `
			c of a, class gpu, on new
			- ready 0 to 63
			- allocation 0 to 60
			! 0 pending unknown: the scheduler reports: 0/3 nodes are available: 3 cannot allocate all claims.
			! 30 pending other_constraints: Insufficient cpu
			- scheduling 60 to 61
			- preparation 61 to 62
			- start 62 to 63`},
		{"what did not last is none", func(s *testCluster) {
			s.claim("c").pod("a", uses("c")).at(1).pod("a", func(p *dra.PodLifecycle) { p.Gated = true }).at(1.5).pod("a", func(p *dra.PodLifecycle) { p.Gated = false })
			s.at(1.9).claim("c", s.allocated("a")).run("a", "new", 61, 62, 63)
		}, `
			c of a, class gpu, on new
			- ready 0 to 63
			- allocation 0 to 1.9
			- scheduling 1.9 to 61
			- preparation 61 to 62
			- start 62 to 63`},
		{"what came back at once is one", func(s *testCluster) {
			says := func(words string) func(*dra.PodLifecycle) {
				return func(p *dra.PodLifecycle) { p.Unschedulable = words }
			}
			s.claim("c").pod("a", uses("c"), says("0/3 nodes are available: 3 Insufficient cpu."))
			for i := range 5 {
				s.at(float64(10*i+10)).pod("a", says("")).at(float64(10*i+11)).pod("a", says("0/3 nodes are available: 3 Insufficient cpu."))
			}
			s.at(60).claim("c", s.allocated("a")).run("a", "new", 61, 62, 63)
		}, `
			c of a, class gpu, on new
			- ready 0 to 63
			- allocation 0 to 60
			! 0 pending other_constraints: Insufficient cpu
			- scheduling 60 to 61
			- preparation 61 to 62
			- start 62 to 63`},
		{"a claim that could not be made for the group of a pod that came later", func(s *testCluster) {
			failed := func(name, message string) {
				s.deliver(Change{Live: true, Warning: &dra.Warning{Name: name, Kind: dra.WarningCreation, Pod: dra.PodRef{Namespace: "ns", Name: "g"}, PodUID: "group-g", Message: message, Count: 1, Last: s.stamp("server")}})
			}
			s.group("g", dra.PodClaim{Name: "gpu", Template: "t"}, dra.PodClaim{Name: "nic", Template: "t"})
			s.at(1)
			failed("ns/e", "PodGroupResourceClaim gpu: no quota")
			failed("ns/f", "PodGroupResourceClaim nic: no quota")
			s.at(2).pod("a", fromTemplate("gpu"), grouped).at(10).claim("g-gpu", func(c *dra.ClaimLifecycle) {
				c.MadeFor, c.PodClaim = dra.Consumer{Resource: "podgroups", Name: "g", UID: "group-g"}, "gpu"
			}).at(11).claim("g-gpu", s.allocated("a")).run("a", "new", 12, 13, 14)
		}, `
			g-gpu of a, class gpu, on new
			- ready 10 to 14
			! 1 FailedResourceClaimCreation claim_creation_failed: PodGroupResourceClaim gpu: no quota
			! 2 pending claim_not_created: PodGroupResourceClaim gpu: no quota
			- allocation 10 to 11
			- scheduling 11 to 12
			- preparation 12 to 13
			- start 13 to 14`},
		{"an event of a claim that the pod has not", func(s *testCluster) {
			s.pod("a", fromTemplate("gpu")).at(1)
			for i := range 100 {
				s.warning(dra.WarningCreation, fmt.Sprint("ns/e", i), "a", fmt.Sprintf("PodResourceClaim other-%d: no", i), 1)
			}
			if refs := s.history("a").refs; len(refs) > 1 {
				s.t.Errorf("%d refs of a pod with one claim", len(refs))
			}
			s.at(2).gonePod("a")
		}, ``},
		{"devices that cannot be prepared", func(s *testCluster) {
			s.claim("c").pod("a", uses("c")).at(1).claim("c", s.allocated("a")).at(2).pod("a", s.bound("new"))
			s.at(3).warning(dra.WarningPreparation, "ns/e", "a", "driver d is not registered", 1).at(5).warning(dra.WarningPreparation, "ns/e", "a", "driver d is not registered", 2)
			s.relist().warning(dra.WarningPreparation, "ns/e", "a", "driver d is not registered", 2)
			s.at(8).pod("a", s.sandbox).at(9).pod("a", s.started)
		}, `
			c of a, class gpu, on new
			- ready 0 to 9
			- allocation 0 to 1
			- scheduling 1 to 2
			- preparation 2 to 8
			! 3 FailedPrepareDynamicResources preparation_failed: driver d is not registered
			! 5 FailedPrepareDynamicResources preparation_failed: driver d is not registered
			- start 8 to 9`},
		{"a claim that could not be made comes before its wait", func(s *testCluster) {
			s.pod("a", fromTemplate("gpu")).at(1).warning(dra.WarningCreation, "ns/e", "a", "PodResourceClaim gpu: exceeded quota", 1)
			s.at(30).claim("a-gpu-x", func(c *dra.ClaimLifecycle) {
				c.MadeFor, c.PodClaim = dra.Consumer{Resource: "pods", Name: "a", UID: s.pods["a"].UID}, "gpu"
			}).at(31).claim("a-gpu-x", s.allocated("a")).run("a", "new", 32, 33, 34)
		}, `
			a-gpu-x of a, class gpu, on new
			- ready 30 to 34
			! 1 FailedResourceClaimCreation claim_creation_failed: PodResourceClaim gpu: exceeded quota
			! 1 pending quota: PodResourceClaim gpu: exceeded quota
			- allocation 30 to 31
			- scheduling 31 to 32
			- preparation 32 to 33
			- start 33 to 34`},
		{"those of one claim are not another's", func(s *testCluster) {
			s.claim("c").pod("a", uses("c", "d")).at(10).claim("d").at(20).claim("c", s.allocated("a")).claim("d", s.allocated("a")).run("a", "new", 21, 22, 23)
		}, `
			c of a, class gpu, on new
			- ready 0 to 23
			- allocation 0 to 20
			! 0 pending unknown: the scheduler has not reported anything yet
			- scheduling 20 to 21
			- preparation 21 to 22
			- start 22 to 23
			d of a, class gpu, on new
			- ready 10 to 23
			! 0 pending claim_missing: resourceclaim d does not exist
			- allocation 10 to 20
			! 10 pending unknown: the scheduler has not reported anything yet
			- scheduling 20 to 21
			- preparation 21 to 22
			- start 22 to 23`},
		{"reported before the pod", func(s *testCluster) {
			s.unreported(func(s *testCluster) { s.pod("a", fromTemplate("gpu")) })
			s.at(1).warning(dra.WarningCreation, "ns/e", "a", "PodResourceClaim gpu: no", 1).at(1.2).pod("a").claim("a-gpu-x", func(c *dra.ClaimLifecycle) {
				c.MadeFor, c.PodClaim = dra.Consumer{Resource: "pods", Name: "a", UID: s.pods["a"].UID}, "gpu"
			}).at(5).gonePod("a")
		}, `
			a-gpu-x of a, class gpu
			- ready 1.2 to 5 pod_deleted: the pod was deleted before one of its containers started; last: unknown: the scheduler has not reported anything yet
			! 1 FailedResourceClaimCreation claim_creation_failed: PodResourceClaim gpu: no
			- allocation 1.2 to 5 pod_deleted: the pod was deleted before one of its containers started; last: unknown: the scheduler has not reported anything yet
			! 1.2 pending unknown: the scheduler has not reported anything yet`},
	} {
		test.run(t)
	}
}
