package node

import (
	"slices"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/dra"
)

// countHolders notes on each unit who holds it. Units of held devices whose
// hardware is unknown are made here.
func (s *State) countHolders(now clock.Instant) {
	for _, u := range s.units {
		u.holders = holders{shares: u.holders.shares[:0], pods: u.holders.before[:0], before: u.holders.pods}
	}
	for i := range s.views {
		for _, d := range s.views[i].devices {
			u := s.unitOf(d, now)
			if !d.admin {
				u.holdBy(s.views[i].ref, d.consumed)
			}
		}
	}
	pods := make(map[pluginConsumer]bool)
	for _, p := range s.plugins.consumers {
		holder := pluginConsumer{uuid: p.uuid, pod: p.pod}
		if u, known := s.units[p.uuid]; known && !pods[holder] {
			pods[holder] = true
			u.seen = now
			u.holders.plugins++
			u.holders.pods = append(u.holders.pods, p.pod)
		}
	}
	for _, uuid := range s.doubtful {
		if u, known := s.units[uuid]; known {
			u.holders.related++
		}
	}
	s.relate()
}

// holdBy counts a claim once, however often it holds the device, and adds up
// what it consumes of it.
func (u *unit) holdBy(claim dra.ClaimRef, consumed map[string]float64) {
	for i := range u.holders.shares {
		if u.holders.shares[i].claim == claim {
			u.holders.shares[i].consumed = added(u.holders.shares[i].consumed, consumed)
			return
		}
	}
	u.holders.claims++
	u.holders.shares = append(u.holders.shares, consumption{claim, consumed})
}

// haveChanged reports whether the present holders are others than those of
// the step before.
func (h *holders) haveChanged() bool { return h.changed || !slices.Equal(h.pods, h.before) }

func added(a, b map[string]float64) map[string]float64 {
	sum := make(map[string]float64, len(a))
	for name, value := range a {
		sum[name] = value
	}
	for name, value := range b {
		sum[name] += value
	}
	return sum
}

// relate makes holders of partitions and of their parent know each other:
// the parent's quantities contain the partitions'.
func (s *State) relate() {
	for _, u := range s.units {
		if !u.device.IsPartition() {
			continue
		}
		parent, known := s.units[u.device.ParentUUID]
		if !known {
			continue
		}
		parent.holders.cut = parent.holders.cut || u.present || u.isHeld()
		parent.holders.related += u.holders.claims + u.holders.plugins
		u.holders.related += parent.holders.claims + parent.holders.plugins
	}
}
