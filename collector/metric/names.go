package metric

// The names of families that are used beyond their list, where the other names stand
// (collector/node, collector/cluster, collector/self; those of quantities are made from
// device.Specs). docs/metrics.md has all.

// Claims.
const (
	ClaimBundledDevices                   = "dra_claim_bundled_devices"
	ClaimBusySeconds                      = "dra_claim_busy_seconds_total"
	ClaimConsumerInfo                     = "dra_claim_consumer_info"
	ClaimDeviceSeconds                    = "dra_claim_device_seconds_total"
	ClaimEnergyJoules                     = "dra_claim_energy_joules_total"
	ClaimEngineActiveRatio                = "dra_claim_engine_active_ratio"
	ClaimExecutionIdleJoules              = "dra_claim_execution_idle_joules_total"
	ClaimExecutionIdleSeconds             = "dra_claim_execution_idle_seconds_total"
	ClaimHeld                             = "dra_claim_held"
	ClaimHeldSeconds                      = "dra_claim_held_seconds_total"
	ClaimInfo                             = "dra_claim_info"
	ClaimTopologyInfo                     = "dra_claim_topology_info"
	ClaimMemoryAllocatedBytes             = "dra_claim_memory_allocated_bytes"
	ClaimMemoryUsedBytes                  = "dra_claim_memory_used_bytes"
	ClaimNetworkReceiveBytes              = "dra_claim_network_receive_bytes_total"
	ClaimNetworkTransmitBytes             = "dra_claim_network_transmit_bytes_total"
	ClaimNVLinkReceiveBytes               = "dra_claim_nvlink_receive_bytes_total"
	ClaimNVLinkTransmitBytes              = "dra_claim_nvlink_transmit_bytes_total"
	ClaimOrphaned                         = "dra_claim_orphaned"
	ClaimPCIeReceiveBytes                 = "dra_claim_pcie_receive_bytes_total"
	ClaimPCIeTransmitBytes                = "dra_claim_pcie_transmit_bytes_total"
	ClaimPendingCandidates                = "dra_claim_pending_candidates"
	ClaimPendingReasonInfo                = "dra_claim_pending_reason_info"
	ClaimPendingRequestedDevices          = "dra_claim_pending_requested_devices"
	ClaimPendingSinceTimestampSeconds     = "dra_claim_pending_since_timestamp_seconds"
	ClaimPhaseSinceTimestampSeconds       = "dra_claim_phase_since_timestamp_seconds"
	ClaimPowerWatts                       = "dra_claim_power_watts"
	ClaimReadyDurationSeconds             = "dra_claim_ready_duration_seconds"
	ClaimTerminatingSinceTimestampSeconds = "dra_claim_terminating_since_timestamp_seconds"
	ClaimThrottledSeconds                 = "dra_claim_throttled_seconds_total"
	ClaimUtilizationRatio                 = "dra_claim_utilization_ratio"
)

// Pods.
const (
	PodMemoryUsedBytes          = "dra_pod_memory_used_bytes"
	PodDeletionTimestampSeconds = "dra_pod_deletion_timestamp_seconds"
	PodTaintEvictions           = "dra_pod_taint_evictions_total"
	PodTopologyInfo             = "dra_pod_topology_info"
	PodUtilizationRatio         = "dra_pod_utilization_ratio"
)

// Workloads.
const (
	WorkloadStartDurationSeconds        = "dra_workload_start_duration_seconds"
	WorkloadQueuedSinceTimestampSeconds = "dra_workload_queued_since_timestamp_seconds"
)

// Devices of a node.
const (
	DeviceBusySeconds             = "dra_device_busy_seconds_total"
	DeviceClassInfo               = "dra_device_class_info"
	DeviceClockHertz              = "dra_device_clock_hertz"
	DeviceDriverHealth            = "dra_device_driver_health"
	DeviceECCErrors               = "dra_device_ecc_errors_total"
	DeviceEnergyJoules            = "dra_device_energy_joules_total"
	DeviceEngineActiveRatio       = "dra_device_engine_active_ratio"
	DeviceHardwareInfo            = "dra_device_hardware_info"
	DeviceHealthCheck             = "dra_device_health_check"
	DeviceHealthDisagreement      = "dra_device_health_disagreement"
	DeviceHealthy                 = "dra_device_healthy"
	DeviceHolders                 = "dra_device_holders"
	DeviceInfo                    = "dra_device_info"
	DeviceMemoryActivityRatio     = "dra_device_memory_activity_ratio"
	DeviceMemoryReservedBytes     = "dra_device_memory_reserved_bytes"
	DeviceMemorySizeBytes         = "dra_device_memory_size_bytes"
	DeviceMemoryUsedBytes         = "dra_device_memory_used_bytes"
	DeviceNetworkErrors           = "dra_device_network_errors_total"
	DeviceNetworkLinkState        = "dra_device_network_link_state"
	DeviceNetworkReceiveBytes     = "dra_device_network_receive_bytes_total"
	DeviceNetworkTransmitBytes    = "dra_device_network_transmit_bytes_total"
	DeviceNVLinkErrors            = "dra_device_nvlink_errors_total"
	DeviceNVLinkLinkReceiveBytes  = "dra_device_nvlink_link_receive_bytes_total"
	DeviceNVLinkLinkTransmitBytes = "dra_device_nvlink_link_transmit_bytes_total"
	DeviceNVLinkReceiveBytes      = "dra_device_nvlink_receive_bytes_total"
	DeviceNVLinkTransmitBytes     = "dra_device_nvlink_transmit_bytes_total"
	DevicePartitionInfo           = "dra_device_partition_info"
	DevicePCIeReceiveBytes        = "dra_device_pcie_receive_bytes_total"
	DevicePCIeReplays             = "dra_device_pcie_replays_total"
	DevicePCIeTransmitBytes       = "dra_device_pcie_transmit_bytes_total"
	DevicePluginConsumerInfo      = "dra_device_plugin_consumer_info"
	DevicePowerLimitWatts         = "dra_device_power_limit_watts"
	DevicePowerWatts              = "dra_device_power_watts"
	DevicePublishedInfo           = "dra_device_published_info"
	DeviceTopologyInfo            = "dra_device_topology_info"
	DeviceSMOccupancyRatio        = "dra_device_sm_occupancy_ratio"
	DeviceTaints                  = "dra_device_taints"
	DeviceTemperatureCelsius      = "dra_device_temperature_celsius"
	DeviceUtilizationRatio        = "dra_device_utilization_ratio"
	DeviceXgmiErrors              = "dra_device_xgmi_errors_total"
	DeviceXIDErrors               = "dra_device_xid_errors_total"
)

// The exporter.
const (
	ExporterBuildInfo                         = "dra_exporter_build_info"
	ExporterClockAnomalies                    = "dra_exporter_clock_anomalies_total"
	ExporterHardwareResets                    = "dra_exporter_hardware_resets_total"
	ExporterOTLPUp                            = "dra_exporter_otlp_up"
	ExporterDeviceAccess                      = "dra_exporter_device_access"
	ExporterProcessAttribution                = "dra_exporter_process_attribution"
	ExporterSampleTimestampSeconds            = "dra_exporter_sample_timestamp_seconds"
	ExporterSeriesDropped                     = "dra_exporter_series_dropped_total"
	ExporterSourceErrorInfo                   = "dra_exporter_source_error_info"
	ExporterSourceLastSuccessTimestampSeconds = "dra_exporter_source_last_success_timestamp_seconds"
	ExporterSourceReadDurationSeconds         = "dra_exporter_source_read_duration_seconds"
	ExporterSourceUp                          = "dra_exporter_source_up"
	ExporterUnmatchedDevices                  = "dra_exporter_unmatched_devices"
)

// Allocation and what is published.
const (
	AllocationDurationSeconds = "dra_allocation_duration_seconds"
	Capacity                  = "dra_capacity"
	CapacityConsumed          = "dra_capacity_consumed"
	Claims                    = "dra_claims"
	ClassDevices              = "dra_class_devices"
	ClassHeadroomClaims       = "dra_class_headroom_claims"
	ClassHeadroomInfo         = "dra_class_headroom_info"
	ComputeDomainNodes        = "dra_compute_domain_nodes"
	ComputeDomainPods         = "dra_compute_domain_pods"
	ComputeDomainReady        = "dra_compute_domain_ready"
	ClassDevicesDown          = "dra_class_devices_down"
	Devices                   = "dra_devices"
	DevicesStranded           = "dra_devices_stranded"
	IdleNodeObstacles         = "dra_idle_node_obstacles"
	PoolComplete              = "dra_pool_complete"
	PoolSlices                = "dra_pool_slices"

	ComputeDomainNotReadySinceTimestampSeconds = "dra_compute_domain_not_ready_since_timestamp_seconds"
	ComputeDomainRequestedNodes                = "dra_compute_domain_requested_nodes"
)
