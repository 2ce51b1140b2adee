package node

import (
	"slices"

	"github.com/dra-exporter/dra-exporter/collector/device"
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

// span tells lists apart without reading them.
type span[T any] struct {
	first *T
	n     int
}

func spanOf[T any](list []T) span[T] {
	if len(list) == 0 {
		return span[T]{}
	}
	return span[T]{&list[0], len(list)}
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
		hardware:    s.hardwareChanges,
	}, facts.Cluster.Enabled && facts.Cluster.Fresh && len(facts.Cluster.Unread) == 0
}

// sameHardware compares what rules and labels are made of.
func sameHardware(a, b device.Device) bool {
	return a.UUID == b.UUID && a.ParentUUID == b.ParentUUID && a.PCIBusID == b.PCIBusID &&
		a.Vendor == b.Vendor && a.Model == b.Model && a.DriverVersion == b.DriverVersion &&
		a.Minor == b.Minor && a.RenderMinor == b.RenderMinor &&
		a.Profile == b.Profile && a.Placement == b.Placement &&
		a.GPUInstance == b.GPUInstance && a.ComputeInstance == b.ComputeInstance &&
		slices.Equal(a.Nodes, b.Nodes)
}
