package boards

import (
	"slices"
	"strings"

	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/timeseries"
	"github.com/grafana/grafana-foundation-sdk/go/units"
)

// needsHolders is why panels of held claims are empty, where nothing else is.
const needsHolders = "no claim of the selection holds a device, no node agent is scraped, or the recording rules of the group dra-exporter.claims are not loaded"

// claims is the fleet by claim: what claims hold, how they use it, who is the
// busiest and who wastes the most.
func claims() Board {
	return Board{
		UID:         uidClaims,
		Title:       "DRA / Claims",
		description: "Devices that ResourceClaims hold and use: utilization, memory, NVLink and power by namespace and device class, idle claims, and links to each claim.",
		variables:   claimsVariables(),
		rows: []row{
			{panels: slices.Concat(claimNumbers(), standouts())},
			{title: "Use by namespace", panels: claimsOver("namespace")},
			{title: "All claims of the selection", folded: true, panels: allClaims()},
		},
	}
}

// claimsDetails is the same use by device class.
func claimsDetails() Board {
	return Board{
		UID:         uidClaims + details,
		detailsOf:   uidClaims,
		Title:       "DRA / Claims details",
		description: "Devices that ResourceClaims hold and use, by device class: utilization, memory, NVLink and power.",
		variables:   claimsVariables(),
		rows:        []row{{panels: claimsOver("deviceclass")}},
	}
}

// claimsVariables are the choices of both boards.
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
			title: "Claims that hold devices", unit: units.Short,
			reads: "Claims that hold at least one device now. Claims with admin access hold nothing.",
			empty: needsHolders,
		}, at(`sum(namespace_class:dra_claims_held:count{@claims})`)).ColorScheme(always(neutral)),
		number(4, about{
			title: "Devices held", unit: units.Short,
			reads: "Devices and partitions that claims hold now. A device of two claims counts twice.",
			empty: needsHolders,
		}, at(`sum(namespace_class:dra_claim_devices:sum{@claims})`)).ColorScheme(always(neutral)),
		number(4, about{
			title: "Mean utilization", unit: units.PercentUnit,
			reads: "Mean over the devices whose use by claims is known. A low value for hours means that claims hold more than they use: the tables below list them.",
			empty: "no held device reports its utilization, or " + needsHolders,
		}, at(shareOf("", utilizationSum, utilizationCount))).
			Thresholds(steps(critical, step{0.2, warning}, step{0.5, good})).ColorScheme(byThresholds()),
		number(4, about{
			title: "Memory used of allocated", unit: units.PercentUnit,
			reads: "Device memory used, as a share of the memory given to these claims. If it is low, smaller devices or partitions are enough. Above 95 %, the next memory allocation of a process may fail.",
			empty: "no held device reports its memory, or " + needsHolders,
		}, at(shareOf("", memoryUsed, memoryAllocated))).
			Thresholds(steps(warning, step{0.3, good}, step{0.95, critical})).ColorScheme(byThresholds()),
		number(4, about{
			title: "Idle devices", unit: units.Short,
			reads: "Devices that claims hold and do not use now. The table of idle claims has those that have been idle longest.",
			empty: "no held device reports its utilization, or " + needsHolders,
		}, at(`sum(namespace_class:dra_claim_idle_devices:count{@claims})`)).
			Thresholds(anyIs(warning)).ColorScheme(byThresholds()),
		number(4, about{
			title: "Pending claims", unit: units.Short,
			reads: "Claims of pods, and requests of extended resources, that are not yet allocated and reserved; gated pods are left out. Click for pods, age and reasons.",
			empty: "the cluster role is not scraped, or cannot read pods or claims",
		}, at(waitingReferences())).
			Thresholds(anyIs(warning)).ColorScheme(byThresholds()).
			Links([]cog.Builder[dashboard.DashboardLink]{toPending()}),
	}
}

// claimsOver are levels over time by a label: what was used, and what was not.
func claimsOver(label string) []panel {
	what := map[string]string{"namespace": "namespace", "deviceclass": "device class"}[label]
	by, legend := " by (cluster, "+label+")", "{{cluster}} {{"+label+"}}"
	level := func(rule string) query {
		return over(`sum`+by+` (namespace_class:`+rule+`{@claims})`, legend)
	}
	all := []*timeseries.PanelBuilder{
		timeline(12, about{
			title: "Utilization by " + what, unit: units.PercentUnit,
			reads: "Mean over the devices whose use by claims is known; devices that are shared without a split are left out.",
			empty: "no held device reports its utilization, or " + needsHolders,
		}, over(shareOf(by, utilizationSum, utilizationCount), legend)).Max(1),
		timeline(12, about{
			title: "Memory used of allocated by " + what, unit: units.PercentUnit,
			reads: "Device memory used as a share of the memory given to the claims. Near 1, the next memory allocation of a process may fail; above 1, claims use more of shared devices than they were given; a value that stays low means that less is enough.",
			empty: "no held device reports its memory, or " + needsHolders,
		}, over(shareOf(by, memoryUsed, memoryAllocated), legend)),
		stacked(12, about{
			title: "Devices held by " + what, unit: units.Short,
			reads: "Devices and partitions that claims hold; a device of two claims counts twice.",
			empty: needsHolders,
		}, level("dra_claim_devices:sum")),
		stacked(12, about{
			title: "Idle devices by " + what, unit: units.Short,
			reads: "Held devices that are not used. A permanent band is waste; the table of idle claims in DRA / Claims has its claims.",
			empty: "no held device reports its utilization, or " + needsHolders,
		}, level("dra_claim_idle_devices:count")),
		stacked(12, about{
			title: "Power by " + what, unit: units.Watt,
			reads: "Power of the devices of claims, without devices that several claims share, whose power cannot be split.",
			empty: "no held device reports its power (partitions do not), or " + needsHolders,
		}, level("dra_claim_power_watts:sum")),
		stacked(12, about{
			title: "NVLink traffic by " + what, unit: units.BytesPerSecondSI,
			reads: "Bytes sent and received over NVLink together, mean of five minutes, without devices that several claims share. A training job on several GPUs without NVLink traffic uses PCIe.",
			empty: "these devices have no NVLink, or do not count its bytes (DCGM does), or " + needsHolders,
		}, level("dra_claim_nvlink_bytes:rate5m")),
	}
	panels := make([]panel, len(all))
	for i, p := range all {
		if label == "namespace" {
			p.DataLinks([]cog.Builder[dashboard.DashboardLink]{toNamespace().ofSeries()})
		}
		panels[i] = p
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

// standouts are the ends of the fleet: who waste the most, and who use the most.
func standouts() []panel {
	wasted := "topk(20, " + idleHours + ")"
	busiest := "topk(20, claim:dra_claim_utilization_ratio:avg{@claims})"
	return []panel{
		listing(24, 8, about{
			title: "Idle claims with the most device-hours", unit: units.Short,
			reads: "The twenty claims with the most device-hours since they last used any of their devices. Ask the owner, or delete the pod; DRA / Efficiency and cost has the idle device-hours of the time range.",
			none:  noneSeen,
			empty: "no claim is idle on all its devices, no held device reports its utilization, or " + needsHolders,
		}, claimColumns(),
			column{title: "Idle device-hours", unit: units.Short, expr: wasted, more: append(tinted(steps(good, step{1, warning}, step{24, critical})), property("decimals", 1))},
			column{title: "Idle since", unit: units.DateTimeFromNow, expr: amongst("dra_claim_idle_since_timestamp_seconds:max", wasted) + " * 1000"},
			column{title: "Devices", expr: amongst("dra_claim_devices:count", wasted)},
			column{title: "Power", unit: units.Watt, expr: amongst("dra_claim_power_watts:sum", wasted)},
		),
		listing(24, 8, about{
			title: "Busiest claims", unit: units.Short,
			reads: "The twenty claims with the highest mean utilization, over the devices whose use by the claim is known. NVLink: sent and received, mean of five minutes.",
			empty: "no held device reports its utilization, or " + needsHolders,
		}, claimColumns(),
			column{title: "Utilization", unit: units.PercentUnit, expr: amongst("dra_claim_utilization_ratio:avg", busiest), more: gauge(steps(critical, step{0.2, warning}, step{0.5, good}))},
			column{title: "Devices", expr: amongst("dra_claim_devices:count", busiest)},
			column{title: "Memory used", unit: units.PercentUnit, expr: amongst("dra_claim_memory_used:ratio", busiest), more: gauge(steps(neutral, step{0.95, critical}))},
			column{title: "Power", unit: units.Watt, expr: amongst("dra_claim_power_watts:sum", busiest)},
			column{title: "NVLink", unit: units.BytesPerSecondSI, expr: amongst("dra_claim_nvlink_bytes:rate5m", busiest)},
		),
	}
}

func allClaims() []panel {
	return []panel{
		listing(24, 16, about{
			title: "Claims", unit: units.Short,
			reads: strings.Join([]string{
				"Every claim that holds a device. Click its name for its devices, pods and health.",
				"Shared: devices with other holders whose use cannot be split; they count only in the column Devices.",
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
