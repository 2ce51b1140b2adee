package cluster

import (
	"fmt"
	"testing"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/dra"
)

func unreserved(c *dra.ClaimLifecycle) { c.ReservedFor = nil }

func grouped(p *dra.PodLifecycle) { p.Group = "g" }

func reservedForGroup(c *dra.ClaimLifecycle) {
	c.ReservedFor = []dra.Consumer{{Resource: "podgroups", Name: "g", UID: "group-g"}}
}

// usesExtended lets a pod request an extended resource.
func usesExtended(resource string) func(*dra.PodLifecycle) {
	return func(p *dra.PodLifecycle) { p.Extended = map[string]int64{resource: 1} }
}

// Which pods are pending for a claim, and since when, if other pods use
// it or used it.
func TestPendingPodsOfAClaim(t *testing.T) {
	elsewhere := func(c *dra.ClaimLifecycle) { c.ReservedFor = []dra.Consumer{{Resource: "pods", Name: "x", UID: "x"}} }
	for name, test := range map[string]func(*testCluster){
		"who loses the reservation before the devices are taken back": func(s *testCluster) {
			s.claim("c").pod("a", uses("c")).at(1).claim("c", s.allocated("a"), binding(dra.BindingWaiting))
			s.at(600).claim("c", binding(dra.BindingFailed)).at(601).claim("c", unreserved).at(601.05).claim("c", unallocated)
			s.at(603).claim("c", s.allocated("a"), binding(dra.BindingWaiting)).at(610).claim("c", binding(dra.BindingDone))
			s.expectObserved("allocation gpu 1s", "allocation gpu 2s", "binding gpu 7s")
		},
		"a group that loses a claim": func(s *testCluster) {
			s.group("g", dra.PodClaim{Name: "ref-c", Claim: "c"}).claim("c").pod("a", uses("c"), grouped)
			s.at(1).claim("c", s.allocated(), reservedForGroup, binding(dra.BindingWaiting))
			s.at(600).claim("c", binding(dra.BindingFailed)).at(601).claim("c", unreserved).at(602).claim("c", unallocated)
			s.at(603).claim("c", s.allocated(), reservedForGroup).expectObserved("allocation gpu 1s", "allocation gpu 2s")
		},
		"who lost it to another waits since": func(s *testCluster) {
			s.claim("c").pod("a", uses("c")).at(1).claim("c", s.allocated("a")).expectObserved("allocation gpu 1s")
			s.at(10).claim("c", unallocated).at(20).pod("b", uses("c")).at(22).claim("c", s.allocated("b")).expectObserved("allocation gpu 12s")
			s.at(30).claim("c", unallocated).at(40).claim("c", s.allocated("a")).expectObserved("allocation gpu 30s")
		},
		"who lost a claim of that name did not lose this one": func(s *testCluster) {
			s.claim("c").pod("a", uses("c")).at(1).claim("c", s.allocated("a")).at(5).claim("c", unallocated).goneClaim("c")
			s.at(10).claim("c").at(11).claim("c", s.allocated("a")).expectObserved("allocation gpu 1s", "allocation gpu 1s")
		},
		"the start of the wait is unknown if the watch was broken": func(s *testCluster) {
			s.claim("c").pod("a", uses("c")).at(1).claim("c", s.allocated("a")).expectObserved("allocation gpu 1s")
			s.at(2).unreported(func(s *testCluster) { s.claim("c", unallocated) }).at(50).relist()
			s.at(60).claim("c", s.allocated("a")).expectObserved().expectAnomalies("allocation", 0)
		},
		"a gated pod does not prolong the wait of another": func(s *testCluster) {
			gated := func(p *dra.PodLifecycle) { p.Gated = true }
			s.claim("c").pod("gated", uses("c"), gated).at(3*24*3600).pod("b", uses("c"))
			s.at(3*24*3600+1).claim("c", s.allocated("b")).expectObserved("allocation gpu 1s")
		},
		"one that came after an unknown consumer, and then shares the claim": func(s *testCluster) {
			s.claim("c").at(1).claim("c", s.allocated(), elsewhere)
			s.at(1000).pod("b", uses("c")).expectObserved().at(1001).claim("c", s.reserved("b")).expectObserved().expectAnomalies("allocation", 0)
		},
		"one for whom it was allocated, whatever the watch of pods lags": func(s *testCluster) {
			s.pods["a"] = &dra.PodLifecycle{Ref: dra.PodRef{Namespace: "ns", Name: "a"}, UID: "uid-a", Created: s.stamp("server")}
			s.claim("c").at(2).claim("c", s.allocated("a")).expectObserved().at(5).pod("a", uses("c")).expectObserved("allocation gpu 2s").expectAnomalies("allocation", 0)
		},
		"a device plugin's resource beside a claim": func(s *testCluster) {
			s.pod("a", uses("c"), usesExtended("example.com/nic")).at(1).claim("c").at(2).claim("c", s.allocated("a")).run("a", "new", 3, 4, 5)
			s.expectObserved("allocation gpu 1s", "scheduling gpu 1s", "preparation gpu 1s", "start gpu 1s", "ready gpu 4s")
		},
	} {
		t.Run(name, func(t *testing.T) { test(newTestCluster(t)) })
	}
}

// No phase of a pod that joins a claim begins before the pod exists.
func TestPhasesOfPodsThatJoin(t *testing.T) {
	s := newTestCluster(t)
	s.claim("c").pod("a", uses("c"), grouped).at(1).claim("c", s.allocated(), reservedForGroup).run("a", "new", 2, 3, 4).expectPhases()
	s.at(1000).pod("b", uses("c"), grouped).expectPhases("b c scheduling 1000")
	s.claim("c", func(c *dra.ClaimLifecycle) { c.Binding = dra.BindingWaiting }).expectPhases("b c binding 1000")
	s.claim("c", func(c *dra.ClaimLifecycle) {
		c.Binding, c.BindingSince = dra.BindingDone, s.began.Wall.Add(5*time.Second)
	}).expectPhases("b c scheduling 1000")
	s.at(1005).claim("c", s.bindingDone).expectPhases("b c scheduling 1005").restart().expectPhases("b c scheduling 1005")
}

// If no pod is known to have been pending for a claim, each new pod is checked
// once, and not against each other pod.
func TestClaimWithoutPendingPods(t *testing.T) {
	s := newTestCluster(t)
	s.manualStep = true
	s.claim("c").at(1).claim("c", s.allocated())
	for i := range 20000 {
		s.at(10+float64(i)).pod(fmt.Sprint("p", i), uses("c"))
	}
	s.step()
	s.expectObserved().manualStep = false
	s.claim("c", unallocated).at(20000).claim("c", s.allocated("p0")).expectObserved("allocation gpu 5h33m10s")
}
