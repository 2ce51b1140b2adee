package simulation

import (
	"cmp"
	"sync"

	"github.com/dra-exporter/dra-exporter/collector/device/simulated"
)

// activity is who works on which device how hard. It is safe for concurrent
// use.
type activity struct {
	source   *simulated.Source
	hardware hardware

	mu    sync.Mutex
	loads map[string]map[*instance]float64 // by the device's published name
}

func newActivity(source *simulated.Source, h hardware) *activity {
	return &activity{source: source, hardware: h, loads: make(map[string]map[*instance]float64)}
}

// set says how hard an instance works on each of its devices from now on:
// 0 to 1, where 0 is not at all.
func (a *activity) set(who *instance, load float64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, name := range who.row.uses() {
		if a.loads[name] == nil {
			a.loads[name] = make(map[*instance]float64)
		}
		a.loads[name][who] = load
		if load == 0 {
			delete(a.loads[name], who)
		}
		if device, there := a.hardware.named(name); there {
			a.source.SetLoad(cmp.Or(device.UUID, device.PCIBusID), a.of(name))
		}
	}
	a.stir()
}

// of is the load of one device by all who work on it.
func (a *activity) of(name string) float64 {
	sum := 0.0
	for _, load := range a.loads[name] {
		sum += load
	}
	return min(sum, 1)
}

// stir gives each partitioned GPU the load that its partitions add up to.
func (a *activity) stir() {
	sums := make(map[string]float64)
	for _, p := range a.hardware.parts {
		share := float64(profiles()[p.Profile].computeParts) / computeSlices
		sums[p.ParentUUID] += share * a.of(partitionName(p.parent, p.Profile, p.Placement))
	}
	for parent, sum := range sums {
		a.source.SetLoad(parent, sum)
	}
}
