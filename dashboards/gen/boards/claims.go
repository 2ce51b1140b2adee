package boards

import (
	"strings"

	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/timeseries"
	"github.com/grafana/grafana-foundation-sdk/go/units"
)

// needsHolders is why panels of held claims are empty, where nothing else is.
const needsHolders = "no claims, agents or rules dra-exporter.claims"

// claims is the fleet by claim: what claims hold, how they use it, who is the
// busiest and who wastes the most.
func claims() Board {
	return Board{
		UID:         uidClaims,
		Title:       "DRA / Claims",
		description: "Devices that ResourceClaims hold and use by namespace and class, idle claims, and links to each claim.",
		variables:   claimsVariables(),
		rows: []row{
			{panels: append(claimNumbers(), idlest())},
			{title: "Busiest claims, and use by namespace", panels: append([]panel{busiest()}, claimsOver("namespace")...)},
			{title: "Use by device class", folded: true, panels: claimsOver("deviceclass")},
			{title: "All claims of the selection", folded: true, panels: allClaims()},
		},
	}
}

// claimsVariables are the choices of the board.
func claimsVariables() []cog.Builder[dashboard.VariableModel] {
	return []cog.Builder[dashboard.VariableModel]{
		dataSource(), cluster(),
		several("namespace", "Namespace", `label_values({__name__=~"dra_claim_info|dra_claim_pending_since_timestamp_seconds", @fleet}, namespace)`),
		several("class", "Device class", `label_values({__name__=~"dra_claim_info|dra_claim_pending_since_timestamp_seconds", @namespaces}, deviceclass)`),
	}
}

// toPending leads to the pending claims of the namespaces and classes chosen here.
func toPending() cog.Builder[dashboard.DashboardLink] {
	address := link{uid: uidAllocation}.url(nil) + "&${namespace:queryparam}&${class:queryparam}"
	return dashboard.NewDashboardLinkBuilder("Pending claims by reason").Url(address)
}

// shareOf is one level of the selection as a share of another.
func shareOf(by, part, whole string) string {
	return `sum` + by + ` (namespace_class:` + part + `{@claims}) / (sum` + by + ` (namespace_class:` + whole + `{@claims}) > 0)`
}

const (
	utilizationSum   = "dra_claim_utilization_ratio:sum"
	utilizationCount = "dra_claim_utilization_ratio:count"
	memoryUsed       = "dra_claim_memory_used_bytes:sum"
	memoryAllocated  = "dra_claim_memory_allocated_bytes:sum"
)

func claimNumbers() []panel {
	return []panel{
		number(4, about{
			title: "Claims with devices", unit: units.Short,
			reads: "Claims with admin access hold nothing and do not count.",
			empty: needsHolders,
		}, at(`sum(namespace_class:dra_claims_held:count{@claims})`)).ColorScheme(always(neutral)),
		number(4, about{
			title: "Devices held", unit: units.Short,
			reads: "With partitions. A device of two claims counts twice.",
			empty: needsHolders,
		}, at(`sum(namespace_class:dra_claim_devices:sum{@claims})`)).ColorScheme(always(neutral)),
		number(4, about{
			title: "Mean utilization", unit: units.PercentUnit,
			reads: "Over devices whose use is known. If low for hours, claims hold more than they use.",
			empty: "not reported, or " + needsHolders,
		}, at(shareOf("", utilizationSum, utilizationCount))).
			Thresholds(steps(critical, step{0.2, warning}, step{0.5, good})).ColorScheme(byThresholds()),
		number(4, about{
			title: "Memory in use", unit: units.PercentUnit,
			reads: "Of the memory given to the claims. If low, smaller devices are enough. Above 95 %, the next allocation may fail.",
			empty: "not reported, or " + needsHolders,
		}, at(shareOf("", memoryUsed, memoryAllocated))).
			Thresholds(steps(warning, step{0.3, good}, step{0.95, critical})).ColorScheme(byThresholds()),
		number(4, about{
			title: "Idle devices", unit: units.Short,
			reads: "The claims are in the table below.",
			empty: "not reported, or " + needsHolders,
		}, at(`sum(namespace_class:dra_claim_idle_devices:count{@claims})`)).
			Thresholds(anyIs(warning)).ColorScheme(byThresholds()),
		number(4, about{
			title: "Pending claims", unit: units.Short,
			reads: "Claims and requests of extended resources, not yet allocated and reserved; without gated pods. Click for reasons.",
			empty: noReaders,
		}, at(waitingReferences())).
			Thresholds(anyIs(warning)).ColorScheme(byThresholds()).
			Links([]cog.Builder[dashboard.DashboardLink]{toPending()}),
	}
}

// remainder are all that are not among the ten that a panel draws by name.
const remainder = "others"

// most are the ten of some labels with most of a rule. They are chosen once for the
// whole range, so that lines do not come and go with a rank.
func most(by, rule string) string {
	return `topk(10, sum by (` + by + `) (avg_over_time(` + rule + `[$__range] @ end())))`
}

// claimsOver are levels over time by a label: what was used, and what was not. All
// panels have the ten namespaces or classes that hold most devices.
func claimsOver(label string) []panel {
	what := map[string]string{"namespace": "namespace", "deviceclass": "device class"}[label]
	labels, legend := "cluster, "+label, "{{"+label+"}} {{cluster}}"
	ten := ` on (` + labels + `) ` + most(labels, "namespace_class:dra_claim_devices:sum{@claims}")
	sums := func(by, rule, which string) string {
		return `sum` + by + ` (namespace_class:` + rule + `{@claims} ` + which + ten + `)`
	}
	level := func(rule string) []query {
		return []query{over(sums(" by ("+labels+")", rule, "and"), legend), over(sums("", rule, "unless"), remainder)}
	}
	share := func(part, whole string) []query {
		ratio := func(by, which string) string {
			return sums(by, part, which) + "\n/ (" + sums(by, whole, which) + " > 0)"
		}
		return []query{over(ratio(" by ("+labels+")", "and"), legend), over(ratio("", "unless"), remainder)}
	}
	all := []*timeseries.PanelBuilder{
		timeline(12, about{
			title: "Utilization by " + what, unit: units.PercentUnit,
			reads: "Over devices whose use is known.",
			empty: "not reported, or " + needsHolders,
		}, share(utilizationSum, utilizationCount)...).Max(1),
		timeline(12, about{
			title: "Memory in use by " + what, unit: units.PercentUnit,
			reads: "Near 1, the next allocation may fail; above 1, claims use more of shared devices than they were given.",
			empty: "not reported, or " + needsHolders,
		}, share(memoryUsed, memoryAllocated)...),
		stacked(12, about{
			title: "Devices held by " + what, unit: units.Short,
			reads: "With partitions; a device of two claims counts twice.",
			empty: needsHolders,
		}, level("dra_claim_devices:sum")...),
		stacked(12, about{
			title: "Idle devices by " + what, unit: units.Short,
			reads: "A permanent band is waste; DRA / Claims lists the idle claims.",
			empty: "not reported, or " + needsHolders,
		}, level("dra_claim_idle_devices:count")...),
		stacked(12, about{
			title: "Power by " + what, unit: units.Watt,
			reads: "Without devices that claims share.",
			empty: "not reported (partitions do not), or " + needsHolders,
		}, level("dra_claim_power_watts:sum")...),
		stacked(12, about{
			title: "NVLink traffic by " + what, unit: units.BytesPerSecondSI,
			reads: "Mean of five minutes, without shared devices. Jobs on several GPUs without traffic use PCIe.",
			empty: "no NVLink, or no counter of its bytes (DCGM has it), or " + needsHolders,
		}, level("dra_claim_nvlink_bytes:rate5m")...),
	}
	panels := make([]panel, len(all))
	for i, p := range all {
		if label == "namespace" {
			p.OverrideByQuery("A", toNamespace().onSeries())
		}
		panels[i] = p.ColorScheme(byName()).OverrideByName(remainder, fixed(unknown))
	}
	return panels
}

// claimLabels are what every recorded level of a claim has.
const claimLabels = "cluster, node, namespace, resourceclaim, deviceclass"

// ofClaim is a recorded level of each claim, which keeps no name: Grafana would
// make a column of that.
func ofClaim(rule string) string {
	return "max by (" + claimLabels + ") (claim:" + rule + "{@claims})"
}

// amongst keeps of each claim's level those claims that another expression has, so
// that all columns of a table have the same rows. With thousands of claims it is
// cheaper to choose first, and to take the name away from what is left.
func amongst(rule, first string) string {
	return "max by (" + claimLabels + ") (\n  claim:" + rule + "{@claims}\n  and on (" + claimLabels + ") " + first + "\n)"
}

func claimColumns() []key {
	return append([]key{{label: "cluster", title: "Cluster"}}, append(claimKeys(),
		key{label: "node", title: "Node", links: []link{toNode()}},
		key{label: "deviceclass", title: "Class"})...)
}

// idleHours are the device-hours that claims have been idle for, without a break.
const idleHours = `(time() - claim:dra_claim_idle_since_timestamp_seconds:max{@claims}) / 3600
  * on (` + claimLabels + `) claim:dra_claim_devices:count{@claims}`

// idlest are the claims that waste most.
func idlest() panel {
	wasted := "topk(20, " + idleHours + ")"
	return listing(24, 10, about{
		title: "Idle claims with the most device-hours", unit: units.Short,
		reads: "The twenty with most since their last use. Ask the owner, or delete the pod.",
		none:  noneSeen,
		empty: "none is idle, not reported, or " + needsHolders,
	}, claimColumns(),
		column{title: "Idle device-hours", unit: units.Short, expr: wasted, more: append(tinted(steps(good, step{1, warning}, step{24, critical})), property("decimals", 1))},
		column{title: "Idle since", unit: units.DateTimeFromNow, expr: amongst("dra_claim_idle_since_timestamp_seconds:max", wasted) + " * 1000"},
		column{title: "Devices", expr: amongst("dra_claim_devices:count", wasted)},
		column{title: "Power", unit: units.Watt, expr: amongst("dra_claim_power_watts:sum", wasted)},
	)
}

// busiest are the claims that use most of what they hold.
func busiest() panel {
	first := "topk(20, claim:dra_claim_utilization_ratio:avg{@claims})"
	return listing(24, 10, about{
		title: "Busiest claims", unit: units.Short,
		reads: "The twenty with most utilization. NVLink: both directions, mean of five minutes.",
		empty: "not reported, or " + needsHolders,
	}, claimColumns(),
		column{title: "Utilization", unit: units.PercentUnit, expr: amongst("dra_claim_utilization_ratio:avg", first), more: gauge(steps(critical, step{0.2, warning}, step{0.5, good}))},
		column{title: "Devices", expr: amongst("dra_claim_devices:count", first)},
		column{title: "Memory used", unit: units.PercentUnit, expr: amongst("dra_claim_memory_used:ratio", first), more: gauge(steps(neutral, step{0.95, critical}))},
		column{title: "Power", unit: units.Watt, expr: amongst("dra_claim_power_watts:sum", first)},
		column{title: "NVLink", unit: units.BytesPerSecondSI, expr: amongst("dra_claim_nvlink_bytes:rate5m", first)},
	)
}

func allClaims() []panel {
	return []panel{
		listing(24, 14, about{
			title: "Claims", unit: units.Short,
			reads: strings.Join([]string{
				"Click a name for devices, pods and health.",
				"Shared devices, which cannot be split, count only in the column Devices.",
			}, " "),
			empty: needsHolders,
		}, claimColumns(),
			column{title: "Devices", expr: ofClaim("dra_claim_devices:count")},
			column{title: "Shared", expr: ofClaim("dra_claim_shared_devices:count")},
			column{title: "Utilization", unit: units.PercentUnit, expr: ofClaim("dra_claim_utilization_ratio:avg"), more: gauge(steps(critical, step{0.2, warning}, step{0.5, good}))},
			column{title: "Memory used", unit: units.PercentUnit, expr: ofClaim("dra_claim_memory_used:ratio"), more: gauge(steps(neutral, step{0.95, critical}))},
			column{title: "Power", unit: units.Watt, expr: ofClaim("dra_claim_power_watts:sum")},
		),
	}
}
