package boards

import "github.com/grafana/grafana-foundation-sdk/go/units"

func tainted() []panel {
	const taint = `dra_device_taint_info{@nodes}`
	return []panel{
		listing(24, 6, about{
			title: "Taints in the drivers' slices", unit: units.Short,
			reads: "NoSchedule keeps new claims away, NoExecute evicts the pods of those that hold the device.",
			none:  noneSeen,
			empty: "no driver taints a device of these nodes, or " + needsNodes,
		}, deviceKeys(
			key{label: "key", title: "Taint"},
			key{label: "value", title: "Value"},
			key{label: "effect", title: "Effect"},
		),
			column{title: "Tainted", expr: `max by (cluster, node, uuid, key, value, effect) (` + taint + `)`,
				more: append(tinted(steps(warning)), property("mappings", words(named{"1", "yes", warning})))},
			heldNow(taint),
			names(taint),
		),
		listing(24, 6, about{
			title: "Tainted devices by pool", unit: units.Short,
			reads: "From slices and from DeviceTaintRules, of all pools, whatever nodes are chosen. A taint that is here and not above comes from a rule.",
			none:  noneSeen,
			empty: "no device is tainted, or no cluster role is scraped",
		}, []key{
			{label: "cluster", title: "Cluster"},
			{label: "driver", title: "Driver"},
			{label: "pool", title: "Pool"},
			{label: "key", title: "Taint"},
			{label: "effect", title: "Effect"},
		}, column{title: "Devices", expr: `max by (cluster, driver, pool, key, effect) (dra_device_taints{@fleet}) > 0`, more: tinted(steps(warning))}),
		disagreements(),
		listing(12, 6, about{
			title: "Driver and kubelet disagree", unit: units.Short,
			reads: "Allocated devices, whatever nodes are chosen, as the API server shows them: the taints in the slices and the health in the pods' status contradict each other.",
			none:  noneSeen,
			empty: "they agree, one of them says nothing, or no cluster role is scraped",
		}, []key{
			{label: "cluster", title: "Cluster"},
			{label: "driver", title: "Driver"},
			{label: "pool", title: "Pool"},
			{label: "device", title: "Device"},
		}, column{title: "Disagree", expr: `max by (cluster, driver, pool, device) (dra_device_health_disagreement{@fleet}) == 1`,
			more: append(tinted(steps(warning)), property("mappings", words(named{"1", "yes", warning})))}),
	}
}

// disagreements are of the node role, between any two of the three voices: somebody
// calls the device well that another calls sick.
func disagreements() panel {
	const contradicted = `device_by:dra_device_healthy:disputed{@nodes}`
	return listing(12, 6, about{
		title: "Devices that one voice calls sick and another well", unit: units.Short,
		reads: "For a minute or two somebody is merely late. Where it lasts, a device that the hardware calls sick goes on being allocated, or a good one is kept from all: see to the driver.",
		none:  noneSeen,
		empty: "no two voices contradict each other, or " + needsHealth,
	}, deviceKeys(key{label: "by", title: "Called well by"}),
		column{title: "Still", expr: `max by (cluster, node, uuid, by) (` + contradicted + `)`, more: append(tinted(steps(warning)), property("mappings", words(named{"1", "well", warning})))},
		names(contradicted),
	)
}
