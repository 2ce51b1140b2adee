package cluster

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/collector/metric"
)

// Driver and kubelet disagree only where both speak, and of one device.
func TestHealthDisagreement(t *testing.T) {
	sick := []dra.Taint{{Key: "gpu.example.com/xid", Effect: "NoSchedule"}}
	for _, test := range []struct {
		name   string
		said   []dra.ResourceHealth
		taints []dra.Taint
		rules  []dra.Taint
		alter  func(h *hall, p *dra.PodLife, c *dra.ClaimLife)
		want   string
	}{
		{name: "both well", said: []dra.ResourceHealth{{PodClaim: "gpu", Request: "gpu", ResourceID: "x/y=1", Healthy: true}}, want: "0"},
		{name: "both sick", said: []dra.ResourceHealth{{PodClaim: "gpu", ResourceID: "x/y=1"}}, taints: sick, want: "0"},
		{name: "the kubelet alone", said: []dra.ResourceHealth{{PodClaim: "gpu", ResourceID: "gpu.example.com/node-a/gpu-0"}}, want: "1"},
		{name: "the driver alone", said: []dra.ResourceHealth{{PodClaim: "gpu", Healthy: true}}, taints: sick, want: "1"},
		{name: "a taint that says nothing of health", said: []dra.ResourceHealth{{PodClaim: "gpu", Healthy: true}}, taints: []dra.Taint{{Key: "note", Effect: "None"}}, want: "0"},
		{name: "an administrator's rule is no driver's word", said: []dra.ResourceHealth{{PodClaim: "gpu", Healthy: true}}, rules: sick, want: "0"},
		{name: "the driver does not watch it", said: []dra.ResourceHealth{{PodClaim: "gpu"}}, taints: []dra.Taint{{Key: "gpu.example.com/unmonitored", Effect: "None"}}},
		{name: "the kubelet says nothing"},
		{name: "of two containers the worse counts", said: []dra.ResourceHealth{{PodClaim: "gpu", Healthy: true}, {PodClaim: "gpu"}, {PodClaim: "gpu", Healthy: true}}, want: "1"},
		{name: "another request", said: []dra.ResourceHealth{{PodClaim: "gpu", Request: "nic"}}},
		{name: "another claim", said: []dra.ResourceHealth{{PodClaim: "nic"}}},
		{name: "one of two devices", said: []dra.ResourceHealth{{PodClaim: "gpu", ResourceID: "x/y=common"}},
			alter: func(_ *hall, _ *dra.PodLife, c *dra.ClaimLife) { given("gpu-5")(c) }},
		{name: "a pod that is over", said: []dra.ResourceHealth{{PodClaim: "gpu"}}, alter: func(_ *hall, p *dra.PodLife, _ *dra.ClaimLife) { p.Terminal = true }},
		{name: "a device that nobody publishes", said: []dra.ResourceHealth{{PodClaim: "gpu"}}, alter: func(h *hall, _ *dra.PodLife, _ *dra.ClaimLife) {
			h.facts.Supply.Pools[0].Slices, h.facts.Supply.Pools[0].Names = 0, nil
		}},
		{name: "a device that its driver has withdrawn", said: []dra.ResourceHealth{{PodClaim: "gpu"}}, alter: func(h *hall, _ *dra.PodLife, _ *dra.ClaimLife) { h.facts.Supply.Pools[0].Names = []string{"gpu-5"} }},
	} {
		t.Run(test.name, func(t *testing.T) {
			h := newHall(t)
			h.facts.Supply = &dra.Supply{Pools: []*dra.PoolSupply{{Driver: "gpu.example.com", Pool: "node-a", Slices: 1, Names: []string{"gpu-0", "gpu-5"}}}}
			if len(test.taints)+len(test.rules) > 0 {
				h.facts.Supply.Tainted = []dra.TaintedDevice{{Device: deviceOf("gpu-0"), Taints: test.taints, ByRules: test.rules}}
			}
			c, p := claim("a/c", 0, given("gpu-0"), reserved("p")), pod("a/p", 1, "gpu=c")
			p.Node, p.Health = "node-a", test.said
			if test.alter != nil {
				test.alter(h, &p, &c)
			}
			h.tell(p, c)
			h.step(time.Second)
			want := ""
			if test.want != "" {
				want = `dra_device_health_disagreement{device="gpu-0",driver="gpu.example.com",pool="node-a"} ` + test.want
			}
			h.expect(want, "dra_device_health_disagreement")
			if logged := len(h.events) > 0; logged != (test.want == "1") {
				t.Errorf("logged %v", h.events)
			}
			h.step(time.Second)
			if len(h.events) > 0 {
				t.Errorf("logged again %v", h.events)
			}
			h.lose(p)
			h.step(time.Second)
			h.expect("", "dra_device_health_disagreement")
		})
	}
}

// A disagreement that goes on is no news where something else is said of the
// pod's devices, or where another pod says the same from now on.
func TestADisagreementThatGoesOnIsLoggedOnce(t *testing.T) {
	h := newHall(t)
	h.facts.Supply = &dra.Supply{}
	for _, pool := range []string{"node-0", "node-a", "node-b"} {
		h.facts.Supply.Pools = append(h.facts.Supply.Pools, &dra.PoolSupply{Driver: "gpu.example.com", Pool: pool, Slices: 1, Names: []string{"gpu-0", "gpu-1", "gpu-9"}})
	}
	say := func(name string, second bool) dra.PodLife {
		p := pod(name, 1, "gpu=c")
		p.Node, p.Health = "node-a", []dra.ResourceHealth{
			{PodClaim: "gpu", ResourceID: "gpu.example.com/node-a/gpu-0"}, {PodClaim: "gpu", ResourceID: "gpu.example.com/node-a/gpu-1", Healthy: second},
		}
		return p
	}
	h.tell(claim("a/c", 0, given("gpu-0", "gpu-1"), reserved("p", "q")), say("a/p", true))
	first := claim("a/d", 0, given("gpu-9"), reserved("r"))
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
			h.tell(say("a/p", false)) // the second differs now, too
		case 1:
			h.lose(say("a/p", false))
			h.tell(say("a/q", false))
		case 2:
			h.tell(first, r) // sorted before the others
		}
	}
	h.expect(`dra_device_health_disagreement{device="gpu-0",driver="gpu.example.com",pool="node-a"} 1
		dra_device_health_disagreement{device="gpu-1",driver="gpu.example.com",pool="node-a"} 1
		dra_device_health_disagreement{device="gpu-9",driver="gpu.example.com",pool="node-0"} 1`, "dra_device_health_disagreement")
}

// Who was evicted before we came is not counted, nor is anybody twice.
func TestEvictions(t *testing.T) {
	h := newHall(t)
	h.live = false
	before := pod("a/before", 1, "gpu=c")
	before.Evicted = true
	p := pod("a/p", 2, "gpu=c")
	h.tell(before, p)
	h.step(time.Second)
	h.expect(`dra_pod_taint_evictions_total{namespace="a"} 0`, "dra_pod_taint")
	h.live = true
	p.Evicted = true
	h.tell(p)
	p.Deleted = second(30)
	h.tell(p, before)
	h.lose(p)
	h.step(time.Second)
	h.expect(`dra_pod_taint_evictions_total{namespace="a"} 1`, "dra_pod_taint")
}

// Claims that are held back from deletion, and those whose pods are gone, are
// shown for as long as they are.
func TestMarks(t *testing.T) {
	h := newHall(t)
	p := pod("a/p", 1, "gpu=c")
	h.tell(p, claim("a/c", 0, given("gpu-0"), reserved("p", "q")), claim("a/gone", 0, deleted(9)), claim("a/stuck", 0, deleted(9, "keep")))
	h.step(time.Second)
	stuck := `dra_claim_terminating_since_timestamp_seconds{namespace="a",resourceclaim="stuck"} 1.795168809e+09`
	h.expect(stuck, "dra_claim_orphaned", "dra_claim_terminating")
	h.lose(p)
	h.step(time.Second)
	h.expect(`dra_claim_orphaned{namespace="a",resourceclaim="c"} 1
		`+stuck, "dra_claim_orphaned", "dra_claim_terminating")
	again := p
	again.UID = "another"
	h.tell(again)
	h.lose(claim("a/stuck", 0, deleted(9)))
	h.step(time.Second)
	h.expect(`dra_claim_orphaned{namespace="a",resourceclaim="c"} 1`, "dra_claim_orphaned", "dra_claim_terminating")
	q := pod("a/q", 3)
	h.tell(q)
	h.step(time.Second)
	h.expect("", "dra_claim_orphaned", "dra_claim_terminating")
}

// Namespaces and classes come and go for as long as the exporter runs. Their
// counters go with them, unless they have counted.
func TestCountersOfWhatIsGone(t *testing.T) {
	h := newHall(t)
	series := func() (evictions, failures int) {
		for _, row := range h.last.Rows {
			switch row.Family.Name {
			case "dra_pod_taint_evictions_total":
				evictions++
			case "dra_allocation_failures_total":
				if row.Labels.Get("deviceclass") != "" { // that of what has none is always there
					failures++
				}
			}
		}
		return evictions, failures
	}
	h.tell(pod("keeps/p", 1))
	for i := range 20 {
		p, c := pod(fmt.Sprintf("ci-%d/p", i), 10, "gpu=c"), claim(fmt.Sprintf("ci-%d/c", i), 11)
		c.Classes = []string{fmt.Sprintf("class-%d", i)}
		h.tell(p, c)
		h.step(time.Second)
		if evictions, failures := series(); evictions != 2 || failures != len(failureReasons()) {
			t.Fatalf("%d namespaces, %d failures", evictions, failures)
		}
		h.lose(p, c)
		if i%2 == 0 {
			h.tell(pod("brief/p", 12))
			h.lose(pod("brief/p", 12))
		}
		h.step(time.Second)
	}
	h.expect(`dra_pod_taint_evictions_total{namespace="keeps"} 0`, "dra_pod_taint", `dra_allocation_failures_total{deviceclass="c`)

	p, c := pod("a/p", 10, "gpu=c"), claim("a/c", 11)
	h.tell(p, c)
	h.judge(p, dra.ReasonInsufficient)
	h.step(time.Second)
	p.Evicted = true
	h.tell(p)
	h.step(2 * time.Second)
	h.lose(p, c, pod("keeps/p", 1))
	h.step(time.Second)
	h.expectOnsets("gpu.example.com/insufficient_devices=1")
	h.expect(`dra_pod_taint_evictions_total{namespace="a"} 1`, "dra_pod_taint")
}

// A claim whose alternatives have several classes is of one while it is
// allocated, and of several again: then their counters are there again from 0.
// Of a claim that came and went between two steps none stay.
func TestCountersOfAClassThatComesBack(t *testing.T) {
	h := newHall(t)
	c, brief := claim("a/c", 1), claim("a/brief", 1)
	c.Classes, brief.Classes = []string{"gpu.example.com", "nic.example.com"}, []string{"brief"}
	held := c
	given("gpu-0")(&held)
	for i, now := range []dra.ClaimLife{c, held, c} {
		h.tell(now, brief)
		h.lose(brief)
		h.step(time.Second)
		var classes []string
		for _, row := range h.last.Rows {
			if row.Family == h.state.families.failures {
				classes = append(classes, row.Labels.Get("deviceclass"))
			}
		}
		if got, want := slices.Compact(classes), []string{"", now.Class()}; !slices.Equal(got, want) {
			t.Errorf("step %d: counters of %q, want %q", i, got, want)
		}
	}
}

// A namespace that loses its last pod as another comes, and a class likewise,
// goes on.
func TestCountersOfWhatIsReplaced(t *testing.T) {
	h := newHall(t)
	h.tell(pod("a/p", 1, "gpu=c"), claim("a/c", 1))
	h.step(time.Second)
	began := h.last.Rows
	h.lose(pod("a/p", 1), claim("a/c", 1))
	h.tell(pod("a/q", 2, "gpu=d"), claim("b/d", 2))
	h.step(time.Second)
	for _, name := range []string{"dra_pod_taint_evictions_total", "dra_allocation_failures_total"} {
		of := func(row metric.Row) bool {
			return row.Family.Name == name && (row.Family != h.state.families.failures || row.Labels.Get("deviceclass") != "")
		}
		was, is := slices.IndexFunc(began, of), slices.IndexFunc(h.last.Rows, of)
		if is < 0 || !h.last.Rows[is].Start.Equal(began[was].Start) {
			t.Errorf("%s began anew", name)
		}
	}
}
