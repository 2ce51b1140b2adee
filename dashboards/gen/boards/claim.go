package boards

import (
	"slices"

	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/units"
)

// claimHere selects what the node's agent reports for the claim.
const claimHere = `@claim, node="$node"`

// needsClaim is why panels of what the claim holds are empty.
const needsClaim = "no held device, or no agent"

// whereverItIs is said where a panel does not ask for the node.
const whereverItIs = " Not filtered by node."

// claim is one claim: what it is, what it holds, what it does with that, for whom,
// what it waits for and what is wrong with it. It queries the exporter's own
// families, so that it works where no rules are loaded.
func claim() Board {
	return Board{
		UID:         uidClaim,
		Title:       "DRA / Claim",
		description: "One ResourceClaim: its devices, pods, phases, health and use. It holds no device while pending, after its end, or with admin access. Of several nodes, one is shown. Choose one cluster: claims of one name are added up.",
		variables:   claimVariables(),
		marks:       marks{devices: "@node", exporters: agent},
		rows: []row{
			{panels: slices.Concat([]panel{chosenClaim()}, claimNow(), claimWaits(), []panel{claimStages()}, claimDevices())},
			{title: "Pods and class", panels: claimIdentity()},
			{title: "Health of its devices", panels: claimHealth()},
			{title: "Use of its devices", panels: claimUse()},
			{title: "Totals in the range", folded: true, panels: claimTotals()},
			{title: "Topology", folded: true, panels: claimTopology()},
			{title: "Power, traffic, engines and throttling", folded: true, panels: claimActivity()},
		},
	}
}

// claimVariables are the choices of the board.
func claimVariables() []cog.Builder[dashboard.VariableModel] {
	return []cog.Builder[dashboard.VariableModel]{
		dataSource(), cluster(),
		// A link may name a claim that does not exist in the time range: to show
		// another in its place would be worse than to show nothing.
		one("namespace", "Namespace", `label_values({__name__=~"`+claimFamilies+`", @fleet}, namespace)`).AllowCustomValue(true),
		one("resourceclaim", "Claim", `label_values({__name__=~"`+claimFamilies+`", @fleet, namespace="$namespace"}, resourceclaim)`).AllowCustomValue(true),
		one("node", "Node", `label_values(dra_claim_info{@claim}, node)`),
	}
}

// claimFamilies are families with a row for each claim that is held, waits, starts,
// is being deleted or was left behind.
const claimFamilies = "dra_claim_info|dra_claim_pending_since_timestamp_seconds|dra_claim_phase_since_timestamp_seconds|dra_claim_terminating_since_timestamp_seconds|dra_claim_orphaned"

// device is a claim's value of each device; not of those whose value is shared.
func device(family string) string {
	return `max by (cluster, node, uuid) (` + family + `{` + claimHere + `, attribution!="shared"})`
}

// holds is 1 for each device that the claim holds now.
const holds = `max by (cluster, node, uuid) (dra_claim_held{` + claimHere + `} == 1)`

// concerns is 1 for each device that the claim holds, and for each whole device of
// which it holds a partition: a failure of that device affects the claim, too.
const concerns = `(
  ` + holds + `
  or label_replace(
    max by (cluster, node, parent_uuid) (dra_device_info{@node, parent_uuid!=""} and on (cluster, node, uuid) ` + holds + `),
    "uuid", "$1", "parent_uuid", "(.+)"
  )
)`

// unhealthy counts devices that any source reports as unhealthy. It is 0 where all
// sources that report a device report it as healthy.
const unhealthy = `sum((
  min by (cluster, node, uuid) (dra_device_healthy{@node}) and on (cluster, node, uuid) ` + holds + `
) == bool 0)`

// idleSince is there while all devices of the claim that report it are idle.
const idleSince = `max by (cluster) (dra_claim_idle_since_timestamp_seconds{` + claimHere + `})
unless on (cluster) (
  dra_claim_utilization_ratio{` + claimHere + `}
  unless on (cluster, node, uuid) dra_claim_idle_since_timestamp_seconds{` + claimHere + `}
)`

// behind is since when a pod waits for the claim, or for its devices.
const behind = `min(
  dra_claim_pending_since_timestamp_seconds{@claim}
  or dra_claim_phase_since_timestamp_seconds{@claim}
)`

// chosenClaim says which claim is shown: without a choice it is the first by name.
func chosenClaim() panel {
	return note("Chosen claim", "Grafana chooses the first claim by name if no link or reader does.",
		"**$resourceclaim** in namespace **$namespace**. Choose another above, or by its name on [Claims]("+link{uid: uidClaims}.url(nil)+") or [Allocation]("+link{uid: uidAllocation}.url(nil)+").")
}

func claimNow() []panel {
	return []panel{
		number(4, about{
			title: "Devices", unit: units.Short,
			reads: "With partitions, held now.",
			empty: "no agent and not pending",
		}, at(`count(`+holds+`)
or 0 * count(dra_claim_pending_since_timestamp_seconds{@claim})`)).ColorScheme(always(neutral)),
		number(4, about{
			title: "Utilization", unit: units.PercentUnit,
			reads: "Mean over its devices, without shared devices that are not split.",
			empty: "not reported or not split, or " + needsClaim,
		}, at(`avg(`+device("dra_claim_utilization_ratio")+`)`)).
			Thresholds(steps(critical, step{0.2, warning}, step{0.5, good})).ColorScheme(byThresholds()),
		number(4, about{
			title: "Memory in use", unit: units.PercentUnit,
			reads: "Of the memory given to the claim. Above 95 %, the next allocation may fail.",
			empty: "not reported or not split, or " + needsClaim,
		}, at(`sum(`+device("dra_claim_memory_used_bytes")+`)
/ (sum(
  max by (cluster, node, uuid) (dra_claim_memory_allocated_bytes{`+claimHere+`})
  and on (cluster, node, uuid) `+device("dra_claim_memory_used_bytes")+`
) > 0)`)).
			Thresholds(steps(good, step{0.9, warning}, step{0.95, critical})).ColorScheme(byThresholds()),
		number(4, about{
			title: "Idle since", unit: units.DateTimeFromNow,
			reads: "Since when it has used none of its devices.",
			none:  "not seen idle",
			empty: "it uses one, not reported, or " + needsClaim,
		}, at(`max(`+idleSince+`) * 1000`)).ColorScheme(always(warning)),
		number(4, about{
			title: "Unhealthy devices", unit: units.Short,
			reads: "As reported by hardware, driver or kubelet. Reasons are below.",
			empty: "not reported, or " + needsClaim,
		}, at(unhealthy)).Thresholds(anyIs(critical)).ColorScheme(byThresholds()),
		number(4, about{
			title: "Pending since", unit: units.DateTimeFromNow,
			reads: "The oldest pod waits for allocation, or for its first container." + whereverItIs,
			none:  "none seen",
			empty: "no pod waits for it, or no cluster role",
		}, at(behind+` * 1000`)).ColorScheme(always(warning)),
	}
}

// detailed is each device of the claim, by each request that got it, with its
// model and partition profile where they are known.
const detailed = `topk by (cluster, node, request, deviceclass, driver, pool, device, uuid) (1,
  max by (cluster, node, request, deviceclass, driver, pool, device, uuid) (dra_claim_device_info{` + claimHere + `})
  * on (cluster, node, uuid) group_left (model, partition_profile)
  topk by (cluster, node, uuid) (1, max by (cluster, node, uuid, model, partition_profile) (dra_device_info{@node}))
)`

// ofDetailed gives a level of devices the labels of the rows of the table of
// devices.
func ofDetailed(level string) string {
	return detailed + "\n* on (cluster, node, uuid) group_left ()\n(" + level + ")"
}

func claimDevices() []panel {
	return []panel{
		listing(24, 6, about{
			title: "Devices of the claim", unit: units.Short,
			reads: "Devices that no source reads may be one row. Without a utilization, it is not reported or not split.",
			empty: "not used on this node, or no agent there",
		}, []key{
			{label: "cluster", title: "Cluster"},
			{label: "request", title: "Request"},
			{label: "driver", title: "Driver"},
			{label: "device", title: "Device"},
			{label: "model", title: "Model"},
			{label: "partition_profile", title: "Profile"},
			{label: "uuid", title: "UUID", last: true},
		},
			column{title: "Utilization", unit: units.PercentUnit, expr: byRequest(ofDetailed(device("dra_claim_utilization_ratio"))), more: gauge(steps(critical, step{0.2, warning}, step{0.5, good}))},
			column{title: "Memory", unit: units.BytesIEC, expr: byRequest(ofDetailed(device("dra_claim_memory_used_bytes")))},
			column{title: "Health", expr: byRequest(ofDetailed(`min by (cluster, node, uuid) (dra_device_healthy{@node})`)), more: healthWords()},
			column{title: "Number", unit: units.Short, expr: byRequest(ofDetailed(`max by (cluster, node, uuid) (dra_claim_bundled_devices{` + claimHere + `})`))},
			column{title: "Allocated", expr: byRequest(detailed), hidden: true},
		),
	}
}

func claimIdentity() []panel {
	return []panel{
		listing(24, 2, about{
			title: "The claim", unit: units.Short,
			reads: "Its class (or multiple), template and sharing; whether it has admin access (it holds nothing) or is for an extended resource.",
			empty: "not used on this node, or no agent there",
		}, []key{
			{label: "cluster", title: "Cluster"},
			{label: "node", title: "Node", links: []link{toNode()}},
			{label: "deviceclass", title: "Class"},
			{label: "template", title: "Template"},
			{label: "sharing", title: "Sharing"},
			{label: "admin_access", title: "Admin access"},
			{label: "extended_resource", title: "Extended resource"},
			{label: "claim_uid", title: "UID", last: true},
		}, column{title: "Devices", expr: `max by (cluster, node, deviceclass, template, sharing, admin_access, extended_resource, claim_uid) (dra_claim_info{` + claimHere + `})
* on (cluster, node) group_left ()
sum by (cluster, node) (
  max by (cluster, node, uuid) (dra_claim_bundled_devices{` + claimHere + `})
  or max by (cluster, node, uuid) (dra_claim_device_info{` + claimHere + `})
)`}),
		listing(24, 4, about{
			title: "Pods and containers", unit: units.Short,
			reads: "Pods remain for some minutes after their end (--ledger.grace).",
			empty: "no pod of the claim on this node, or no agent there",
		}, []key{
			{label: "cluster", title: "Cluster"},
			{label: "pod", title: "Pod"},
			{label: "container", title: "Container"},
			{label: "owner_kind", title: "Owner"},
			{label: "owner_name", title: "Owner's name"},
		}, column{title: "Devices", expr: `count by (cluster, pod, container, owner_kind, owner_name) (
  max by (cluster, pod, container, owner_kind, owner_name, uuid) (dra_claim_consumer_info{` + claimHere + `})
)`}),
		listing(24, 4, about{
			title: "Workload of its pods", unit: units.Short,
			reads: "The workload of each pod, and the pod's place there.",
			empty: "no workload, no pod on this node, or no agent there",
		}, []key{
			{label: "cluster", title: "Cluster"},
			{label: "namespace", title: "Namespace", links: []link{toNamespace()}},
			{label: "workload_kind", title: "Kind"},
			{label: "workload", title: "Workload", links: []link{toWorkload()}},
			{label: "role", title: "Role"},
			{label: "rank", title: "Rank"},
			{label: "pod", title: "Pod"},
		}, column{title: "Pods", expr: `max by (cluster, namespace, workload_kind, workload, role, rank, pod) (
  dra_pod_workload_info{@fleet, namespace="$namespace", node="$node"}
  and on (cluster, node, namespace, pod) dra_claim_consumer_info{` + claimHere + `}
)`, hidden: true}),
	}
}

func claimTopology() []panel {
	return []panel{
		listing(24, 4, about{
			title: "Alignment of its devices", unit: units.Short,
			reads: "devices: with each other; network: each with its nearest adapter. Best: what so many devices of the node could be. link: NVLink or xGMI.",
			empty: "only one device, none on this node, or no agent there",
		}, alignmentKeys(), column{title: "Rows", expr: `max by (cluster, between, alignment, best) (dra_claim_topology_info{` + claimHere + `})`, hidden: true}),
	}
}

// alignmentKeys are the columns of how near devices are to each other.
func alignmentKeys() []key {
	return []key{
		{label: "cluster", title: "Cluster"},
		{label: "between", title: "Between"},
		{label: "alignment", title: "Alignment"},
		{label: "best", title: "Best"},
	}
}

// byRequest leaves the labels out that are no column.
func byRequest(expr string) string {
	return "max by (cluster, request, driver, device, model, partition_profile, uuid) (\n" + expr + "\n)"
}
