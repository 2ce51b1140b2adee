package boards

import "github.com/grafana/grafana-foundation-sdk/go/units"

// disagreements are of devices whose health is reported in two ways.
func disagreements() []panel {
	return []panel{
		contradictions(),
		listing(12, 6, about{
			title: "Disagreements of driver and kubelet", unit: units.Short,
			reads: "Allocated devices, whatever nodes are chosen, according to the API server: the taints in the slices contradict the health in the pods' status.",
			none:  noneSeen,
			empty: "they agree, one of them reports nothing, or no cluster role is scraped",
		}, []key{
			{label: "cluster", title: "Cluster"},
			{label: "driver", title: "Driver"},
			{label: "pool", title: "Pool"},
			{label: "device", title: "Device"},
		}, column{title: "Disagree", expr: `max by (cluster, driver, pool, device) (dra_device_health_disagreement{@fleet}) == 1`,
			more: append(tinted(steps(warning)), property("mappings", words(named{"1", "yes", warning})))}),
	}
}

func tainted() []panel {
	const taint = `dra_device_taint_info{@nodes}`
	return []panel{
		listing(24, 6, about{
			title: "Taints in the drivers' slices", unit: units.Short,
			reads: "NoSchedule prevents new allocations, NoExecute also evicts the pods of claims that hold the device.",
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
			reads: "From slices and from DeviceTaintRules, of all pools, whatever nodes are chosen. A taint that is listed here and not above is from a rule.",
			none:  noneSeen,
			empty: "no device is tainted, or no cluster role is scraped",
		}, []key{
			{label: "cluster", title: "Cluster"},
			{label: "driver", title: "Driver"},
			{label: "pool", title: "Pool"},
			{label: "key", title: "Taint"},
			{label: "effect", title: "Effect"},
		}, column{title: "Devices", expr: `max by (cluster, driver, pool, key, effect) (dra_device_taints{@fleet}) > 0`, more: tinted(steps(warning))}),
	}
}

// contradictions are of the node role, between any two of the three sources of
// health: one reports the device as healthy, another as unhealthy.
func contradictions() panel {
	const contradicted = `device_by:dra_device_healthy:disputed{@nodes}`
	return listing(12, 6, about{
		title: "Devices with contradicting health", unit: units.Short,
		reads: "A difference of a minute or two is normal. If it lasts, an unhealthy device is still allocated, or a healthy one is not used: check the driver.",
		none:  noneSeen,
		empty: "no sources contradict each other, or " + needsHealth,
	}, deviceKeys(key{label: "by", title: "Healthy by"}),
		column{title: "Still", expr: `max by (cluster, node, uuid, by) (` + contradicted + `)`, more: append(tinted(steps(warning)), property("mappings", words(named{"1", "healthy", warning})))},
		names(contradicted),
	)
}
