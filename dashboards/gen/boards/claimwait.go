package boards

import (
	"github.com/grafana/grafana-foundation-sdk/go/units"
)

const (
	ofReference = "cluster, namespace, pod, pod_claim"

	// noPodWaits is why the tables of waits are empty.
	noPodWaits = "no pod waits, or no cluster role"

	// waitsForIt are the references of pods that wait for the claim.
	waitsForIt = `max by (` + ofReference + `) (dra_claim_pending_since_timestamp_seconds{@claim})`

	// whyInNamespace is why each reference of the namespace waits.
	whyInNamespace = `topk by (` + ofReference + `) (1, max by (` + ofReference + `, reason) (dra_claim_pending_reason_info{@fleet, namespace="$namespace"}))`
)

// stage is what a stage leaves for each request that waits for the
// claim.
func stage(name string) string {
	return `max by (cluster, pod, request) (
  dra_claim_pending_candidates{@fleet, namespace="$namespace", stage="` + name + `"}
  and on (` + ofReference + `) ` + waitsForIt + `
)`
}

// claimWaits are the pods that wait for the claim or for its devices, and what keeps
// the claim from its end.
func claimWaits() []panel {
	return []panel{
		listing(16, 2, about{
			title: "Its pods that do not run yet", unit: units.Short,
			reads: "Pending: the first reason that applies; remedies are in docs/pending.md, details in `dra-exporter explain pod`. Allocated: the phase. If binding or preparation does not end, check driver or kubelet; if start does not, the image." + whereverItIs,
			empty: noPodWaits, none: noneSeen,
		}, []key{
			{label: "cluster", title: "Cluster"},
			{label: "pod", title: "Pod"},
			{label: "reason", title: "Reason"},
			{label: "phase", title: "Phase"},
			{label: "pod_claim", title: "Reference", last: true},
		}, column{title: "Since", unit: units.DateTimeFromNow, expr: `1000 * (
  max by (cluster, pod, pod_claim, reason) (
    ` + waitsForIt + ` * on (` + ofReference + `) group_left (reason) ` + whyInNamespace + `
    or on (` + ofReference + `) ` + waitsForIt + `
  )
  or max by (cluster, pod, phase) (dra_claim_phase_since_timestamp_seconds{@claim})
)`}),
		number(4, about{
			title: "Being deleted since", unit: units.DateTimeFromNow,
			reads: "Because of a finalizer: usually a pod still uses the claim, or its driver does not run." + whereverItIs,
			none:  "not seen",
			empty: "it is not being deleted, or no cluster role",
		}, at(`max(dra_claim_terminating_since_timestamp_seconds{@claim}) * 1000`)).ColorScheme(always(warning)).Height(tableHeight(2)),
		number(4, about{
			title: "Orphaned", unit: units.Bool,
			reads: "True: reserved only for pods that are gone, and still holds devices." + whereverItIs,
			none:  "not seen",
			empty: "it is not orphaned, or no cluster role",
		}, at(`max(dra_claim_orphaned{@claim})`)).Thresholds(anyIs(critical)).ColorScheme(byThresholds()).Height(tableHeight(2)),
	}
}

// claimStages is what each stage leaves for the requests of the claim while it waits.
func claimStages() panel {
	none := steps(critical, step{1, plain})
	return listing(24, 2, about{
		title: "Devices after each stage", unit: units.Short,
		reads: "The request fails at the first stage with fewer devices than requested. free: not held, of a complete pool. Best node: the most on one node." + whereverItIs,
		none:  noneSeen,
		empty: noPodWaits + "; the claim or class does not exist",
	}, []key{
		{label: "cluster", title: "Cluster"},
		{label: "pod", title: "Pod"},
		{label: "request", title: "Request"},
	},
		column{title: "Asked", expr: `max by (cluster, pod, request) (
  dra_claim_pending_requested_devices{@fleet, namespace="$namespace"}
  and on (` + ofReference + `) ` + waitsForIt + `
)`},
		column{title: "Published", expr: stage("published"), more: tinted(none)},
		column{title: "Class", expr: stage("class"), more: tinted(none)},
		column{title: "Selectors", expr: stage("selectors"), more: tinted(none)},
		column{title: "Untainted", expr: stage("untainted"), more: tinted(none)},
		column{title: "Free", expr: stage("free"), more: tinted(none)},
		column{title: "Best node", expr: stage("best_node"), more: tinted(none)},
	)
}
