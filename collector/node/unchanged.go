package node

import (
	"github.com/dra-exporter/dra-exporter/collector/dra"
)

// causes is all that matching and joining depend on while the API server's
// facts decide. Facts are immutable, so that the same list is known by where
// it lies; most steps bring new readings alone.
type causes struct {
	pods        span[dra.Pod]
	claims      span[dra.Claim]
	published   span[dra.PublishedDevice]
	assignments span[dra.Assignment]
	cdi         span[dra.CDIDevice]
	hardware    uint64 // changes of the hardware so far
}

// causesOf returns the causes, and false where holders depend on more: on
// time, or on what was known before.
func (s *State) causesOf(facts Facts) (causes, bool) {
	return causes{
		pods:        spanOf(facts.Cluster.Pods),
		claims:      spanOf(facts.Cluster.Claims),
		published:   spanOf(facts.Cluster.Published),
		assignments: spanOf(facts.Listing.Assignments),
		cdi:         spanOf(facts.CDI),
		hardware:    s.devices.changes,
	}, facts.Cluster.Enabled && facts.Cluster.Fresh && len(facts.Cluster.Unread) == 0
}
