package e2e

import "slices"

// nodeLosses returns what the node role lacks without each of its permissions.
func nodeLosses() map[permission]loss {
	// The data of a claim that only the API server has, and the families that
	// depend on it.
	claims := []string{
		"dra_claim_consumer_info", "dra_claim_device_info", "dra_claim_device_seconds_total", "dra_claim_held", "dra_claim_held_seconds_total", "dra_claim_info",
		"dra_device_healthy", "dra_device_holders", "dra_device_info", "dra_device_published_info", "dra_namespace_busy_seconds_total", "dra_namespace_device_seconds_total",
	}
	const byKubelet = "claims are those that the kubelet lists: without class, template, request, owner and init containers; admin access cannot be distinguished from holding"
	attributed := slices.Concat(claims, []string{"dra_claim_busy_seconds_total", "dra_claim_memory_allocated_bytes", "dra_claim_memory_used_bytes", "dra_claim_power_watts", "dra_claim_utilization_ratio"})
	attributed = slices.DeleteFunc(attributed, func(family string) bool { return family == "dra_claim_info" })
	return map[permission]loss{
		{"list", "", "pods"}:                           {other: claims, skippedSource: "resourceclaims", description: byKubelet},
		{"watch", "", "pods"}:                          {other: claims, description: "the same: a list every half minute does not show the current holders"},
		{"get", "resource.k8s.io", "resourceclaims"}:   {other: claims, description: byKubelet},
		{"list", "resource.k8s.io", "resourceslices"}:  {gone: []string{"dra_device_topology_info"}, other: append(attributed, "dra_incident_watched_seconds_total"), description: "devices are matched to hardware only by their CDI entries and names; devices with neither are held without readings; no health by drivers"},
		{"watch", "resource.k8s.io", "resourceslices"}: {other: []string{"dra_device_healthy", "dra_incident_watched_seconds_total"}, description: "published devices are known from a list every half minute; no health by drivers"},
		{"list", "", "nodes"}:                          {description: "no GPU is let go of because of a label of the node"},
		{"watch", "", "nodes"}:                         {description: "delay: the node is listed every half minute"},
	}
}

// clusterLosses returns what the cluster role lacks without each of its
// permissions.
func clusterLosses() map[permission]loss {
	const late = "delay: listed every half minute"
	const live = late + "; no phase that it starts or ends is measured"
	diagnosed := []string{"dra_claim_pending_candidates", "dra_claim_pending_requested_devices"}
	waiting := []string{"dra_claim_pending_candidates", "dra_claim_pending_reason_info", "dra_claim_pending_requested_devices", "dra_claim_pending_since_timestamp_seconds", "dra_claim_phase_since_timestamp_seconds", "dra_claim_ready_duration_seconds"}
	headroom := []string{"dra_class_fragmentation_ratio", "dra_class_headroom_claims", "dra_class_headroom_info", "dra_class_shape_claims"}
	rooms := []string{"dra_class_headroom_pods", "dra_devices_stranded", "dra_devices_stranded_seconds_total"}
	idle := []string{"dra_idle_node_obstacles"} // while a node of the test is idle
	dra, scheduling := "resource.k8s.io", "scheduling.k8s.io"
	return map[permission]loss{
		{"list", dra, "resourceclaims"}: {
			gone: slices.Concat([]string{durations, "dra_capacity_consumed"}, waiting, headroom, rooms, []string{
				"dra_claim_terminating_since_timestamp_seconds", "dra_claims", "dra_class_devices", "dra_class_devices_down", "dra_device_health_disagreement", "dra_devices",
			}),
			other:       []string{failures},
			maybe:       idle,
			description: "everything about claims: pending claims, reasons, duration of phases, free devices",
		},
		{"watch", dra, "resourceclaims"}: {gone: []string{"dra_claim_ready_duration_seconds"}, maybe: []string{durations, failures}, description: live},
		{"list", dra, "resourceclaimtemplates"}: {
			other:       []string{failures, "dra_claim_pending_candidates", "dra_claim_pending_requested_devices", "dra_claim_pending_since_timestamp_seconds", "dra_class_fragmentation_ratio"},
			description: "class and devices of a pending claim that is not created yet, and the headroom for it",
		},
		{"watch", dra, "resourceclaimtemplates"}: {description: late},
		{"list", dra, "resourceslices"}: {
			gone: slices.Concat([]string{"dra_capacity", "dra_capacity_consumed"}, diagnosed, headroom, rooms, []string{
				"dra_class_devices", "dra_class_devices_down", "dra_device_health_disagreement", "dra_device_taints", "dra_devices", "dra_pool_complete", "dra_pool_generation", "dra_pool_slices",
			}),
			other:       []string{failures, "dra_claim_pending_reason_info", "dra_claim_pending_since_timestamp_seconds"},
			maybe:       idle,
			description: "published and free devices, taints, and every reason that depends on them",
		},
		{"watch", dra, "resourceslices"}: {description: late},
		{"list", dra, "deviceclasses"}: {
			gone:        slices.Concat(diagnosed, headroom, rooms, []string{"dra_class_devices", "dra_class_devices_down", "dra_device_class_info"}),
			other:       []string{failures, "dra_claim_pending_reason_info", "dra_claim_pending_since_timestamp_seconds", "dra_claims"},
			maybe:       idle,
			description: "devices by class, reasons that depend on them, and pods that wait for an extended resource",
		},
		{"watch", dra, "deviceclasses"}: {description: late},
		{"list", dra, "devicetaintrules"}: {
			gone:        []string{"dra_taint_rule_eviction_in_progress"},
			other:       []string{"dra_claim_pending_candidates", "dra_claim_pending_reason_info", "dra_class_devices_down", "dra_class_headroom_info", "dra_device_taints"},
			description: "taints of DeviceTaintRules, the progress of their evictions, and the reason that depends on them",
		},
		{"watch", dra, "devicetaintrules"}: {description: late},
		{"list", "", "pods"}: {
			gone:        slices.Concat([]string{durations}, waiting, rooms, []string{"dra_device_health_disagreement", "dra_workload_info", "dra_workload_pods"}),
			other:       []string{failures, "dra_claims"},
			maybe:       idle,
			description: "pending claims, the duration of phases, workloads, what is left of nodes, and health by the kubelet",
		},
		{"watch", "", "pods"}: {gone: []string{"dra_claim_ready_duration_seconds"}, maybe: []string{durations, failures}, description: live},
		{"list", "", "nodes"}: {
			gone:        append(rooms, "dra_class_devices_down"),
			other:       []string{durations, "dra_claim_pending_candidates", "dra_claim_pending_reason_info", "dra_claim_phase_since_timestamp_seconds", "dra_class_headroom_claims", "dra_class_headroom_info", "dra_class_shape_claims"},
			maybe:       idle,
			description: "the phase after binding (it depends on the kubelet's version), what is left of nodes, the devices that one node reaches, and the devices that are down",
		},
		{"watch", "", "nodes"}:                             {description: late},
		{"list", "", "events"}:                             {gone: []string{failures}, other: []string{"dra_claim_pending_reason_info"}, description: "claims that could not be created or prepared, the reason quota, and what autoscalers report"},
		{"watch", "", "events"}:                            {gone: []string{failures}, description: late + "; events from before are not counted"},
		{"list", scheduling, "podgroups"}:                  {description: "claims of groups of pods"},
		{"watch", scheduling, "podgroups"}:                 {description: late},
		{"list", "scheduling.volcano.sh", "podgroups"}:     {description: "sizes of gangs of Volcano, and their pods' reason gang_quorum"},
		{"watch", "scheduling.volcano.sh", "podgroups"}:    {description: late},
		{"list", "scheduling.run.ai", "podgroups"}:         {description: "sizes of gangs of KAI, and their pods' reason gang_quorum"},
		{"watch", "scheduling.run.ai", "podgroups"}:        {description: late},
		{"list", "kueue.x-k8s.io", "workloads"}:            {description: "jobs that wait in queues of Kueue, and the reason queue_quota"},
		{"watch", "kueue.x-k8s.io", "workloads"}:           {description: late},
		{"list", "resource.nvidia.com", "computedomains"}:  {description: "ComputeDomains, and the reason compute_domain"},
		{"watch", "resource.nvidia.com", "computedomains"}: {description: late},
	}
}
