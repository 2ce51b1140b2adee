package boards

import (
	"github.com/grafana/grafana-foundation-sdk/go/units"
)

const (
	// anySelection says that upstream's families know neither.
	anySelection = " It follows neither the namespace nor the class."

	kubeletOperations = `operation:dra_operations_duration_seconds_bucket:rate5m`
	driverOperations  = `driver:dra_grpc_operations_duration_seconds_bucket:rate5m`

	noKubelet    = "Prometheus does not scrape the kubelets' own metrics, or the recording rules are not loaded"
	noScheduler  = "Prometheus does not scrape the scheduler"
	noController = "Prometheus does not scrape the controller manager"
)

// recordedQuantile is a quantile of a histogram whose rates are recorded.
func recordedQuantile(q, by, buckets string) string {
	return `histogram_quantile(` + q + `, sum by (` + by + `, le) (` + buckets + `)) >= 0`
}

// upstreamPanels are measured by the kubelet, the scheduler and the controller
// manager. 1.37 has given the controller's and scheduler's families another
// name; both are asked.
func upstreamPanels() []panel {
	return append(kubeletPanels(), append(schedulerPanels(), controllerPanels()...)...)
}

func kubeletPanels() []panel {
	return []panel{
		sparse(timeline(12, about{
			title: "Who makes preparation slow? (p95)", unit: units.Seconds,
			reads: "Ours is from binding until the sandbox is ready, with volumes and network. Of that, the kubelet's is PrepareResources, and of that, the driver's is NodePrepareResources. What ours has more is not the claims'." + anySelection,
			empty: "no pod has been prepared, or " + noKubelet + "; ours: with kubelets before 1.36 there is preparation_start alone",
		},
			over(quantile(0.95, "cluster", `dra_allocation_duration_seconds_bucket{@fleet, phase="preparation"}`, "$__rate_interval"), "preparation (ours) {{cluster}}"),
			over(recordedQuantile("0.95", "cluster", kubeletOperations+`{@fleet, operation_name="PrepareResources"}`), "kubelet {{cluster}}"),
			over(recordedQuantile("0.95", "cluster, driver_name", driverOperations+`{@fleet, method_name=~".*/NodePrepareResources"}`), "{{driver_name}} {{cluster}}"))),
		sparse(timeline(12, about{
			title: "The kubelet's and the drivers' releases (p95)", unit: units.Seconds,
			reads: "Until resources are unprepared a claim keeps its devices. A slow release shows as claims that terminate long." + anySelection,
			empty: "no pod has been released, or " + noKubelet,
		},
			over(recordedQuantile("0.95", "cluster", kubeletOperations+`{@fleet, operation_name="UnprepareResources"}`), "kubelet {{cluster}}"),
			over(recordedQuantile("0.95", "cluster, driver_name", driverOperations+`{@fleet, method_name=~".*/NodeUnprepareResources"}`), "{{driver_name}} {{cluster}}"))),
		timeline(12, about{
			title: "Errors of kubelets and drivers", unit: units.OpsPerSecond,
			reads: "Operations that failed. The kubelet tries again after some seconds, so that one pod that cannot be prepared shows as a low line that stays." + anySelection,
			empty: "nothing has failed, or " + noKubelet,
		},
			over(`sum by (cluster, operation_name) (`+kubeletOperations+`{@fleet, is_error="true", le="+Inf"})`, "kubelet {{operation_name}} {{cluster}}"),
			over(`sum by (cluster, driver_name, grpc_status_code) (`+driverOperations+`{@fleet, grpc_status_code!="OK", le="+Inf"})`, "{{driver_name}} {{grpc_status_code}} {{cluster}}")),
		bars(12, about{
			title: "Claims that kubelets have prepared, by driver", unit: units.Short,
			reads: "A claim with devices of several drivers counts for each of them, and once for any." + anySelection,
			empty: "no claim is in use, or Prometheus does not scrape the kubelets' own metrics",
		}, at(`sum by (cluster, driver_name) (dra_resource_claims_in_use{@fleet})`).LegendFormat("{{driver_name}} {{cluster}}")),
		bars(12, about{
			title: "Devices that NVIDIA's driver has prepared", unit: units.Short,
			reads: "By the kind of device, as the driver itself counts them. Fewer than are allocated means that pods are still being prepared, or cannot be." + anySelection,
			empty: "Prometheus does not scrape NVIDIA's DRA driver, or it prepares nothing",
		}, at(`sum by (cluster, device_type) (nvidia_dra_prepared_devices{@fleet}) > 0`).LegendFormat("{{device_type}} {{cluster}}")),
	}
}

func schedulerPanels() []panel {
	return []panel{
		sparse(timeline(12, about{
			title: "Waits for binding conditions (p95)", unit: units.Seconds,
			reads: "What the scheduler waited for drivers to make devices ready, and what the phase binding says of it. The scheduler gives up after its bindingTimeout, 10 minutes if nothing else is configured." + anySelection,
			empty: "no device has binding conditions, or " + noScheduler,
		},
			over(quantile(0.95, "cluster", `dra_allocation_duration_seconds_bucket{@fleet, phase="binding"}`, "$__rate_interval"), "binding (ours) {{cluster}}"),
			over(quantile(0.95, "cluster, driver", `scheduler_dra_bindingconditions_wait_duration_seconds_bucket{@fleet}`, "$__rate_interval"), "scheduler: {{driver}} {{cluster}}"))),
		listing(12, 8, about{
			title: "How waits for binding conditions ended", unit: units.Short,
			reads: "Allocations of the chosen time by how their wait ended; what is no success is scheduled anew." + anySelection,
			empty: "no device has binding conditions, or " + noScheduler,
		}, []key{
			{label: "cluster", title: "Cluster"},
			{label: "driver", title: "Driver"},
			{label: "status", title: "Status"},
		}, column{title: "Allocations", unit: units.Short, expr: `round(sum by (cluster, driver, status) (increase(scheduler_dra_bindingconditions_allocations_total{@fleet}[$__range]))) > 0`}),
		sparse(timeline(12, about{
			title: "Time in the scheduler's plugin DynamicResources (p95)", unit: units.Seconds,
			reads: "Filter is the search for devices, for each node that comes into question; PreBind writes the allocation and waits for binding conditions. The scheduler measures one attempt in ten." + anySelection,
			empty: "no pod with a claim was scheduled, or " + noScheduler,
		}, over(quantile(0.95, "cluster, extension_point", `scheduler_plugin_execution_duration_seconds_bucket{@fleet, plugin="DynamicResources"}`, "$__rate_interval"), "{{extension_point}} {{cluster}}"))),
	}
}

func controllerPanels() []panel {
	created := func(family string) string { return `rate(` + family + `{@fleet}[$__rate_interval])` }
	return []panel{
		timeline(12, about{
			title: "Claims in all: the controller's count and ours", unit: units.Short,
			reads: "Both should agree. Where ours is lower the exporter may not see all namespaces, or does not keep up. The controller's is asked by its names before and since 1.37." + anySelection,
			empty: noController + ", and " + noClusterRole,
		},
			over(`sum by (cluster) (max by (cluster, allocated, admin_access, source) ({__name__=~"dynamic_resource_allocation_resource_claims|resourceclaim_controller_resource_claims", @fleet}))`, "controller {{cluster}}"),
			over(claimsBy("cluster", "@fleet"), "ours {{cluster}}")),
		timeline(12, about{
			title: "Claims created by controller and scheduler", unit: units.OpsPerSecond,
			reads: "The controller manager creates claims from templates, the scheduler those for extended resources. What is no success leaves a pod waiting as claim_not_created or quota. Asked by the names before and since 1.37." + anySelection,
			empty: "no claim is created from a template or for an extended resource, or " + noController + " or the scheduler",
		}, over(`sum by (cluster, status) (
  `+created("dynamic_resource_allocation_resourceclaim_creates_total")+`
  or `+created("resourceclaim_controller_creates_total")+`
  or `+created("scheduler_resourceclaim_creates_total")+`
)`, "{{status}} {{cluster}}")),
		sparse(timeline(12, about{
			title: "Waits in the claim controller's queue (p95)", unit: units.Seconds,
			reads: "How long pods wait until the controller creates their claims, and claims until it takes away reservations of pods that are gone. Seconds here show as slow allocation of everybody." + anySelection,
			empty: "no claim has changed, or " + noController,
		}, over(quantile(0.95, "cluster", `workqueue_queue_duration_seconds_bucket{@fleet, name="resource_claim"}`, "$__rate_interval"), "{{cluster}} queue"))),
		timeline(12, about{
			title: "Pods evicted for tainted devices", unit: units.CountsPerMinute,
			reads: "What the taint controller has deleted, and what of that the exporter has seen. Pods of one device that fails are a few; many are a rule that hits more than was meant." + anySelection,
			empty: "no pod was evicted for a device, or " + noController + ", and " + noClusterRole,
		},
			over(`60 * sum by (cluster) (rate(device_taint_eviction_controller_pod_deletions_total{@fleet}[$__rate_interval]))`, "controller {{cluster}}"),
			over(`60 * sum by (cluster) (rate(dra_pod_taint_evictions_total{@fleet}[$__rate_interval]))`, "ours {{cluster}}")),
	}
}
