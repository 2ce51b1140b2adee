package cluster

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/collector/metric"
	"github.com/dra-exporter/dra-exporter/collector/model"
)

func workloadNames(more ...string) []string {
	return append([]string{"namespace", "workload_kind", "workload"}, more...)
}

// ownerless are the workloads that are one pod without an owner and a queue: in a large
// cluster they are most rows, and say little that is not in those of the pod's claims.
func ownerless() *metric.LabelRows {
	return &metric.LabelRows{Label: "workload_kind", Value: "Pod", Empty: "queue"}
}

func workloadFamilies() definitions {
	return definitions{
		{
			Family: metric.Family{
				Name: "dra_workload_info", Labels: workloadNames("queue"),
				Help:  "A workload that has pods with claims, or waits in a queue of Kueue with such, and the queue that it was submitted to; a pod without an owner (kind Pod) has a row with a queue or at the level full only",
				Minor: ownerless(),
			},
			Fill: func(m *labelled, b *metric.Builder) {
				for i, w := range m.Workloads {
					b.Add(cached(&m.workloads.labels[i].info, b, w.Namespace, w.Kind, w.Name, w.Queue), 1)
				}
			},
		},
		{
			Family: metric.Family{
				Name: "dra_workload_pods", Labels: workloadNames("state"),
				Help:  "Pods of the workload by state: gated, pending, starting (bound to a node), running, ended; absent if there are none; those of kind Pod have rows at the level full only",
				Minor: ownerless(),
			},
			Fill: func(m *labelled, b *metric.Builder) {
				for i, w := range m.Workloads {
					for state, pods := range w.Pods {
						if pods > 0 {
							b.Add(cached(&m.workloads.labels[i].states[state], b, w.Namespace, w.Kind, w.Name, model.PodState(state).String()), float64(pods))
						}
					}
				}
			},
		},
		{
			Family: metric.Family{
				Name: "dra_workload_min_pods", Labels: workloadNames(),
				Help: "Pods that the gangs of the workload need in order to run, else those that Kueue admits together; absent if neither is known",
			},
			Fill: func(m *labelled, b *metric.Builder) {
				for i, w := range m.Workloads {
					if w.MinPods > 0 {
						b.Add(cached(&m.workloads.labels[i].name, b, w.Namespace, w.Kind, w.Name), float64(w.MinPods))
					}
				}
			},
		},
		listed(
			metric.Family{
				Name: metric.WorkloadQueuedSinceTimestampSeconds, Unit: "seconds", Labels: workloadNames("reason"),
				Help: "Unix time since which the workload waits in a queue of Kueue, by the reason that Kueue reports; absent once it is admitted",
			},
			func(m *labelled) []model.QueuedWorkload { return m.QueuedWorkloads },
			func(w model.QueuedWorkload) rowValues { return rowValues{w.Namespace, w.Kind, w.Name, w.Reason} },
			func(w model.QueuedWorkload) (float64, time.Time) { return unixSeconds(w.Since) },
		),
	}
}

func topologyFamilies() definitions {
	return definitions{
		listed(
			metric.Family{
				Name: "dra_node_topology_info", Labels: []string{"node", dra.LevelLink.String(), dra.LevelRack.String(), dra.LevelBlock.String()},
				Help: "Domains of a node by its labels: NVLink domain, rack, block; empty: unknown",
			},
			func(m *labelled) []model.NodeDomains { return m.NodeDomains },
			func(n model.NodeDomains) rowValues {
				return rowValues{n.Node, n.Domains[dra.LevelLink], n.Domains[dra.LevelRack], n.Domains[dra.LevelBlock]}
			},
			constant,
		),
		listed(
			metric.Family{
				Name: "dra_node_release_info", Labels: []string{"node", "label", "value"},
				Help: "A label of the node asks all clients of its GPUs to release them, as during a driver upgrade",
			},
			func(m *labelled) []model.NodeRelease { return m.NodeReleases },
			func(n model.NodeRelease) rowValues { return rowValues{n.Node, n.Label.Key, n.Label.Value} },
			constant,
		),
		{
			Family: metric.Family{
				Name: "dra_workload_topology_domains", Labels: workloadNames("level"),
				Help: "Domains over which the devices of the workload are spread, by level: link_domain, rack, block; absent if one is unknown",
			},
			Fill: func(m *labelled, b *metric.Builder) {
				if m.NodesKnown && m.ClaimsKnown {
					m.levelRows(b, func(w *model.Workload) *[dra.TopologyLevels]int { return &w.Domains })
				}
			},
		},
		{
			Family: metric.Family{
				Name: "dra_workload_topology_least_domains", Labels: workloadNames("level"),
				Help: "Fewest domains that have as many devices of the same drivers, allocated or not; absent if not so many are published",
			},
			Fill: func(m *labelled, b *metric.Builder) {
				if m.NodesKnown && m.DevicesKnown {
					m.levelRows(b, func(w *model.Workload) *[dra.TopologyLevels]int { return &w.LeastDomains })
				}
			},
		},
		{Family: metric.Family{
			Name: metric.WorkloadStartDurationSeconds, Unit: "seconds", Type: metric.Histogram, Labels: []string{"workload_kind", "queue"},
			Help: "Time from the creation of the first pod of a workload until all of its pods have started",
		}},
	}
}

// levelRows adds numbers of domains that are known.
func (l *labelled) levelRows(b *metric.Builder, domains func(*model.Workload) *[dra.TopologyLevels]int) {
	for i, w := range l.Workloads {
		for level, count := range domains(w) {
			if count > 0 {
				b.Add(cached(&l.workloads.labels[i].levels[level], b, w.Namespace, w.Kind, w.Name, dra.TopologyLevel(level).String()), float64(count))
			}
		}
	}
}

func domainNames(more ...string) []string {
	return append([]string{"namespace", "compute_domain"}, more...)
}

// domainRows is a family that has a row for each ComputeDomain, if its value is known.
func domainRows(family metric.Family, value func(*model.ComputeDomain) (float64, bool)) definition {
	family.Labels = domainNames()
	return definition{Family: family, Fill: func(m *labelled, b *metric.Builder) {
		for i := range m.ComputeDomains {
			domain := &m.ComputeDomains[i]
			if number, ok := value(domain); ok {
				b.Add(cached(&m.domains.labels[i].name, b, domain.Ref.Namespace, domain.Ref.Name), number)
			}
		}
	}}
}

func domainFamilies() definitions {
	return definitions{
		domainRows(
			metric.Family{
				Name: metric.ComputeDomainReady,
				Help: "1 if the status of the ComputeDomain is Ready: enough nodes have joined it and all are ready; else 0",
			},
			func(d *model.ComputeDomain) (float64, bool) { return flag(d.Ready), true },
		),
		domainRows(
			metric.Family{
				Name: metric.ComputeDomainRequestedNodes,
				Help: "Nodes that the ComputeDomain is to have (numNodes); absent if it does not say",
			},
			func(d *model.ComputeDomain) (float64, bool) { return float64(d.NumNodes), d.NumNodes > 0 },
		),
		{
			Family: metric.Family{
				Name: metric.ComputeDomainNodes, Labels: domainNames("clique", "state"),
				Help: "Nodes that have joined the ComputeDomain, by NVLink clique and state: ready, not_ready; clique is empty without NVLink between nodes",
			},
			Fill: func(m *labelled, b *metric.Builder) {
				for i := range m.ComputeDomains {
					m.domains.labels[i].nodeRows(b, m.ComputeDomains[i].ComputeDomain)
				}
			},
		},
		domainRows(
			metric.Family{
				Name: metric.ComputeDomainNotReadySinceTimestampSeconds, Unit: "seconds",
				Help: "Unix time since which the ComputeDomain is not ready; absent if it was so before the exporter started",
			},
			func(d *model.ComputeDomain) (float64, bool) {
				return float64(d.NotReadySince.Unix()), !d.NotReadySince.IsZero()
			},
		),
	}
}

func domainUserFamilies() definitions {
	return definitions{
		domainRows(
			metric.Family{
				Name: metric.ComputeDomainPods,
				Help: "Pods that use the ComputeDomain, are bound to a node and have not ended",
			},
			func(d *model.ComputeDomain) (float64, bool) { return d.Pods.Value, d.Pods.Known },
		),
		listed(
			metric.Family{
				Name: "dra_compute_domain_workload_info", Labels: domainNames("workload_kind", "workload"),
				Help: "A workload whose pods use the ComputeDomain",
			},
			func(m *labelled) []model.DomainWorkload { return m.DomainWorkloads },
			func(w model.DomainWorkload) rowValues { return rowValues{w.Namespace, w.Domain, w.Kind, w.Name} },
			constant,
		),
	}
}

// nodeRows adds how many nodes of the domain are in which state, by clique. A clique
// without nodes in a state has no row for it.
func (l *domainLabels) nodeRows(b *metric.Builder, domain *dra.ComputeDomain) {
	counts := make(map[cliqueState]int)
	for i := range domain.Nodes {
		node := &domain.Nodes[i]
		state := "not_ready"
		if node.Ready {
			state = "ready"
		}
		counts[cliqueState{node.Clique, state}]++
	}
	kept := make(map[cliqueState]*metric.Labels, len(counts))
	for _, key := range slices.SortedFunc(maps.Keys(counts), func(a, b cliqueState) int {
		return cmp.Or(cmp.Compare(a.clique, b.clique), cmp.Compare(a.state, b.state))
	}) {
		labels := l.nodes[key]
		kept[key] = cached(&labels, b, domain.Ref.Namespace, domain.Ref.Name, key.clique, key.state)
		b.Add(labels, float64(counts[key]))
	}
	l.nodes = kept
}
