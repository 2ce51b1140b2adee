package boards

import "github.com/grafana/grafana-foundation-sdk/go/units"

// disagreements are of devices whose health is reported in two ways.
func disagreements() []panel {
	return []panel{
		contradictions(),
		listing(12, 2, about{
			title: "Disagreements of driver and kubelet", unit: units.Short,
			reads: "Allocated devices, whatever the node: taints in slices contradict the health in pods' status.",
			none:  noneSeen,
			empty: "they agree, one reports nothing, or no cluster role",
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
		listing(24, 8, about{
			title: "Taints in the drivers' slices", unit: units.Short,
			reads: "NoSchedule prevents new allocations, NoExecute also evicts the claims' pods.",
			none:  noneSeen,
			empty: "no driver taints a device here, or " + needsNodes,
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
		listing(24, 8, about{
			title: "Tainted devices by pool", unit: units.Short,
			reads: "From slices and DeviceTaintRules, of all pools, whatever the node. A taint that is not above is from a rule.",
			none:  noneSeen,
			empty: "no device is tainted, or no cluster role",
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
	return listing(12, 2, about{
		title: "Devices with contradicting health", unit: units.Short,
		reads: "Normal for a minute or two. If it lasts, check the driver.",
		none:  noneSeen,
		empty: "none contradict each other, or " + needsHealth,
	}, deviceKeys(key{label: "by", title: "Healthy by"}),
		column{title: "Still", expr: `max by (cluster, node, uuid, by) (` + contradicted + `)`, more: append(tinted(steps(warning)), property("mappings", words(named{"1", "healthy", warning})))},
		names(contradicted),
	)
}
