package cluster

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/dra"
)

// A randomCluster is a cluster that changes at random.
type randomCluster struct {
	random  *rand.Rand
	pods    map[string]dra.PodLifecycle
	claims  map[string]dra.ClaimLifecycle
	groups  map[string]dra.Group
	kueue   map[string]dra.KueueWorkload
	domains map[string]dra.ComputeDomain
	nodes   map[string]dra.Node
	changes int
}

func newRandomCluster(seed, stream uint64) *randomCluster {
	return &randomCluster{
		random: rand.New(rand.NewPCG(seed, stream)), pods: map[string]dra.PodLifecycle{}, claims: map[string]dra.ClaimLifecycle{}, groups: map[string]dra.Group{},
		kueue: map[string]dra.KueueWorkload{}, domains: map[string]dra.ComputeDomain{}, nodes: map[string]dra.Node{},
	}
}

// change changes one object, and passes the change to the harness.
func (o *randomCluster) change(h *harness) {
	o.changes++
	switch name := fmt.Sprintf("a/%d", o.random.IntN(6)); o.random.IntN(12) {
	case 0:
		if p, there := o.pods[name]; there {
			delete(o.pods, name)
			h.remove(p)
		}
	case 1:
		if c, there := o.claims[name]; there {
			delete(o.claims, name)
			h.remove(c)
		}
	case 2:
		g := dra.Group{Ref: dra.PodRef{Namespace: "a", Name: "gang"}, UID: "gang", Claims: []dra.PodClaim{{Name: "gpu", Template: "one", Claim: o.oneOf("", "0", "1")}}, MinPods: int32(o.random.IntN(4))}
		if _, there := o.groups["a/gang"]; there && o.random.IntN(2) == 0 {
			delete(o.groups, "a/gang")
			h.remove(g)
			return
		}
		o.groups["a/gang"] = g
		h.update(g)
	case 9:
		k := o.kueueWorkload(o.oneOf("web", "pod"))
		if _, there := o.kueue[k.Ref.Name]; there && o.random.IntN(3) == 0 {
			delete(o.kueue, k.Ref.Name)
			h.remove(k)
			return
		}
		o.kueue[k.Ref.Name] = k
		h.update(k)
	case 10:
		d := dra.ComputeDomain{Ref: dra.PodRef{Namespace: "a", Name: o.oneOf("nvl", "other")}, UID: "nvl", Template: o.oneOf("one", "two"), Ready: o.random.IntN(2) == 0}
		if _, there := o.domains[d.Ref.Name]; there && o.random.IntN(3) == 0 {
			delete(o.domains, d.Ref.Name)
			h.remove(d)
			return
		}
		o.domains[d.Ref.Name] = d
		h.update(d)
	case 11:
		n := dra.Node{Name: o.oneOf("node-a", "node-b"), Domains: dra.Domains{o.oneOf("", "c.1", "c.2"), o.oneOf("r", "s")}}
		if _, there := o.nodes[n.Name]; there && o.random.IntN(4) == 0 {
			delete(o.nodes, n.Name)
			h.remove(n)
			return
		}
		o.nodes[n.Name] = n
		h.update(n)
	case 3, 4, 5:
		p := o.pod(name)
		o.pods[name] = p
		h.update(p)
	default:
		c := o.claim(name)
		o.claims[name] = c
		h.update(c)
	}
}

func (o *randomCluster) oneOf(of ...string) string { return of[o.random.IntN(len(of))] }

func (o *randomCluster) pod(name string) dra.PodLifecycle {
	p, there := o.pods[name]
	if !there || o.random.IntN(5) == 0 {
		p = pod(name, o.random.IntN(50), "gpu="+o.oneOf("0", "1", "2", "3"), o.oneOf("nic<one", "nic=4", "gpu=2"))
		p.UID = fmt.Sprintf("pod-%s-%d", name, o.changes)
		p.Gated = o.random.IntN(3) == 0
		switch o.random.IntN(4) {
		case 0:
			p = member(p, "StatefulSet/web", "", 0)
			p.HeldBy = new("web")
		case 1:
			p = member(p, "Job/job", "", 0)
		}
		if p.Gated {
			p.HeldBy = new(cmp.Or(heldBy(&p), o.oneOf("", "pod")))
		}
		if o.random.IntN(3) == 0 {
			p.Extended = map[string]int64{"example.com/gpu": 1, "plugin.example.com/x": 1}
		}
		if o.random.IntN(3) == 0 {
			p.Group, p.Claims = "gang", []dra.PodClaim{{Name: "gpu", Template: "one"}}
		}
		return p
	}
	switch o.random.IntN(7) {
	case 0:
		p.Gated, p.HeldBy = false, nil
	case 1:
		p.Node = cmp.Or(p.Node, o.oneOf("node-a", "node-b")) // it is bound once
	case 2:
		p.Terminal = true
	case 3:
		p.Deleted = second(90)
	case 4:
		p.Unschedulable = o.oneOf("", saysDevices, saysCPU, saysBoth, saysClass, saysGang)
	case 5:
		p.Health = []dra.ResourceHealth{{PodClaim: "gpu", Request: "gpu", ResourceID: "gpu.example.com/node-a/gpu-" + o.oneOf("0", "1"), Healthy: o.random.IntN(2) == 0}}
	case 6:
		if len(p.Extended) > 0 {
			p.Claims = append(slices.Clone(p.Claims), dra.PodClaim{Claim: "5"})
		}
	}
	return p
}

// kueueWorkload returns that of a StatefulSet, or of one pod.
func (o *randomCluster) kueueWorkload(name string) dra.KueueWorkload {
	k := dra.KueueWorkload{Ref: dra.PodRef{Namespace: "a", Name: name}, UID: name, Workload: dra.Workload{Queue: "q"}, Pods: int32(o.random.IntN(3)), Claims: o.random.IntN(2) == 0}
	if name == "web" {
		k.Workload.Kind, k.Workload.Name = "PodGroup", "web"
	} else if p, there := o.pods["a/"+o.oneOf("0", "1", "2")]; there {
		k.Pod = dra.Consumer{Resource: "pods", Name: p.Ref.Name, UID: p.UID}
	}
	if o.random.IntN(2) == 0 {
		k.Waiting = &dra.KueueWaiting{Reason: o.oneOf("WaitingForQuota", "NoMatchingFlavor"), Message: "m", Since: second(o.random.IntN(9))}
	}
	return k
}

func (o *randomCluster) claim(name string) dra.ClaimLifecycle {
	c, there := o.claims[name]
	if !there || o.random.IntN(5) == 0 {
		c = claim(name, o.random.IntN(50))
		c.UID = fmt.Sprintf("claim-%s-%d", name, o.changes)
		c.Classes = []string{o.oneOf("gpu.example.com", "nic.example.com")}
		return c
	}
	switch o.random.IntN(5) {
	case 0, 1:
		c.Results, c.ReservedFor = nil, nil
		withDevices("gpu-" + o.oneOf("0", "1"))(&c)
		if p, there := o.pods["a/"+o.oneOf("0", "1", "2", "3", "4", "5")]; there {
			c.ReservedFor = []dra.Consumer{{Resource: "pods", Name: p.Ref.Name, UID: p.UID}}
		}
	case 2:
		c.ReservedFor = nil
	case 3:
		c.Allocated, c.Results, c.ReservedFor, c.Binding = false, nil, nil, dra.BindingNone
	case 4:
		c.Deleted, c.Finalizers = second(70), []string{"keep"}
	}
	c.Binding = dra.BindingNone
	if c.Allocated {
		c.Binding = dra.Binding(o.random.IntN(4))
	}
	return c
}

// diagnoses returns diagnoses, always the same for the same pod.
func (o *randomCluster) diagnoses() []dra.Diagnosis {
	var diagnoses []dra.Diagnosis
	for _, name := range slices.Sorted(maps.Keys(o.pods)) {
		p := o.pods[name]
		reasons := []dra.PendingReason{dra.ReasonNone, dra.ReasonInsufficient, dra.ReasonTainted}
		diagnoses = append(diagnoses, diagnosisFor(p, "gpu", reasons[len(p.UID)%3], "m", 5, 4, 3, 2, 1, 1))
	}
	return diagnoses
}

// relist returns a new harness with the present objects, in one list.
func (o *randomCluster) relist(t *testing.T, like *harness) *harness {
	h := newHarness(t)
	h.now, h.live, h.facts = like.now, false, like.facts
	for _, list := range o.random.Perm(6) {
		switch list {
		case 0:
			for _, p := range o.pods {
				h.update(p)
			}
		case 1:
			for _, c := range o.claims {
				h.update(c)
			}
		case 2:
			for _, g := range o.groups {
				h.update(g)
			}
		case 3:
			for _, k := range o.kueue {
				h.update(k)
			}
		case 4:
			for _, d := range o.domains {
				h.update(d)
			}
		case 5:
			for _, n := range o.nodes {
				h.update(n)
			}
		}
	}
	h.step(0)
	return h
}

// After any history, in any order, the output is that of an exporter that
// starts now and lists everything. (Diagnoses that arrive before their pods, and
// phases, are tested elsewhere.)
func TestHistoryEqualsRelist(t *testing.T) {
	families := []string{"dra_claim_pending_", "dra_claims", "dra_claim_terminating", "dra_claim_orphaned", "dra_device_health_disagreement", "dra_device",
		"dra_workload_", "dra_compute_domain_ready", "dra_compute_domain_nodes", "dra_compute_domain_pods", "dra_compute_domain_workload_info", "dra_node_topology_info"}
	for seed := range uint64(60) {
		o := newRandomCluster(seed, 2)
		h := newHarness(t)
		for range 60 {
			for range 1 + o.random.IntN(4) {
				o.change(h)
			}
			if o.random.IntN(4) == 0 {
				h.facts.Supply = testSupply()
				h.facts.Supply.Pools[1].Devices[dra.DeviceFree] = o.random.IntN(3)
			}
			h.facts.Diagnoses = o.diagnoses()
			h.step(time.Duration(o.random.IntN(3000)) * time.Millisecond)
			relisted := o.relist(t, h)
			if got, want := h.lines(families), relisted.lines(families); got != want {
				t.Fatalf("seed %d: after this history\n%s\nanybody else sees\n%s", seed, linesOnlyIn(got, want), linesOnlyIn(want, got))
			}
			if !slices.EqualFunc(h.last.Pending, relisted.last.Pending, samePending) {
				t.Fatalf("seed %d: after this history\n%+v\nanybody else sees\n%+v", seed, h.last.Pending, relisted.last.Pending)
			}
			if !slices.EqualFunc(h.last.Questions, relisted.last.Questions, sameQuestion) {
				t.Fatalf("seed %d: after this history\n%+v\nanybody else asks\n%+v", seed, h.last.Questions, relisted.last.Questions)
			}
			h.checkCounts(o)
		}
		h.exposition() // fails on a duplicate label set
	}
}

// lines returns what exposition returns, without the checks of Prometheus'
// parser.
func (h *harness) lines(prefixes []string) string {
	var lines []string
	for _, row := range h.last.Rows() {
		if !slices.ContainsFunc(prefixes, func(prefix string) bool { return strings.HasPrefix(row.Family.Name, prefix) }) {
			continue
		}
		line := row.Family.Name
		for name, value := range row.Labels.Each {
			line += fmt.Sprintf(",%s=%q", name, value)
		}
		lines = append(lines, fmt.Sprintf("%s %v\n", line, row.Value))
	}
	slices.Sort(lines)
	return strings.Join(lines, "")
}

// linesOnlyIn returns the lines that the other text does not have.
func linesOnlyIn(text, other string) string {
	lines := ""
	for line := range strings.Lines(text) {
		if !strings.Contains(other, line) {
			lines += line
		}
	}
	return lines
}

func samePending(a, b *PendingRef) bool {
	x, y := *a, *b
	x.Diagnosis, y.Diagnosis = nil, nil
	return x == y
}

// checkCounts counts the claims of the cluster again, by the definitions of the
// metrics' documentation alone.
func (h *harness) checkCounts(o *randomCluster) {
	h.t.Helper()
	type key struct{ class, state string }
	want := map[key]int{}
	for _, c := range o.claims {
		state := "unused"
		switch {
		case !c.Deleted.IsZero():
			state = "terminating"
		case c.Allocated && len(c.ReservedFor) > 0:
			state = "reserved"
		case c.Allocated:
			state = "allocated"
		case o.isNamed(c):
			state = "pending"
		}
		class := c.Class()
		if supply := h.facts.Supply; supply != nil && !slices.ContainsFunc(supply.Classes, func(of dra.ClassSupply) bool { return of.Class == class }) {
			class = "" // it does not exist
		}
		want[key{class, state}]++
	}
	for _, row := range h.last.Rows() {
		if row.Family.Name == "dra_claims" {
			k := key{row.Labels.Get("deviceclass"), row.Labels.Get("state")}
			if want[k] != int(row.Value) {
				h.t.Fatalf("%v claims are %v, want %d", row.Value, k, want[k])
			}
			delete(want, k)
		}
	}
	if len(want) > 0 {
		h.t.Fatalf("no rows of %v", slices.SortedFunc(maps.Keys(want), func(a, b key) int { return cmp.Compare(a.state, b.state) }))
	}
}

func (o *randomCluster) isNamed(c dra.ClaimLifecycle) bool {
	for _, p := range o.pods {
		if p.Terminal || !p.Deleted.IsZero() {
			continue
		}
		for _, pc := range p.Claims {
			name := pc.Claim
			if name == "" && pc.Name == "gpu" && p.Group == "gang" {
				if g, there := o.groups["a/gang"]; there {
					name = g.Claims[0].Claim
				}
			}
			if name == c.Ref.Name {
				return true
			}
		}
	}
	return false
}
