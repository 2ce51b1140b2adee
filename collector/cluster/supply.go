package cluster

import (
	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/collector/model"
)

// supplied adds what is published, and how much of it is left, to the model.
type supplied struct {
	oversized stableList[model.Counter]
}

// list leaves out what depends on claims, slices or classes that are not known.
func (s *supplied) list(m *model.Cluster, supply *dra.Supply, synced Synced) {
	if supply == nil {
		return
	}
	m.RuleEvictions = supply.Evictions
	if synced.Slices {
		m.Pools, m.Taints = supply.Pools, supply.Taints
	}
	if synced.Classes {
		m.Classes = supply.Classes
	}
	if synced.Claims {
		for _, limit := range dra.SpecLimits() {
			s.oversized.add(model.Counter{Name: string(limit), Count: float64(supply.Oversized[limit])})
		}
		m.Oversized = s.oversized.take()
	}
}
