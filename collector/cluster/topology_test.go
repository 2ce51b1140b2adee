package cluster

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/dra"
)

// fewest is the size of the smallest set of domains that have so many devices of each
// driver together, by trying all; 0: no set has.
func fewest(capacity map[string]map[string]int, needed map[string]int) int {
	names := make([]string, 0, len(capacity))
	for domain := range maps.Keys(capacity) {
		names = append(names, domain)
	}
	best := 0
	for bits := range 1 << len(names) {
		size, have := 0, map[string]int{}
		for i, domain := range names {
			if bits>>i&1 == 1 {
				size++
				for driver, count := range capacity[domain] {
					have[driver] += count
				}
			}
		}
		enough := true
		for driver, count := range needed {
			enough = enough && have[driver] >= count
		}
		if enough && size > 0 {
			if best == 0 || size < best {
				best = size
			}
		}
	}
	return best
}

// On random clusters of one driver, workloads have the domains of their nodes, and the
// least is that of all sets of domains.
func TestWorkloadDomains(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 8))
	seen := map[string]int{}
	for range 300 {
		h := newHarness(t)
		h.live = false
		supply, capacity := &dra.Supply{Version: 1}, map[string]map[string]int{}
		domainOf, published := map[string]string{}, 0
		for i := range 6 {
			name, domain, devices := fmt.Sprint("node-", i), fmt.Sprint("clique-", random.IntN(4)), 1+random.IntN(3)
			if random.IntN(20) == 0 {
				domain = ""
			}
			domainOf[name] = domain
			published += devices
			h.update(dra.Node{Name: name, Domains: dra.Domains{domain, "", "hall"}})
			supply.Pools = append(supply.Pools, &dra.PoolSupply{Driver: "gpu.example.com", Pool: name, Node: name, Devices: [dra.DeviceStates]int{0, devices - 1, 1}})
			if domain != "" {
				if capacity[domain] == nil {
					capacity[domain] = map[string]int{}
				}
				capacity[domain]["gpu.example.com"] += devices
			}
		}
		used, needed := map[string]bool{}, 0
		for rank := range 1 + random.IntN(5) {
			node, claimed := fmt.Sprint("node-", random.IntN(6)), fmt.Sprintf("a/claim-%d", rank)
			c := claim(claimed, 1, reserved(fmt.Sprint("rank-", rank)))
			c.Allocated, c.Node = true, node
			for i := range 1 + random.IntN(4) {
				c.Results = append(c.Results, dra.AllocatedDevice{Request: "gpu", Device: dra.DeviceID{Driver: "gpu.example.com", Pool: node, Name: fmt.Sprint(rank, "-", i)}})
				needed++
			}
			c.Results = append(c.Results, dra.AllocatedDevice{Request: "channel", Device: dra.DeviceID{Driver: "compute-domain.nvidia.com", Pool: node, Name: "channel-0"}})
			p := member(pod(fmt.Sprint("a/rank-", rank), 2, fmt.Sprint("gpu=claim-", rank)), "JobSet/train", "", 0)
			p.Node = node
			h.update(c, p)
			used[domainOf[node]] = true
		}
		waits := member(pod("a/waits", 2, "gpu=none"), "JobSet/train", "", 0)
		h.update(waits)
		h.facts.Supply = supply
		h.step(time.Second)
		want, all := "", map[string]map[string]int{"hall": {"gpu.example.com": published}}
		row := func(family, level string, count int) {
			if count > 0 {
				want += fmt.Sprintf("%s{level=%q,namespace=\"a\",workload=\"train\",workload_kind=\"JobSet\"} %d\n", family, level, count)
			}
		}
		row("dra_workload_topology_domains", "block", 1)
		if !used[""] {
			row("dra_workload_topology_domains", "link_domain", len(used))
		}
		block := fewest(all, map[string]int{"gpu.example.com": needed})
		row("dra_workload_topology_least_domains", "block", block)
		if !used[""] {
			least := fewest(capacity, map[string]int{"gpu.example.com": needed})
			row("dra_workload_topology_least_domains", "link_domain", min(least, len(used)))
			seen[fmt.Sprintf("better %v", least > 0 && least < len(used))]++
		} else {
			seen["unknown"]++
		}
		if block == 0 {
			seen["too few"]++
		}
		want = strings.TrimSpace(want)
		if got := strings.TrimSpace(h.exposition("dra_workload_topology")); got != want {
			t.Fatalf("%s\nwant\n%s", got, want)
		}
	}
	for _, one := range []string{"better true", "better false", "unknown", "too few"} {
		if seen[one] < 10 {
			t.Errorf("%s: only %d times", one, seen[one])
		}
	}
}

// Without a label of the topology on any node there are no rows; they follow labels that
// come and go.
func TestTopologyFollowsNodes(t *testing.T) {
	h := newHarness(t)
	p := member(pod("a/rank-0", 2, "gpu=held"), "JobSet/train", "", 0)
	p.Node = "node-a"
	h.update(dra.Node{Name: "node-a"}, claim("a/held", 1, withDevices("gpu-0"), reserved("rank-0")), p)
	h.facts.Supply = testSupply()
	topology := func() string {
		h.step(time.Second)
		return h.exposition("dra_node_topology", "dra_workload_topology")
	}
	if got := topology(); got != "" {
		t.Errorf("without labels:\n%s", got)
	}
	h.update(dra.Node{Name: "node-a", Domains: dra.Domains{"", "r", ""}})
	if got := topology(); strings.Count(got, `level="rack"`) != 2 || !strings.Contains(got, `dra_node_topology_info{block="",link_domain="",node="node-a",rack="r"} 1`) {
		t.Errorf("with a rack:\n%s", got)
	}
	h.remove(claim("a/held", 1))
	if got := topology(); strings.Contains(got, "level=") {
		t.Errorf("without the claim:\n%s", got)
	}
	h.remove(dra.Node{Name: "node-a"})
	if got := topology(); got != "" {
		t.Errorf("without the node:\n%s", got)
	}
}
