package cluster

import (
	"testing"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/dra"
)

// run takes a pod with one allocated claim from its binding to its start.
func (s *testCluster) run(pod, node string, bound, sandbox, started float64) *testCluster {
	s.at(bound).pod(pod, s.bound(node))
	if sandbox > 0 {
		s.at(sandbox).pod(pod, s.sandbox)
	}
	return s.at(started).pod(pod, s.started)
}

func TestPhaseRules(t *testing.T) {
	for name, test := range map[string]func(*testCluster){
		"a claim that was there before its pod did not wait": func(s *testCluster) {
			s.claim("c").at(3*24*3600).pod("a", uses("c")).at(3*24*3600+2).claim("c", s.allocated("a"))
			s.expectObserved("allocation gpu 2s")
		},
		"a claim shared by pods is allocated once and prepared for each": func(s *testCluster) {
			s.pod("a", uses("c")).at(1).pod("b", uses("c")).at(2).claim("c")
			s.at(5).claim("c", s.allocated("a")).expectObserved("allocation gpu 3s")
			s.run("a", "new", 5.5, 6.5, 7)
			s.expectObserved("scheduling gpu 500ms", "preparation gpu 1s", "start gpu 500ms", "ready gpu 5s")
			s.at(8).claim("c", s.reserved("b")).run("b", "new", 9, 9.25, 10)
			s.expectObserved("scheduling gpu 4s", "preparation gpu 250ms", "start gpu 750ms", "ready gpu 8s")
		},
		"who joins a claim that is allocated waits since it was made": func(s *testCluster) {
			s.claim("c").pod("a", uses("c")).at(1).claim("c", s.allocated("a")).run("a", "new", 2, 3, 4)
			s.observed = nil
			s.at(1000).pod("b", uses("c")).at(1001).claim("c", s.reserved("b")).run("b", "new", 1002, 1003, 1004)
			s.expectObserved("scheduling gpu 2s", "preparation gpu 1s", "start gpu 1s", "ready gpu 4s")
		},
		"the first of those that wait counts, not one that is done": func(s *testCluster) {
			s.claim("c").pod("done", uses("c")).pod("done", func(p *dra.PodLifecycle) { p.Terminal = true })
			s.at(10).pod("a", uses("c")).at(15).pod("b", uses("c")).at(16).claim("c", s.allocated("b"))
			s.expectObserved("allocation gpu 6s")
		},
		"a claim of two pods that is allocated again is another allocation": func(s *testCluster) {
			s.claim("c").pod("a", uses("c")).at(1).claim("c", s.allocated("a")).run("a", "new", 2, 3, 4)
			s.observed = nil
			s.at(50).pod("a", func(p *dra.PodLifecycle) { p.Terminal = true }).claim("c", unallocated)
			s.at(60).pod("b", uses("c")).at(61).claim("c", s.allocated("b")).expectObserved("allocation gpu 1s")
		},
		"a pod that loses its claim waits again": func(s *testCluster) {
			s.claim("c").pod("a", uses("c")).at(1).claim("c", s.allocated("a"), binding(dra.BindingWaiting))
			s.at(600).claim("c", binding(dra.BindingFailed)).at(601).claim("c", unallocated)
			s.at(603).claim("c", s.allocated("a"), binding(dra.BindingWaiting)).at(610).claim("c", binding(dra.BindingDone))
			s.expectObserved("allocation gpu 1s", "allocation gpu 2s", "binding gpu 7s")
		},
		"binding and scheduling part where the conditions come true": func(s *testCluster) {
			s.pod("a", uses("c")).claim("c").at(1).claim("c", s.allocated("a"), binding(dra.BindingWaiting))
			s.at(5).claim("c", binding(dra.BindingDone)).run("a", "new", 7, 8, 8.5)
			s.expectObserved("allocation gpu 1s", "binding gpu 4s", "scheduling gpu 2s", "preparation gpu 1s", "start gpu 500ms", "ready gpu 8.5s")
		},
		"the last of several claims counts for the pod": func(s *testCluster) {
			s.pod("a", uses("c", "d")).claim("c").at(0.5).claim("d", func(c *dra.ClaimLifecycle) { c.Classes = []string{"nic"} })
			s.at(1).claim("c", s.allocated("a")).at(2).claim("d", s.allocated("a")).run("a", "new", 4, 5, 6)
			s.expectObserved("allocation gpu 1s", "allocation nic 1.5s", "scheduling multiple 2s", "preparation multiple 1s", "start multiple 1s", "ready multiple 6s")
		},
		"a claim that skips preparation has none: its start follows the binding": func(s *testCluster) {
			s.pod("a", uses("c")).claim("c").at(1).claim("c", s.allocated("a"), unprepared).at(2).pod("a", s.bound("new"))
			s.expectPhases("a c start 2").at(3).pod("a", s.sandbox).expectPhases("a c start 2")
			s.at(4).pod("a", s.started).expectPhases()
			s.expectObserved("allocation gpu 1s", "scheduling gpu 1s", "start gpu 2s", "ready gpu 4s")
		},
		"a claim that skips preparation, with an old kubelet": func(s *testCluster) {
			s.pod("a", uses("c")).claim("c").at(1).claim("c", s.allocated("a"), unprepared).run("a", "old", 2, 0, 4)
			s.expectObserved("allocation gpu 1s", "scheduling gpu 1s", "start gpu 2s", "ready gpu 4s")
		},
		"one claim that is prepared is a preparation of the pod": func(s *testCluster) {
			s.pod("a", uses("c", "d")).claim("c").claim("d").at(1).claim("c", s.allocated("a"), unprepared).claim("d", s.allocated("a"))
			s.at(2).pod("a", s.bound("new")).expectPhases("a c start 2", "a d preparation 2")
			s.at(3).pod("a", s.sandbox).at(4).pod("a", s.started)
			s.expectObserved("allocation gpu 1s", "allocation gpu 1s", "scheduling gpu 1s", "preparation gpu 1s", "start gpu 1s", "ready gpu 4s")
		},
		"a claim is observed to skip preparation only after the sandbox": func(s *testCluster) {
			s.pod("a", uses("c")).claim("c").at(2).pod("a", s.bound("new")).at(3).pod("a", s.sandbox)
			s.at(3.5).claim("c", s.allocated("a"), unprepared).at(4).pod("a", s.started)
			s.expectObserved("preparation gpu 1s", "allocation gpu 3.5s", "scheduling gpu 0s", "start gpu 1s", "ready gpu 4s")
		},
		"a claim that is allocated again may be prepared": func(s *testCluster) {
			s.pod("a", uses("c")).claim("c").at(1).claim("c", s.allocated("a"), unprepared).at(1.5).claim("c", unallocated)
			s.at(2).claim("c", s.allocated("a")).run("a", "new", 3, 4, 5)
			s.expectObserved("allocation gpu 1s", "allocation gpu 500ms", "scheduling gpu 1s", "preparation gpu 1s", "start gpu 1s", "ready gpu 5s")
		},
		"devices prepared again after a restart of the kubelet are no preparation": func(s *testCluster) {
			s.pod("a", uses("c")).claim("c").at(1).claim("c", s.allocated("a")).run("a", "new", 2, 3, 4)
			s.observed = nil
			s.at(100).pod("a", func(p *dra.PodLifecycle) { p.Sandbox = time.Time{} }).at(110).pod("a", s.sandbox).expectObserved()
			s.at(111).pod("a", s.started).expectObserved().expectPhases()
		},
		"a sandbox made again before the first start is prepared once": func(s *testCluster) {
			s.pod("a", uses("c")).claim("c").at(1).claim("c", s.allocated("a")).at(2).pod("a", s.bound("new"))
			s.at(3).pod("a", s.sandbox).at(4).pod("a", func(p *dra.PodLifecycle) { p.Sandbox = time.Time{} })
			s.at(6).pod("a", s.sandbox).at(7).pod("a", s.started)
			s.expectObserved("allocation gpu 1s", "scheduling gpu 1s", "preparation gpu 1s", "start gpu 4s", "ready gpu 7s")
		},
		"a sandbox that is reported after the start is ignored": func(s *testCluster) {
			s.pod("a", uses("c")).claim("c").at(1).claim("c", s.allocated("a")).at(2).pod("a", s.bound("new"))
			s.at(3).pod("a", s.started).at(3.1).pod("a", s.sandbox)
			s.expectObserved("allocation gpu 1s", "scheduling gpu 1s", "ready gpu 3s").expectPhases()
		},
		"a pod that comes after an allocation for an unknown consumer did not wait for it": func(s *testCluster) {
			s.claim("c").at(1).claim("c", s.allocated(), func(c *dra.ClaimLifecycle) { c.ReservedFor = []dra.Consumer{{Resource: "pods", Name: "x", UID: "x"}} })
			s.at(1000).pod("b", uses("c")).expectObserved().expectAnomalies("allocation", 0)
		},
		"the sandboxes of kubelets that report them late are ignored": func(s *testCluster) {
			s.pod("a", uses("c")).claim("c").at(1).claim("c", s.allocated("a")).run("a", "old", 2, 90, 90.5)
			s.expectObserved("allocation gpu 1s", "scheduling gpu 1s", "preparation_start gpu 1m28.5s", "ready gpu 1m30.5s")
		},
		"also those of a kubelet of unknown version": func(s *testCluster) {
			s.pod("a", uses("c")).claim("c").at(1).claim("c", s.allocated("a")).run("a", "unknown", 2, 3, 4)
			s.expectObserved("allocation gpu 1s", "scheduling gpu 1s", "preparation_start gpu 2s", "ready gpu 4s")
		},
		"a start reported together with its sandbox is distinguished by the kubelet's timestamps": func(s *testCluster) {
			s.pod("a", uses("c")).claim("c").at(1).claim("c", s.allocated("a")).at(2).pod("a", s.bound("new"))
			s.at(9).pod("a", func(p *dra.PodLifecycle) {
				p.Started, p.Sandbox = s.stamp("kubelet"), s.stamp("kubelet").Add(-5*time.Second)
			})
			s.expectObserved("allocation gpu 1s", "scheduling gpu 1s", "preparation gpu 2s", "start gpu 5s", "ready gpu 9s")
		},
		"a kubelet that is busy with a second container reports the first one late": func(s *testCluster) {
			s.pod("a", uses("c")).claim("c").at(1).claim("c", s.allocated("a")).at(2).pod("a", s.bound("new")).at(3).pod("a", s.sandbox)
			s.at(243).pod("a", func(p *dra.PodLifecycle) { p.Started = s.began.Wall.Add(4 * time.Second) })
			s.expectObserved("allocation gpu 1s", "scheduling gpu 1s", "preparation gpu 1s", "start gpu 2s", "ready gpu 5s")
		},
		"watches may deliver in the wrong order": func(s *testCluster) {
			s.pod("a", uses("c")).claim("c").at(1.004).pod("a", s.bound("new"))
			s.at(1.007).claim("c", s.allocated("a")).at(2).pod("a", s.sandbox).at(2.5).pod("a", s.started)
			s.expectObserved("allocation gpu 1.007s", "scheduling gpu 0s", "preparation gpu 996ms", "start gpu 500ms", "ready gpu 2.5s")
			s.expectAnomalies("scheduling", 0)
		},
		"a pod may be reported after its claim": func(s *testCluster) {
			s.claim("c").at(0.5)
			s.pods["a"] = &dra.PodLifecycle{Ref: dra.PodRef{Namespace: "ns", Name: "a"}, UID: "uid-a", Created: s.stamp("server")}
			uses("c")(s.pods["a"])
			s.at(1).claim("c", s.allocated("a")).expectObserved()
			s.at(1.1).pod("a").expectObserved("allocation gpu 0s")
		},
		"a pod that names its node is not scheduled": func(s *testCluster) {
			s.claim("c").pod("b", uses("c")).at(1).claim("c", s.allocated("b")).expectObserved("allocation gpu 1s")
			s.at(2).pod("a", uses("c"), s.bound("new")).claim("c", s.reserved("a")).at(3).pod("a", s.sandbox).at(4).pod("a", s.started)
			s.expectObserved("preparation gpu 1s", "start gpu 1s", "ready gpu 2s")
		},
		"a pod made again under its name is another": func(s *testCluster) {
			s.claim("c").pod("a", uses("c")).at(1).claim("c", s.allocated("a")).run("a", "new", 2, 3, 4)
			s.observed = nil
			s.at(10).gonePod("a").claim("c", unallocated).at(20).pod("a", uses("c")).at(21).claim("c", s.allocated("a")).run("a", "new", 22, 23, 24)
			s.expectObserved("allocation gpu 1s", "scheduling gpu 1s", "preparation gpu 1s", "start gpu 1s", "ready gpu 4s")
		},
		"also if its end was not reported": func(s *testCluster) {
			s.claim("c").pod("a", uses("c")).at(1).claim("c", s.allocated("a")).run("a", "new", 2, 3, 4)
			s.observed = nil
			delete(s.pods, "a")
			s.at(20).pod("a", uses("c")).claim("c", s.reserved("a")).run("a", "new", 22, 23, 24)
			s.expectObserved("scheduling gpu 2s", "preparation gpu 1s", "start gpu 1s", "ready gpu 4s")
		},
		"so is a claim": func(s *testCluster) {
			s.claim("c").pod("a", uses("c")).at(10)
			delete(s.claims, "c")
			s.claim("c").at(12).claim("c", s.allocated("a")).expectObserved("allocation gpu 2s")
		},
	} {
		t.Run(name, func(t *testing.T) { test(newTestCluster(t)) })
	}
}

// fromTemplate returns a reference to a template; the pod's status does not
// name the claim yet.
func fromTemplate(name string) func(*dra.PodLifecycle) {
	return func(p *dra.PodLifecycle) { p.Claims = []dra.PodClaim{{Name: name, Template: "t"}} }
}

func TestClaimsFromTemplates(t *testing.T) {
	for name, test := range map[string]func(*testCluster){
		"from a template, before the pod names it": func(s *testCluster) {
			s.pod("a", fromTemplate("gpu")).at(3).claim("a-gpu-x", func(c *dra.ClaimLifecycle) {
				c.MadeFor, c.PodClaim = dra.Consumer{Resource: "pods", Name: "a", UID: s.pods["a"].UID}, "gpu"
			}).at(4).claim("a-gpu-x", s.allocated("a")).expectObserved("allocation gpu 1s").expectPhases("a a-gpu-x scheduling 4")
		},
		"not one that was made for the pod before it": func(s *testCluster) {
			s.pod("a", fromTemplate("gpu")).at(3).claim("a-gpu-x", func(c *dra.ClaimLifecycle) {
				c.MadeFor, c.PodClaim = dra.Consumer{Resource: "pods", Name: "a", UID: "before"}, "gpu"
			}).at(4).claim("a-gpu-x", s.allocated()).expectObserved().expectPhases()
		},
		"for a group, shared by its pods": func(s *testCluster) {
			grouped := func(p *dra.PodLifecycle) { p.Group = "g" }
			s.pod("a", fromTemplate("gpu"), grouped).at(1).pod("b", fromTemplate("gpu"), grouped)
			s.at(2).group("g", dra.PodClaim{Name: "gpu", Template: "t"}).at(3).claim("g-gpu")
			s.at(4).group("g", dra.PodClaim{Name: "nic", Template: "t", Claim: "g-nic"}, dra.PodClaim{Name: "gpu", Template: "other", Claim: "g-other"}, dra.PodClaim{Name: "gpu", Template: "t", Claim: "g-gpu"})
			s.at(5).claim("g-gpu", s.allocated(), func(c *dra.ClaimLifecycle) {
				c.ReservedFor = []dra.Consumer{{Resource: "podgroups", Name: "g", UID: "group-g"}}
			})
			s.expectObserved("allocation gpu 2s").expectPhases("a g-gpu scheduling 5", "b g-gpu scheduling 5")
			s.run("b", "new", 6, 7, 8).expectObserved("scheduling gpu 1s", "preparation gpu 1s", "start gpu 1s", "ready gpu 5s")
			s.expectPhases("a g-gpu scheduling 5")
		},
		"by the scheduler, for an extended resource, at the end of the wait": func(s *testCluster) {
			s.pod("a", func(p *dra.PodLifecycle) { p.Extended = map[string]int64{"example.com/gpu": 2} })
			s.at(30).claim("a-ext", func(c *dra.ClaimLifecycle) {
				c.MadeFor, c.ExtendedResource = dra.Consumer{Resource: "pods", Name: "a", UID: s.pods["a"].UID}, true
			}).at(30.01).claim("a-ext", s.allocated("a")).expectObserved("allocation gpu 30.01s")
			s.at(30.02).pod("a", func(p *dra.PodLifecycle) { p.Claims = []dra.PodClaim{{Claim: "a-ext"}} })
			s.run("a", "new", 30.03, 31, 32).expectObserved("scheduling gpu 20ms", "preparation gpu 970ms", "start gpu 1s", "ready gpu 32s")
		},
		"none, where a device plugin has what was asked for": func(s *testCluster) {
			s.pod("a", func(p *dra.PodLifecycle) { p.Extended = map[string]int64{"example.com/gpu": 2} })
			s.run("a", "new", 1, 2, 3).expectObserved().expectPhases()
		},
	} {
		t.Run(name, func(t *testing.T) { test(newTestCluster(t)) })
	}
}

func TestRestartObservesNothingTwice(t *testing.T) {
	for name, test := range map[string]func(*testCluster){
		"after all of it": func(s *testCluster) {
			s.claim("c").pod("a", uses("c")).at(1).claim("c", s.allocated("a")).run("a", "new", 2, 3, 4)
			s.observed = nil
			s.at(5).restart().expectObserved()
			s.at(6).pod("a").claim("c").relist().expectObserved().expectPhases()
		},
		"while it waits": func(s *testCluster) {
			s.at(0.75).claim("c").pod("a", uses("c")).at(100).restart().expectObserved()
			s.at(200.5).claim("c", s.allocated("a")).expectObserved("allocation gpu 3m20.5s")
		},
		"between each two": func(s *testCluster) {
			s.at(0.75).claim("c").pod("a", uses("c")).at(10.75).claim("c", s.allocated("a"), binding(dra.BindingWaiting)).restart().expectObserved("allocation gpu 10s").expectPhases("a c binding 10")
			s.at(20.75).claim("c", binding(dra.BindingDone)).restart().expectObserved("binding gpu 10.75s").expectPhases("a c scheduling 10")
			s.at(30.75).pod("a", s.bound("new")).restart().expectObserved().expectPhases("a c preparation 30")
			s.at(40.75).pod("a", s.sandbox).restart().expectObserved("preparation gpu 10.75s").expectPhases("a c start 40")
			s.at(50.75).pod("a", s.started).expectObserved("start gpu 10.75s", "ready gpu 50.75s").expectPhases()
		},
		"while the watch was broken": func(s *testCluster) {
			s.claim("c").pod("a", uses("c")).at(1).unreported(func(s *testCluster) { s.claim("c", s.allocated("a")) })
			s.at(2).relist().expectObserved().expectPhases("a c scheduling 1")
			s.at(4).pod("a", s.bound("new")).expectObserved("scheduling gpu 3s")
			s.at(5).unreported(func(s *testCluster) { s.pod("a", s.sandbox).pod("a", s.started) }).relist().expectObserved().expectPhases()
		},
		"while the watch was broken and all went round": func(s *testCluster) {
			s.claim("c").pod("a", uses("c")).at(1).claim("c", s.allocated("a")).expectObserved("allocation gpu 1s")
			s.at(2).unreported(func(s *testCluster) { s.claim("c", unallocated).at(3).claim("c", s.allocated("a")) })
			s.at(5).relist().expectObserved().expectPhases("a c scheduling 3")
			s.at(6).pod("a", s.bound("new")).expectObserved("scheduling gpu 3s")
		},
		"after conditions that were dated": func(s *testCluster) {
			s.claim("c").pod("a", uses("c")).at(1).claim("c", s.allocated("a"), binding(dra.BindingWaiting)).at(5).claim("c", s.bindingDone)
			s.restart().expectObserved("allocation gpu 1s", "binding gpu 4s").expectPhases("a c scheduling 5")
			s.at(7).pod("a", s.bound("new")).expectObserved("scheduling gpu 2s")
		},
		"while the watch was broken and the same device was taken again": func(s *testCluster) {
			again := func(c *dra.ClaimLifecycle) { c.Results = s.claims["c"].Results }
			s.claim("c").pod("a", uses("c")).at(1).claim("c", s.allocated("a"))
			s.at(3).unreported(func(s *testCluster) { s.claim("c", s.allocated(), again) })
			s.at(5).relist().at(6).pod("a", s.bound("new")).expectObserved("allocation gpu 1s", "scheduling gpu 3s")
		},
		"without the scheduler's word": func(s *testCluster) { // before Kubernetes 1.36
			unsaid := func(c *dra.ClaimLifecycle) { c.AllocatedAt = time.Time{} }
			s.claim("c").at(2).pod("a", uses("c")).at(4).claim("c", s.allocated("a"), unsaid).restart().expectObserved("allocation gpu 2s")
			s.expectPhases("a c scheduling 2").at(5).pod("a", s.bound("old")).expectObserved().expectPhases("a c preparation_start 5")
			s.at(8).pod("a", s.started).expectObserved("preparation_start gpu 3s", "ready gpu 6s")
		},
	} {
		t.Run(name, func(t *testing.T) { test(newTestCluster(t)) })
	}
}

// If a driver is down, the preparation phase does not end.
func TestCurrentPhases(t *testing.T) {
	s := newTestCluster(t)
	s.claim("c").claim("d").pod("a", uses("c", "d")).expectPhases()
	s.at(1).claim("c", s.allocated("a"), binding(dra.BindingWaiting)).expectPhases("a c binding 1")
	s.at(2).claim("d", s.allocated("a")).expectPhases("a c binding 1", "a d scheduling 2")
	s.at(3).claim("c", binding(dra.BindingFailed)).expectPhases("a c binding 1", "a d scheduling 2")
	s.at(4).claim("c", binding(dra.BindingDone)).expectPhases("a c scheduling 1", "a d scheduling 2")
	s.at(5).pod("a", s.bound("new")).expectPhases("a c preparation 5", "a d preparation 5")
	s.at(900).relist().expectPhases("a c preparation 5", "a d preparation 5")
	s.at(901).pod("b", uses("d")).expectPhases("a c preparation 5", "a d preparation 5")
	s.at(902).pod("a", s.sandbox).expectPhases("a c start 902", "a d start 902")
	s.at(903).goneClaim("c").expectPhases("a d start 902")
	s.at(904).pod("a", func(p *dra.PodLifecycle) { p.Deleted = s.now.Wall }).expectPhases()
	s.at(905).pod("e", uses("d")).claim("d", s.reserved("e")).expectPhases("e d scheduling 905").gonePod("e").expectPhases()
	if len(s.state.phases.pods) != 0 {
		t.Errorf("%d pods are remembered as under way", len(s.state.phases.pods))
	}
}

// Nodes may be observed after the pods that are bound to them.
func TestNodeObservedAfterPod(t *testing.T) {
	s := newTestCluster(t)
	s.claim("c").pod("a", uses("c")).at(1).claim("c", s.allocated("a")).at(2).pod("a", s.bound("late"))
	s.expectPhases("a c preparation_start 2").node("late", true).expectPhases("a c preparation 2")
	s.observed = nil
	s.at(3).pod("a", s.sandbox).at(4).pod("a", s.started).expectObserved("preparation gpu 1s", "start gpu 1s", "ready gpu 4s")
}

func TestFailuresAreCountedWhenObservedLive(t *testing.T) {
	s := newTestCluster(t)
	warning := func(kind dra.WarningKind, name string, count int64, live bool) {
		s.deliver(Change{Live: live, Warning: &dra.Warning{Name: name, Kind: kind, Pod: dra.PodRef{Namespace: "ns", Name: "a"}, PodUID: s.pods["a"].UID, Count: count}})
	}
	expect := func(reason string, want float64) {
		t.Helper()
		if got, found := s.value("dra_allocation_failures_total", "gpu", reason); !found || got != want {
			t.Errorf("%s: %v (%v), want %v", reason, got, found, want)
		}
	}
	s.claim("c").pod("a", uses("c"))
	for _, reason := range failureReasons() {
		expect(reason, 0)
	}
	s.at(1).claim("c", s.allocated("a"), binding(dra.BindingWaiting)).claim("c", binding(dra.BindingFailed)).claim("c")
	expect("binding_failed", 1)
	s.claim("c", binding(dra.BindingWaiting)).claim("c", binding(dra.BindingFailed))
	expect("binding_failed", 2)
	warning(dra.WarningPreparation, "ns/e1", 3, false)
	expect("preparation_failed", 0)
	warning(dra.WarningPreparation, "ns/e1", 5, true)
	expect("preparation_failed", 2)
	warning(dra.WarningPreparation, "ns/e1", 5, true)
	warning(dra.WarningPreparation, "ns/e1", 4, true)
	expect("preparation_failed", 2)
	warning(dra.WarningPreparation, "ns/e2", 25, true) // written again with a count that includes what was counted before
	expect("preparation_failed", 3)
	s.deliver(Change{Live: true, Gone: true, Warning: &dra.Warning{Name: "ns/e2"}})
	warning(dra.WarningPreparation, "ns/e2", 26, true)
	expect("preparation_failed", 4)
	s.unreported(func(s *testCluster) { s.claim("c", binding(dra.BindingWaiting)) }).relist()
	s.unreported(func(s *testCluster) { s.claim("c", binding(dra.BindingFailed)) }).relist()
	expect("binding_failed", 2)
	s.restart()
	expect("binding_failed", 0)
	warning(dra.WarningPreparation, "ns/e1", 5, false)
	expect("preparation_failed", 0)
}

// TestFailureOfPreparationObservedFirst: the event of a failure is observed
// before the claim. It is counted with the claim's class once that is known,
// and without one if it remains unknown.
func TestFailureOfPreparationObservedFirst(t *testing.T) {
	s := newTestCluster(t)
	failed := func(name string) {
		s.deliver(Change{Live: true, Warning: &dra.Warning{Name: name, Kind: dra.WarningPreparation, Pod: dra.PodRef{Namespace: "ns", Name: "a"}, PodUID: s.pods["a"].UID, Count: 1}})
	}
	expect := func(class string, want float64) {
		t.Helper()
		if got, _ := s.value("dra_allocation_failures_total", class, "preparation_failed"); got != want {
			t.Errorf("failures of the class %q: %v, want %v", class, got, want)
		}
	}
	s.pod("a", uses("c"))
	failed("ns/e1")
	expect("", 0)
	s.at(1).claim("c")
	expect("gpu", 1)
	expect("", 0)
	s.at(2).goneClaim("c")
	failed("ns/e2")
	s.at(20).pod("a", uses("c"))
	expect("", 1)
	expect("gpu", 1)
}
