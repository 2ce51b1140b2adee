package node

import (
	"slices"

	"github.com/dra-exporter/dra-exporter/collector/device"
	"github.com/dra-exporter/dra-exporter/collector/metric"
	"github.com/dra-exporter/dra-exporter/collector/self"
)

// families is every family of the node role. They are made once and
// documented in docs/metrics.md, which is generated from them.
type families struct {
	specs    [device.Quantities]device.Spec
	quantity [device.Quantities]*metric.Family // what the hardware does

	deviceInfo, publishedInfo, partitionInfo, deviceBusy, deviceHolders *metric.Family

	unattributed, podUse                   [usages]*metric.Family
	deviceHealthy, healthSignal, taintInfo *metric.Family
	xidErrors, xidLast, violations         *metric.Family

	claimHeld, claimHeldSeconds, claimDeviceSeconds, claimAllocated   *metric.Family
	claimUtilization, claimMemory, claimPower, claimEngine, claimIdle *metric.Family
	claimMeter                                                        [meters]*metric.Family
	claimThrottled                                                    *metric.Family

	claimInfo, claimDeviceInfo, claimConsumerInfo, pluginConsumerInfo *metric.Family

	namespaceDevice, namespaceShared, namespaceBusy, namespaceEnergy *metric.Family

	devicePrice, namespaceCost *metric.Family
	podLabels                  int // of claimConsumerInfo, the last ones

	sampleTime, unmatched, conflicting, uncounted, resets, processes *metric.Family
	self                                                             *self.Families
}

// Families returns every family that the node role can show, for the
// documentation and for checks.
func Families() []*metric.Family {
	f := newFamilies()
	list := []*metric.Family{
		f.deviceInfo, f.publishedInfo, f.partitionInfo, f.deviceBusy, f.deviceHolders,
		f.unattributed[usedTime], f.unattributed[usedMemory], f.podUse[usedTime], f.podUse[usedMemory],
		f.deviceHealthy, f.healthSignal, f.taintInfo, f.xidErrors, f.xidLast, f.violations,
		f.claimHeld, f.claimHeldSeconds, f.claimDeviceSeconds, f.claimAllocated,
		f.claimUtilization, f.claimMemory, f.claimPower, f.claimEngine, f.claimIdle, f.claimThrottled,
		f.claimInfo, f.claimDeviceInfo, f.claimConsumerInfo, f.pluginConsumerInfo,
		f.namespaceDevice, f.namespaceShared, f.namespaceBusy, f.namespaceEnergy, f.namespaceCost, f.devicePrice,
		f.sampleTime, f.unmatched, f.conflicting, f.uncounted, f.resets, f.processes, self.ReadDuration(),
	}
	list = append(list, f.self.All()...)
	list = append(list, f.quantity[:]...)
	return append(list, f.claimMeter[:]...)
}

// The labels that families share.
func deviceLabels(more ...string) []string {
	return slices.Concat([]string{"node", "uuid", "parent_uuid"}, more)
}

func holdLabels(more ...string) []string {
	return slices.Concat([]string{"node", "namespace", "resourceclaim", "uuid"}, more)
}

func accountLabels(more ...string) []string {
	return slices.Concat(holdLabels("attribution"), more)
}

func namespaceLabels() []string {
	return []string{"node", "namespace", "deviceclass", "model"}
}

func gauge(name, unit, help string, labels []string) *metric.Family {
	return &metric.Family{Name: name, Help: help, Unit: unit, Type: metric.Gauge, Labels: labels}
}

func counter(name, unit, help string, labels []string) *metric.Family {
	return &metric.Family{Name: name, Help: help, Unit: unit, Type: metric.Counter, Labels: labels}
}

func newFamilies() *families {
	f := &families{specs: device.Specs()}
	f.addDevices()
	f.addProcesses()
	f.addHealth()
	f.addQuantities()
	f.addClaims()
	f.addFacts()
	f.addNamespaces()
	f.addCost()
	f.addExporter()
	return f
}

func (f *families) addDevices() {
	f.deviceInfo = gauge("dra_device_info", "", "A device of this node: hardware, its partitions, and held devices without known hardware",
		deviceLabels("vendor", "model", "pci_bus_id", "partition_profile", "driver_version", "source"))
	f.publishedInfo = gauge("dra_device_published_info", "", "Name under which a DRA driver publishes the device",
		deviceLabels("driver", "pool", "device"))
	f.partitionInfo = gauge("dra_device_partition_info", "", "Ids of the GPU instance and the compute instance of a MIG device",
		deviceLabels("gpu_instance_id", "compute_instance_id"))
	f.deviceBusy = counter("dra_device_busy_seconds_total", "seconds", "Time integral of the utilization ratio while it was known",
		deviceLabels())
	f.deviceHolders = gauge("dra_device_holders", "", "Number of holders by kind: claims (without admin access), and pods that use the device through a device plugin",
		deviceLabels("kind"))
}

// addProcesses lists the families of what single processes do, summed up.
func (f *families) addProcesses() {
	pod := []string{"node", "namespace", "pod", "uuid"}
	f.unattributed[usedTime] = gauge("dra_device_unattributed_utilization_ratio", "ratio", "Utilization of the device, 0 to 1, by processes that belong to no holder; absent if it is not split by process", deviceLabels())
	f.unattributed[usedMemory] = gauge("dra_device_unattributed_memory_bytes", "bytes", "Device memory used by processes that belong to no holder of the device; absent if it is not split by process", deviceLabels())
	f.podUse[usedTime] = gauge("dra_pod_utilization_ratio", "ratio", "Utilization of the device, 0 to 1, by the pod's processes, if several pods use it and it is split by process", pod)
	f.podUse[usedMemory] = gauge("dra_pod_memory_used_bytes", "bytes", "Device memory used by the pod's processes, if several pods use the device and it is split by process", pod)
}

func (f *families) addHealth() {
	f.deviceHealthy = gauge("dra_device_healthy", "", "Health of the device as reported by hardware, driver or kubelet: 1 healthy, 0 unhealthy; absent if not reported",
		deviceLabels("by"))
	f.healthSignal = gauge("dra_device_health_signal_info", "", "A current problem of the device; severity critical makes its hardware unhealthy (0), warning does not",
		deviceLabels("signal", "severity"))
	f.taintInfo = gauge("dra_device_taint_info", "", "A taint of the device in its driver's ResourceSlice",
		deviceLabels("key", "value", "effect"))
	f.xidErrors = counter("dra_device_xid_errors_total", "", "Errors that NVIDIA's driver reported for the device, by Xid code; other is every code that docs/health.md does not list",
		deviceLabels("xid"))
	f.xidLast = gauge("dra_device_xid_last_timestamp_seconds", "seconds", "Unix time when the Xid was last reported for the device",
		deviceLabels("xid"))
	f.violations = counter("dra_constraint_violations_total", "", "Violations that began while a claim of the class held the device or a partition of it; kept after the claims end",
		[]string{"node", "deviceclass", "constraint"})
}

// addQuantities lists the families that say what the hardware does, one for
// each quantity.
func (f *families) addQuantities() {
	table := []struct {
		quantity         device.Quantity
		name, unit, help string
	}{
		{device.Utilization, "dra_device_utilization_ratio", "ratio", "Share of time with work on the device, 0 to 1"},
		{device.EngineActive, "dra_device_engine_active_ratio", "ratio", "Share of time in which an engine of the device was active, 0 to 1"},
		{device.SMOccupancy, "dra_device_sm_occupancy_ratio", "ratio", "Resident warps as a share of the maximum, 0 to 1"},
		{device.MemoryActivity, "dra_device_memory_activity_ratio", "ratio", "Share of time in which device memory was being read or written, 0 to 1"},
		{device.MemoryUsed, "dra_device_memory_used_bytes", "bytes", "Device memory in use"},
		{device.MemorySize, "dra_device_memory_size_bytes", "bytes", "Size of the device memory"},
		{device.MemoryReserved, "dra_device_memory_reserved_bytes", "bytes", "Device memory that driver and firmware reserve"},
		{device.Power, "dra_device_power_watts", "watts", "Power drawn by the whole device"},
		{device.PowerLimit, "dra_device_power_limit_watts", "watts", "Power at which the device throttles itself"},
		{device.Energy, "dra_device_energy_joules_total", "joules", "Energy drawn since the hardware's counter began"},
		{device.Temperature, "dra_device_temperature_celsius", "celsius", "Temperature at a sensor of the device"},
		{device.ClockFrequency, "dra_device_clock_hertz", "hertz", "Frequency of a clock of the device"},
		{device.NVLinkTransmit, "dra_device_nvlink_transmit_bytes_total", "bytes", "Bytes sent over all NVLinks since the hardware's counter began"},
		{device.NVLinkReceive, "dra_device_nvlink_receive_bytes_total", "bytes", "Bytes received over all NVLinks since the hardware's counter began"},
		{device.NVLinkLinkTransmit, "dra_device_nvlink_link_transmit_bytes_total", "bytes", "Bytes sent over one NVLink; peer is the other GPU's uuid, or switch"},
		{device.NVLinkLinkReceive, "dra_device_nvlink_link_receive_bytes_total", "bytes", "Bytes received over one NVLink; peer is the other GPU's uuid, or switch"},
		{device.PCIeTransmit, "dra_device_pcie_transmit_bytes_total", "bytes", "Bytes sent over PCIe since the hardware's counter began; with NVML a lower bound above 4 GiB between two reads"},
		{device.PCIeReceive, "dra_device_pcie_receive_bytes_total", "bytes", "Bytes received over PCIe since the hardware's counter began; with NVML a lower bound above 4 GiB between two reads"},
		{device.NetworkTransmit, "dra_device_network_transmit_bytes_total", "bytes", "Bytes sent by a network or RDMA device"},
		{device.NetworkReceive, "dra_device_network_receive_bytes_total", "bytes", "Bytes received by a network or RDMA device"},
		{device.Throttled, "dra_device_throttled_seconds_total", "seconds", "Time during which the device was throttled, by reason"},
		{device.ECCErrors, "dra_device_ecc_errors_total", "", "Memory errors over the hardware's lifetime, by severity: corrected, uncorrected"},
		{device.RemappedRows, "dra_device_remapped_rows", "", "Memory rows that were remapped, by the severity of the error that caused it"},
		{device.RowRemapPending, "dra_device_row_remap_pending", "", "1 if a row remapping is pending until the device is reset, else 0"},
		{device.RowRemapFailed, "dra_device_row_remap_failed", "", "1 if a row remapping has failed, else 0"},
		{device.PCIeReplays, "dra_device_pcie_replays_total", "", "PCIe packets that were retransmitted"},
		{device.NVLinkErrors, "dra_device_nvlink_errors_total", "", "NVLink errors, by kind"},
		{device.RecoveryAction, "dra_device_recovery_action", "", "Recovery action that the hardware requests: 1 for the current action, 0 for the others"},
		{device.RetiredPages, "dra_device_retired_pages", "", "Memory pages that were retired, by the severity of the error that caused it"},
		{device.XGMIErrors, "dra_device_xgmi_errors_total", "", "Errors of the links between AMD GPUs (xGMI), by severity: corrected, uncorrected"},
		{device.NVLinks, "dra_device_nvlink_links", "", "NVLinks by state: active, inactive"},
		{device.FabricState, "dra_device_fabric_state", "", "State of the device's registration with the NVLink fabric: 1 for the current state, 0 for the others"},
		{device.HealthCheck, "dra_device_health_check", "", "Result of DCGM's health watch of a part of the device: 1 for the current one of pass, warn and fail, else 0"},
		{device.NetworkLinks, "dra_device_network_link_state", "", "State of a port of a network or RDMA device: 1 for the current state, 0 for the others"},
		{device.NetworkErrors, "dra_device_network_errors_total", "", "Errors of a network or RDMA device, by kind; the counters of InfiniBand ports stop at their maximum of 4, 8 or 16 bits"},
		{device.Lost, "dra_device_lost", "", "1 if the driver has lost the device (fell off the bus, or needs a reset), else 0"},
	}
	for _, row := range table {
		spec := &f.specs[row.quantity]
		family := gauge(row.name, row.unit, row.help, deviceLabels(spec.Details...))
		if spec.Kind == device.Counter {
			family.Type = metric.Counter
		}
		f.quantity[row.quantity] = family
	}
}

func (f *families) addClaims() {
	f.claimHeld = gauge("dra_claim_held", "", "1 while the claim holds the device; absent as soon as it does not", holdLabels())
	f.claimHeldSeconds = counter("dra_claim_held_seconds_total", "seconds", "Time for which the claim held the device", holdLabels())
	f.claimDeviceSeconds = counter("dra_claim_device_seconds_total", "seconds", "Time for which the claim held the device, weighted by its share of it", holdLabels())
	f.claimAllocated = gauge("dra_claim_memory_allocated_bytes", "bytes", "Memory given to the claim: the consumed capacity, else the size of the device or partition", holdLabels())
	f.claimUtilization = gauge("dra_claim_utilization_ratio", "ratio", "Utilization of the device by the claim, 0 to 1; with attribution shared, the device's own value", accountLabels())
	f.claimMemory = gauge("dra_claim_memory_used_bytes", "bytes", "Device memory used by the claim; with attribution shared, the device's own value", accountLabels())
	f.claimPower = gauge("dra_claim_power_watts", "watts", "Power drawn for the claim; with attribution shared, the device's own value", accountLabels())
	f.claimEngine = gauge("dra_claim_engine_active_ratio", "ratio", "Share of time in which an engine was active for the claim, 0 to 1; with attribution shared, the device's own value", accountLabels("engine"))
	f.claimIdle = gauge("dra_claim_idle_since_timestamp_seconds", "seconds", "Unix time since which the claim has held the device without using it", accountLabels())
	f.claimThrottled = counter("dra_claim_throttled_seconds_total", "seconds", "Time during which the device was throttled while the claim held it, by reason", accountLabels("reason"))
	table := [meters]struct{ name, unit, what string }{
		meterBusy:            {"dra_claim_busy_seconds_total", "seconds", "Integral of the utilization ratio"},
		meterEnergy:          {"dra_claim_energy_joules_total", "joules", "Energy drawn"},
		meterNVLinkTransmit:  {"dra_claim_nvlink_transmit_bytes_total", "bytes", "Bytes sent over NVLink"},
		meterNVLinkReceive:   {"dra_claim_nvlink_receive_bytes_total", "bytes", "Bytes received over NVLink"},
		meterPCIeTransmit:    {"dra_claim_pcie_transmit_bytes_total", "bytes", "Bytes sent over PCIe"},
		meterPCIeReceive:     {"dra_claim_pcie_receive_bytes_total", "bytes", "Bytes received over PCIe"},
		meterNetworkTransmit: {"dra_claim_network_transmit_bytes_total", "bytes", "Bytes sent by the network or RDMA device"},
		meterNetworkReceive:  {"dra_claim_network_receive_bytes_total", "bytes", "Bytes received by the network or RDMA device"},
	}
	for m, row := range table {
		f.claimMeter[m] = counter(row.name, row.unit, row.what+" while the claim held the device; with attribution shared, the device's own value", accountLabels())
	}
}

func (f *families) addFacts() {
	f.claimInfo = gauge("dra_claim_info", "", "A claim of a pod on this node; sharing is none, time_slicing, mps or capacity",
		[]string{"node", "namespace", "resourceclaim", "claim_uid", "deviceclass", "template", "sharing", "admin_access", "extended_resource"})
	f.claimDeviceInfo = gauge("dra_claim_device_info", "", "A device that was allocated to the claim, and the request that it satisfies",
		[]string{"node", "namespace", "resourceclaim", "request", "deviceclass", "driver", "pool", "device", "uuid", "share_id"})
	f.claimConsumerInfo = gauge("dra_claim_consumer_info", "", "A container that may use a device of the claim; has a label_… for each pod label of --labels.pod",
		[]string{"node", "namespace", "resourceclaim", "uuid", "pod", "pod_uid", "container", "owner_kind", "owner_name"})
	f.pluginConsumerInfo = gauge("dra_device_plugin_consumer_info", "", "A container that uses the device through a device plugin",
		[]string{"node", "uuid", "namespace", "pod", "container", "resource"})
}

func (f *families) addNamespaces() {
	f.namespaceDevice = counter("dra_namespace_device_seconds_total", "seconds", "Time for which claims held devices, weighted by their share; kept after the claims end", namespaceLabels())
	f.namespaceShared = counter("dra_namespace_shared_device_seconds_total", "seconds", "Device-seconds of shared devices whose use is not split between the holders; kept after the claims end", namespaceLabels())
	f.namespaceBusy = counter("dra_namespace_busy_seconds_total", "seconds", "Busy time of claims on devices held alone, and of their processes on shared devices; kept after the claims end", namespaceLabels())
	f.namespaceEnergy = counter("dra_namespace_energy_joules_total", "joules", "Energy drawn for claims by devices that are not shared; kept after the claims end", namespaceLabels())
}

func (f *families) addExporter() {
	f.self = self.NewFamilies()
	f.sampleTime = gauge("dra_exporter_sample_timestamp_seconds", "seconds", "Unix time of the newest reading of any device", nil)
	f.unmatched = gauge("dra_exporter_unmatched_devices", "", "Unmatched devices: allocated without known hardware (published), hardware that its driver does not publish (hardware)", []string{"side"})
	f.conflicting = gauge("dra_exporter_conflicting_devices", "", "Devices that claims hold under more than one published name", nil)
	f.uncounted = gauge("dra_exporter_uncounted_devices", "", "Held devices whose device-seconds are not counted, because admin access or their pods are unknown", []string{"reason"})
	f.processes = gauge("dra_exporter_process_attribution", "", "Whether the use of shared devices is split by process: 1 for ok or the reason why it is not, 0 for the others", []string{"reason"})
	f.resets = counter("dra_exporter_hardware_resets_total", "", "Resets of hardware counters", nil)
}
