package boards

import (
	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/units"
)

const (
	kubeletOperations = `operation:dra_operations_duration_seconds_bucket:rate5m`
	driverOperations  = `driver:dra_grpc_operations_duration_seconds_bucket:rate5m`

	noKubelet    = "no scrape of kubelets, or no recording rules"
	noScheduler  = "no scrape of the scheduler"
	noController = "no scrape of the controller manager"

	noPodGroups = "no pod groups (from Kubernetes 1.37, with GenericWorkload), or " + noScheduler
)

// recordedQuantile is a quantile of a histogram whose rates are recorded.
func recordedQuantile(q, by, buckets string) string {
	return `histogram_quantile(` + q + `, sum by (` + by + `, le) (` + buckets + `)) >= 0`
}

// allocationKubernetes is what the kubelet, the scheduler and the controller manager
// measure. 1.37 has given the controller's and scheduler's families another name; both
// are asked. What 1.37 has added is empty before.
func allocationKubernetes() Board {
	return Board{
		UID:         uidAllocation + "-kubernetes",
		Title:       "DRA / Allocation in Kubernetes",
		description: "Allocation and preparation as measured by kubelets, drivers, scheduler and controller manager, which Prometheus must scrape.",
		from:        "now-6h",
		variables:   []cog.Builder[dashboard.VariableModel]{dataSource(), cluster()},
		rows: []row{
			{panels: append([]panel{note("Scrapes that this board needs",
				"Panels of what is not scraped are empty. The exporter's own durations are on DRA / Allocation.",
				"/metrics of kubelets, kube-scheduler, kube-controller-manager and of the drivers, and the set `kubernetes` of recording rules.")}, kubernetesNow()...)},
			{title: "Kubelets and drivers", panels: kubeletPanels()},
			{title: "Scheduler", panels: schedulerPanels()},
			{title: "Controller manager", panels: controllerPanels()},
		},
	}
}

func kubernetesNow() []panel {
	return []panel{
		listing(12, 8, about{
			title: "Claims that kubelets have prepared, by driver", unit: units.Short,
			reads: "Claims with devices of several drivers count for each, and once for any.",
			empty: "no claim is in use, or no scrape of kubelets",
		}, []key{{label: "cluster", title: "Cluster"}, {label: "driver_name", title: "Driver"}},
			column{title: "Claims", expr: `sum by (cluster, driver_name) (dra_resource_claims_in_use{@fleet})`}),
		listing(12, 8, about{
			title: "Devices that NVIDIA's driver has prepared", unit: units.Short,
			reads: "As counted by the driver. Fewer than allocated: pods are being prepared, or cannot be.",
			empty: "no scrape of the driver, or nothing is prepared",
		}, []key{{label: "cluster", title: "Cluster"}, {label: "device_type", title: "Type"}},
			column{title: "Devices", expr: `sum by (cluster, device_type) (nvidia_dra_prepared_devices{@fleet}) > 0`}),
		listing(24, 8, about{
			title: "Results of binding conditions in the range", unit: units.Short,
			reads: "Allocations by result; all except success are scheduled again.",
			empty: "no device has binding conditions, or " + noScheduler,
		}, []key{
			{label: "cluster", title: "Cluster"},
			{label: "driver", title: "Driver"},
			{label: "status", title: "Status"},
		}, column{title: "Allocations", unit: units.Short, expr: `round(sum by (cluster, driver, status) (increase(scheduler_dra_bindingconditions_allocations_total{@fleet}[$__range]))) > 0`}),
	}
}

func kubeletPanels() []panel {
	return []panel{
		timeline(12, about{
			title: "Preparation by component (p95)", unit: units.Seconds,
			reads: "exporter: from binding until the sandbox is ready, with volumes and network; kubelet: PrepareResources, a part of it; drivers: NodePrepareResources, a part of that. The rest is not caused by claims.",
			empty: "none was prepared, or " + noKubelet + "; exporter: before kubelet 1.36",
		},
			over(quantile(0.95, "cluster", `dra_allocation_duration_seconds_bucket{@fleet, phase="preparation"}`, "$__rate_interval"), "preparation (exporter) {{cluster}}"),
			over(recordedQuantile("0.95", "cluster", kubeletOperations+`{@fleet, operation_name="PrepareResources"}`), "kubelet {{cluster}}"),
			over(recordedQuantile("0.95", "cluster, driver_name", driverOperations+`{@fleet, method_name=~".*/NodePrepareResources"}`), "{{driver_name}} {{cluster}}")),
		timeline(12, about{
			title: "Unpreparation by kubelet and driver (p95)", unit: units.Seconds,
			reads: "If this is slow, claims keep their devices longer and terminate slowly.",
			empty: "none was unprepared, or " + noKubelet,
		},
			over(recordedQuantile("0.95", "cluster", kubeletOperations+`{@fleet, operation_name="UnprepareResources"}`), "kubelet {{cluster}}"),
			over(recordedQuantile("0.95", "cluster, driver_name", driverOperations+`{@fleet, method_name=~".*/NodeUnprepareResources"}`), "{{driver_name}} {{cluster}}")),
		timeline(12, about{
			title: "Errors of kubelets and drivers", unit: units.OpsPerSecond,
			reads: "Kubelets retry after seconds: one pod that cannot be prepared is a low constant line.",
			empty: "no failure, or " + noKubelet,
		},
			over(`sum by (cluster, operation_name) (`+kubeletOperations+`{@fleet, is_error="true", le="+Inf"})`, "kubelet {{operation_name}} {{cluster}}"),
			over(`sum by (cluster, driver_name, grpc_status_code) (`+driverOperations+`{@fleet, grpc_status_code!="OK", le="+Inf"})`, "{{driver_name}} {{grpc_status_code}} {{cluster}}")),
		timeline(12, about{
			title: "Skipped preparations and unpreparations", unit: units.CountsPerMinute,
			reads: "Slices say that devices need no preparation (skipNodeOperations). Such claims have no preparation time.",
			empty: "no driver skips them, Kubernetes before 1.37 or without DRAOptionalNodeOperations, or " + noKubelet,
		},
			over(`60 * sum by (cluster, driver_name) (rate(dra_node_prepare_skips_total{@fleet}[$__rate_interval]))`, "{{driver_name}} preparations {{cluster}}"),
			over(`60 * sum by (cluster, driver_name) (rate(dra_node_unprepare_skips_total{@fleet}[$__rate_interval]))`, "{{driver_name}} unpreparations {{cluster}}")),
	}
}

func schedulerPanels() []panel {
	return []panel{
		timeline(12, about{
			title: "Waits for binding conditions (p95)", unit: units.Seconds,
			reads: "Until drivers made devices ready, and the phase binding. The scheduler stops after bindingTimeout, 10 minutes by default.",
			empty: "no device has binding conditions, or " + noScheduler,
		},
			over(quantile(0.95, "cluster", `dra_allocation_duration_seconds_bucket{@fleet, phase="binding"}`, "$__rate_interval"), "binding (exporter) {{cluster}}"),
			over(quantile(0.95, "cluster, driver", `scheduler_dra_bindingconditions_wait_duration_seconds_bucket{@fleet}`, "$__rate_interval"), "scheduler: {{driver}} {{cluster}}")),
		timeline(12, about{
			title: "Time in the scheduler's plugin DynamicResources (p95)", unit: units.Seconds,
			reads: "Filter searches for devices; PreBind writes the allocation and waits for binding conditions. One attempt in ten is measured.",
			empty: "no pod with a claim scheduled, or " + noScheduler,
		}, over(quantile(0.95, "cluster, extension_point", `scheduler_plugin_execution_duration_seconds_bucket{@fleet, plugin="DynamicResources"}`, "$__rate_interval"), "{{extension_point}} {{cluster}}")),
		timeline(12, about{
			title: "Attempts to schedule pod groups", unit: units.CountsPerMinute,
			reads: "A group is scheduled as a whole: if it is unschedulable, all its claims are pending.",
			empty: noPodGroups,
		}, over(`60 * sum by (cluster, result) (rate(scheduler_podgroup_schedule_attempts_total{@fleet}[$__rate_interval]))`, "{{result}} {{cluster}}")),
		timeline(12, about{
			title: "Duration of attempts to schedule pod groups (p95)", unit: units.Seconds,
			reads: "One attempt searches devices for all pods of the group.",
			empty: noPodGroups,
		}, over(quantile(0.95, "cluster, result", `scheduler_podgroup_scheduling_attempt_duration_seconds_bucket{@fleet}`, "$__rate_interval"), "{{result}} {{cluster}}")),
		stairs(24, about{
			title: "Pods that wait for others of their pod group", unit: units.Short,
			reads: "Their claims are pending. incomplete: the group needs more pods; pending: pods wait until it is scheduled.",
			empty: noPodGroups,
		}, over(`sum by (cluster, queue) (scheduler_pending_pods{@fleet, queue=~"incomplete|pending"})`, "{{queue}} {{cluster}}")),
	}
}

func controllerPanels() []panel {
	created := func(family string) string { return `rate(` + family + `{@fleet}[$__rate_interval])` }
	return []panel{
		timeline(12, about{
			title: "Claims: counts of the controller and the exporter", unit: units.Short,
			reads: "Both should be equal. If the exporter's is lower, it cannot read all namespaces, or is delayed.",
			empty: noController + ", and " + noClusterRole,
		},
			over(`sum by (cluster) (max by (cluster, allocated, admin_access, source) ({__name__=~"dynamic_resource_allocation_resource_claims|resourceclaim_controller_resource_claims", @fleet}))`, "controller {{cluster}}"),
			over(claimsBy("cluster", "@fleet"), "exporter {{cluster}}")),
		timeline(12, about{
			title: "Claims created by controller and scheduler", unit: units.OpsPerSecond,
			reads: "The scheduler creates those of extended resources. Without success, pods are pending as claim_not_created or quota.",
			empty: "no such claim is created, or " + noController + " or the scheduler",
		}, over(`sum by (cluster, status) (
  `+created("dynamic_resource_allocation_resourceclaim_creates_total")+`
  or `+created("resourceclaim_controller_creates_total")+`
  or `+created("scheduler_resourceclaim_creates_total")+`
)`, "{{status}} {{cluster}}")),
		timeline(12, about{
			title: "Waits in the claim controller's queue (p95)", unit: units.Seconds,
			reads: "Before the controller creates claims or removes reservations. Seconds here slow down all allocations.",
			empty: "no claim has changed, or " + noController,
		}, over(quantile(0.95, "cluster", `workqueue_queue_duration_seconds_bucket{@fleet, name="resource_claim"}`, "$__rate_interval"), "queue {{cluster}}")),
		timeline(12, about{
			title: "Pods evicted for tainted devices", unit: units.CountsPerMinute,
			reads: "Many pods at once indicate a rule that selects too many devices.",
			empty: "none was evicted, or " + noController + ", and " + noClusterRole,
		},
			over(`60 * sum by (cluster) (rate(device_taint_eviction_controller_pod_deletions_total{@fleet}[$__rate_interval]))`, "controller {{cluster}}"),
			over(`60 * sum by (cluster) (rate(dra_pod_taint_evictions_total{@fleet}[$__rate_interval]))`, "exporter {{cluster}}")),
	}
}
