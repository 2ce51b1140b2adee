// Package releases describes in what the supported releases of Kubernetes
// differ, for the end-to-end tests and for docs/compatibility.md.
package releases

import (
	"slices"
	"strconv"
	"strings"
)

// Oldest and Newest are the minor versions of the supported releases.
const (
	Oldest = 34
	Newest = 37
)

// Stage is how a release has a feature.
type Stage int

// Missing features are not in the release. Off features need their feature gate
// or API version, which the tests turn on.
const (
	Missing Stage = iota
	Off
	On
)

// A Feature of Kubernetes is one that the exporter uses.
type Feature struct {
	ID       ID
	Name     string
	Stages   [Newest - Oldest + 1]Stage
	Exporter string // what the exporter reports with it
	Probe    Probe  // how a cluster is asked for it
	Test     string // the requirement's test that proves it, or its absence
}

// ID identifies a feature.
type ID string

// Features that not every release has, or that are off in one of them.
const (
	AdminAccess           ID = "admin-access"
	PrioritizedList       ID = "prioritized-list"
	ExtendedResources     ID = "extended-resources"
	ImplicitResources     ID = "implicit-extended-resources"
	ConsumableCapacity    ID = "consumable-capacity"
	CapacityRanges        ID = "capacity-ranges"
	BindingConditions     ID = "binding-conditions"
	BindingMetrics        ID = "metrics-of-binding-conditions"
	PartitionableDevices  ID = "partitionable-devices"
	CountersOfOtherSlices ID = "counters-of-other-slices"
	IncompletePools       ID = "incomplete-pools"
	DeviceTaints          ID = "device-taints"
	TolerationsOfClaims   ID = "tolerations-of-claims"
	TaintWithoutEffect    ID = "taint-without-effect"
	TaintRules            ID = "taint-rules"
	TaintRulesV1          ID = "taint-rules-v1"
	EvictionProgress      ID = "eviction-progress"
	SkippedOperations     ID = "skipped-node-operations"
	PartitionTypes        ID = "partition-types"
	PoolStatus            ID = "pool-status"
	DeviceHealth          ID = "device-health"
	PromptSandboxes       ID = "prompt-sandboxes"
	PodsAPI               ID = "pods-api"
	PodGroups             ID = "pod-groups"
)

// Probe finds a feature in a cluster. Either an API version serves a resource,
// or an object keeps a field when it is created in a dry run, or the kubelet
// has a file below its folder. The zero value probes nothing.
type Probe struct {
	APIVersion, Resource string // such as resource.k8s.io/v1 and devicetaintrules
	Manifest, Field      string // one object, and the path of the field, such as spec.devices.0.taints
	KubeletFile          string
}

// IsZero reports whether there is nothing to probe.
func (p Probe) IsZero() bool { return p == Probe{} }

// Features returns all features, in the order of docs/compatibility.md.
func Features() []Feature {
	return slices.Concat(requestFeatures(), poolFeatures(), taintFeatures(), nodeFeatures())
}

// requestFeatures are features of claims and of their allocation.
func requestFeatures() []Feature {
	return []Feature{
		{
			AdminAccess, "admin access", [...]Stage{On, On, On, On},
			"[access by a claim](access.md); claims with admin access hold nothing", Probe{}, "TestAdminAccess",
		},
		{
			PrioritizedList, "prioritized lists of requests", [...]Stage{On, On, On, On},
			"the chosen request in `dra_claim_device_info`", Probe{}, "TestPrioritizedList",
		},
		{
			ExtendedResources, "extended resources backed by DRA", [...]Stage{Off, Off, On, On},
			"claims that the scheduler creates, under the pod that requested the resource",
			Probe{Manifest: class("extendedResourceName: e2e.example.com/gpu"), Field: "spec.extendedResourceName"}, "TestExtendedResource",
		},
		{
			ImplicitResources, "extended resources by the class's name, also if it has a name for them; their claims end with the pod", [...]Stage{Missing, On, On, On},
			"the same; in 1.34 the claim of a pod that has gone can remain until something changes it", Probe{}, "TestImplicitExtendedResource",
		},
		{
			ConsumableCapacity, "consumable capacity", [...]Stage{Off, Off, On, On},
			"several claims on one device; `dra_capacity_consumed`",
			Probe{Manifest: slice("devices: [{name: a, allowMultipleAllocations: true}]"), Field: "spec.devices.0.allowMultipleAllocations"}, "TestConsumableCapacity",
		},
		{
			CapacityRanges, "requests of capacity where the device has a range with steps", [...]Stage{Missing, On, On, On},
			"the requested part; in 1.34 such claims stay pending, and those without a request get the default", Probe{}, "TestClusterSupply",
		},
		{
			BindingConditions, "binding conditions; time of the allocation", [...]Stage{Off, Off, On, On},
			"the phase `binding`; exact ends of allocations, also over a restart",
			Probe{Manifest: slice("devices: [{name: a, bindingConditions: [e2e.example.com/a], bindingFailureConditions: [e2e.example.com/b]}]"), Field: "spec.devices.0.bindingConditions"}, "",
		},
		{
			BindingMetrics, "the scheduler's metrics of binding conditions", [...]Stage{Missing, Missing, On, On},
			"panels of the dashboard *DRA / Allocation in Kubernetes*", Probe{}, "TestDashboards/cluster",
		},
	}
}

// poolFeatures are features of what drivers publish.
func poolFeatures() []Feature {
	return []Feature{
		{
			PartitionableDevices, "partitionable devices", [...]Stage{Off, Off, On, On},
			"partitions that exclude each other, in `dra_devices` and in reasons of pending claims",
			Probe{Manifest: slice("sharedCounters: [{name: a, counters: {b: {value: 1}}}]"), Field: "spec.sharedCounters"}, "TestPartitions",
		},
		{
			CountersOfOtherSlices, "counters of another slice", [...]Stage{Missing, On, On, On},
			"the same; before 1.35, counters and the devices that consume them are in one slice",
			Probe{Manifest: slice("devices: [{name: a, consumesCounters: [{counterSet: c, counters: {b: {value: 1}}}]}]"), Field: "spec.devices.0.consumesCounters"}, "",
		},
		{
			IncompletePools, "the scheduler waits until all slices of a pool are published", [...]Stage{Missing, On, On, On},
			"the reason `pool_incomplete` of requests for a number of devices; before, only of requests for all devices", Probe{}, "TestClusterPending",
		},
		{
			PartitionTypes, "types of partitions", [...]Stage{Missing, Missing, Missing, Off},
			"`dra_partition_devices`",
			Probe{Manifest: slice("partitionTypeAttribute: probe.example.com/profile, " +
				"devices: [{name: a, attributes: {profile: {string: half}}, consumesCounters: [{counterSet: c, counters: {b: {value: 1}}}]}]"), Field: "spec.partitionTypeAttribute"}, "TestResourcePoolStatus",
		},
		{
			PoolStatus, "ResourcePoolStatusRequest", [...]Stage{Missing, Missing, Missing, Off},
			"nothing: the tests compare `dra_devices` with it",
			Probe{APIVersion: "resource.k8s.io/v1alpha3", Resource: "resourcepoolstatusrequests"}, "TestResourcePoolStatus",
		},
	}
}

// taintFeatures are features of taints, and of evictions by them.
func taintFeatures() []Feature {
	return []Feature{
		{
			DeviceTaints, "taints of devices", [...]Stage{Off, Off, On, On},
			"`dra_device_taints`, and health as reported by the driver",
			Probe{Manifest: slice("devices: [{name: a, taints: [{key: e2e.example.com/a, effect: NoSchedule}]}]"), Field: "spec.devices.0.taints"}, "",
		},
		{
			TolerationsOfClaims, "a claim's tolerations keep its pods from being evicted", [...]Stage{Missing, On, On, On},
			"an agent with [access by a claim](access.md) stays beside unhealthy devices; before, each NoExecute taint evicts it", Probe{}, "TestAccess/claim",
		},
		{
			TaintWithoutEffect, "taints without an effect (`None`)", [...]Stage{Missing, On, On, On},
			"the same",
			Probe{Manifest: slice("devices: [{name: a, taints: [{key: e2e.example.com/a, effect: None}]}]"), Field: "spec.devices.0.taints"}, "",
		},
		{
			TaintRules, "DeviceTaintRules", [...]Stage{Off, Off, Off, On},
			"taints by rules, and evictions by them", Probe{}, "TestClusterTaintRules",
		},
		{
			TaintRulesV1, "DeviceTaintRules in `resource.k8s.io/v1`", [...]Stage{Missing, Missing, Missing, On},
			"the same; the exporter reads the newest version that is served",
			Probe{APIVersion: "resource.k8s.io/v1", Resource: "devicetaintrules"}, "",
		},
		{
			EvictionProgress, "the condition `EvictionInProgress` of DeviceTaintRules", [...]Stage{Missing, Off, Off, On},
			"`dra_taint_rule_eviction_in_progress`", Probe{}, "TestClusterEvictionProgress",
		},
	}
}

// nodeFeatures are features of kubelets, and of groups of pods.
func nodeFeatures() []Feature {
	return []Feature{
		{
			SkippedOperations, "devices that need no preparation (`skipNodeOperations`)", [...]Stage{Missing, Missing, Missing, Off},
			"claims without the phase `preparation`",
			Probe{Manifest: slice("skipNodeOperations: ['*'], devices: [{name: a}]"), Field: "spec.skipNodeOperations"}, "TestClusterSkippedPreparation",
		},
		{
			DeviceHealth, "health of devices in the status of pods", [...]Stage{Missing, Missing, On, On},
			"health as reported by the kubelet; alpha in 1.34 and 1.35 and not turned on in the tests, because the API server of 1.35 rejects the status of a pod with two devices that have a CDI name in common", Probe{}, "TestClusterUnhealthy",
		},
		{
			PromptSandboxes, "sandboxes are reported when they are ready", [...]Stage{Missing, Missing, On, On},
			"the phases `preparation` and `start`; before, `preparation_start`", Probe{}, "TestClusterPhases",
		},
		{
			PodsAPI, "the kubelet's Pods API", [...]Stage{Missing, Missing, Off, On},
			"pods without a permission to read them (`--kubelet.pods-api`)",
			Probe{KubeletFile: "pods-api/pods-api.sock"}, "TestPodsAPI",
		},
		{
			PodGroups, "PodGroups with claims, `scheduling.k8s.io/v1beta1`", [...]Stage{Missing, Missing, Missing, Off},
			"claims of pod groups, and pods that are pending with them",
			Probe{APIVersion: "scheduling.k8s.io/v1beta1", Resource: "podgroups"}, "",
		},
	}
}

func class(spec string) string {
	return "{apiVersion: resource.k8s.io/v1, kind: DeviceClass, metadata: {name: probe.example.com}, spec: {" + spec + "}}"
}

func slice(spec string) string {
	return "{apiVersion: resource.k8s.io/v1, kind: ResourceSlice, metadata: {name: probe.example.com}, spec: {driver: probe.example.com, nodeName: probe, " +
		"pool: {name: probe, generation: 1, resourceSliceCount: 1}, " + spec + "}}"
}

// Has reports whether a release has a feature, which may need a gate. Unknown
// features are a mistake of the caller.
func Has(minor int, id ID) bool { return stage(minor, id) != Missing }

func stage(minor int, id ID) Stage {
	features := Features()
	i := slices.IndexFunc(features, func(f Feature) bool { return f.ID == id })
	if i < 0 || minor < Oldest || minor > Newest {
		panic("no feature " + string(id) + " in Kubernetes 1." + strconv.Itoa(minor))
	}
	return features[i].Stages[minor-Oldest]
}

// Minor returns the minor version: 37 for v1.37.2, 0 for what is no version.
func Minor(version string) int {
	parts := strings.Split(version, ".")
	if len(parts) < 2 {
		return 0
	}
	minor, err := strconv.Atoi(parts[1])
	if err != nil {
		return 0
	}
	return minor
}
