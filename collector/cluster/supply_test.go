package cluster

import (
	"fmt"
	"testing"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/collector/metric"
)

func poolOf(n, free int) *dra.PoolSupply {
	return &dra.PoolSupply{Driver: "gpu.example.com", Pool: fmt.Sprintf("node-%05d", n), Node: fmt.Sprintf("node-%05d", n), Generation: 1, Slices: 1, Complete: true,
		Devices: [dra.DeviceStates]int{8 - free, free, 0}, Capacity: []dra.CapacitySupply{{Device: "gpu-0", Capacity: "memory", Total: 8, Consumed: float64(8 - free)}}}
}

// Label sets are reused for as long as their object exists, whatever else
// changes; values are always those of the newest supply.
func TestSupplyLabels(t *testing.T) {
	h := newHarness(t)
	labels := map[string]*metric.Labels{}
	at := func(pools ...*dra.PoolSupply) (made int) {
		t.Helper()
		h.facts.Supply = &dra.Supply{Pools: pools}
		h.step(time.Second)
		now := map[string]*metric.Labels{}
		sums := map[string]float64{}
		for _, row := range h.last.Rows() {
			if row.Family.Name != "dra_devices" && row.Family.Name != "dra_capacity_consumed" {
				continue
			}
			key := fmt.Sprint(row.Family.Name, row.Labels.Get("pool"), row.Labels.Get("state"), row.Labels.Get("device"))
			now[key] = row.Labels
			if labels[key] != row.Labels {
				made++
			}
			sums[row.Labels.Get("pool")+row.Family.Name+row.Labels.Get("state")] = row.Value
		}
		labels = now
		for _, pool := range pools {
			if got := sums[pool.Pool+"dra_devicesfree"]; got != float64(pool.Devices[dra.DeviceFree]) {
				t.Errorf("%s has %v free", pool.Pool, got)
			}
			if got := sums[pool.Pool+"dra_capacity_consumed"]; got != pool.Capacity[0].Consumed {
				t.Errorf("%s has %v consumed", pool.Pool, got)
			}
		}
		if len(now) != 4*len(pools) {
			t.Errorf("%d rows of %d pools", len(now), len(pools))
		}
		return made
	}
	first, second, third := poolOf(1, 3), poolOf(2, 4), poolOf(3, 5)
	for name, test := range []struct {
		pools []*dra.PoolSupply
		made  int
	}{
		{[]*dra.PoolSupply{first, third}, 8},
		{[]*dra.PoolSupply{first, second, third}, 4},
		{[]*dra.PoolSupply{first, poolOf(2, 1), third}, 0},
		{[]*dra.PoolSupply{third}, 0},
		{[]*dra.PoolSupply{second, third, poolOf(4, 0)}, 8},
		{nil, 0},
	} {
		if made := at(test.pools...); made != test.made {
			t.Errorf("step %d: %d labels made, want %d", name, made, test.made)
		}
	}
	moved := *first
	at(first)
	moved.Node = "elsewhere"
	if made := at(&moved); made != 4 {
		t.Errorf("%d labels made for a pool that moved", made)
	}
	renamed := moved
	renamed.Capacity = []dra.CapacitySupply{{Device: "gpu-9", Capacity: "memory", Total: 8, Consumed: 5}}
	if made := at(&renamed); made != 1 {
		t.Errorf("%d labels made for another device", made)
	}
}

// A pool with a duplicate device has no capacities, and the rest of the page
// stays valid.
func TestDuplicateDevice(t *testing.T) {
	h := newHarness(t)
	h.facts.Supply = &dra.Supply{Pools: []*dra.PoolSupply{{Driver: "gpu.example.com", Pool: "p", Slices: 2, Capacity: []dra.CapacitySupply{
		{Device: "twice", Capacity: "memory", Total: 1}, {Device: "twice", Capacity: "cores", Total: 3}, {Device: "twice", Capacity: "memory", Total: 2},
		{Device: "once", Capacity: "memory", Total: 4, Consumed: 1},
	}}}}
	h.step(time.Second)
	h.expectRows(`dra_capacity{capacity="cores",device="twice",driver="gpu.example.com",pool="p"} 3
		dra_capacity{capacity="memory",device="once",driver="gpu.example.com",pool="p"} 4
		dra_capacity_consumed{capacity="cores",device="twice",driver="gpu.example.com",pool="p"} 0
		dra_capacity_consumed{capacity="memory",device="once",driver="gpu.example.com",pool="p"} 1`, "dra_capacity")
}

// A supply that is unknown, or no longer known, has no rows.
func TestNoSupply(t *testing.T) {
	h := newFullHarness(t)
	h.facts.Supply, h.facts.Headroom = nil, nil
	h.step(time.Second)
	h.expectRows("", "dra_devices{", "dra_devices_stranded{", "dra_pool_", "dra_capacity", "dra_class", "dra_device_class_info", "dra_device_taints", "dra_device_health_disagreement")
}
