package node

import (
	"slices"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/dra"
)

// countHolders notes on each unit who holds it. Units of held devices whose
// hardware is unknown are made here.
func (s *State) countHolders(now clock.Instant) {
	for _, u := range s.devices.byUUID {
		u.holders = holders{shares: u.holders.shares[:0], pods: u.holders.before[:0], before: u.holders.pods}
	}
	for i := range s.join.views {
		for _, d := range s.join.views[i].devices {
			u := s.devices.held(d.uuid, now)
			s.matcher.name(u, d.id)
			if !d.admin {
				u.holdBy(s.join.views[i].ref, d.consumed)
				u.holders.missing = u.holders.missing || s.join.views[i].missing
				u.holders.listedOnly = u.holders.listedOnly || s.join.views[i].listedOnly
				u.holders.inGroup = u.holders.inGroup || s.join.views[i].charge == chargedNowhere
			}
		}
	}
	pods := make(map[pluginConsumer]bool)
	for _, p := range s.plugins.consumers {
		holder := pluginConsumer{uuid: p.uuid, pod: p.pod}
		if u, known := s.devices.byUUID[p.uuid]; known && !pods[holder] {
			pods[holder] = true
			u.seen = now
			u.holders.plugins++
			u.holders.pods = append(u.holders.pods, p.pod)
		}
	}
	for _, d := range s.join.uncertain {
		if u, known := s.devices.byUUID[d.uuid]; known {
			u.holders.related++
		}
	}
	s.relate()
}

// holdBy counts a claim once, however often it holds the device, and adds up
// what it consumes of it.
func (u *deviceState) holdBy(claim dra.ClaimRef, consumed map[string]float64) {
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

// uncounted says why device-seconds of a unit are not known.
func (h *holders) uncounted() (because uncountedReason, is bool) {
	switch {
	case h.listedOnly && h.claims > 1:
		return uncountedNoAPIServer, true
	case h.inGroup:
		return uncountedPodGroup, true
	default:
		return 0, false
	}
}

// uncountedReason is why the device-seconds of a held device are not counted.
type uncountedReason uint8

const (
	uncountedNoAPIServer uncountedReason = iota // several claims, each of which may have admin access
	uncountedPodGroup                           // pods on other nodes may use it, and a pod group names none
	uncountedReasons
)

// String is the reason as dra_exporter_uncounted_devices names it.
func (r uncountedReason) String() string {
	return [uncountedReasons]string{uncountedNoAPIServer: "no_api_server", uncountedPodGroup: "pod_group"}[r]
}

// relate makes holders of partitions and of their parent know each other: the
// parent's quantities contain the partitions'. The compute instances of one GPU
// instance have its memory together, and each its own utilization.
func (s *State) relate() {
	s.relateInstances()
	for _, u := range s.devices.byUUID {
		if !u.device.IsPartition() {
			continue
		}
		parent, known := s.devices.byUUID[u.device.ParentUUID]
		if !known {
			continue
		}
		parent.holders.cut = parent.holders.cut || u.present || u.isHeld()
		parent.holders.related += u.holders.claims + u.holders.plugins
		u.holders.related += parent.holders.claims + parent.holders.plugins
	}
}

// relateInstances makes the holders of compute instances of one GPU instance
// know each other. Mostly a GPU instance is one compute instance, number 0.
func (s *State) relateInstances() {
	var divided map[string]int // holders by GPU instance
	for _, u := range s.devices.byUUID {
		if placed(u.device) && u.device.ComputeInstance > 0 && u.isHeld() {
			divided = make(map[string]int)
			break
		}
	}
	if divided == nil {
		return
	}
	for _, u := range s.devices.byUUID {
		if placed(u.device) {
			divided[gpuInstance(u.device)] += u.holders.claims + u.holders.plugins
		}
	}
	for _, u := range s.devices.byUUID {
		if placed(u.device) {
			u.holders.siblings = divided[gpuInstance(u.device)] - u.holders.claims - u.holders.plugins
		}
	}
}
