package cluster

import (
	"strconv"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/collector/metric"
	"github.com/dra-exporter/dra-exporter/collector/model"
)

// deviceFamilies need the claims: these decide which devices are allocated.
func deviceFamilies() definitions {
	return definitions{
		{
			Family: metric.Family{
				Name: metric.Devices, Labels: []string{"driver", "pool", "node", "state"},
				Help:  "Devices of the newest generation: allocated (also in part), free, or unavailable (taint, incomplete pool, no counters)",
				Zeros: availableZeros(),
			},
			Fill: func(m *labelled, b *metric.Builder) {
				for _, labels := range m.pools.labels {
					if m.DevicesKnown && labels.pool.Slices > 0 { // of a pool without slices it is not known how many it has
						labels.deviceRows(b)
					}
				}
			},
		},
		{
			Family: metric.Family{
				Name: "dra_partition_devices", Labels: []string{"driver", "pool", "node", "partition_type", "state"},
				Help:  "Partitions by the type that their ResourceSlice names, by state as in dra_devices; each is counted by itself",
				Zeros: availableZeros(),
			},
			Fill: func(m *labelled, b *metric.Builder) {
				for _, labels := range m.pools.labels {
					if m.DevicesKnown {
						labels.partitionRows(b)
					}
				}
			},
		},
	}
}

// availableZeros are the states that have rows of 0 at each level: that no device is free is
// asked for, and that none is unavailable is normal.
func availableZeros() *metric.ZeroRows {
	return &metric.ZeroRows{Label: "state", Values: []string{dra.DeviceAllocated.String(), dra.DeviceFree.String()}}
}

func (l *poolLabels) deviceRows(b *metric.Builder) {
	for state, count := range l.pool.Devices {
		if l.states[state] == nil {
			l.states[state] = metric.NewLabels(b.Family().Labels, l.pool.Driver, l.pool.Pool, l.pool.Node, dra.DeviceState(state).String())
		}
		b.Add(l.states[state], float64(count))
	}
}

// poolRows is a family that has a row for each pool, if its value is known.
func poolRows(family metric.Family, value func(*dra.PoolSupply) (float64, bool)) definition {
	family.Labels = []string{"driver", "pool", "node"}
	return definition{Family: family, Fill: func(m *labelled, b *metric.Builder) {
		for _, labels := range m.pools.labels {
			if number, ok := value(labels.pool); ok {
				b.Add(cached(&labels.name, b, labels.pool.Driver, labels.pool.Pool, labels.pool.Node), number)
			}
		}
	}}
}

func poolFamilies() definitions {
	return definitions{
		poolRows(
			metric.Family{
				Name: metric.PoolComplete,
				Help: "0 if slices of the pool's newest generation are missing, so that it allocates nothing; absent if the pool is complete",
			},
			func(p *dra.PoolSupply) (float64, bool) { return 0, !p.Complete },
		),
		poolRows(
			metric.Family{
				Name: metric.PoolSlices,
				Help: "ResourceSlices of the newest generation of an incomplete pool; 0 if none is left while a claim holds a device of the pool; absent if the pool is complete",
			},
			func(p *dra.PoolSupply) (float64, bool) { return float64(p.Slices), !p.Complete },
		),
		poolRows(
			metric.Family{Name: "dra_pool_generation", Help: "Newest generation of an incomplete pool; absent if the pool is complete"},
			func(p *dra.PoolSupply) (float64, bool) { return float64(p.Generation), p.Slices > 0 && !p.Complete },
		),
	}
}

func capacityFamilies() definitions {
	return definitions{
		{
			Family: metric.Family{
				Name: metric.Capacity, Labels: []string{"driver", "pool", "device", "capacity"},
				Help: "A capacity of a device that several claims may share, in the capacity's own unit",
			},
			Fill: func(m *labelled, b *metric.Builder) {
				for _, labels := range m.pools.labels {
					labels.capacityRows(b, func(c *dra.CapacitySupply) float64 { return c.Total })
				}
			},
		},
		{
			Family: metric.Family{
				Name: metric.CapacityConsumed, Labels: []string{"driver", "pool", "device", "capacity"},
				Help: "Part of the capacity that claims consume, in the capacity's own unit",
			},
			Fill: func(m *labelled, b *metric.Builder) {
				for _, labels := range m.pools.labels {
					if m.DevicesKnown {
						labels.capacityRows(b, func(c *dra.CapacitySupply) float64 { return c.Consumed })
					}
				}
			},
		},
	}
}

func taintFamilies() definitions {
	return definitions{
		listed(
			metric.Family{
				Name: metric.DeviceTaints, Labels: []string{"driver", "pool", "key", "effect"},
				Help: "Devices of the pool that have the taint, from ResourceSlices or DeviceTaintRules",
			},
			func(m *labelled) []dra.TaintCount { return m.Taints },
			func(t dra.TaintCount) rowValues { return rowValues{t.Driver, t.Pool, t.Taint.Key, t.Taint.Effect} },
			func(t dra.TaintCount) (float64, time.Time) { return number(t.Devices) },
		),
		listed(
			metric.Family{
				Name: "dra_taint_rule_eviction_in_progress", Labels: []string{"rule"},
				Help: "1 if pods have yet to be evicted because of the DeviceTaintRule, else 0; absent if that is not reported",
			},
			func(m *labelled) []dra.RuleEviction { return m.RuleEvictions },
			func(e dra.RuleEviction) rowValues { return rowValues{e.Rule} },
			func(e dra.RuleEviction) (float64, time.Time) { return number(flag(e.InProgress)) },
		),
		counted(
			metric.Family{
				Name: "dra_exporter_oversized_specs", Labels: []string{"limit"},
				Help: "Unallocated claims, and claim templates, that are too large to be diagnosed, by the limit that they exceed",
			},
			func(m *labelled) []model.Counter { return m.Oversized },
		),
	}
}

func classFamilies() definitions {
	return definitions{
		listed(
			metric.Family{
				Name: metric.DeviceClassInfo, Labels: []string{"deviceclass", "extended_resource"},
				Help: "A device class, and the extended resource by which pods may request its devices",
			},
			func(m *labelled) []dra.ClassSupply { return m.Classes },
			func(c dra.ClassSupply) rowValues { return rowValues{c.Class, c.ExtendedResource} },
			constant,
		),
		classRows(
			metric.Family{
				Name: metric.ClassDevices, Labels: []string{"deviceclass", "state"},
				Help: "Devices that the class selects, by state as in dra_devices; classes may overlap: do not sum over classes",
			},
			func(m *labelled) bool { return m.DevicesKnown },
			func(c *dra.ClassSupply) []int { return c.Devices[:] },
			func(state int) string { return dra.DeviceState(state).String() },
		),
		classRows(
			metric.Family{
				Name: metric.ClassDevicesDown, Labels: []string{"deviceclass", "reason"},
				Help: "Devices of the class that are down: node not ready or cordoned, pool incomplete, tainted; by the first that applies",
			},
			func(m *labelled) bool { return m.DevicesKnown && m.NodesKnown }, // devices of nodes that are not ready are down
			func(c *dra.ClassSupply) []int { return c.Down[:] },
			func(reason int) string { return dra.DownReason(reason).String() },
		),
	}
}

// classRows is a family of numbers of devices of each class, while they are known.
func classRows(family metric.Family, isKnown func(*labelled) bool, counts func(*dra.ClassSupply) []int, label func(int) string) definition {
	var rows labelList[dra.ClassSupply, string, []*metric.Labels]
	return definition{Family: family, Fill: func(m *labelled, b *metric.Builder) {
		rows.take(m.Classes, func(c dra.ClassSupply) string { return c.Class })
		for i := range m.Classes {
			class, labels := &m.Classes[i], rows.labels[i]
			if !isKnown(m) || !class.Counted {
				continue
			}
			numbers := counts(class)
			if *labels == nil {
				*labels = make([]*metric.Labels, len(numbers))
			}
			for j, count := range numbers {
				b.Add(cached(&(*labels)[j], b, class.Class, label(j)), float64(count))
			}
		}
	}}
}

// shapeRows is a family that has a row for each shape, if its value is known.
func shapeRows(family metric.Family, value func(*labelled, *dra.ShapeHeadroom) (float64, bool)) definition {
	family.Labels = []string{"deviceclass", "shape"}
	return definition{Family: family, Fill: func(m *labelled, b *metric.Builder) {
		for i := range m.Shapes {
			shape := &m.Shapes[i]
			if number, ok := value(m, shape); ok {
				b.Add(cached(m.shapes.labels[i], b, shape.Class, shape.Shape), number)
			}
		}
	}}
}

func headroomFamilies() definitions {
	return definitions{
		shapeRows(
			metric.Family{
				Name: metric.ClassHeadroomClaims,
				Help: "Claims of the shape that could be allocated in addition; at least so many if dra_class_headroom_info has exact=false",
			},
			func(_ *labelled, s *dra.ShapeHeadroom) (float64, bool) { return float64(s.Claims), true },
		),
		listed(
			metric.Family{
				Name: metric.ClassHeadroomInfo, Labels: []string{"deviceclass", "shape", "exact", "limit"},
				Help: "Reason for which one claim more would be pending, as in docs/pending.md, and whether the number of claims is exact",
			},
			func(m *labelled) []dra.ShapeHeadroom { return m.Shapes },
			func(s dra.ShapeHeadroom) rowValues {
				return rowValues{s.Class, s.Shape, strconv.FormatBool(s.Exact), string(s.Limit)}
			},
			constant,
		),
		shapeRows(
			metric.Family{
				Name: "dra_class_shape_claims",
				Help: "Claims that request the shape, allocated or not; 0 for numbers of devices that no claim requests",
			},
			func(_ *labelled, s *dra.ShapeHeadroom) (float64, bool) { return float64(s.Requests), true },
		),
		listed(
			metric.Family{
				Name: "dra_class_fragmentation_ratio", Unit: "ratio", Labels: []string{"deviceclass"},
				Help: "Expected share of the free devices of the class that a claim cannot use, given what claims and templates request",
			},
			func(m *labelled) []dra.ClassFragmentation { return m.Fragmentation },
			func(c dra.ClassFragmentation) rowValues { return rowValues{c.Class} },
			func(c dra.ClassFragmentation) (float64, time.Time) { return number(c.Ratio) },
		),
		shapeRows(
			metric.Family{
				Name: "dra_class_headroom_pods",
				Help: "As dra_class_headroom_claims, in pods with one claim each for which nodes also have CPU, memory and no cordon or taint",
			},
			func(m *labelled, s *dra.ShapeHeadroom) (float64, bool) {
				return float64(s.Pods), m.NodesKnown && m.PodsKnown && s.PodsKnown
			},
		),
	}
}

func strandedFamilies() definitions {
	return definitions{
		listed(
			metric.Family{
				Name: metric.DevicesStranded, Labels: []string{"driver", "node", "reason"},
				Help: "Devices that are not allocated and that no claim can have, by reason; node is empty if several nodes can use them",
			},
			func(m *labelled) []dra.StrandedDevices { return m.Stranded },
			func(s dra.StrandedDevices) rowValues { return rowValues{s.Driver, s.Node, string(s.Reason)} },
			func(s dra.StrandedDevices) (float64, time.Time) { return number(s.Devices) },
		),
		listed(
			metric.Family{
				Name: metric.IdleNodeObstacles, Labels: []string{"node", "reason"},
				Help: "Pods that keep autoscalers from removing a node none of whose devices is allocated, by reason; 1 for its annotation",
			},
			func(m *labelled) []dra.KeptNode { return m.KeptNodes },
			func(n dra.KeptNode) rowValues { return rowValues{n.Node, n.Reason.String()} },
			func(n dra.KeptNode) (float64, time.Time) { return number(n.Pods) },
		),
		listed(
			metric.Family{
				Name: "dra_devices_stranded_seconds_total", Unit: "seconds", Type: metric.Counter, Labels: []string{"driver", "reason"},
				Help: "Device-seconds that devices were stranded since the exporter started, by reason",
			},
			func(m *labelled) []model.StrandedTime { return m.StrandedSeconds },
			func(s model.StrandedTime) rowValues { return rowValues{s.Driver, string(s.Reason)} },
			func(s model.StrandedTime) (float64, time.Time) { return s.Seconds, s.Since },
		),
	}
}
