package boards

import (
	"slices"

	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/common"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/units"
)

// needsAccounting is why panels of what accrued are empty.
const needsAccounting = "no rules dra-exporter.accounting"

// needsPrices is why panels of cost are empty.
const needsPrices = "no price list (--cost.prices), no matching rule, or " + needsAccounting

// efficiency is what was held, used, left idle and paid, and by whom.
func efficiency() Board {
	return Board{
		UID:         uidEfficiency,
		Title:       "DRA / Efficiency and cost",
		description: "Devices that claims held, used and left idle, and their cost, by namespace, class and team; migration from device plugins. Values begin ten minutes after the rules are loaded.",
		from:        "now-24h",
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
			title: "Held hours in the range", unit: units.Short,
			reads: "Device-hours, weighted by the held share: half a device for two hours is one.",
			empty: needsAccounting,
		}, at(hours("", heldSeconds))).ColorScheme(always(neutral)).Decimals(2),
		number(5, about{
			title: "Busy hours in the range", unit: units.Short,
			reads: "Device-hours, without devices that do not report it, or are not split.",
			empty: "not reported, or " + needsAccounting,
		}, at(hours("", busySeconds))).ColorScheme(always(neutral)).Decimals(2),
		number(5, about{
			title: "Idle device-hours in the range", unit: units.Short,
			reads: "Held and not busy, where known. The claims are below.",
			empty: "not reported, or " + needsAccounting,
		}, at(hours("", idleSeconds))).ColorScheme(always(neutral)).Decimals(2),
		number(5, about{
			title: "Busy share in the range", unit: units.PercentUnit,
			reads: "Of busy and idle time. Use beyond a given share counts as busy, and hides idle time of the same namespace, class and model.",
			empty: "not reported, or " + needsAccounting,
		}, at(busyShare(""))).
			Thresholds(steps(critical, step{0.2, warning}, step{0.5, good})).
			ColorScheme(byThresholds()),
		number(4, about{
			title: "Cost in the range", unit: units.Short,
			reads: "Held device-hours by the price list, in its currency.",
			empty: needsPrices,
		}, each(`sum by (currency) (sum_over_time(`+costOfClass+`:increase5m{@claims}[$__range]))`, "{{currency}}")).
			TextMode(common.BigValueTextModeValueAndName).ColorScheme(always(neutral)),
	}
}

func devicesHeldNow() panel {
	return number(4, about{
		title: "Devices held now", unit: units.PercentUnit,
		reads: "Whole devices, held completely or partly. Not filtered by namespace and class.",
		empty: "no agents or recording rules",
	}, at(`sum(model:dra_device_held:sum{@fleet}) / sum(model:dra_devices:count{@fleet})`)).
		ColorScheme(always(neutral)).Height(8)
}

// busyShare leaves out the time of unknown use: it compares with the time that is
// busy or idle.
func busyShare(by string) string {
	return hours(by, busySeconds) + "\n/ (" + hours(by, busySeconds) + "\n  + " + hours(by, idleSeconds) + ")"
}

// level is how many devices a rule's five minutes stand for.
func level(by, family, which string) string {
	return `sum` + by + ` (last_over_time(` + family + `:increase5m{@claims}[10m]) ` + which + `) / 300`
}

func efficiencyOverTime() []panel {
	const (
		labels = "cluster, namespace"
		by     = " by (" + labels + ")"
		legend = "{{namespace}} {{cluster}}"
	)
	ten := "on (" + labels + ") " + most(labels, heldSeconds+":increase5m{@claims}")
	selection, complement := "and "+ten, "unless "+ten
	share := func(by, which string) string {
		return level(by, busySeconds, which) + "\n/ (" + level(by, busySeconds, which) + " + " + level(by, idleSeconds, which) + " > 0)"
	}
	return []panel{
		stacked(12, about{
			title: "Devices held by namespace", unit: units.Short,
			reads: "Held at once, weighted by shares, in each five minutes.",
			empty: needsAccounting,
		}, recorded(level(by, heldSeconds, selection), legend), recorded(level("", heldSeconds, complement), remainder)).
			ColorScheme(byName()).OverrideByName(remainder, fixed(unknown)),
		stacked(12, about{
			title: "Use of held devices", unit: units.Short,
			reads: "Idle devices could serve pending claims.",
			empty: needsAccounting,
		},
			recorded(level("", busySeconds, ""), "busy"),
			recorded(level("", idleSeconds, ""), "idle"),
			recorded(level("", openSeconds, ""), "shared, not split")).
			OverrideByName("busy", fixed(good)).
			OverrideByName("idle", fixed(warning)).
			OverrideByName("shared, not split", fixed(unknown)),
		timeline(12, about{
			title: "Busy share by namespace", unit: units.PercentUnit,
			reads: "Of the held time whose use is known. Near 0: held without use.",
			empty: "not reported, or " + needsAccounting,
		}, recorded(share(by, selection), legend), recorded(share("", complement), remainder)).
			ColorScheme(byName()).OverrideByName(remainder, fixed(unknown)),
		stacked(12, about{
			title: "Cost per hour by namespace", unit: units.Short,
			reads: "At the rate of the last five minutes.",
			empty: needsPrices,
		},
			recorded(`sum by (cluster, namespace, currency) (last_over_time(`+costOfClass+`:increase5m{@claims}[10m]) `+selection+`) * 12`, "{{namespace}} {{currency}} {{cluster}}"),
			recorded(`sum by (cluster, currency) (last_over_time(`+costOfClass+`:increase5m{@claims}[10m]) `+complement+`) * 12`, remainder+" {{currency}} {{cluster}}")).
			OverrideByRegexp("/^"+remainder+"/", fixed(unknown)),
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
		{title: "Held", unit: units.Short, more: hundredths(), expr: hours(by, heldSeconds)},
		{title: "Busy", unit: units.Short, more: hundredths(), expr: hours(by, busySeconds)},
		{title: "Idle", unit: units.Short, more: hundredths(), expr: hours(by, idleSeconds)},
		{title: "Shared, not split", unit: units.Short, more: hundredths(), expr: hours(by, openSeconds)},
		{title: "Busy share", unit: units.PercentUnit, expr: busyShare(by), more: gauge(steps(critical, step{0.2, warning}, step{0.5, good}))},
		{title: "Cost", unit: units.Short, expr: `sum by (` + by + `, currency) (sum_over_time(` + costOfClass + `:increase5m{@claims}[$__range]))`},
	}
}

const ofAccounts = "Held includes devices whose use is not reported or not split."

func namespaces() panel {
	return listing(20, 10, about{
		title: "Device-hours by namespace in the range", unit: units.Short, reads: ofAccounts,
		empty: needsAccounting + "; Cost: without --cost.prices",
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
		listing(24, 10, about{
			title: "Device-hours by class and model in the range", unit: units.Short, reads: ofAccounts + " multiple: a claim of several classes.",
			empty: needsAccounting + "; Cost: without --cost.prices",
		}, []key{
			{label: "deviceclass", title: "Class"},
			{label: "model", title: "Model"},
			currency(),
		}, classAccounts...),
		listing(24, 10, about{
			title: "Device-hours by team in the range", unit: units.Short,
			reads: "By the pods' label team. A claim of several teams is divided equally. Not filtered by namespace and class.",
			empty: "no label (--labels.pod=team), or " + needsAccounting,
		}, []key{{label: "team", title: "Team"}, currency()},
			column{title: "Held", unit: units.Short, more: hundredths(), expr: noTeam(`sum by (team) (sum_over_time(team:dra_claim_device_seconds:increase5m{@fleet}[$__range])) / 3600`)},
			column{title: "Busy", unit: units.Short, more: hundredths(), expr: noTeam(`sum by (team) (sum_over_time(team:dra_claim_busy_seconds:increase5m{@fleet}[$__range])) / 3600`)},
			column{title: "Idle", unit: units.Short, more: hundredths(), expr: noTeam(`sum by (team) (sum_over_time(team:dra_claim_idle_seconds:increase5m{@fleet}[$__range])) / 3600`)},
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
	const note = " With ended claims. Not filtered by class."
	return []panel{
		listing(24, 10, about{
			title: "Claims with the most idle device-hours in the range", unit: units.Short,
			reads: "The twenty with most, and their cost." + note,
			empty: "none was idle, not reported, or " + needsAccounting + "; Idle cost: without a price list",
		}, keys,
			column{title: "Idle", unit: units.Short, more: hundredths(), expr: "topk(20, " + ofClaims("claim:dra_claim_idle_seconds", ofAClaim) + ") / 3600"},
			column{title: "Idle cost", unit: units.Short, expr: topClaims(ofClaims("claim:dra_claim_idle_cost", itsCosts), ofClaims("claim:dra_claim_idle_seconds", ofAClaim))},
		),
		listing(24, 10, about{
			title: "Most expensive claims in the range", unit: units.Short,
			reads: "The twenty most expensive, with their device-hours." + note,
			empty: needsPrices,
		}, keys,
			column{title: "Cost", unit: units.Short, expr: "topk(20, " + ofClaims("claim:dra_claim_cost", itsCosts) + ")"},
			column{title: "Held", unit: units.Short, more: hundredths(), expr: "(" + topClaims(ofClaims("claim:dra_claim_device_seconds", ofAClaim), ofClaims("claim:dra_claim_cost", itsCosts)) + ") / 3600"},
		),
	}
}

// executionIdle is time in which devices were kept ready and computed nothing.
func executionIdle() []panel {
	const (
		family = "dra_claim_execution_idle"
		empty  = "idle power is unknown (no device was free), power or utilization not read, or " + needsAccounting
	)
	joules := func(by, rule string) string {
		return `sum by (` + by + `) (sum_over_time(` + rule + family + `_joules:increase5m{@claims}[$__range])) / 3.6e6`
	}
	const first = "claim:" + family + "_seconds"
	return []panel{
		listing(24, 10, about{
			title: "Execution idle by namespace and class in the range", unit: units.Short,
			reads: "Device-hours without computing but above idle power; kWh beyond idle power. Without shared devices.",
			empty: empty + "; Cost: without --cost.prices",
		}, []key{
			{label: "cluster", title: "Cluster"},
			{label: "namespace", title: "Namespace", links: []link{toNamespace()}},
			{label: "deviceclass", title: "Class"},
			currency(),
		},
			column{title: "Hours", unit: units.Short, more: hundredths(), expr: unknownClass(hours("cluster, namespace, deviceclass", "namespace_class:"+family+"_seconds") + " > 0")},
			column{title: "kWh", unit: units.Short, more: hundredths(), expr: unknownClass(joules("cluster, namespace, deviceclass", "namespace_class:"))},
			column{title: "Cost", unit: units.Short, expr: unknownClass(`sum by (cluster, namespace, deviceclass, currency) (sum_over_time(namespace_class:` + family + `_cost:increase5m{@claims}[$__range]))`)},
		),
		listing(24, 10, about{
			title: "Claims with the most execution idle in the range", unit: units.Short,
			reads: "The twenty with most; kWh beyond idle power. Not filtered by class.",
			empty: empty,
		}, []key{
			{label: "cluster", title: "Cluster"},
			{label: "namespace", title: "Namespace", links: []link{toNamespace()}},
			{label: "resourceclaim", title: "Claim", links: []link{toClaim()}},
		},
			column{title: "Hours", unit: units.Short, more: hundredths(), expr: "topk(20, " + ofClaims(first, ofAClaim) + " > 0) / 3600"},
			column{title: "kWh", unit: units.Short, more: hundredths(), expr: "(" + topClaims(ofClaims("claim:"+family+"_joules", ofAClaim), ofClaims(first, ofAClaim)+" > 0") + ") / 3.6e6"},
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
