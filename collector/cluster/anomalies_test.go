package cluster

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/collector/metric"
)

// A disagreement needs a report of both driver and kubelet for the same device.
func TestHealthDisagreement(t *testing.T) {
	unhealthy := []dra.Taint{{Key: "gpu.example.com/xid", Effect: "NoSchedule"}}
	for _, test := range []struct {
		name   string
		said   []dra.ResourceHealth
		taints []dra.Taint
		rules  []dra.Taint
		alter  func(h *harness, p *dra.PodLifecycle, c *dra.ClaimLifecycle)
		want   string
	}{
		{name: "both healthy", said: []dra.ResourceHealth{{PodClaim: "gpu", Request: "gpu", ResourceID: "x/y=1", Healthy: true}}, want: "0"},
		{name: "both unhealthy", said: []dra.ResourceHealth{{PodClaim: "gpu", ResourceID: "x/y=1"}}, taints: unhealthy, want: "0"},
		{name: "the kubelet alone", said: []dra.ResourceHealth{{PodClaim: "gpu", ResourceID: "gpu.example.com/node-a/gpu-0"}}, want: "1"},
		{name: "the driver alone", said: []dra.ResourceHealth{{PodClaim: "gpu", Healthy: true}}, taints: unhealthy, want: "1"},
		{name: "a taint unrelated to health", said: []dra.ResourceHealth{{PodClaim: "gpu", Healthy: true}}, taints: []dra.Taint{{Key: "note", Effect: "None"}}, want: "0"},
		{name: "a taint by a rule is no report of the driver", said: []dra.ResourceHealth{{PodClaim: "gpu", Healthy: true}}, rules: unhealthy, want: "0"},
		{name: "the driver does not watch it", said: []dra.ResourceHealth{{PodClaim: "gpu"}}, taints: []dra.Taint{{Key: "gpu.example.com/unmonitored", Effect: "None"}}},
		{name: "the kubelet reports nothing"},
		{name: "of two containers the worse counts", said: []dra.ResourceHealth{{PodClaim: "gpu", Healthy: true}, {PodClaim: "gpu"}, {PodClaim: "gpu", Healthy: true}}, want: "1"},
		{name: "another request", said: []dra.ResourceHealth{{PodClaim: "gpu", Request: "nic"}}},
		{name: "another claim", said: []dra.ResourceHealth{{PodClaim: "nic"}}},
		{name: "one of two devices", said: []dra.ResourceHealth{{PodClaim: "gpu", ResourceID: "x/y=common"}},
			alter: func(_ *harness, _ *dra.PodLifecycle, c *dra.ClaimLifecycle) { withDevices("gpu-5")(c) }},
		{name: "a pod that is over", said: []dra.ResourceHealth{{PodClaim: "gpu"}}, alter: func(_ *harness, p *dra.PodLifecycle, _ *dra.ClaimLifecycle) { p.Terminal = true }},
		{name: "a device that is not published", said: []dra.ResourceHealth{{PodClaim: "gpu"}}, alter: func(h *harness, _ *dra.PodLifecycle, _ *dra.ClaimLifecycle) {
			h.facts.Supply.Pools[0].Slices, h.facts.Supply.Pools[0].Names = 0, nil
		}},
		{name: "a device that its driver has withdrawn", said: []dra.ResourceHealth{{PodClaim: "gpu"}}, alter: func(h *harness, _ *dra.PodLifecycle, _ *dra.ClaimLifecycle) {
			h.facts.Supply.Pools[0].Names = []string{"gpu-5"}
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			h := newHarness(t)
			h.facts.Supply = &dra.Supply{Pools: []*dra.PoolSupply{{Driver: "gpu.example.com", Pool: "node-a", Slices: 1, Names: []string{"gpu-0", "gpu-5"}}}}
			if len(test.taints)+len(test.rules) > 0 {
				h.facts.Supply.Tainted = []dra.TaintedDevice{{Device: deviceOf("gpu-0"), Taints: test.taints, ByRules: test.rules}}
			}
			c, p := claim("a/c", 0, withDevices("gpu-0"), reserved("p")), pod("a/p", 1, "gpu=c")
			p.Node, p.Health = "node-a", test.said
			if test.alter != nil {
				test.alter(h, &p, &c)
			}
			h.update(p, c)
			h.step(time.Second)
			want := ""
			if test.want != "" {
				want = `dra_device_health_disagreement{device="gpu-0",driver="gpu.example.com",pool="node-a"} ` + test.want
			}
			h.expectRows(want, "dra_device_health_disagreement")
			if logged := len(h.events) > 0; logged != (test.want == "1") {
				t.Errorf("logged %v", h.events)
			}
			h.step(time.Second)
			if len(h.events) > 0 {
				t.Errorf("logged again %v", h.events)
			}
			h.remove(p)
			h.step(time.Second)
			h.expectRows("", "dra_device_health_disagreement")
		})
	}
}

// A continuing disagreement is not logged again when the health of another of
// the pod's devices changes, or when another pod reports the same.
func TestContinuingDisagreementIsLoggedOnce(t *testing.T) {
	h := newHarness(t)
	h.facts.Supply = &dra.Supply{}
	for _, pool := range []string{"node-0", "node-a", "node-b"} {
		h.facts.Supply.Pools = append(h.facts.Supply.Pools, &dra.PoolSupply{Driver: "gpu.example.com", Pool: pool, Slices: 1, Names: []string{"gpu-0", "gpu-1", "gpu-9"}})
	}
	say := func(name string, second bool) dra.PodLifecycle {
		p := pod(name, 1, "gpu=c")
		p.Node, p.Health = "node-a", []dra.ResourceHealth{
			{PodClaim: "gpu", ResourceID: "gpu.example.com/node-a/gpu-0"}, {PodClaim: "gpu", ResourceID: "gpu.example.com/node-a/gpu-1", Healthy: second},
		}
		return p
	}
	h.update(claim("a/c", 0, withDevices("gpu-0", "gpu-1"), reserved("p", "q")), say("a/p", true))
	first := claim("a/d", 0, withDevices("gpu-9"), reserved("r"))
	first.Results[0].Device.Pool = "node-0"
	r := pod("a/r", 1, "gpu=d")
	r.Node, r.Health = "node-0", []dra.ResourceHealth{{PodClaim: "gpu"}}
	for i, want := range []int{1, 1, 0, 1, 0} {
		h.step(time.Second)
		if len(h.events) != want {
			t.Errorf("step %d: logged %v, want %d", i, h.events, want)
		}
		switch i {
		case 0:
			h.update(say("a/p", false)) // the second differs now as well
		case 1:
			h.remove(say("a/p", false))
			h.update(say("a/q", false))
		case 2:
			h.update(first, r) // sorted before the others
		}
	}
	h.expectRows(`dra_device_health_disagreement{device="gpu-0",driver="gpu.example.com",pool="node-a"} 1
		dra_device_health_disagreement{device="gpu-1",driver="gpu.example.com",pool="node-a"} 1
		dra_device_health_disagreement{device="gpu-9",driver="gpu.example.com",pool="node-0"} 1`, "dra_device_health_disagreement")
}

// Evictions before the exporter started are not counted. No pod is counted
// twice.
func TestEvictions(t *testing.T) {
	h := newHarness(t)
	h.live = false
	before := pod("a/before", 1, "gpu=c")
	before.Evicted = true
	p := pod("a/p", 2, "gpu=c")
	h.update(before, p)
	h.step(time.Second)
	h.expectRows(`dra_pod_taint_evictions_total{namespace="a"} 0`, "dra_pod_taint")
	h.live = true
	p.Evicted = true
	h.update(p)
	p.Deleted = second(30)
	h.update(p, before)
	h.remove(p)
	h.step(time.Second)
	h.expectRows(`dra_pod_taint_evictions_total{namespace="a"} 1`, "dra_pod_taint")
}

// A pod that is deleted has a row while it can hold devices, with the end of its grace
// period.
func TestDeletedPods(t *testing.T) {
	const family = "dra_pod_deletion"
	h := newHarness(t)
	p, waiting, plain := pod("a/p", 1, "gpu=c"), pod("a/waiting", 1, "gpu=d"), pod("a/plain", 1)
	p.Node, plain.Node = "node-a", "node-a"
	for _, deleted := range []*dra.PodLifecycle{&waiting, &plain} {
		deleted.Deleted = second(9)
	}
	h.update(p, waiting, plain, claim("a/c", 0, withDevices("gpu-0"), reserved("p")))
	h.step(time.Second)
	h.expectRows("", family)
	p.Deleted, p.Grace = second(9), 30*time.Second
	h.update(p)
	h.step(time.Second)
	h.expectRows(`dra_pod_deletion_timestamp_seconds{namespace="a",node="node-a",pod="p"} 1.795168839e+09`, family)
	p.Grace = time.Second // deleted again
	h.update(p)
	h.step(time.Hour)
	h.expectRows(`dra_pod_deletion_timestamp_seconds{namespace="a",node="node-a",pod="p"} 1.79516881e+09`, family)
	next := pod("a/p", 40, "gpu=c") // another pod of its name
	next.UID, next.Node = "next", "node-a"
	h.update(next)
	h.step(time.Second)
	h.expectRows("", family)
	next.Deleted = second(50)
	h.update(next)
	h.step(time.Second)
	h.expectRows(`dra_pod_deletion_timestamp_seconds{namespace="a",node="node-a",pod="p"} 1.79516885e+09`, family)
	moved := next // deleted before it is observed
	moved.UID, moved.Node = "moved", "node-b"
	h.update(moved)
	h.step(time.Second)
	h.expectRows(`dra_pod_deletion_timestamp_seconds{namespace="a",node="node-b",pod="p"} 1.79516885e+09`, family)
	next = moved
	next.Terminal = true
	h.update(next)
	h.step(time.Second)
	h.expectRows("", family)
	next.Terminal = false
	h.update(next)
	h.remove(next)
	h.step(time.Second)
	h.expectRows("", family)
}

// Terminating and orphaned claims have rows for as long as they are in that
// state.
func TestTerminatingAndOrphanedClaims(t *testing.T) {
	h := newHarness(t)
	p := pod("a/p", 1, "gpu=c")
	h.update(p, claim("a/c", 0, withDevices("gpu-0"), reserved("p", "q")), claim("a/gone", 0, deleted(9)), claim("a/stuck", 0, deleted(9, "keep")))
	h.step(time.Second)
	stuck := `dra_claim_terminating_since_timestamp_seconds{namespace="a",resourceclaim="stuck"} 1.795168809e+09`
	h.expectRows(stuck, "dra_claim_orphaned", "dra_claim_terminating")
	h.remove(p)
	h.step(time.Second)
	h.expectRows(`dra_claim_orphaned{namespace="a",resourceclaim="c"} 1
		`+stuck, "dra_claim_orphaned", "dra_claim_terminating")
	again := p
	again.UID = "another"
	h.update(again)
	h.remove(claim("a/stuck", 0, deleted(9)))
	h.step(time.Second)
	h.expectRows(`dra_claim_orphaned{namespace="a",resourceclaim="c"} 1`, "dra_claim_orphaned", "dra_claim_terminating")
	q := pod("a/q", 3)
	h.update(q)
	h.step(time.Second)
	h.expectRows("", "dra_claim_orphaned", "dra_claim_terminating")
}

// Counters of a deleted namespace or class are removed, unless they are above
// 0.
func TestCountersOfDeletedObjects(t *testing.T) {
	h := newHarness(t)
	series := func() (evictions, failures int) {
		for _, row := range h.last.Rows() {
			switch row.Family.Name {
			case "dra_pod_taint_evictions_total":
				evictions++
			case "dra_allocation_failures_total":
				if row.Labels.Get("deviceclass") != "" { // the one of claims without a class always exists
					failures++
				}
			}
		}
		return evictions, failures
	}
	h.update(pod("keeps/p", 1))
	for i := range 20 {
		p, c := pod(fmt.Sprintf("ci-%d/p", i), 10, "gpu=c"), claim(fmt.Sprintf("ci-%d/c", i), 11)
		c.Classes = []string{fmt.Sprintf("class-%d", i)}
		h.update(p, c)
		h.step(time.Second)
		if evictions, failures := series(); evictions != 2 || failures != len(failureReasons()) {
			t.Fatalf("%d namespaces, %d failures", evictions, failures)
		}
		h.remove(p, c)
		if i%2 == 0 {
			h.update(pod("brief/p", 12))
			h.remove(pod("brief/p", 12))
		}
		h.step(time.Second)
	}
	h.expectRows(`dra_pod_taint_evictions_total{namespace="keeps"} 0`, "dra_pod_taint", `dra_allocation_failures_total{deviceclass="c`)

	p, c := pod("a/p", 10, "gpu=c"), claim("a/c", 11)
	h.update(p, c)
	h.setDiagnosis(p, dra.ReasonInsufficient)
	h.step(time.Second)
	p.Evicted = true
	h.update(p)
	h.step(2 * time.Second)
	h.remove(p, c, pod("keeps/p", 1))
	h.step(time.Second)
	h.expectOnsets("gpu.example.com/insufficient_devices=1")
	h.expectRows(`dra_pod_taint_evictions_total{namespace="a"} 1`, "dra_pod_taint")
}

// A claim with alternatives of several classes has one class while it is
// allocated, and several again afterwards: their counters then start at 0
// again. A claim that is created and deleted between two steps leaves no
// counters.
func TestCountersOfReturningClass(t *testing.T) {
	h := newHarness(t)
	c, brief := claim("a/c", 1), claim("a/brief", 1)
	c.Classes, brief.Classes = []string{"gpu.example.com", "nic.example.com"}, []string{"brief"}
	held := c
	withDevices("gpu-0")(&held)
	for i, now := range []dra.ClaimLifecycle{c, held, c} {
		h.update(now, brief)
		h.remove(brief)
		h.step(time.Second)
		var classes []string
		for _, row := range h.last.Rows() {
			if row.Family.Name == "dra_allocation_failures_total" {
				classes = append(classes, row.Labels.Get("deviceclass"))
			}
		}
		if got, want := slices.Compact(classes), []string{"", now.Class()}; !slices.Equal(got, want) {
			t.Errorf("step %d: counters of %q, want %q", i, got, want)
		}
	}
}

// The counters of a namespace or class whose last object is replaced within one
// step are kept.
func TestCountersOfReplacedObjects(t *testing.T) {
	h := newHarness(t)
	h.update(pod("a/p", 1, "gpu=c"), claim("a/c", 1))
	h.step(time.Second)
	began := h.last.Rows()
	h.remove(pod("a/p", 1), claim("a/c", 1))
	h.update(pod("a/q", 2, "gpu=d"), claim("b/d", 2))
	h.step(time.Second)
	for _, name := range []string{"dra_pod_taint_evictions_total", "dra_allocation_failures_total"} {
		of := func(row metric.Row) bool {
			return row.Family.Name == name && (name != "dra_allocation_failures_total" || row.Labels.Get("deviceclass") != "")
		}
		was, is := slices.IndexFunc(began, of), slices.IndexFunc(h.last.Rows(), of)
		if is < 0 || !h.last.Rows()[is].Start.Equal(began[was].Start) {
			t.Errorf("%s began again", name)
		}
	}
}
