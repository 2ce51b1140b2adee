package node

import "github.com/dra-exporter/dra-exporter/collector/metric"

// strayRows shows what processes of nobody that holds a device do.
func (b *rowBuilder) strayRows(units []*deviceState) {
	for q := range usages {
		b.In(b.families.unattributed[q])
		for _, u := range units {
			if value, known := u.unattributed(q); known {
				b.Add(u.labels.plain, value)
			}
		}
	}
}

// podRows shows what each of several pods does on a device that they use.
func (b *rowBuilder) podRows(units []*deviceState, config Config) {
	f := b.families
	for q := range usages {
		b.In(f.podUse[q])
		for _, u := range units {
			if u.split == nil || !u.split.known[q] || len(u.split.pods) < 2 {
				continue
			}
			for i := range u.split.pods {
				pod := &u.split.pods[i]
				if pod.uid == "" {
					continue
				}
				if pod.labels == nil {
					pod.labels = metric.NewLabels(f.podUse[q].Labels, config.Node, pod.pod.Namespace, pod.pod.Name, u.uuid)
				}
				b.Add(pod.labels, pod.amounts[q])
			}
		}
	}
}

// processRows says whether processes are told apart by pod, and if not, why.
func (b *rowBuilder) processRows(s *State, facts Facts) {
	family := b.families.processes
	b.In(family)
	present := facts.Processes.State
	if present == ProcessesOK && !s.devices.listed {
		present = ProcessesUnsupported
	}
	for state := range processStates {
		if b.states[state] == nil {
			b.states[state] = metric.NewLabels(family.Labels, state.String())
		}
		b.Add(b.states[state], one(state == present))
	}
}
