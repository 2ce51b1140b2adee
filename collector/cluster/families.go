package cluster

import (
	"slices"

	"github.com/dra-exporter/dra-exporter/collector/metric"
	"github.com/dra-exporter/dra-exporter/collector/self"
)

// families is every family of the cluster role. They are made once and
// documented in docs/metrics.md, which is generated from them.
type families struct {
	duration, ready, failures *metric.Family

	pendingSince, pendingReason, pendingRequested, pendingCandidates *metric.Family
	claims, phaseSince, terminatingSince, orphaned                   *metric.Family

	devices, classDevices, classInfo          *metric.Family
	poolComplete, poolSlices, poolGeneration  *metric.Family
	capacity, capacityConsumed                *metric.Family
	taints, disagreement, evictions, clockOff *metric.Family
	diagnosisSeconds, undiagnosedSince        *metric.Family
	oversized                                 *metric.Family

	self *self.Families
}

// Families returns every family that the cluster role can show, for the
// documentation and for checks.
func Families() []*metric.Family {
	f := newFamilies()
	return slices.Concat([]*metric.Family{
		f.duration, f.ready, f.failures,
		f.pendingSince, f.pendingReason, f.pendingRequested, f.pendingCandidates,
		f.claims, f.phaseSince, f.terminatingSince, f.orphaned,
		f.devices, f.classDevices, f.classInfo,
		f.poolComplete, f.poolSlices, f.poolGeneration, f.capacity, f.capacityConsumed,
		f.taints, f.disagreement, f.evictions, f.clockOff, f.diagnosisSeconds, f.undiagnosedSince, f.oversized, self.ReadDuration(),
	}, f.self.All())
}

func newFamilies() *families {
	f := &families{self: self.NewFamilies()}
	f.addDurations()
	f.addPending()
	f.addClaims()
	f.addSupply()
	f.addAnomalies()
	f.addDiagnosis()
	return f
}

func family(kind metric.Type, name, unit, help string, labels ...string) *metric.Family {
	return &metric.Family{Name: name, Help: help, Unit: unit, Type: kind, Labels: labels}
}

// addDurations lists the histograms, of which there are no rows, and what
// went wrong meanwhile.
func (f *families) addDurations() {
	f.duration = family(metric.Histogram, "dra_allocation_duration_seconds", "seconds",
		"Time that one phase took (docs/phases.md), observed when its end is seen: allocation, binding, scheduling, preparation, start; with kubelets before 1.36 preparation_start in place of the last two. Classic buckets and native",
		"deviceclass", "phase")
	f.ready = family(metric.Histogram, "dra_claim_ready_duration_seconds", "seconds",
		"Time from when a pod began to wait for its claims until its first container of any kind started. Classic buckets and native",
		"deviceclass")
	f.failures = family(metric.Counter, "dra_allocation_failures_total", "",
		"Onsets of trouble with claims: reasons for which references wait (docs/pending.md; what lasts two seconds and is no course of nature), binding_failed, preparation_failed and claim_creation_failed; what was there before the exporter started is not counted",
		"deviceclass", "reason")
}

func (f *families) addPending() {
	f.pendingSince = family(metric.Gauge, "dra_claim_pending_since_timestamp_seconds", "seconds",
		"Since when a pod's claim reference, or request of an extended resource, is not satisfied, those of gated pods included; resourceclaim is empty until the claim exists. A cap keeps the oldest",
		"namespace", "pod", "pod_claim", "resourceclaim", "deviceclass")
	f.pendingReason = family(metric.Gauge, "dra_claim_pending_reason_info", "",
		"Why the reference waits: the one reason of docs/pending.md that comes first",
		"namespace", "pod", "pod_claim", "reason")
	f.pendingRequested = family(metric.Gauge, "dra_claim_pending_requested_devices", "",
		"How many devices the request asks for; absent where it asks for all that match",
		"namespace", "pod", "pod_claim", "request")
	f.pendingCandidates = family(metric.Gauge, "dra_claim_pending_candidates", "",
		"How many devices each stage leaves for the request: published, class, selectors, untainted, free, best_node (the most free ones that one node reaches)",
		"namespace", "pod", "pod_claim", "request", "stage")
}

func (f *families) addClaims() {
	f.claims = family(metric.Gauge, "dra_claims", "",
		"ResourceClaims by state: unused (no pod names it, not allocated), pending (a pod names it, not allocated), allocated (reserved by nobody), reserved, terminating",
		"namespace", "deviceclass", "state")
	f.phaseSince = family(metric.Gauge, "dra_claim_phase_since_timestamp_seconds", "seconds",
		"Since when a pod whose claim is allocated has been in the phase that is under way, until its first container starts: binding, scheduling, preparation, start, preparation_start",
		"namespace", "pod", "resourceclaim", "phase")
	f.terminatingSince = family(metric.Gauge, "dra_claim_terminating_since_timestamp_seconds", "seconds",
		"Since when the claim has been being deleted while finalizers hold it",
		"namespace", "resourceclaim")
	f.orphaned = family(metric.Gauge, "dra_claim_orphaned", "",
		"1 if the claim is reserved for pods none of which exists",
		"namespace", "resourceclaim")
}

func (f *families) addSupply() {
	f.devices = family(metric.Gauge, "dra_devices", "",
		"Devices of the pool's newest generation by what can be done with them: allocated (something holds it, wholly or in part), free (can be allocated now), unavailable (tainted, of an incomplete pool, or what it is cut from is spent)",
		"driver", "pool", "node", "state")
	f.classDevices = family(metric.Gauge, "dra_class_devices", "",
		"Devices that the class selects, by state as in dra_devices; classes may overlap, so that sums over classes mean nothing",
		"deviceclass", "state")
	f.classInfo = family(metric.Gauge, "dra_device_class_info", "",
		"A device class, and the extended resource by which pods may ask for its devices",
		"deviceclass", "extended_resource")
	f.poolComplete = family(metric.Gauge, "dra_pool_complete", "",
		"1 if all slices of the pool's newest generation are published; nothing is allocated from a pool while they are not",
		"driver", "pool", "node")
	f.poolSlices = family(metric.Gauge, "dra_pool_slices", "",
		"ResourceSlices of the pool's newest generation; 0 if all are gone while a claim holds a device of it",
		"driver", "pool", "node")
	f.poolGeneration = family(metric.Gauge, "dra_pool_generation", "",
		"The pool's newest generation",
		"driver", "pool", "node")
	f.capacity = family(metric.Gauge, "dra_capacity", "",
		"A capacity of a device that several claims may share, in the capacity's own unit",
		"driver", "pool", "device", "capacity")
	f.capacityConsumed = family(metric.Gauge, "dra_capacity_consumed", "",
		"What claims have been given of the capacity",
		"driver", "pool", "device", "capacity")
	f.taints = family(metric.Gauge, "dra_device_taints", "",
		"Devices of the pool that have the taint, from their slices or from DeviceTaintRules",
		"driver", "pool", "key", "effect")
}

func (f *families) addAnomalies() {
	f.disagreement = family(metric.Gauge, "dra_device_health_disagreement", "",
		"1 if driver (taints in its slices) and kubelet (pod status) differ on whether the allocated device is well, 0 if they agree; absent while one of them does not say",
		"driver", "pool", "device")
	f.evictions = family(metric.Counter, "dra_pod_taint_evictions_total", "",
		"Pods that the taint of a device evicted",
		"namespace")
	f.oversized = family(metric.Gauge, "dra_exporter_oversized_specs", "",
		"Claims that are not allocated, and claim templates, too large to be diagnosed, by the limit that they exceed",
		"limit")
	f.clockOff = family(metric.Counter, "dra_exporter_clock_anomalies_total", "",
		"Durations of which the clocks that told of them contradict each other; most are not observed (docs/phases.md)",
		"phase")
}

func (f *families) addDiagnosis() {
	f.diagnosisSeconds = family(metric.Counter, "dra_exporter_diagnosis_seconds_total", "seconds",
		"Time spent on diagnoses by namespace; empty for device classes and namespaces beyond the first 100",
		"namespace")
	f.undiagnosedSince = family(metric.Gauge, "dra_exporter_undiagnosed_since_timestamp_seconds", "seconds",
		"Since when the oldest claim reference has waited for a diagnosis (queued) or exceeded its limit (over_limit)",
		"cause")
}
