package e2e

import "slices"

// nodeLosses is what the node role lacks without each of its permissions.
func nodeLosses() map[permission]loss {
	// What the API server alone knows of a claim, and what hangs on it.
	claims := []string{
		"dra_claim_consumer_info", "dra_claim_device_info", "dra_claim_device_seconds_total", "dra_claim_held", "dra_claim_held_seconds_total", "dra_claim_info",
		"dra_device_healthy", "dra_device_holders", "dra_device_info", "dra_device_published_info", "dra_namespace_busy_seconds_total", "dra_namespace_device_seconds_total",
	}
	const byKubelet = "claims and their holders are those that the kubelet lists: without class, template, request, owner, UIDs and init containers; admin access is not told from holding; no word of the kubelet on health"
	attributed := slices.Concat(claims, []string{"dra_claim_busy_seconds_total", "dra_claim_memory_allocated_bytes", "dra_claim_memory_used_bytes", "dra_claim_power_watts", "dra_claim_utilization_ratio"})
	attributed = slices.DeleteFunc(attributed, func(family string) bool { return family == "dra_claim_info" })
	return map[permission]loss{
		{"list", "", "pods"}:                           {other: claims, idle: "resourceclaims", words: byKubelet},
		{"watch", "", "pods"}:                          {other: claims, words: "the same: what is listed every half minute is not what holds now"},
		{"get", "resource.k8s.io", "resourceclaims"}:   {other: claims, words: byKubelet},
		{"list", "resource.k8s.io", "resourceslices"}:  {other: attributed, words: "devices are matched to hardware by their CDI entries and names alone: those of which neither tells are held without readings; no word of drivers on health"},
		{"watch", "resource.k8s.io", "resourceslices"}: {other: []string{"dra_device_healthy"}, words: "what is published is known from a list every half minute; no word of drivers on health"},
	}
}

// clusterLosses is what the cluster role lacks without each of its permissions.
func clusterLosses() map[permission]loss {
	const late = "nothing but promptness: it is listed every half minute"
	const live = late + "; no phase that it ends or begins is measured"
	judged := []string{"dra_claim_pending_candidates", "dra_claim_pending_requested_devices"}
	waiting := []string{"dra_claim_pending_candidates", "dra_claim_pending_reason_info", "dra_claim_pending_requested_devices", "dra_claim_pending_since_timestamp_seconds", "dra_claim_phase_since_timestamp_seconds", "dra_claim_ready_duration_seconds"}
	dra, scheduling := "resource.k8s.io", "scheduling.k8s.io"
	return map[permission]loss{
		{"list", dra, "resourceclaims"}: {
			gone: slices.Concat([]string{durations, "dra_capacity_consumed"}, waiting, []string{
				"dra_claim_terminating_since_timestamp_seconds", "dra_claims", "dra_class_devices", "dra_device_health_disagreement", "dra_devices",
			}),
			other: []string{failures},
			words: "all about claims: who waits, why, since when, how long each phase takes, what is left of the devices",
		},
		{"watch", dra, "resourceclaims"}: {gone: []string{"dra_claim_ready_duration_seconds"}, maybe: []string{durations, failures}, words: live},
		{"list", dra, "resourceclaimtemplates"}: {
			other: []string{failures, "dra_claim_pending_candidates", "dra_claim_pending_requested_devices", "dra_claim_pending_since_timestamp_seconds"},
			words: "class and devices of a claim that is waited for and has not been made yet",
		},
		{"watch", dra, "resourceclaimtemplates"}: {words: late},
		{"list", dra, "resourceslices"}: {
			gone: slices.Concat([]string{"dra_capacity", "dra_capacity_consumed"}, judged, []string{
				"dra_class_devices", "dra_device_health_disagreement", "dra_device_taints", "dra_devices", "dra_pool_complete", "dra_pool_generation", "dra_pool_slices",
			}),
			other: []string{failures, "dra_claim_pending_reason_info", "dra_claim_pending_since_timestamp_seconds"},
			words: "what is published and left, taints, and every reason that asks for it",
		},
		{"watch", dra, "resourceslices"}: {words: late},
		{"list", dra, "deviceclasses"}: {
			gone:  slices.Concat(judged, []string{"dra_class_devices", "dra_device_class_info"}),
			other: []string{failures, "dra_claim_pending_reason_info", "dra_claim_pending_since_timestamp_seconds"},
			words: "devices by class, reasons that ask for them, and pods that wait for an extended resource",
		},
		{"watch", dra, "deviceclasses"}: {words: late},
		{"list", dra, "devicetaintrules"}: {
			other: []string{"dra_claim_pending_candidates", "dra_claim_pending_reason_info", "dra_device_taints"},
			words: "taints that administrators made, and waits for that reason",
		},
		{"watch", dra, "devicetaintrules"}: {words: late},
		{"list", "", "pods"}: {
			gone:  slices.Concat([]string{durations}, waiting, []string{"dra_device_health_disagreement"}),
			other: []string{failures, "dra_claims"},
			words: "who waits and how long each phase takes, and the kubelet's word on devices",
		},
		{"watch", "", "pods"}: {gone: []string{"dra_claim_ready_duration_seconds"}, maybe: []string{durations, failures}, words: live},
		{"list", "", "nodes"}: {
			other: []string{durations, "dra_claim_pending_candidates", "dra_claim_pending_reason_info", "dra_claim_phase_since_timestamp_seconds"},
			words: "which phase follows binding (that depends on the kubelet's version), and which devices one node reaches",
		},
		{"watch", "", "nodes"}:             {words: late},
		{"list", "", "events"}:             {gone: []string{failures}, other: []string{"dra_claim_pending_reason_info"}, words: "claims that could not be made or prepared, and the quota as a reason"},
		{"watch", "", "events"}:            {gone: []string{failures}, words: late + "; what could not be made or prepared is not counted"},
		{"list", scheduling, "podgroups"}:  {words: "nothing but a claim's name on a pod that waits for the claim of its group, until the pod's own status has it"},
		{"watch", scheduling, "podgroups"}: {words: late},
	}
}
