package boards

import (
	"fmt"
	"slices"

	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/units"
)

const (
	// noClusterRole is why panels of the cluster role's metrics are empty.
	noClusterRole = "no cluster role"
	// noReaders and noPods are why panels are empty of what a cluster role reads.
	noReaders = "no cluster role reads pods and claims"
	noPods    = "no cluster role reads pods"
	// noWaits is why panels of those that wait are empty.
	noWaits = "no claim is pending, or " + noReaders
	// noPermission is why panels are empty whose board says what it reads.
	noPermission = "no cluster role, or no permissions"
	// anyNamespace and anyClass say what a panel does not follow.
	anyNamespace = " Not filtered by namespace."
	anyClass     = " Not filtered by class."
)

// allocation is which claims are pending and why, how long each phase takes, what
// fails, what is stuck, and which devices are left.
func allocation() Board {
	return Board{
		UID:         uidAllocation,
		Title:       "DRA / Allocation",
		description: "Pending claims and reasons, durations until containers run, failures, stuck claims, and free devices.",
		from:        "now-6h",
		variables:   allocationVariables(),
		rows: []row{
			{panels: append(allocationNumbers(), pendingNow())},
			{title: "Pending, failed and stuck claims", panels: slices.Concat([]panel{pendingByReason(), demandNow()}, pendingPanels(), failurePanels(), stuckPanels())},
			{title: "Durations", panels: durationPanels()},
			{title: "Supply", panels: supplyPanels()},
			{title: "Durations by class", folded: true, panels: durationDetails()},
			{title: "Claims by state, and supply by node and capacity", folded: true, panels: supplyDetails()},
		},
	}
}

// allocationVariables are the choices of the board.
func allocationVariables() []cog.Builder[dashboard.VariableModel] {
	return []cog.Builder[dashboard.VariableModel]{
		dataSource(), cluster(),
		several("namespace", "Namespace", `label_values({__name__=~"dra_claims|dra_claim_pending_since_timestamp_seconds", @fleet}, namespace)`),
		several("class", "Device class", `label_values({__name__=~"dra_claims|dra_class_devices|dra_claim_pending_since_timestamp_seconds", @fleet}, deviceclass)`),
	}
}

// watching is 0 where a cluster role reads pods and claims: then it shows all
// that wait and are under way, and what is absent is none.
const watching = `0 * group(
  dra_exporter_source_up{@fleet, source="resourceclaims"} == 1
  and on (cluster, job, instance) dra_exporter_source_up{@fleet, source="pods"} == 1
  and on (cluster, job, instance) dra_exporter_clock_anomalies_total{@fleet}
)`

// waitingReferences is how many wait, but for those that the scheduler must not look
// at yet; 0 where a cluster role sees none.
func waitingReferences() string {
	return `count(` + notGated(`group by (`+reference+`) (dra_claim_pending_since_timestamp_seconds{@claims})`) + `) or ` + watching
}

func allocationNumbers() []panel {
	return []panel{
		number(4, about{
			title: "Pending claims", unit: units.Short,
			reads: "Claims of pods, and requests of extended resources, not yet allocated and reserved; without gated pods. Reasons are below.",
			empty: noReaders,
		}, at(waitingReferences())).
			Thresholds(anyIs(warning)).ColorScheme(byThresholds()),
		number(4, about{
			title: "Oldest pending claim", unit: units.Seconds,
			reads: "Without gated pods. The alert DRAClaimPendingTooLong fires after 15 minutes.",
			empty: noWaits, none: noneSeen,
		}, at(`max(`+notGated(`max by (`+reference+`) (time() - dra_claim_pending_since_timestamp_seconds{@claims})`)+`)`)).
			Thresholds(waitSteps()).ColorScheme(byThresholds()),
		number(5, about{
			title: "Ready (p95) in the range", unit: units.Seconds,
			reads: "19 of 20 pods with claims ran their first container within this time." + anyNamespace,
			empty: "no pod with a claim started, or " + noClusterRole,
		}, at(`histogram_quantile(0.95, sum by (le) (increase(dra_claim_ready_duration_seconds_bucket{@classes}[$__range]))) >= 0`)).
			Thresholds(steps(good, step{60, warning}, step{600, critical})).ColorScheme(byThresholds()),
		number(4, about{
			title: "Failures in the range", unit: units.Short,
			reads: "Pending reasons that began, and failed bindings, preparations and creations; details are below." + anyNamespace,
			empty: noClusterRole,
		}, at(`round(sum(increase(dra_allocation_failures_total{@classes}[$__range])))`)).
			Thresholds(anyIs(warning)).ColorScheme(byThresholds()),
		number(3, about{
			title: "Stuck phases", unit: units.Short,
			reads: "Binding or scheduling for over 5 minutes, preparing for 10, or starting (pulling images) for 30." + anyClass,
			empty: noReaders,
		}, at(`count(`+stuck+`) or `+watching)).
			Thresholds(anyIs(critical)).ColorScheme(byThresholds()),
		number(4, about{
			title: "Free devices", unit: units.Short,
			reads: "Can be allocated now. Partitions that exclude each other all count. Not filtered by namespace and class.",
			empty: noSlices,
		}, at(`sum(max by (cluster, driver, pool, node) (dra_devices{@fleet, state="free"}))`)).
			Thresholds(steps(warning, step{1, good})).ColorScheme(byThresholds()),
	}
}

// waitSteps colour how long a pod waits.
func waitSteps() cog.Builder[dashboard.ThresholdsConfig] {
	return steps(good, step{300, warning}, step{900, critical})
}

// quantile of a classic histogram with the labels of by, le not among them.
// Where nothing was observed it is not a number, and left out.
func quantile(q float64, by, buckets, window string) string {
	return fmt.Sprintf("histogram_quantile(%g, sum by (%s, le) (%s(%s[%s]))) >= 0", q, by, perWindow(window), buckets, window)
}

// perWindow: over the dashboard's range buckets are counted, at a point they are
// rates.
func perWindow(window string) string {
	if window == "$__range" {
		return "increase"
	}
	return "rate"
}

const (
	phaseBuckets = `dra_allocation_duration_seconds_bucket{@classes}`
	readyBuckets = `dra_claim_ready_duration_seconds_bucket{@classes}`

	fewPods  = " Few pods leave gaps."
	noStarts = "no pod with a claim started, or " + noClusterRole
)

func durationPanels() []panel {
	return []panel{
		timeline(12, about{
			title: "Time until a pod's first container runs", unit: units.Seconds,
			reads: "High p99 alone: some pods are slow; high median: all are. An hour means an hour or more." + fewPods + anyNamespace,
			empty: noStarts,
		},
			over(quantile(0.5, "cluster", readyBuckets, "$__rate_interval"), "p50 {{cluster}}"),
			over(quantile(0.95, "cluster", readyBuckets, "$__rate_interval"), "p95 {{cluster}}"),
			over(quantile(0.99, "cluster", readyBuckets, "$__rate_interval"), "p99 {{cluster}}")),
		timeline(12, about{
			title: "Phases (p95)", unit: units.Seconds,
			reads: "allocation depends on free devices and the scheduler; scheduling: the scheduler; binding: the driver; preparation: kubelet and driver; start: images and containers; preparation_start: both, before kubelet 1.36." + fewPods + anyNamespace,
			empty: noStarts,
		}, over(quantile(0.95, "cluster, phase", phaseBuckets, "$__rate_interval"), "{{phase}} {{cluster}}")),
	}
}

func durationDetails() []panel {
	return []panel{
		listing(24, 16, about{
			title: "Duration of phases by class in the range", unit: units.Seconds,
			reads: "ready is the total time. Quantiles of few observations are imprecise." + anyNamespace,
			empty: noStarts + ", in the time range",
		}, []key{
			{label: "cluster", title: "Cluster"},
			{label: "deviceclass", title: "Class"},
			{label: "phase", title: "Phase"},
		},
			column{title: "p50", unit: units.Seconds, expr: phasesAndReady(0.5)},
			column{title: "p95", unit: units.Seconds, expr: phasesAndReady(0.95), more: tinted(steps(plain, step{60, warning}, step{600, critical}))},
			column{title: "p99", unit: units.Seconds, expr: phasesAndReady(0.99)},
			column{title: "Observed", unit: units.Short, expr: `round(sum by (cluster, deviceclass, phase) (increase(dra_allocation_duration_seconds_count{@classes}[$__range]))) > 0
or label_replace(round(sum by (cluster, deviceclass) (increase(dra_claim_ready_duration_seconds_count{@classes}[$__range]))) > 0, "phase", "ready", "deviceclass", ".*")`},
		).SortBy(byColumn("p95", true)),
		timeline(12, about{
			title: "Time until ready by class (p95)", unit: units.Seconds,
			reads: "From pending to running; multiple means several classes." + fewPods + anyNamespace,
			empty: noStarts,
		}, over(quantile(0.95, "cluster, deviceclass", readyBuckets, "$__rate_interval"), "{{deviceclass}} {{cluster}}")).ColorScheme(byName()),
		heat(12, about{
			title: "Distribution of the time until the first container runs", unit: units.Seconds,
			reads: "Darker means more pods. Two bands: pods that found free devices, and pods that did not." + anyNamespace,
			empty: noStarts,
		}, over(`sum by (le) (increase(`+readyBuckets+`[$__rate_interval]))`, "{{le}}")),
	}
}

// phasesAndReady is a quantile of each phase, and of all together as the phase
// ready; without those that have no observation.
func phasesAndReady(q float64) string {
	return quantile(q, "cluster, deviceclass, phase", phaseBuckets, "$__range") + "\nor label_replace(" +
		quantile(q, "cluster, deviceclass", readyBuckets, "$__range") + `, "phase", "ready", "deviceclass", ".*")`
}
