package otlp

import "go.opentelemetry.io/otel/attribute"

// Attributes about Kubernetes. Those of claims are what this project would
// propose.
const (
	k8sNamespaceName  attribute.Key = "k8s.namespace.name"
	k8sPodName        attribute.Key = "k8s.pod.name"
	claimName         attribute.Key = "k8s.resourceclaim.name"
	claimUID          attribute.Key = "k8s.resourceclaim.uid"
	draAttribution    attribute.Key = "dra.attribution"
	draThrottleReason attribute.Key = "dra.throttle.reason"
)

// claimTargets are the metrics of k8s.*.
func claimTargets() []target {
	claim := []attribute.Key{claimUID}
	return []target{
		{"k8s.resourceclaim.device.count", upDownCounterInstrument, "{device}", claim, "1 while the claim holds the device"},
		{"k8s.resourceclaim.device.held.time", counterInstrument, "s", claim, "Time for which the claim held the device"},
		{"k8s.resourceclaim.device.share.time", counterInstrument, "s", claim, "Time for which the claim held the device, weighted by its share of it"},
		{"k8s.resourceclaim.device.busy.time", counterInstrument, "s", claim, "Integral of the utilization while the claim held the device"},
		{"k8s.resourceclaim.device.throttled.time", counterInstrument, "s", claim, "Time during which the device was throttled while the claim held it, by reason"},
		{"k8s.resourceclaim.device.utilization", gaugeInstrument, "1", claim, "Share of time in which the device, or one of its engines, was active for the claim"},
		{"k8s.resourceclaim.device.memory.usage", upDownCounterInstrument, "By", claim, "Device memory used by the claim"},
		{"k8s.resourceclaim.device.memory.limit", upDownCounterInstrument, "By", claim, "Device memory given to the claim"},
		{"k8s.resourceclaim.device.power", gaugeInstrument, "W", claim, "Power drawn for the claim"},
		{"k8s.resourceclaim.device.energy", counterInstrument, "J", claim, "Energy drawn while the claim held the device"},
		{"k8s.resourceclaim.device.io", counterInstrument, "By", claim, "Bytes that the device received and transmitted while the claim held it"},
		{"k8s.resourceclaim.device.network.io", counterInstrument, "By", claim, "Bytes that the network device received and transmitted while the claim held it"},
		{"k8s.pod.device.utilization", gaugeInstrument, "1", nil, "Utilization of the device by the pod's processes"},
		{"k8s.pod.device.memory.usage", upDownCounterInstrument, "By", nil, "Device memory used by the pod's processes"},
	}
}

// claimConventions are the families of what claims and pods get of devices.
func claimConventions() []convention {
	const device = "k8s.resourceclaim.device."
	hold := func(family, metric string, words ...word) convention {
		return convention{family: family, metric: device + metric, about: aboutClaim, words: words}
	}
	account := func(family, metric string, words ...word) convention {
		return hold(family, metric, append(words, word{key: draAttribution, label: "attribution"})...)
	}
	return []convention{
		hold("dra_claim_held", "count"),
		hold("dra_claim_held_seconds_total", "held.time"),
		hold("dra_claim_device_seconds_total", "share.time"),
		hold("dra_claim_memory_allocated_bytes", "memory.limit"),
		account("dra_claim_busy_seconds_total", "busy.time"),
		account("dra_claim_throttled_seconds_total", "throttled.time", word{key: draThrottleReason, label: "reason"}),
		account("dra_claim_utilization_ratio", "utilization", word{key: hwGPUTask, constant: generalTask}),
		account("dra_claim_engine_active_ratio", "utilization", taskOfEngine()),
		account("dra_claim_memory_used_bytes", "memory.usage"),
		account("dra_claim_power_watts", "power"),
		account("dra_claim_energy_joules_total", "energy"),
		account("dra_claim_pcie_receive_bytes_total", "io", over("pcie", "receive")...),
		account("dra_claim_pcie_transmit_bytes_total", "io", over("pcie", "transmit")...),
		account("dra_claim_nvlink_receive_bytes_total", "io", over("nvlink", "receive")...),
		account("dra_claim_nvlink_transmit_bytes_total", "io", over("nvlink", "transmit")...),
		account("dra_claim_network_receive_bytes_total", "network.io", over("", "receive")...),
		account("dra_claim_network_transmit_bytes_total", "network.io", over("", "transmit")...),
		{family: "dra_pod_utilization_ratio", metric: "k8s.pod.device.utilization", about: aboutPod},
		{family: "dra_pod_memory_used_bytes", metric: "k8s.pod.device.memory.usage", about: aboutPod},
	}
}

func targets() []target { return append(hardwareTargets(), claimTargets()...) }

func conventions() []convention { return append(hardwareConventions(), claimConventions()...) }
