package boards

import (
	"slices"

	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/common"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/units"
)

// needsAccounting is why panels of what accrued are empty.
const needsAccounting = "the recording rules of the group dra-exporter.accounting are not loaded, or less than ten minutes have passed since"

// needsPrices is why panels of cost are empty.
const needsPrices = "the exporters have no price list (--cost.prices), or none of its rules matches; or " + needsAccounting

// efficiency is what was held, used, left idle and paid, and by whom.
func efficiency() Board {
	return Board{
		UID:   uidEfficiency,
		Title: "DRA / Efficiency and cost",
		description: "Devices that claims held, used and left idle, and their cost, by namespace, device class and team; " +
			"and the progress of the migration from device plugins.",
		from: "now-24h",
		variables: []cog.Builder[dashboard.VariableModel]{
			dataSource(), cluster(),
			several("namespace", "Namespace", `label_values(dra_namespace_device_seconds_total{@fleet}, namespace)`),
			several("class", "Device class", `label_values(dra_namespace_device_seconds_total{@namespaces}, deviceclass)`),
		},
		rows: []row{
			{panels: append(efficiencyNumbers(), devicesHeldNow(), namespaces())},
			{title: "Use and cost over time", panels: efficiencyOverTime()},
			{title: "Classes, teams and claims", panels: slices.Concat(efficiencyByOwner(), efficiencyByClaim(), executionIdle())},
			{title: "Migration from device plugins", panels: migration()},
		},
	}
}

// hours is what accrued in the range, in device-hours, summed by labels.
func hours(by, family string) string {
	return `sum by (` + by + `) (sum_over_time(` + family + `:increase5m{@claims}[$__range])) / 3600`
}

const (
	heldSeconds = "namespace_class:dra_namespace_device_seconds"
	busySeconds = "namespace_class:dra_namespace_busy_seconds"
	idleSeconds = "namespace_class:dra_namespace_idle_seconds"
	openSeconds = "namespace_class:dra_namespace_shared_device_seconds"
	costOfClass = "namespace_class:dra_namespace_cost"
)

func efficiencyNumbers() []panel {
	return []panel{
		number(5, about{
			title: "Held device-hours in the range", unit: units.Short,
			reads: "Hours for which claims held devices in the time range, weighted by the held share: half a device for two hours is one.",
			empty: needsAccounting,
		}, at(hours("", heldSeconds))).ColorScheme(always(neutral)),
		number(5, about{
			title: "Busy device-hours in the range", unit: units.Short,
			reads: "Busy time of the claims, without devices that are shared without a split or do not report it.",
			empty: "no device reports its utilization, or " + needsAccounting,
		}, at(hours("", busySeconds))).ColorScheme(always(neutral)),
		number(5, about{
			title: "Idle device-hours in the range", unit: units.Short,
			reads: "Held and not busy, where this is known. The tables below list the claims.",
			empty: "no device reports its utilization, or " + needsAccounting,
		}, at(hours("", idleSeconds))).ColorScheme(always(neutral)),
		number(5, about{
			title: "Busy share in the range", unit: units.PercentUnit,
			reads: "Busy time as a share of the time that was busy or idle. Use of shared devices beyond the given share counts as busy too: it hides idle time of the same namespace, class and model.",
			empty: "no device reports its utilization, or " + needsAccounting,
		}, at(busyShare(""))).
			Thresholds(steps(critical, step{0.2, warning}, step{0.5, good})).
			ColorScheme(byThresholds()),
		number(4, about{
			title: "Cost in the range", unit: units.Short,
			reads: "Cost of the held device-hours by the price list, in its currency.",
			empty: needsPrices,
		}, each(`sum by (currency) (sum_over_time(`+costOfClass+`:increase5m{@claims}[$__range]))`, "{{currency}}")).
			TextMode(common.BigValueTextModeValueAndName).ColorScheme(always(neutral)),
	}
}

func devicesHeldNow() panel {
	return number(4, about{
		title: "Devices held now", unit: units.PercentUnit,
		reads: "Whole devices that are held, completely or partly, of all devices. It does not follow the namespace or the class.",
		empty: "no node agent is scraped, or the recording rules are not loaded",
	}, at(`sum(model:dra_device_held:sum{@fleet}) / sum(model:dra_devices:count{@fleet})`)).
		ColorScheme(always(neutral)).Height(8)
}

// busyShare leaves out the time of unknown use: it compares with the time that is
// busy or idle.
func busyShare(by string) string {
	return hours(by, busySeconds) + "\n/ (" + hours(by, busySeconds) + "\n  + " + hours(by, idleSeconds) + ")"
}

// level is how many devices a rule's five minutes stand for.
func level(by, family string) string {
	return `sum by (` + by + `) (last_over_time(` + family + `:increase5m{@claims}[10m])) / 300`
}

func efficiencyOverTime() []panel {
	return []panel{
		stacked(12, about{
			title: "Devices held by namespace", unit: units.Short,
			reads: "Devices that each namespace's claims held at once, weighted by their shares; each value covers five minutes.",
			empty: needsAccounting,
		}, recorded(level("cluster, namespace", heldSeconds), "{{namespace}} {{cluster}}")),
		stacked(12, about{
			title: "Use of held devices", unit: units.Short,
			reads: "Devices held at once, split into busy, idle, and shared without a split. Idle devices could serve pending claims.",
			empty: needsAccounting,
		},
			recorded(level("", busySeconds), "busy"),
			recorded(level("", idleSeconds), "idle"),
			recorded(level("", openSeconds), "shared, not split")).
			OverrideByName("busy", fixed(good)).
			OverrideByName("idle", fixed(warning)).
			OverrideByName("shared, not split", fixed(unknown)),
		timeline(12, about{
			title: "Busy share by namespace", unit: units.PercentUnit,
			reads: "Busy time as a share of the held time whose use is known. A namespace near 0 holds devices without using them.",
			empty: "no device reports its utilization, or " + needsAccounting,
		}, recorded(level("cluster, namespace", busySeconds)+
			"\n/ ("+level("cluster, namespace", busySeconds)+" + "+level("cluster, namespace", idleSeconds)+" > 0)",
			"{{namespace}} {{cluster}}")),
		stacked(12, about{
			title: "Cost per hour by namespace", unit: units.Short,
			reads: "Cost per hour at the rate of the last five minutes, in the currency of the price list.",
			empty: needsPrices,
		}, recorded(`sum by (cluster, namespace, currency) (last_over_time(`+costOfClass+`:increase5m{@claims}[10m])) * 12`,
			"{{namespace}} {{currency}} {{cluster}}")),
	}
}

func fixed(colour string) []dashboard.DynamicConfigValue {
	return []dashboard.DynamicConfigValue{property("color", map[string]any{"mode": "fixed", "fixedColor": colour})}
}

// currency is the last column: costs of two currencies have a row each.
func currency() key { return key{label: "currency", title: "Currency", last: true} }

// accounts are the columns of every table of owners.
func accounts(by string) []column {
	return []column{
		{title: "Held", unit: units.Short, expr: hours(by, heldSeconds)},
		{title: "Busy", unit: units.Short, expr: hours(by, busySeconds)},
		{title: "Idle", unit: units.Short, expr: hours(by, idleSeconds)},
		{title: "Shared, not split", unit: units.Short, expr: hours(by, openSeconds)},
		{title: "Busy share", unit: units.PercentUnit, expr: busyShare(by), more: gauge(steps(critical, step{0.2, warning}, step{0.5, good}))},
		{title: "Cost", unit: units.Short, expr: `sum by (` + by + `, currency) (sum_over_time(` + costOfClass + `:increase5m{@claims}[$__range]))`},
	}
}

const ofAccounts = "Device-hours of the time range, and their cost. Busy and idle cover only known use: " +
	"held is their sum, plus devices that are shared without a split or do not report it."

func namespaces() panel {
	return listing(20, 8, about{
		title: "Device-hours by namespace in the range", unit: units.Short, reads: ofAccounts,
		empty: needsAccounting + "; Cost is empty without a price list (--cost.prices)",
	}, []key{
		{label: "cluster", title: "Cluster"},
		{label: "namespace", title: "Namespace", links: []link{toNamespace()}},
		currency(),
	}, accounts("cluster, namespace")...)
}

func efficiencyByOwner() []panel {
	classAccounts := accounts("deviceclass, model")
	for i := range classAccounts {
		classAccounts[i].expr = unknownClass(classAccounts[i].expr)
	}
	return []panel{
		listing(24, 8, about{
			title: "Device-hours by class and model in the range", unit: units.Short, reads: ofAccounts + " A claim of several classes counts as the class multiple.",
			empty: needsAccounting + "; Cost is empty without a price list (--cost.prices)",
		}, []key{
			{label: "deviceclass", title: "Class"},
			{label: "model", title: "Model"},
			currency(),
		}, classAccounts...),
		listing(24, 8, about{
			title: "Device-hours by team in the range", unit: units.Short,
			reads: "Device-hours and cost of each team: the label team of the pods that used the claims. The cost of a claim of several teams is divided equally. It does not follow the namespace or the class.",
			empty: "the exporters do not show the pods' label (--labels.pod=team), or " + needsAccounting,
		}, []key{{label: "team", title: "Team"}, currency()},
			column{title: "Held", unit: units.Short, expr: noTeam(`sum by (team) (sum_over_time(team:dra_claim_device_seconds:increase5m{@fleet}[$__range])) / 3600`)},
			column{title: "Busy", unit: units.Short, expr: noTeam(`sum by (team) (sum_over_time(team:dra_claim_busy_seconds:increase5m{@fleet}[$__range])) / 3600`)},
			column{title: "Idle", unit: units.Short, expr: noTeam(`sum by (team) (sum_over_time(team:dra_claim_idle_seconds:increase5m{@fleet}[$__range])) / 3600`)},
			column{title: "Cost", unit: units.Short, expr: noTeam(`sum by (team, currency) (sum_over_time(team:dra_claim_cost:increase5m{@fleet}[$__range]))`)},
		),
	}
}

// noTeam names those without a team. Without a label at all, Grafana's merge would
// take their row for that of any team.
func noTeam(expr string) string { return `label_replace(` + expr + `, "team", "none", "team", "")` }

func efficiencyByClaim() []panel {
	keys := []key{
		{label: "cluster", title: "Cluster"},
		{label: "namespace", title: "Namespace", links: []link{toNamespace()}},
		{label: "resourceclaim", title: "Claim", links: []link{toClaim()}},
		currency(),
	}
	const note = " Claims that have ended count with their devices of the time range. It does not follow the class."
	return []panel{
		listing(12, 10, about{
			title: "Claims with the most idle device-hours in the range", unit: units.Short,
			reads: "The twenty claims with the most device-hours that were held and not busy, and the cost of these hours." + note,
			empty: "no claim was idle, no device reports its utilization, or " + needsAccounting + "; Idle cost is empty without a price list",
		}, keys,
			column{title: "Idle", unit: units.Short, expr: "topk(20, " + ofClaims("claim:dra_claim_idle_seconds", ofAClaim) + ") / 3600"},
			column{title: "Idle cost", unit: units.Short, expr: topClaims(ofClaims("claim:dra_claim_idle_cost", itsCosts), ofClaims("claim:dra_claim_idle_seconds", ofAClaim))},
		),
		listing(12, 10, about{
			title: "Most expensive claims in the range", unit: units.Short,
			reads: "The twenty most expensive claims of the time range, with the device-hours that they held." + note,
			empty: needsPrices,
		}, keys,
			column{title: "Cost", unit: units.Short, expr: "topk(20, " + ofClaims("claim:dra_claim_cost", itsCosts) + ")"},
			column{title: "Held", unit: units.Short, expr: "(" + topClaims(ofClaims("claim:dra_claim_device_seconds", ofAClaim), ofClaims("claim:dra_claim_cost", itsCosts)) + ") / 3600"},
		),
	}
}

// executionIdle is time in which devices were kept ready and computed nothing.
func executionIdle() []panel {
	const (
		family = "dra_claim_execution_idle"
		empty  = "no device was free so that its idle power could be seen, power or utilization are not read, or " + needsAccounting
	)
	joules := func(by, rule string) string {
		return `sum by (` + by + `) (sum_over_time(` + rule + family + `_joules:increase5m{@claims}[$__range])) / 3.6e6`
	}
	const first = "claim:" + family + "_seconds"
	return []panel{
		listing(12, 8, about{
			title: "Execution idle by namespace and class in the range", unit: units.Short,
			reads: "Device-hours in which held devices computed nothing and drew more than their idle power, the kilowatt-hours beyond idle power, and what these hours cost. Devices that are shared are left out.",
			empty: empty + "; Cost is empty without a price list (--cost.prices)",
		}, []key{
			{label: "cluster", title: "Cluster"},
			{label: "namespace", title: "Namespace", links: []link{toNamespace()}},
			{label: "deviceclass", title: "Class"},
			currency(),
		},
			column{title: "Hours", unit: units.Short, expr: unknownClass(hours("cluster, namespace, deviceclass", "namespace_class:"+family+"_seconds"))},
			column{title: "kWh", unit: units.Short, expr: unknownClass(joules("cluster, namespace, deviceclass", "namespace_class:"))},
			column{title: "Cost", unit: units.Short, expr: unknownClass(`sum by (cluster, namespace, deviceclass, currency) (sum_over_time(namespace_class:` + family + `_cost:increase5m{@claims}[$__range]))`)},
		),
		listing(12, 8, about{
			title: "Claims with the most execution idle in the range", unit: units.Short,
			reads: "The twenty claims with the most device-hours of execution idle, and the kilowatt-hours beyond idle power. It does not follow the class.",
			empty: empty,
		}, []key{
			{label: "cluster", title: "Cluster"},
			{label: "namespace", title: "Namespace", links: []link{toNamespace()}},
			{label: "resourceclaim", title: "Claim", links: []link{toClaim()}},
		},
			column{title: "Hours", unit: units.Short, expr: "topk(20, " + ofClaims(first, ofAClaim) + ") / 3600"},
			column{title: "kWh", unit: units.Short, expr: "(" + topClaims(ofClaims("claim:"+family+"_joules", ofAClaim), ofClaims(first, ofAClaim)) + ") / 3.6e6"},
		),
	}
}

const (
	ofAClaim = "cluster, namespace, resourceclaim"
	itsCosts = ofAClaim + ", currency"
)

// ofClaims is what accrued for claims in the range.
func ofClaims(family, by string) string {
	return `sum by (` + by + `) (sum_over_time(` + family + `:increase5m{@namespaces}[$__range]))`
}

// topClaims are an account's rows of the twenty claims that are the first by
// another, so that both columns have the same rows.
func topClaims(account, first string) string {
	return account + "\nand on (" + ofAClaim + ") topk(20, " + first + ")"
}
