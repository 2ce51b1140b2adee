package page

import (
	"maps"
	"slices"

	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/collector/model"
)

// listClusterNamespaces returns the sorted namespaces that a cluster has something of; if
// wanted is not empty, only those in it.
func listClusterNamespaces(c *model.Cluster, wanted map[string]bool) []string {
	namespaces := make(map[string]bool)
	keepVisible(c, func(namespace string) bool {
		if len(wanted) == 0 || wanted[namespace] {
			namespaces[namespace] = true
		}
		return false
	})
	return slices.Sorted(maps.Keys(namespaces))
}

// limitCluster returns what a reader of the namespaces may see of a cluster: what is in
// them, and what is in none.
func limitCluster(c *model.Cluster, namespaces map[string]bool) *model.Cluster {
	return keepVisible(c, func(namespace string) bool { return namespaces[namespace] })
}

// keepVisible returns a copy with those of the objects whose namespace is visible.
func keepVisible(c *model.Cluster, visible func(namespace string) bool) *model.Cluster {
	limited := *c
	limited.Pending = keep(c.Pending, func(p **model.PendingRef) bool { return visible((*p).Pod.Namespace) })
	limited.Phases = keep(c.Phases, func(p **model.Phase) bool { return visible((*p).Pod.Namespace) })
	limited.Claims = keep(c.Claims, func(count **model.ClaimCount) bool { return visible((*count).Namespace) })
	limited.ComputeDomains = keep(c.ComputeDomains, func(d *model.ComputeDomain) bool { return visible(d.Ref.Namespace) })
	limited.QueuedWorkloads = keep(c.QueuedWorkloads, func(w *model.QueuedWorkload) bool { return visible(w.Namespace) })
	limited.TerminatingClaims = keep(c.TerminatingClaims, func(claim *model.TerminatingClaim) bool { return visible(claim.Ref.Namespace) })
	limited.OrphanedClaims = keep(c.OrphanedClaims, func(ref *dra.ClaimRef) bool { return visible(ref.Namespace) })
	limited.DeletedPods = keep(c.DeletedPods, func(p *model.DeletedPod) bool { return visible(p.Pod.Namespace) })
	limited.Evictions = keep(c.Evictions, func(counter *model.Counter) bool { return visible(counter.Name) })
	return &limited
}
