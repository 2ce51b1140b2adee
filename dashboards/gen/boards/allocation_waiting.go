package boards

import (
	"github.com/grafana/grafana-foundation-sdk/go/common"
	"github.com/grafana/grafana-foundation-sdk/go/units"
)

// reference are the labels of a pod's claim reference, or of its request of an
// extended resource.
const reference = "cluster, namespace, pod, pod_claim"

const (
	// waits is how long each reference has waited. While an exporter is being
	// replaced there may be two rows of one: the longer wait counts.
	waits = `topk by (` + reference + `) (1, max by (` + reference + `, resourceclaim, deviceclass) (time() - dra_claim_pending_since_timestamp_seconds{@claims}))`

	// reasons is 1 for the reason of each reference.
	reasons = `topk by (` + reference + `) (1, max by (` + reference + `, reason) (dra_claim_pending_reason_info{@namespaces}))`

	// waitsWithReason is waits with the reason as a label.
	waitsWithReason = waits + "\n* on (" + reference + ") group_left (reason)\n" + reasons
)

// listed is how many rows a table of references or pods has at most.
const listed = "100"

// notGated leaves out those that the scheduler must not look at yet.
func notGated(references string) string {
	return references + ` unless on (` + reference + `) dra_claim_pending_reason_info{@namespaces, reason=~"scheduling_gated|queue_quota"}`
}

// pendingNow are the pending claims, one by one.
func pendingNow() panel {
	return listing(24, 14, about{
		title: "Pending claims by reason and age", unit: units.Seconds,
		reads: "The " + listed + " oldest, with the first reason that applies. docs/pending.md has remedies, `dra-exporter explain pod NAMESPACE/POD` details. Claim is empty until it exists.",
		empty: noWaits, none: noneSeen,
	}, []key{
		{label: "cluster", title: "Cluster"},
		{label: "namespace", title: "Namespace", links: []link{toNamespace()}},
		{label: "pod", title: "Pod"},
		{label: "reason", title: "Reason"},
		{label: "pod_claim", title: "Reference", hidden: true},
		{label: "resourceclaim", title: "Claim", links: []link{toClaim()}, last: true},
		{label: "deviceclass", title: "Class", last: true},
	}, column{title: "Waiting", unit: units.Seconds, expr: `topk(` + listed + `, ` + waitsWithReason + `)`, more: tinted(waitSteps())})
}

// pendingByReason counts them by how long they have waited.
func pendingByReason() panel {
	return listing(12, 12, about{
		title: "Pending claims by reason and time", unit: units.Short,
		reads: "scheduling_gated and queue_quota are gated, not pending. Claims older than 15 minutes are seldom allocated without action.",
		empty: noWaits, none: noneSeen,
	}, []key{{label: "cluster", title: "Cluster"}, {label: "reason", title: "Reason"}}, ages()...)
}

func pendingPanels() []panel {
	return []panel{
		requestStages(),
		stacked(12, about{
			title: "Pending and gated claims over time, by reason", unit: units.Short,
			reads: "A permanent step is a shortage or a mistake, peaks are bursts. insufficient_devices and fragmented need devices." + anyClass,
			empty: noWaits, none: noneSeen,
		}, over(`count by (cluster, reason) (max by (`+reference+`, reason) (dra_claim_pending_reason_info{@namespaces}))`, "{{reason}} {{cluster}}")),
	}
}

// ages are the columns of a table of waits by their length.
func ages() []column {
	aged := func(title, which string) column {
		return column{title: title, unit: units.Short, expr: `count by (cluster, reason) ((` + waitsWithReason + `)` + which + `)`}
	}
	old := aged("> 1 h", " >= 3600")
	old.more = tinted(anyIs(critical))
	return []column{
		aged("All", ""),
		aged("< 5 min", " < 300"),
		aged("5–15 min", " >= 300 < 900"),
		aged("15–60 min", " >= 900 < 3600"),
		old,
	}
}

// requestStages is a row for each request of those that wait longest: what it asks for,
// and what each stage leaves.
func requestStages() panel {
	const of = "cluster, name, asked_by"
	// The labels of a request in two columns; those that wait longest alone.
	rows := func(rows string) string {
		return `max by (` + of + `) (label_join(label_join(` + rows + `, "name", "/", "namespace", "pod"), "asked_by", "/", "pod_claim", "request"))`
	}
	oldest := ` and on (` + reference + `) topk(` + listed + `, ` + waits + `)`
	stage := func(title, name string) column {
		return column{
			title: title, unit: units.Short, more: tinted(steps(critical, step{1, plain})),
			expr: rows(`(dra_claim_pending_candidates{@namespaces, stage="` + name + `"}` + oldest + `)`),
		}
	}
	return listing(24, 10, about{
		title: "Devices after each stage, by request", unit: units.Short,
		reads: "The " + listed + " oldest pending claims. A request fails at the first number below Asked; 0 is red. Asked is empty for all matching devices. Each alternative has a row.",
		none:  noneSeen,
		empty: noWaits + "; gated and undiagnosed claims have no stages",
	}, []key{
		{label: "cluster", title: "Cluster"},
		{label: "name", title: "Pod"},
		{label: "asked_by", title: "Reference / request"},
	},
		column{title: "Waiting", hidden: true, expr: rows(`(dra_claim_pending_candidates{@namespaces, stage="published"} * 0 + on (` + reference + `) group_left () topk(` + listed + `, max by (` + reference + `) (` + waits + `)))`)},
		column{title: "Asked", unit: units.Short, expr: rows(`(dra_claim_pending_requested_devices{@namespaces}` + oldest + `)`)},
		stage("Published", "published"),
		stage("In the class", "class"),
		stage("Selected", "selectors"),
		stage("Untainted", "untainted"),
		stage("Free", "free"),
		stage("On the best node", "best_node"),
	)
}

func failurePanels() []panel {
	const empty = "no such class, or " + noClusterRole
	return []panel{
		stacked(12, about{
			title: "Failures per minute, by reason", unit: units.Short,
			reads: "binding_failed and preparation_failed: see driver and kubelet; claim_creation_failed: the control plane." + anyNamespace,
			empty: "no failure, or " + empty, none: noneSeen,
		}, over(`60 * sum by (cluster, reason) (rate(dra_allocation_failures_total{@classes}[$__rate_interval])) > 0`, "{{reason}} {{cluster}}")).
			DrawStyle(common.GraphDrawStyleBars).
			FillOpacity(80),
		listing(24, 8, about{
			title: "Failures by class and reason in the range", unit: units.Short,
			reads: "How often each reason began while the exporter ran. An empty class is unknown." + anyNamespace,
			empty: "no failure, or " + empty, none: noneSeen,
		}, []key{
			{label: "cluster", title: "Cluster"},
			{label: "deviceclass", title: "Class"},
			{label: "reason", title: "Reason"},
		}, column{title: "Failures", unit: units.Short, expr: `round(sum by (cluster, deviceclass, reason) (increase(dra_allocation_failures_total{@classes}[$__range]))) > 0`}),
	}
}

const (
	underWay = "cluster, namespace, pod, resourceclaim, phase"

	// stuck are phases that last too long: those after which alerts fire.
	stuck = `max by (` + underWay + `) (time() - dra_claim_phase_since_timestamp_seconds{@namespaces, phase=~"binding|scheduling"}) > 300
  or max by (` + underWay + `) (time() - dra_claim_phase_since_timestamp_seconds{@namespaces, phase="preparation"}) > 600
  or max by (` + underWay + `) (time() - dra_claim_phase_since_timestamp_seconds{@namespaces, phase=~"start|preparation_start"}) > 1800`
)

func stuckPanels() []panel {
	const claim = "cluster, namespace, resourceclaim"
	return []panel{
		listing(24, 8, about{
			title: "Pods with allocated claims that do not run yet", unit: units.Seconds,
			reads: "They hold devices and do not use them. binding depends on the driver, preparation on kubelet and driver, start on images. The " + listed + " slowest." + anyClass,
			none:  noneSeen,
			empty: "no such pod exists, or " + noReaders,
		}, []key{
			{label: "cluster", title: "Cluster"},
			{label: "namespace", title: "Namespace", links: []link{toNamespace()}},
			{label: "pod", title: "Pod"},
			{label: "resourceclaim", title: "Claim", links: []link{toClaim()}},
			{label: "phase", title: "Phase"},
		}, column{
			title: "For", unit: units.Seconds, more: tinted(steps(plain, step{300, warning}, step{600, critical})),
			expr: `topk(` + listed + `, max by (` + underWay + `) (time() - dra_claim_phase_since_timestamp_seconds{@namespaces}))`,
		}),
		listing(24, 8, about{
			title: "Stuck and orphaned claims", unit: units.Seconds,
			reads: "Terminating because of a finalizer, or reserved only for pods that are gone. Both hold devices." + anyClass,
			none:  noneSeen,
			empty: "there is no such claim, or " + noClusterRole,
		}, []key{
			{label: "cluster", title: "Cluster"},
			{label: "namespace", title: "Namespace", links: []link{toNamespace()}},
			{label: "resourceclaim", title: "Claim", links: []link{toClaim()}},
		},
			column{
				title: "Being deleted for", unit: units.Seconds, more: tinted(waitSteps()),
				expr: `max by (` + claim + `) (time() - dra_claim_terminating_since_timestamp_seconds{@namespaces})`,
			},
			column{
				title: "Pods", more: append(tinted(steps(warning)), property("mappings", words(named{"1", "none exists", warning}))),
				expr: `max by (` + claim + `) (dra_claim_orphaned{@namespaces}) == 1`,
			}),
	}
}
