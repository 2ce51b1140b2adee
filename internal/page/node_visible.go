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
	visibleParts(n, func(namespace string) bool {
		if namespace != "" && (len(wanted) == 0 || wanted[namespace]) {
			found[namespace] = true
		}
		return false
	})
	return slices.Sorted(maps.Keys(found))
}

// limitNode returns what a reader of the namespaces may see of a node: what is in them, the
// devices that these use, or have used lately, with the whole devices of partitions, and
// what is about neither. The kubelet's messages may name objects of any namespace.
func limitNode(n *model.Node, namespaces map[string]bool) *model.Node {
	limited := visibleParts(n, func(namespace string) bool { return namespaces[namespace] })
	used := usedDevices(limited)
	limited.Devices = keep(n.Devices, func(d *model.Device) bool { return used[d.UUID] })
	for i := range limited.Devices {
		limited.Devices[i].KubeletMessage = ""
	}
	return limited
}

// visibleParts returns a copy with those of the objects whose namespace is visible.
func visibleParts(n *model.Node, visible func(namespace string) bool) *model.Node {
	limited := *n
	limited.Claims = keep(n.Claims, func(c **model.Claim) bool { return visible((*c).Ref.Namespace) })
	limited.Holds = keep(n.Holds, func(h *model.Hold) bool { return visible(h.Claim.Namespace) })
	limited.Pods = keep(n.Pods, func(p *model.PodUse) bool { return visible(p.Pod.Namespace) })
	limited.Plugins = keep(n.Plugins, func(c *model.PluginConsumer) bool { return visible(c.Pod.Namespace) })
	limited.PastPlugins = keep(n.PastPlugins, func(c *model.PluginConsumer) bool { return visible(c.Pod.Namespace) })
	limited.Workloads = keep(n.Workloads, func(w *model.PodWorkload) bool { return visible(w.Pod.Namespace) })
	limited.PastWorkloads = keep(n.PastWorkloads, func(w *model.PodWorkload) bool { return visible(w.Pod.Namespace) })
	limited.ClaimAlignments = keep(n.ClaimAlignments, func(a *model.ClaimAlignment) bool { return visible(a.Claim.Namespace) })
	limited.PodAlignments = keep(n.PodAlignments, func(a *model.PodAlignment) bool { return visible(a.Pod.Namespace) })
	limited.Totals = keep(n.Totals, func(t *model.Totals) bool { return visible(t.Namespace) })
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
