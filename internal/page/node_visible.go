package page

import (
	"maps"
	"slices"

	"github.com/dra-exporter/dra-exporter/collector/model"
)

// listNamespaces returns the sorted namespaces that a node has something of; if wanted is
// not empty, only those in it.
func listNamespaces(n *model.Node, wanted map[string]bool) []string {
	found := make(map[string]bool)
	add := func(namespace string) {
		if namespace != "" && (len(wanted) == 0 || wanted[namespace]) {
			found[namespace] = true
		}
	}
	for _, claim := range n.Claims {
		add(claim.Ref.Namespace)
	}
	for i := range n.Holds {
		add(n.Holds[i].Claim.Namespace)
	}
	for i := range n.Pods {
		add(n.Pods[i].Pod.Namespace)
	}
	for _, consumers := range [][]model.PluginConsumer{n.Plugins, n.PastPlugins} {
		for i := range consumers {
			add(consumers[i].Pod.Namespace)
		}
	}
	for _, workloads := range [][]model.PodWorkload{n.Workloads, n.PastWorkloads} {
		for i := range workloads {
			add(workloads[i].Pod.Namespace)
		}
	}
	for i := range n.ClaimAlignments {
		add(n.ClaimAlignments[i].Claim.Namespace)
	}
	for i := range n.PodAlignments {
		add(n.PodAlignments[i].Pod.Namespace)
	}
	for i := range n.Totals {
		add(n.Totals[i].Namespace)
	}
	return slices.Sorted(maps.Keys(found))
}

// limitNode returns what a reader of the namespaces may see of a node: what is in them, the
// devices that these use, or have used lately, with the whole devices of partitions, and
// what is about neither. The kubelet's messages may name objects of any namespace.
func limitNode(n *model.Node, namespaces map[string]bool) *model.Node {
	limited := *n
	limited.Claims = keep(n.Claims, func(c **model.Claim) bool { return namespaces[(*c).Ref.Namespace] })
	limited.Holds = keep(n.Holds, func(h *model.Hold) bool { return namespaces[h.Claim.Namespace] })
	limited.Pods = keep(n.Pods, func(p *model.PodUse) bool { return namespaces[p.Pod.Namespace] })
	limited.Plugins = keep(n.Plugins, func(c *model.PluginConsumer) bool { return namespaces[c.Pod.Namespace] })
	limited.PastPlugins = keep(n.PastPlugins, func(c *model.PluginConsumer) bool { return namespaces[c.Pod.Namespace] })
	limited.Workloads = keep(n.Workloads, func(w *model.PodWorkload) bool { return namespaces[w.Pod.Namespace] })
	limited.PastWorkloads = keep(n.PastWorkloads, func(w *model.PodWorkload) bool { return namespaces[w.Pod.Namespace] })
	limited.ClaimAlignments = keep(n.ClaimAlignments, func(a *model.ClaimAlignment) bool { return namespaces[a.Claim.Namespace] })
	limited.PodAlignments = keep(n.PodAlignments, func(a *model.PodAlignment) bool { return namespaces[a.Pod.Namespace] })
	limited.Totals = keep(n.Totals, func(t *model.Totals) bool { return namespaces[t.Namespace] })
	used := usedDevices(&limited)
	limited.Devices = keep(n.Devices, func(d *model.Device) bool { return used[d.UUID] })
	for i := range limited.Devices {
		limited.Devices[i].KubeletMessage = ""
	}
	return &limited
}

// usedDevices returns the UUIDs of all devices that the claims and pods of a node use or
// have used, and of the whole devices of partitions.
func usedDevices(n *model.Node) map[string]bool {
	used := make(map[string]bool)
	for _, claim := range n.Claims {
		for _, devices := range [][]model.ClaimDevice{claim.Devices, claim.PastDevices} {
			for i := range devices {
				used[devices[i].UUID] = true
			}
		}
		for _, consumers := range [][]model.Consumer{claim.Consumers, claim.PastConsumers} {
			for i := range consumers {
				used[consumers[i].UUID] = true
			}
		}
	}
	for i := range n.Holds {
		used[n.Holds[i].UUID] = true
	}
	for i := range n.Pods {
		used[n.Pods[i].UUID] = true
	}
	for _, consumers := range [][]model.PluginConsumer{n.Plugins, n.PastPlugins} {
		for i := range consumers {
			used[consumers[i].UUID] = true
		}
	}
	for i := range n.Devices {
		if d := &n.Devices[i]; used[d.UUID] {
			used[d.Parent] = true
		}
	}
	delete(used, "")
	return used
}

// keep returns the values that the condition holds for. It does not change the list.
func keep[T any](list []T, condition func(*T) bool) []T {
	var kept []T
	for i := range list {
		if condition(&list[i]) {
			kept = append(kept, list[i])
		}
	}
	return kept
}
