package metric

// The names of all metric families, each once. What a family is stands where it
// is declared (collector/node, collector/cluster, collector/self, internal/otlp)
// and in docs/metrics.md.

// Claims.
const (
	ClaimBusySeconds                      = "dra_claim_busy_seconds_total"
	ClaimConsumerInfo                     = "dra_claim_consumer_info"
	ClaimDeviceInfo                       = "dra_claim_device_info"
	ClaimDeviceSeconds                    = "dra_claim_device_seconds_total"
	ClaimEnergyJoules                     = "dra_claim_energy_joules_total"
	ClaimEngineActiveRatio                = "dra_claim_engine_active_ratio"
	ClaimHeld                             = "dra_claim_held"
	ClaimHeldSeconds                      = "dra_claim_held_seconds_total"
	ClaimIdleSinceTimestampSeconds        = "dra_claim_idle_since_timestamp_seconds"
	ClaimInfo                             = "dra_claim_info"
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
	PodMemoryUsedBytes  = "dra_pod_memory_used_bytes"
	PodTaintEvictions   = "dra_pod_taint_evictions_total"
	PodUtilizationRatio = "dra_pod_utilization_ratio"
	PodWorkloadInfo     = "dra_pod_workload_info"
)

// Workloads.
const (
	WorkloadInfo                 = "dra_workload_info"
	WorkloadMinPods              = "dra_workload_min_pods"
	WorkloadPods                 = "dra_workload_pods"
	WorkloadStartDurationSeconds = "dra_workload_start_duration_seconds"

	WorkloadQueuedSinceTimestampSeconds = "dra_workload_queued_since_timestamp_seconds"
)

// Namespaces.
const (
	NamespaceBusySeconds         = "dra_namespace_busy_seconds_total"
	NamespaceCost                = "dra_namespace_cost_total"
	NamespaceDeviceSeconds       = "dra_namespace_device_seconds_total"
	NamespaceEnergyJoules        = "dra_namespace_energy_joules_total"
	NamespaceSharedDeviceSeconds = "dra_namespace_shared_device_seconds_total"
)

// Devices of a node.
const (
	DeviceBusySeconds                  = "dra_device_busy_seconds_total"
	DeviceClassInfo                    = "dra_device_class_info"
	DeviceClockHertz                   = "dra_device_clock_hertz"
	DeviceDriverHealth                 = "dra_device_driver_health"
	DeviceECCErrors                    = "dra_device_ecc_errors_total"
	DeviceEnergyJoules                 = "dra_device_energy_joules_total"
	DeviceEngineActiveRatio            = "dra_device_engine_active_ratio"
	DeviceFabricState                  = "dra_device_fabric_state"
	DeviceHealthCheck                  = "dra_device_health_check"
	DeviceHealthDisagreement           = "dra_device_health_disagreement"
	DeviceHealthSignalInfo             = "dra_device_health_signal_info"
	DeviceHealthy                      = "dra_device_healthy"
	DeviceHolders                      = "dra_device_holders"
	DeviceInfo                         = "dra_device_info"
	DeviceLost                         = "dra_device_lost"
	DeviceMemoryActivityRatio          = "dra_device_memory_activity_ratio"
	DeviceMemoryReservedBytes          = "dra_device_memory_reserved_bytes"
	DeviceMemorySizeBytes              = "dra_device_memory_size_bytes"
	DeviceMemoryUsedBytes              = "dra_device_memory_used_bytes"
	DeviceNetworkErrors                = "dra_device_network_errors_total"
	DeviceNetworkLinkState             = "dra_device_network_link_state"
	DeviceNetworkReceiveBytes          = "dra_device_network_receive_bytes_total"
	DeviceNetworkTransmitBytes         = "dra_device_network_transmit_bytes_total"
	DeviceNVLinkErrors                 = "dra_device_nvlink_errors_total"
	DeviceNVLinkLinkReceiveBytes       = "dra_device_nvlink_link_receive_bytes_total"
	DeviceNVLinkLinkTransmitBytes      = "dra_device_nvlink_link_transmit_bytes_total"
	DeviceNVLinkLinks                  = "dra_device_nvlink_links"
	DeviceNVLinkReceiveBytes           = "dra_device_nvlink_receive_bytes_total"
	DeviceNVLinkTransmitBytes          = "dra_device_nvlink_transmit_bytes_total"
	DevicePartitionInfo                = "dra_device_partition_info"
	DevicePCIeReceiveBytes             = "dra_device_pcie_receive_bytes_total"
	DevicePCIeReplays                  = "dra_device_pcie_replays_total"
	DevicePCIeTransmitBytes            = "dra_device_pcie_transmit_bytes_total"
	DevicePluginConsumerInfo           = "dra_device_plugin_consumer_info"
	DevicePowerLimitWatts              = "dra_device_power_limit_watts"
	DevicePowerWatts                   = "dra_device_power_watts"
	DevicePricePerHour                 = "dra_device_price_per_hour"
	DevicePublishedInfo                = "dra_device_published_info"
	DeviceRecoveryAction               = "dra_device_recovery_action"
	DeviceRemappedRows                 = "dra_device_remapped_rows"
	DeviceRetiredPages                 = "dra_device_retired_pages"
	DeviceRowRemapFailed               = "dra_device_row_remap_failed"
	DeviceRowRemapPending              = "dra_device_row_remap_pending"
	DeviceSMOccupancyRatio             = "dra_device_sm_occupancy_ratio"
	DeviceTaintInfo                    = "dra_device_taint_info"
	DeviceTaints                       = "dra_device_taints"
	DeviceTemperatureCelsius           = "dra_device_temperature_celsius"
	DeviceThrottledSeconds             = "dra_device_throttled_seconds_total"
	DeviceUnattributedMemoryBytes      = "dra_device_unattributed_memory_bytes"
	DeviceUnattributedUtilizationRatio = "dra_device_unattributed_utilization_ratio"
	DeviceUtilizationRatio             = "dra_device_utilization_ratio"
	DeviceXgmiErrors                   = "dra_device_xgmi_errors_total"
	DeviceXIDErrors                    = "dra_device_xid_errors_total"
	DeviceXIDLastTimestampSeconds      = "dra_device_xid_last_timestamp_seconds"
)

// The exporter.
const (
	ExporterAccessReviews                           = "dra_exporter_access_reviews_total"
	ExporterBuildInfo                               = "dra_exporter_build_info"
	ExporterClockAnomalies                          = "dra_exporter_clock_anomalies_total"
	ExporterConfigLastReloadSuccessTimestampSeconds = "dra_exporter_config_last_reload_success_timestamp_seconds"
	ExporterConfigLastReloadSuccessful              = "dra_exporter_config_last_reload_successful"
	ExporterConflictingDevices                      = "dra_exporter_conflicting_devices"
	ExporterDiagnosisSeconds                        = "dra_exporter_diagnosis_seconds_total"
	ExporterHardwareResets                          = "dra_exporter_hardware_resets_total"
	ExporterOTLPDroppedTraces                       = "dra_exporter_otlp_dropped_traces_total"
	ExporterOTLPExportDurationSeconds               = "dra_exporter_otlp_export_duration_seconds"
	ExporterOTLPExports                             = "dra_exporter_otlp_exports_total"
	ExporterOTLPLastSuccessTimestampSeconds         = "dra_exporter_otlp_last_success_timestamp_seconds"
	ExporterOTLPQueuedTraces                        = "dra_exporter_otlp_queued_traces"
	ExporterOTLPSent                                = "dra_exporter_otlp_sent_total"
	ExporterOTLPUp                                  = "dra_exporter_otlp_up"
	ExporterOversizedSpecs                          = "dra_exporter_oversized_specs"
	ExporterProcessAttribution                      = "dra_exporter_process_attribution"
	ExporterQueuedDiagnoses                         = "dra_exporter_queued_diagnoses"
	ExporterSampleTimestampSeconds                  = "dra_exporter_sample_timestamp_seconds"
	ExporterSeriesDropped                           = "dra_exporter_series_dropped_total"
	ExporterSourceErrorInfo                         = "dra_exporter_source_error_info"
	ExporterSourceErrors                            = "dra_exporter_source_errors_total"
	ExporterSourceLagSeconds                        = "dra_exporter_source_lag_seconds"
	ExporterSourceLastSuccessTimestampSeconds       = "dra_exporter_source_last_success_timestamp_seconds"
	ExporterSourceQueuedEvents                      = "dra_exporter_source_queued_events"
	ExporterSourceReadDurationSeconds               = "dra_exporter_source_read_duration_seconds"
	ExporterSourceUp                                = "dra_exporter_source_up"
	ExporterUncountedDevices                        = "dra_exporter_uncounted_devices"
	ExporterStepSeconds                             = "dra_exporter_step_seconds_total"
	ExporterSteps                                   = "dra_exporter_steps_total"
	ExporterUndiagnosedSinceTimestampSeconds        = "dra_exporter_undiagnosed_since_timestamp_seconds"
	ExporterUnmatchedDevices                        = "dra_exporter_unmatched_devices"
)

// Allocation and what is published.
const (
	AllocationDurationSeconds = "dra_allocation_duration_seconds"
	AllocationFailures        = "dra_allocation_failures_total"
	Capacity                  = "dra_capacity"
	CapacityConsumed          = "dra_capacity_consumed"
	Claims                    = "dra_claims"
	ClassDevices              = "dra_class_devices"
	ComputeDomainNodes        = "dra_compute_domain_nodes"
	ComputeDomainPods         = "dra_compute_domain_pods"
	ComputeDomainReady        = "dra_compute_domain_ready"
	ComputeDomainWorkloadInfo = "dra_compute_domain_workload_info"
	ConstraintViolations      = "dra_constraint_violations_total"
	Devices                   = "dra_devices"
	PartitionDevices          = "dra_partition_devices"
	PoolComplete              = "dra_pool_complete"
	PoolGeneration            = "dra_pool_generation"
	PoolSlices                = "dra_pool_slices"

	ComputeDomainNotReadySinceTimestampSeconds = "dra_compute_domain_not_ready_since_timestamp_seconds"
	ComputeDomainRequestedNodes                = "dra_compute_domain_requested_nodes"

	TaintRuleEvictionInProgress = "dra_taint_rule_eviction_in_progress"
)
