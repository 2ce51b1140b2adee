package boards

import (
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/units"
)

// The tables of a fleet begin with what is rare, such as signals and taints: its
// thousands of healthy devices are read once for a column, to look up the values of
// the few.
const (
	// ownSignals are those that a partition does not have from its parent.
	ownSignals = `dra_device_health_signal_info{@nodes, signal!="parent"}`
	// degraded are devices with a signal or a taint, or that the kubelet reports as
	// unhealthy: the hardware reports a device as unhealthy exactly while there is a
	// critical signal, the driver with a taint. Partitions with their parent's signal
	// alone are left out.
	degraded = `(
  ` + ownSignals + `
  or dra_device_taint_info{@nodes, effect=~"NoSchedule|NoExecute"}
  or dra_device_healthy{@nodes, by="kubelet"} == 0
)`
)

// among selects the values of a quantity for some devices, one for each device.
func among(few, expr string) string {
	return `max by (cluster, node, uuid) (` + expr + ` and on (cluster, node, uuid) ` + few + `)`
}

// names is the last column of a table of devices, which is not shown: its answer
// has the label device, which the table then has in all rows of the device. It is
// apart since a join in each column would read the names of the fleet each time. All
// of the few must be in another column, too: a name makes a row.
func names(few string) column {
	return column{title: "Named", hidden: true, expr: `topk by (cluster, node, uuid) (1,
  max by (cluster, node, uuid, device) (dra_device_published_info{@nodes} and on (cluster, node, uuid) ` + few + `)
)
or on (cluster, node, uuid)
` + shortUUID(`max by (cluster, node, uuid) (`+few+`)`)}
}

// heldNow is whether each of a few devices, or a part of it, is held.
func heldNow(few string) column {
	return column{title: "Held", expr: among(few, `device:dra_device_held:bool{@nodes}`), more: append(tinted(steps(plain)),
		property("mappings", words(named{"0", "free", plain}, named{"1", "held", plain})))}
}

// healthBySource is what the three sources report for a few devices. While an agent is
// replaced and both report a device, the worse value counts.
func healthBySource(few string) column {
	return column{title: "Health", more: unhealthyWords(), expr: unhealthyBy(func(by string) string {
		return `min by (cluster, node, uuid) (
    dra_device_healthy{@nodes, by="` + by + `"} and on (cluster, node, uuid) ` + few + `
  )`
	})}
}

// signals counts a device's own signals of a severity.
func signals(severity string) string {
	return `count by (cluster, node, uuid) (
  max by (cluster, node, uuid, signal) (dra_device_health_signal_info{@nodes, signal!="parent", severity="` + severity + `"})
)`
}

// severityOf is 2 for each critical signal of a device's own, and 1 for a warning.
func severityOf(selection string) string {
	return `max by (cluster, node, uuid, signal) (
  dra_device_health_signal_info{` + selection + `, signal!="parent", severity="critical"} * 2
  or dra_device_health_signal_info{` + selection + `, signal!="parent"}
)`
}

// severities writes these numbers as words.
func severities() []dashboard.DynamicConfigValue {
	return append(tinted(steps(warning, step{2, critical})),
		property("mappings", words(named{"2", "critical", critical}, named{"1", "warning", warning})))
}

// unhealthyNow are the unhealthy devices, and whom that affects.
func unhealthyNow() []panel { return []panel{unhealthyOrDegraded(), claimsOnUnhealthy()} }

// recoveries are what the hardware asks for.
func recoveries() panel {
	const asked = `dra_device_recovery_action{@nodes, action="none"} == 0`
	return listing(24, 2, about{
		title: "Recovery actions that the hardware requests", unit: units.Short,
		reads: "What recovers the device. If it is held, drain it first.",
		empty: "no device needs one, or reports it", none: noneSeen,
	}, deviceKeys(key{label: "action", title: "Action"}),
		column{title: "Asked", expr: `max by (cluster, node, uuid, action) (dra_device_recovery_action{@nodes, action!="none"} == 1)`,
			more: append(tinted(steps(critical)), property("mappings", words(named{"1", "yes", critical})))},
		heldNow(asked),
		names(asked),
	)
}

func unhealthyOrDegraded() panel {
	columns := []column{
		{title: "Critical", expr: signals("critical"), more: tinted(steps(critical))},
		{title: "Warnings", expr: signals("warning"), more: tinted(steps(warning))},
	}
	columns = append(columns, healthBySource(degraded), heldNow(degraded), names(degraded))
	return listing(24, 6, about{
		title: "Unhealthy and degraded devices", unit: units.Short,
		reads: "Devices with only warnings continue to work. If sources differ, one is delayed or wrong. Empty means not reported.",
		empty: "all are healthy, without signals and taints, or " + needsNodes, none: noneSeen,
	}, deviceKeys(), columns...)
}

func signalsAndTaints() panel {
	severity := severityOf("@nodes")
	// A scrape or two may be missing in an episode.
	const earlierSignals = `max by (cluster, node, uuid, signal) (last_over_time(dra_device_health_signal_info{@nodes, signal!="parent"}[5m] offset 1m))`
	return listing(24, 10, about{
		title: "Health signals and taints", unit: units.Short,
		reads: "docs/health.md says when signals begin and end. Seen since: without a break of five minutes, in the chosen range, to a minute.",
		none:  noneSeen,
		empty: "there is no signal, or " + needsNodes,
	}, deviceKeys(key{label: "signal", title: "Signal"}),
		column{title: "Severity", expr: severity, more: severities()},
		column{title: "Seen since", unit: units.DateTimeFromNow, expr: `1000 * (
  max_over_time((timestamp(` + severity + `) unless on (cluster, node, uuid, signal) ` + earlierSignals + `)[$__range:1m])
  or min_over_time(timestamp(` + severity + `)[$__range:1m])
  or ` + severity + ` * 0 + time()
) and on (cluster, node, uuid, signal) ` + severity},
		names(ownSignals),
	)
}

// claimsOnUnhealthy reads the rule that joins claims with the health of their devices.
func claimsOnUnhealthy() panel {
	const (
		rule   = `claim_device:dra_device_unhealthy:held{@nodes`
		labels = `cluster, node, namespace, resourceclaim, uuid`
	)
	sources := `sum by (` + labels + `) (
  max by (` + labels + `, by) (` + rule + `, by="hardware"})
  or 2 * max by (` + labels + `, by) (` + rule + `, by="driver"})
  or 4 * max by (` + labels + `, by) (` + rule + `, by="kubelet"})
)`
	return listing(24, 4, about{
		title: "Affected claims", unit: units.Short,
		reads: "Delete or drain the pods to free the device; the next pod's claim is allocated again.",
		none:  noneSeen,
		empty: "no claim holds one, or " + needsHealth,
	}, append(claimKeys(), deviceKeys()...),
		column{title: "Health", expr: sources, more: unhealthyWords()},
		names(rule+`}`),
	)
}
