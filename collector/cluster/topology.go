package cluster

import (
	"cmp"
	"maps"
	"slices"

	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/collector/model"
	"github.com/dra-exporter/dra-exporter/collector/vendors"
)

// topology outputs the domains of nodes, and over how many domains the devices of each
// workload are spread.
type topology struct {
	levels [dra.TopologyLevels]bool // of which any node has a domain

	supply *dra.Supply // that the capacity is of
	// capacity is, by level and driver, how many devices each domain has, the most
	// first. Together they are all that is published there, allocated or not.
	capacity [dra.TopologyLevels]map[string][]int

	nodes    []model.NodeDomains // sorted
	releases []model.NodeRelease // sorted
	changed  bool                // a node of these
	outdated bool                // the spans of all workloads
}

// workloadSpan is over how many domains the devices of a workload are spread, and how
// many would hold so many at least, by level; 0: not known.
type workloadSpan struct {
	known          bool
	domains, least [dra.TopologyLevels]int
}

// apply applies an update of the index.
func (t *topology) apply(u *update) {
	if u.Node == nil {
		return
	}
	var previous, current dra.Node
	if u.nodeBefore != nil {
		previous = *u.nodeBefore
	}
	if !u.Gone {
		current = *u.Node
	}
	if previous.Domains != current.Domains {
		t.changed, t.outdated = true, true
	}
	t.changed = t.changed || previous.Release != current.Release
}

// update runs once per step. It updates the spans of workloads.
func (t *topology) update(nodes map[string]*dra.Node, entries map[workloadName]*workloadEntry, supply *dra.Supply) {
	if t.outdated {
		t.levels = [dra.TopologyLevels]bool{}
		for _, node := range nodes {
			for level, domain := range node.Domains {
				t.levels[level] = t.levels[level] || domain != ""
			}
		}
	}
	if t.outdated || t.supply == nil || supply != nil && !samePlaces(t.supply.Pools, supply.Pools) {
		t.countCapacity(nodes, supply)
		t.outdated = true
	}
	t.supply = cmp.Or(supply, t.supply)
	for _, entry := range entries {
		if span := &entry.span; t.outdated || !span.known {
			previous := *span
			span.domains, span.least = t.measureSpan(entry, nodes)
			if span.domains != previous.domains || span.least != previous.least {
				entry.model = nil
			}
			span.known = true
		}
	}
	t.outdated = false
}

// samePlaces reports whether pools have as many devices on the same nodes.
func samePlaces(previous, now []*dra.PoolSupply) bool {
	return slices.EqualFunc(previous, now, func(a, b *dra.PoolSupply) bool {
		return a == b || a.Driver == b.Driver && a.Node == b.Node && countDevices(a) == countDevices(b)
	})
}

func countDevices(pool *dra.PoolSupply) int {
	all := 0
	for _, count := range pool.Devices {
		all += count
	}
	return all
}

func (t *topology) countCapacity(nodes map[string]*dra.Node, supply *dra.Supply) {
	t.capacity = [dra.TopologyLevels]map[string][]int{}
	if supply == nil {
		return
	}
	type place struct{ driver, domain string }
	for level := range t.levels {
		if !t.levels[level] {
			continue
		}
		counts := make(map[place]int)
		for _, pool := range supply.Pools {
			if node := nodes[pool.Node]; node != nil && node.Domains[level] != "" {
				counts[place{pool.Driver, node.Domains[level]}] += countDevices(pool)
			}
		}
		byDriver := make(map[string][]int)
		for at, count := range counts {
			byDriver[at.driver] = append(byDriver[at.driver], count)
		}
		for _, all := range byDriver {
			slices.SortFunc(all, func(a, b int) int { return cmp.Compare(b, a) })
		}
		t.capacity[level] = byDriver
	}
}

// measureSpan counts the domains of the nodes on which pods of the workload hold devices. A
// level is not known if one of the nodes has no domain there.
func (t *topology) measureSpan(entry *workloadEntry, nodes map[string]*dra.Node) (spread, least [dra.TopologyLevels]int) {
	if t.levels == ([dra.TopologyLevels]bool{}) {
		return spread, least
	}
	hosts, held := make(map[string]bool), make(map[dra.DeviceID]bool)
	for p := range entry.members {
		if !p.alive() || p.object.Node == "" {
			continue
		}
		for i := range p.refs {
			claim := p.refs[i].claim
			if claim == nil || claim.object == nil {
				continue
			}
			for j := range claim.object.Results {
				if result := &claim.object.Results[j]; !result.AdminAccess && !vendors.IsLogical(result.Device.Driver) {
					hosts[p.object.Node], held[result.Device] = true, true
				}
			}
		}
	}
	needed := make(map[string]int)
	for id := range held {
		needed[id.Driver]++
	}
	for level := range t.levels {
		domains := make(map[string]bool)
		for name := range hosts {
			domain := ""
			if node := nodes[name]; node != nil {
				domain = node.Domains[level]
			}
			domains[domain] = true
		}
		if len(domains) == 0 || domains[""] {
			continue
		}
		spread[level] = len(domains)
		least[level] = t.leastDomains(level, needed, len(domains))
	}
	return spread, least
}

// leastDomains is how few of the largest domains have so many devices of each driver, no
// more than are used; 0: all together have not so many, or what they have is not known.
func (t *topology) leastDomains(level int, needed map[string]int, used int) int {
	least := 1
	for driver, count := range needed {
		domains := 0
		for _, capacity := range t.capacity[level][driver] {
			if count <= 0 {
				break
			}
			count -= capacity
			domains++
		}
		if count > 0 {
			return 0
		}
		least = max(least, domains)
	}
	return min(least, used)
}

// lists returns the nodes that have domains, and those whose GPUs are to be released.
func (t *topology) lists(nodes map[string]*dra.Node) ([]model.NodeDomains, []model.NodeRelease) {
	if !t.changed {
		return t.nodes, t.releases
	}
	t.changed, t.nodes, t.releases = false, nil, nil
	for _, name := range slices.Sorted(maps.Keys(nodes)) {
		if label := nodes[name].Release; label != (dra.ReleaseLabel{}) {
			t.releases = append(t.releases, model.NodeRelease{Node: name, Label: label})
		}
		if domains := nodes[name].Domains; domains != (dra.Domains{}) {
			t.nodes = append(t.nodes, model.NodeDomains{Node: name, Domains: domains})
		}
	}
	return t.nodes, t.releases
}
