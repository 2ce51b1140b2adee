package cluster

import (
	"slices"

	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/collector/metric"
	"github.com/dra-exporter/dra-exporter/collector/self"
)

// families is every family of the cluster role. They are made once and
// documented in docs/metrics.md, which is generated from them.
type families struct {
	metric.Table

	duration, ready, failures *metric.Family

	workloadInfo, workloadPods, workloadMinPods, workloadQueuedSince, workloadStart *metric.Family
	nodeTopology, nodeRelease, workloadDomains, workloadLeastDomains                *metric.Family

	domainReady, domainRequested, domainNodes, domainNotReadySince, domainPods, domainWorkload *metric.Family

	pendingSince, pendingReason, pendingRequested, pendingCandidates *metric.Family
	autoscaled                                                       *metric.Family
	claims, phaseSince, terminatingSince, orphaned, podDeletion      *metric.Family

	devices, classDevices, classInfo          *metric.Family
	classDown                                 *metric.Family
	poolComplete, poolSlices, poolGeneration  *metric.Family
	capacity, capacityConsumed                *metric.Family
	taints, disagreement, evictions, clockOff *metric.Family
	partitionDevices, ruleEviction            *metric.Family
	headroomClaims, headroomPods              *metric.Family
	headroomInfo, shapeClaims, fragmentation  *metric.Family
	stranded, idleNodes, strandedSeconds      *metric.Family
	diagnosisSeconds, undiagnosedSince        *metric.Family
	queuedDiagnoses                           *metric.Family
	oversized                                 *metric.Family

	self *self.Families
}

// Families returns every family that the cluster role can export, for the
// documentation and for checks.
func Families() []*metric.Family {
	f := newFamilies()
	return slices.Concat(f.All(), []*metric.Family{self.ReadDuration()}, f.self.All())
}

func newFamilies() *families {
	f := &families{self: self.NewFamilies()}
	f.addDurations()
	f.addPending()
	f.addAutoscaling()
	f.addClaims()
	f.addWorkloads()
	f.addComputeDomains()
	f.addSupply()
	f.addHeadroom()
	f.addAnomalies()
	f.addDiagnosis()
	return f
}

// addDurations lists the histograms, of which there are no rows, and what
// went wrong meanwhile.
func (f *families) addDurations() {
	f.duration = f.Add(metric.Histogram, metric.AllocationDurationSeconds, "seconds",
		"Duration of a phase: allocation, binding, scheduling, preparation, start, preparation_start (kubelets before 1.36)",
		"deviceclass", "phase")
	f.ready = f.Add(metric.Histogram, metric.ClaimReadyDurationSeconds, "seconds",
		"Time from when a pod's claim became pending until the pod's first container, of any kind, started",
		"deviceclass")
	f.failures = f.Add(metric.Counter, metric.AllocationFailures, "",
		"Problems of claims that began after the exporter started: pending reasons, and binding, preparation or creation failures",
		"deviceclass", "reason")
}

func (f *families) addPending() {
	f.pendingSince = f.Add(metric.Gauge, metric.ClaimPendingSinceTimestampSeconds, "seconds",
		"Unix time since which a claim is pending, gated pods included; resourceclaim is empty until the claim exists",
		"namespace", "pod", "pod_claim", "resourceclaim", "deviceclass")
	f.pendingReason = f.Add(metric.Gauge, metric.ClaimPendingReasonInfo, "",
		"Reason for which the claim is pending: the first of docs/pending.md that applies",
		"namespace", "pod", "pod_claim", "reason")
	f.pendingRequested = f.Add(metric.Gauge, metric.ClaimPendingRequestedDevices, "",
		"Number of devices that the request asks for; absent if it asks for all that match",
		"namespace", "pod", "pod_claim", "request")
	f.pendingCandidates = f.Add(metric.Gauge, metric.ClaimPendingCandidates, "",
		"Devices that remain for the request after each stage: published, class, selectors, untainted, free, best_node",
		"namespace", "pod", "pod_claim", "request", "stage")
}

func (f *families) addAutoscaling() {
	f.autoscaled = f.Add(metric.Gauge, metric.AutoscalerPendingPods, "",
		"Pods with pending claims by what the autoscaler last reported of them: scale_up (a node for it), declined (none)",
		"autoscaler", "state")
}

func (f *families) addClaims() {
	f.claims = f.Add(metric.Gauge, metric.Claims, "",
		"ResourceClaims by state: unused (no pod refers to it), pending, allocated (not reserved), reserved, terminating",
		"namespace", "deviceclass", "state")
	f.phaseSince = f.Add(metric.Gauge, metric.ClaimPhaseSinceTimestampSeconds, "seconds",
		"Unix time at which the pod entered its phase: binding, scheduling, preparation, start, preparation_start",
		"namespace", "pod", "resourceclaim", "phase")
	f.terminatingSince = f.Add(metric.Gauge, metric.ClaimTerminatingSinceTimestampSeconds, "seconds",
		"Unix time since which the claim is terminating, kept by finalizers",
		"namespace", "resourceclaim")
	f.orphaned = f.Add(metric.Gauge, metric.ClaimOrphaned, "",
		"1 if the claim is reserved only for pods that no longer exist",
		"namespace", "resourceclaim")
	f.podDeletion = f.Add(metric.Gauge, metric.PodDeletionTimestampSeconds, "seconds",
		"Unix time at which the grace period of a deleted pod that uses claims ends: its deletionTimestamp",
		"namespace", "pod", "node")
}

func (f *families) addWorkloads() {
	name := []string{"namespace", "workload_kind", "workload"}
	f.workloadInfo = f.Add(metric.Gauge, metric.WorkloadInfo, "",
		"A workload that has pods with claims, or waits in a queue of Kueue with such, and the queue that it was submitted to",
		append(name, "queue")...)
	f.workloadPods = f.Add(metric.Gauge, metric.WorkloadPods, "",
		"Pods of the workload by state: gated, pending, starting (bound to a node), running, ended; absent if there are none",
		append(name, "state")...)
	f.workloadMinPods = f.Add(metric.Gauge, metric.WorkloadMinPods, "",
		"Pods that the gangs of the workload need in order to run, else those that Kueue admits together; absent if neither is known",
		name...)
	f.workloadQueuedSince = f.Add(metric.Gauge, metric.WorkloadQueuedSinceTimestampSeconds, "seconds",
		"Unix time since which the workload waits in a queue of Kueue, by the reason that Kueue reports; absent once it is admitted",
		append(name, "reason")...)
	f.workloadDomains = f.Add(metric.Gauge, metric.WorkloadTopologyDomains, "",
		"Domains over which the devices of the workload are spread, by level: link_domain, rack, block; absent if one is unknown",
		append(name, "level")...)
	f.workloadLeastDomains = f.Add(metric.Gauge, metric.WorkloadTopologyLeastDomains, "",
		"Fewest domains that have as many devices of the same drivers, allocated or not; absent if not so many are published",
		append(name, "level")...)
	f.workloadStart = f.Add(metric.Histogram, metric.WorkloadStartDurationSeconds, "seconds",
		"Time from the creation of the first pod of a workload until all of its pods have started",
		"workload_kind", "queue")
}

func (f *families) addComputeDomains() {
	name := []string{"namespace", "compute_domain"}
	f.domainReady = f.Add(metric.Gauge, metric.ComputeDomainReady, "",
		"1 if the status of the ComputeDomain is Ready: enough nodes have joined it and all are ready; else 0",
		name...)
	f.domainRequested = f.Add(metric.Gauge, metric.ComputeDomainRequestedNodes, "",
		"Nodes that the ComputeDomain is to have (numNodes); absent if it does not say",
		name...)
	f.domainNodes = f.Add(metric.Gauge, metric.ComputeDomainNodes, "",
		"Nodes that have joined the ComputeDomain, by NVLink clique and state: ready, not_ready; clique is empty without NVLink between nodes",
		append(name, "clique", "state")...)
	f.domainNotReadySince = f.Add(metric.Gauge, metric.ComputeDomainNotReadySinceTimestampSeconds, "seconds",
		"Unix time since which the ComputeDomain is not ready; absent if it was so before the exporter started",
		name...)
	f.domainPods = f.Add(metric.Gauge, metric.ComputeDomainPods, "",
		"Pods that use the ComputeDomain, are bound to a node and have not ended",
		name...)
	f.domainWorkload = f.Add(metric.Gauge, metric.ComputeDomainWorkloadInfo, "",
		"A workload whose pods use the ComputeDomain",
		append(name, "workload_kind", "workload")...)
}

func (f *families) addSupply() {
	f.devices = f.Add(metric.Gauge, metric.Devices, "",
		"Devices of the newest generation: allocated (also in part), free, or unavailable (taint, incomplete pool, no counters)",
		"driver", "pool", "node", "state")
	f.partitionDevices = f.Add(metric.Gauge, metric.PartitionDevices, "",
		"Partitions by the type that their ResourceSlice names, by state as in dra_devices; each is counted by itself",
		"driver", "pool", "node", "partition_type", "state")
	f.classDevices = f.Add(metric.Gauge, metric.ClassDevices, "",
		"Devices that the class selects, by state as in dra_devices; classes may overlap: do not sum over classes",
		"deviceclass", "state")
	f.classDown = f.Add(metric.Gauge, metric.ClassDevicesDown, "",
		"Devices of the class that are down: node not ready or cordoned, pool incomplete, tainted; by the first that applies",
		"deviceclass", "reason")
	f.classInfo = f.Add(metric.Gauge, metric.DeviceClassInfo, "",
		"A device class, and the extended resource by which pods may request its devices",
		"deviceclass", "extended_resource")
	f.poolComplete = f.Add(metric.Gauge, metric.PoolComplete, "",
		"1 if all slices of the pool's newest generation are published, else 0; an incomplete pool allocates nothing",
		"driver", "pool", "node")
	f.poolSlices = f.Add(metric.Gauge, metric.PoolSlices, "",
		"ResourceSlices of the pool's newest generation; 0 if none is left while a claim holds a device of the pool",
		"driver", "pool", "node")
	f.poolGeneration = f.Add(metric.Gauge, metric.PoolGeneration, "",
		"The pool's newest generation",
		"driver", "pool", "node")
	f.capacity = f.Add(metric.Gauge, metric.Capacity, "",
		"A capacity of a device that several claims may share, in the capacity's own unit",
		"driver", "pool", "device", "capacity")
	f.capacityConsumed = f.Add(metric.Gauge, metric.CapacityConsumed, "",
		"Part of the capacity that claims consume, in the capacity's own unit",
		"driver", "pool", "device", "capacity")
	f.taints = f.Add(metric.Gauge, metric.DeviceTaints, "",
		"Devices of the pool that have the taint, from ResourceSlices or DeviceTaintRules",
		"driver", "pool", "key", "effect")
	f.nodeRelease = f.Add(metric.Gauge, metric.NodeReleaseInfo, "", "A label of the node asks all clients of its GPUs to release them, as during a driver upgrade", "node", "label", "value")
	f.nodeTopology = f.Add(metric.Gauge, metric.NodeTopologyInfo, "",
		"Domains of a node by its labels: NVLink domain, rack, block; empty: unknown",
		"node", dra.LevelLink.String(), dra.LevelRack.String(), dra.LevelBlock.String())
	f.ruleEviction = f.Add(metric.Gauge, metric.TaintRuleEvictionInProgress, "",
		"1 if pods have yet to be evicted because of the DeviceTaintRule, else 0; absent if that is not reported",
		"rule")
}

func (f *families) addHeadroom() {
	shape := []string{"deviceclass", "shape"}
	f.headroomClaims = f.Add(metric.Gauge, metric.ClassHeadroomClaims, "",
		"Claims of the shape that could be allocated in addition; at least so many if dra_class_headroom_info has exact=false",
		shape...)
	f.headroomPods = f.Add(metric.Gauge, metric.ClassHeadroomPods, "",
		"As dra_class_headroom_claims, in pods with one claim each for which nodes also have CPU, memory and no cordon or taint",
		shape...)
	f.headroomInfo = f.Add(metric.Gauge, metric.ClassHeadroomInfo, "",
		"Reason for which one claim more would be pending, as in docs/pending.md, and whether the number of claims is exact",
		append(shape, "exact", "limit")...)
	f.shapeClaims = f.Add(metric.Gauge, metric.ClassShapeClaims, "",
		"Claims that request the shape, allocated or not; 0 for numbers of devices that no claim requests",
		shape...)
	f.fragmentation = f.Add(metric.Gauge, metric.ClassFragmentationRatio, "ratio",
		"Expected share of the free devices of the class that a claim cannot use, given what claims and templates request",
		"deviceclass")
	f.stranded = f.Add(metric.Gauge, metric.DevicesStranded, "",
		"Devices that are not allocated and that no claim can have, by reason; node is empty if several nodes can use them",
		"driver", "node", "reason")
	f.idleNodes = f.Add(metric.Gauge, metric.IdleNodeObstacles, "",
		"Pods that keep autoscalers from removing a node none of whose devices is allocated, by reason; 1 for its annotation",
		"node", "reason")
	f.strandedSeconds = f.Add(metric.Counter, metric.DevicesStrandedSeconds, "seconds",
		"Device-seconds that devices were stranded since the exporter started, by reason",
		"driver", "reason")
}

func (f *families) addAnomalies() {
	f.disagreement = f.Add(metric.Gauge, metric.DeviceHealthDisagreement, "",
		"1 if driver (taints) and kubelet (pod status) disagree on the device's health, 0 if they agree; absent if one is unknown",
		"driver", "pool", "device")
	f.evictions = f.Add(metric.Counter, metric.PodTaintEvictions, "",
		"Pods that were evicted because of a device taint",
		"namespace")
	f.oversized = f.Add(metric.Gauge, metric.ExporterOversizedSpecs, "",
		"Unallocated claims, and claim templates, that are too large to be diagnosed, by the limit that they exceed",
		"limit")
	f.clockOff = f.Add(metric.Counter, metric.ExporterClockAnomalies, "",
		"Durations for which clocks contradict each other; most are not observed (docs/phases.md)",
		"phase")
}

func (f *families) addDiagnosis() {
	f.diagnosisSeconds = f.Add(metric.Counter, metric.ExporterDiagnosisSeconds, "seconds",
		"Time spent on diagnoses; namespace is empty for device classes and after the first 100 namespaces",
		"namespace")
	f.queuedDiagnoses = f.Add(metric.Gauge, metric.ExporterQueuedDiagnoses, "",
		"Queued diagnoses, the first or again after changes; pods whose claims ask for the same share one",
		"kind")
	f.undiagnosedSince = f.Add(metric.Gauge, metric.ExporterUndiagnosedSinceTimestampSeconds, "seconds",
		"Unix time since which the oldest pending claim waits for a diagnosis (queued) or exceeds its limit (over_limit)",
		"cause")
}
