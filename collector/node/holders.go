package node

import (
	"strings"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/dra"
)

// pluginConsumer is a container that got a device through a device plugin.
type pluginConsumer struct {
	uuid     string
	pod      dra.PodRef
	name     string
	resource string
}

// countHolders notes on each unit who holds it. Units of held devices whose
// hardware is unknown are made here.
func (s *State) countHolders(views []claimView, plugins []pluginConsumer, now clock.Instant) {
	for _, u := range s.units {
		u.holders = holders{shares: u.holders.shares[:0]}
	}
	for i := range views {
		for _, d := range views[i].devices {
			u := s.unitOf(d, now)
			if !d.admin {
				u.holdBy(views[i].ref, d.consumed)
			}
		}
	}
	pods := make(map[pluginConsumer]bool)
	for _, p := range plugins {
		holder := pluginConsumer{uuid: p.uuid, pod: p.pod}
		if !pods[holder] {
			pods[holder] = true
			s.units[p.uuid].holders.plugins++
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
		parent.holders.related += u.holders.claims + u.holders.plugins
		u.holders.related += parent.holders.claims + parent.holders.plugins
	}
}

// pluginConsumers finds the hardware of what device plugins gave: their ids
// are UUIDs (with ::N for a replica of a shared device) or PCI addresses.
func (s *State) pluginConsumers(assignments []dra.PluginAssignment) []pluginConsumer {
	if len(assignments) == 0 {
		return nil
	}
	byAddress := make(map[string]string, len(s.units))
	for uuid, u := range s.units {
		if u.present && !u.device.IsPartition() && u.device.PCIBusID != "" {
			byAddress[u.device.PCIBusID] = uuid
		}
	}
	seen := make(map[pluginConsumer]bool)
	var consumers []pluginConsumer
	for _, a := range assignments {
		for _, id := range a.DeviceIDs {
			id, _, _ = strings.Cut(id, "::")
			uuid := id
			if address, ok := byAddress[strings.ToLower(id)]; ok {
				uuid = address
			}
			consumer := pluginConsumer{uuid, a.Pod, a.Container, a.Resource}
			if u, known := s.units[uuid]; known && u.present && !seen[consumer] {
				seen[consumer] = true
				consumers = append(consumers, consumer)
			}
		}
	}
	return consumers
}
