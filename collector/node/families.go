package node

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/dra-exporter/dra-exporter/collector/device"
	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/collector/metric"
	"github.com/dra-exporter/dra-exporter/collector/model"
	"github.com/dra-exporter/dra-exporter/collector/self"
)

// families are the families of the node role. docs/metrics.md is generated from
// them.
type families struct {
	metric.Table
	specs    [device.Quantities]device.Spec
	quantity [device.Quantities]*metric.Family // what the hardware reports
	detailed []device.Quantity                 // those with details

	deviceTopology, claimTopology, podTopology *metric.Family

	deviceInfo, hardwareInfo, publishedInfo, partitionInfo, deviceBusy, deviceHolders *metric.Family

	unattributed, podUse                   [usages]*metric.Family
	foreign                                *metric.Family
	deviceHealthy, healthSignal, taintInfo *metric.Family
	xidErrors, xidLast, violations         *metric.Family
	incidents                              [incidentTotals]*metric.Family
	heldFailures                           *metric.Family

	claimHeld, claimHeldSeconds, claimDeviceSeconds                   *metric.Family
	claimBundled, claimAllocated                                      *metric.Family
	claimUtilization, claimMemory, claimPower, claimEngine, claimIdle *metric.Family
	claimMeter                                                        [meters]*metric.Family
	claimThrottled                                                    *metric.Family

	claimInfo, claimDeviceInfo, claimConsumerInfo, podWorkload, pluginConsumerInfo *metric.Family

	namespaceDevice, namespaceShared, namespaceBusy, namespaceEnergy *metric.Family

	devicePrice, namespaceCost *metric.Family
	podLabels                  int // of claimConsumerInfo, the last ones

	extensions []extensionFamily

	access, accessMode, sampleTime, unmatched, unresolved, conflicting, uncounted, resets, processes *metric.Family
	self                                                                                             *self.Families
}

// extensionFamily is the family of an extension.
type extensionFamily struct {
	details [2]string // of its readings
	*metric.Family
}

// Families returns every family that the node role can export, but those of
// extensions, for the documentation and for checks.
func Families() []*metric.Family {
	f := newFamilies()
	return slices.Concat(f.All(), []*metric.Family{self.ReadDuration()}, f.self.All())
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

func (f *families) gauge(name, unit, help string, labels []string) *metric.Family {
	return f.Add(metric.Gauge, name, unit, help, labels...)
}

func (f *families) counter(name, unit, help string, labels []string) *metric.Family {
	return f.Add(metric.Counter, name, unit, help, labels...)
}

// newFamilies returns the families; dra_claim_consumer_info has a label for each
// of the pods' labels.
func newFamilies(podLabels ...string) *families {
	f := &families{specs: device.Specs()}
	for q := range f.specs {
		if len(f.specs[q].Details) > 0 && device.Quantity(q) != device.Extension {
			f.detailed = append(f.detailed, device.Quantity(q))
		}
	}
	f.addDevices()
	f.addProcesses()
	f.addHealth()
	f.addIncidents()
	f.addQuantities()
	f.addClaims()
	f.addFacts()
	f.addNamespaces()
	f.addCost()
	f.addExporter()
	f.podLabels = len(podLabels)
	for _, key := range podLabels {
		f.claimConsumerInfo.Labels = append(f.claimConsumerInfo.Labels, podLabelName(key))
	}
	return f
}

func (f *families) addDevices() {
	f.deviceInfo = f.gauge(metric.DeviceInfo, "", "A device of this node: hardware, its partitions, and held devices without known hardware",
		deviceLabels("vendor", "model", "pci_bus_id", "partition_profile", "driver_version", "source"))
	f.hardwareInfo = f.gauge(metric.DeviceHardwareInfo, "", "What identifies the whole device for repair or replacement, as far as a source reads it; empty: unknown",
		[]string{"node", "uuid", "serial", "board_part_number", "vbios", "minor_number", "index", "module_id", "chassis_serial", "slot", "tray"})
	f.publishedInfo = f.gauge(metric.DevicePublishedInfo, "", "Name under which a DRA driver publishes the device",
		deviceLabels("driver", "pool", "device"))
	f.deviceTopology = f.gauge(metric.DeviceTopologyInfo, "", "Where the device is: its PCIe root complex, NUMA node, and NVLink domain or xGMI hive; empty: unknown, or none",
		deviceLabels("pcie_root", "numa_node", "link_domain"))
	f.claimTopology = f.gauge(metric.ClaimTopologyInfo, "", "How near the claim's devices are to each other, or each to its nearest network adapter, and how near they could be",
		[]string{"node", "namespace", "resourceclaim", "between", "alignment", "best"})
	f.podTopology = f.gauge(metric.PodTopologyInfo, "", "How near the devices of all of the pod's claims are to each other; labels as in dra_claim_topology_info",
		[]string{"node", "namespace", "pod", "between", "alignment", "best"})
	f.partitionInfo = f.gauge(metric.DevicePartitionInfo, "", "Ids of the GPU instance and the compute instance of a MIG device",
		deviceLabels("gpu_instance_id", "compute_instance_id"))
	f.deviceBusy = f.counter(metric.DeviceBusySeconds, "seconds", "Time integral of the utilization ratio while it was known",
		deviceLabels())
	f.deviceHolders = f.gauge(metric.DeviceHolders, "", "Number of holders by kind: claims (without admin access), pods that use the device through a device plugin, and, if there are any, pods whose device plugin may have given it (possible)",
		deviceLabels("kind"))
	f.deviceHolders.Zeros = &metric.ZeroRows{Label: "kind", Values: []string{"claim"}}
}

// addProcesses adds the families of use by processes.
func (f *families) addProcesses() {
	pod := []string{"node", "namespace", "pod", "uuid"}
	f.unattributed[usedTime] = f.gauge(metric.DeviceUnattributedUtilizationRatio, "ratio", "Utilization of the device, 0 to 1, by processes that belong to no holder; absent if it is not split by process", deviceLabels())
	f.unattributed[usedMemory] = f.gauge(metric.DeviceUnattributedMemoryBytes, "bytes", "Device memory used by processes that belong to no holder of the device; absent if it is not split by process", deviceLabels())
	f.foreign = f.gauge(metric.DeviceForeignProcesses, "", "Processes of pods that hold nothing of the device and have no admin access to it, such as those of a pod that was deleted by force; absent if the device's processes are not known", deviceLabels())
	f.foreign.Zeros = &metric.ZeroRows{}
	f.podUse[usedTime] = f.gauge(metric.PodUtilizationRatio, "ratio", "Utilization of the device, 0 to 1, by the pod's processes, if several pods use it and it is split by process", pod)
	f.podUse[usedMemory] = f.gauge(metric.PodMemoryUsedBytes, "bytes", "Device memory used by the pod's processes, if several pods use the device and it is split by process", pod)
}

func (f *families) addHealth() {
	f.deviceHealthy = f.gauge(metric.DeviceHealthy, "", "Health of the device as reported by hardware, driver or kubelet: 1 healthy, 0 unhealthy; absent if not reported",
		deviceLabels("by"))
	f.healthSignal = f.gauge(metric.DeviceHealthSignalInfo, "", "A current problem of the device; severity critical makes its hardware unhealthy (0), warning does not",
		deviceLabels("signal", "severity"))
	f.taintInfo = f.gauge(metric.DeviceTaintInfo, "", "A taint of the device in its driver's ResourceSlice",
		deviceLabels("key", "value", "effect"))
	f.xidErrors = f.counter(metric.DeviceXIDErrors, "", "Errors that NVIDIA's driver reported for the device, by Xid code; other is every code that docs/health.md does not list",
		deviceLabels("xid"))
	f.xidErrors.Zeros = &metric.ZeroRows{Label: "xid", Values: xidsFromZero(xidTable())}
	// The dashboard about health knows by one counter of a device that its Xids are
	// counted. The rules count first errors without a zero.
	f.xidErrors.LeanZeros = &metric.ZeroRows{Label: "xid", Values: []string{"79"}}
	f.xidLast = f.gauge(metric.DeviceXIDLastTimestampSeconds, "seconds", "Unix time when the Xid was last reported for the device",
		deviceLabels("xid"))
	f.violations = f.counter(metric.ConstraintViolations, "", "Violations that began while a claim of the class held the device or a partition of it; kept after the claims end",
		[]string{"node", "deviceclass", "constraint"})
}

func (f *families) addIncidents() {
	labels := []string{"node", "model", "driver_version", "kind"}
	f.incidents[incidentCount] = f.counter(metric.Incidents, "", "Incidents that began on devices of the model, by kind; one event may be of several kinds: do not sum over kinds", labels)
	f.incidents[incidentWatchedSeconds] = f.counter(metric.IncidentWatchedSeconds, "seconds", "Time for which devices of the model were watched for incidents of the kind and had none, summed over devices", labels)
	f.incidents[incidentSeconds] = f.counter(metric.IncidentSeconds, "seconds", "Time for which devices of the model had an incident of the kind, summed over devices", labels)
	f.incidents[incidentClaims] = f.counter(metric.IncidentClaims, "", "Claims that held a device of the model, or a partition of it, when an incident of the kind began", labels)
	f.heldFailures = f.counter(metric.DeviceHeldFailures, "", "Times that the device or a partition of it became unhealthy, by its hardware, while a claim or a pod held it", deviceLabels())
	for _, family := range []*metric.Family{f.incidents[incidentCount], f.incidents[incidentSeconds], f.incidents[incidentClaims], f.heldFailures} {
		family.Zeros = &metric.ZeroRows{}
	}
}

// addQuantities adds the families of what the hardware reports, one for each
// quantity.
func (f *families) addQuantities() {
	table := []struct {
		quantity         device.Quantity
		name, unit, help string
	}{
		{device.Utilization, metric.DeviceUtilizationRatio, "ratio", "Share of time with work on the device, 0 to 1"},
		{device.EngineActive, metric.DeviceEngineActiveRatio, "ratio", "Share of time in which an engine of the device was active, 0 to 1"},
		{device.SMOccupancy, metric.DeviceSMOccupancyRatio, "ratio", "Resident warps as a share of the maximum, 0 to 1"},
		{device.MemoryActivity, metric.DeviceMemoryActivityRatio, "ratio", "Share of time in which device memory was being read or written, 0 to 1"},
		{device.MemoryUsed, metric.DeviceMemoryUsedBytes, "bytes", "Device memory in use"},
		{device.MemorySize, metric.DeviceMemorySizeBytes, "bytes", "Size of the device memory"},
		{device.MemoryReserved, metric.DeviceMemoryReservedBytes, "bytes", "Device memory that driver and firmware reserve"},
		{device.Power, metric.DevicePowerWatts, "watts", "Power drawn by the whole device"},
		{device.PowerLimit, metric.DevicePowerLimitWatts, "watts", "Power at which the device throttles itself"},
		{device.Energy, metric.DeviceEnergyJoules, "joules", "Energy drawn since the hardware's counter began"},
		{device.Temperature, metric.DeviceTemperatureCelsius, "celsius", "Temperature at a sensor of the device"},
		{device.ClockFrequency, metric.DeviceClockHertz, "hertz", "Frequency of a clock of the device"},
		{device.NVLinkTransmit, metric.DeviceNVLinkTransmitBytes, "bytes", "Bytes sent over all NVLinks since the hardware's counter began"},
		{device.NVLinkReceive, metric.DeviceNVLinkReceiveBytes, "bytes", "Bytes received over all NVLinks since the hardware's counter began"},
		{device.NVLinkLinkTransmit, metric.DeviceNVLinkLinkTransmitBytes, "bytes", "Bytes sent over one NVLink; peer is the other GPU's uuid, or switch"},
		{device.NVLinkLinkReceive, metric.DeviceNVLinkLinkReceiveBytes, "bytes", "Bytes received over one NVLink; peer is the other GPU's uuid, or switch"},
		{device.PCIeTransmit, metric.DevicePCIeTransmitBytes, "bytes", "Bytes sent over PCIe since the hardware's counter began; with NVML a lower bound above 4 GiB between two reads"},
		{device.PCIeReceive, metric.DevicePCIeReceiveBytes, "bytes", "Bytes received over PCIe since the hardware's counter began; with NVML a lower bound above 4 GiB between two reads"},
		{device.NetworkTransmit, metric.DeviceNetworkTransmitBytes, "bytes", "Bytes sent by a network or RDMA device"},
		{device.NetworkReceive, metric.DeviceNetworkReceiveBytes, "bytes", "Bytes received by a network or RDMA device"},
		{device.Throttled, metric.DeviceThrottledSeconds, "seconds", "Time during which the device was throttled, by reason"},
		{device.ECCErrors, metric.DeviceECCErrors, "", "Memory errors over the hardware's lifetime, by severity: corrected, uncorrected"},
		{device.RemappedRows, metric.DeviceRemappedRows, "", "Memory rows that were remapped, by the severity of the error that caused it"},
		{device.RowRemapPending, metric.DeviceRowRemapPending, "", "1 if a row remapping is pending until the device is reset, else 0"},
		{device.RowRemapFailed, metric.DeviceRowRemapFailed, "", "1 if a row remapping has failed, else 0"},
		{device.PCIeReplays, metric.DevicePCIeReplays, "", "PCIe packets that were retransmitted"},
		{device.NVLinkErrors, metric.DeviceNVLinkErrors, "", "NVLink errors, by kind"},
		{device.RecoveryAction, metric.DeviceRecoveryAction, "", "Recovery action that the hardware requests: 1 for the current action, 0 for the others"},
		{device.RetiredPages, metric.DeviceRetiredPages, "", "Memory pages that were retired, by the severity of the error that caused it"},
		{device.XGMIErrors, metric.DeviceXgmiErrors, "", "Errors of the links between AMD GPUs (xGMI), by severity: corrected, uncorrected"},
		{device.NVLinks, metric.DeviceNVLinkLinks, "", "NVLinks by state: active, inactive"},
		{device.FabricState, metric.DeviceFabricState, "", "State of the device's registration with the NVLink fabric: 1 for the current state, 0 for the others"},
		{device.HealthCheck, metric.DeviceHealthCheck, "", "Result of DCGM's health watch of a part of the device: 1 for the current one of pass, warn and fail, else 0"},
		{device.DriverHealth, metric.DeviceDriverHealth, "", "State of a health signal that the driver reports with its device metrics: 1 for the current one of healthy, degraded and unhealthy, else 0"},
		{device.NetworkLinks, metric.DeviceNetworkLinkState, "", "State of a port of a network or RDMA device: 1 for the current state, 0 for the others"},
		{device.NetworkErrors, metric.DeviceNetworkErrors, "", "Errors of a network or RDMA device, by kind; the counters of InfiniBand ports stop at their maximum of 4, 8 or 16 bits"},
		{device.Lost, metric.DeviceLost, "", "1 if the driver has lost the device (fell off the bus, or needs a reset), else 0"},
	}
	for _, row := range table {
		spec := &f.specs[row.quantity]
		family := f.gauge(row.name, row.unit, row.help, deviceLabels(spec.Details...))
		if spec.Kind == device.Counter {
			family.Type = metric.Counter
		}
		f.quantity[row.quantity] = family
	}
	// No query needs the zero of a state that is not the normal one. Those of row
	// remappings, whose alert looks back, are needed.
	normal := func(q device.Quantity, label, state string) {
		f.quantity[q].Zeros = &metric.ZeroRows{Label: label, Values: []string{state}}
	}
	normal(device.RecoveryAction, "action", "none")
	normal(device.FabricState, "state", "success")
	normal(device.HealthCheck, "result", "pass")
	normal(device.DriverHealth, "state", "healthy")
	normal(device.NetworkLinks, "state", "active")
	normal(device.NVLinks, "state", "active")
	for _, q := range []device.Quantity{device.Lost, device.RemappedRows, device.RetiredPages} {
		f.quantity[q].Zeros = &metric.ZeroRows{}
	}
}

// addExtensions adds a family for each extension that is exported, by the name of
// its metric.
func (f *families) addExtensions(names []string) {
	for _, name := range names {
		details, err := device.ParseExtension(name)
		if err != nil { // the flag has been checked
			continue
		}
		help := "What a DRA driver reports with its device metrics as its extension " + details[0]
		add := f.gauge
		if details[1] == device.ExtensionCounter {
			add = f.counter
		}
		f.extensions = append(f.extensions, extensionFamily{details, add(metric.DeviceExtensionPrefix+name, "", help, deviceLabels())})
	}
}

func (f *families) addClaims() {
	f.claimHeld = f.gauge(metric.ClaimHeld, "", "1 while the claim holds the device; absent as soon as it does not", holdLabels())
	f.claimHeldSeconds = f.counter(metric.ClaimHeldSeconds, "seconds", "Time for which the claim held the device", holdLabels())
	f.claimDeviceSeconds = f.counter(metric.ClaimDeviceSeconds, "seconds", "Time for which the claim held the device, weighted by its share of it, or by the number of bundled devices", holdLabels())
	f.claimBundled = f.gauge(metric.ClaimBundledDevices, "", "Number of devices of a bundle: of one driver, which no source reads, and of one claim, under one uuid; absent for other devices", holdLabels())
	f.claimAllocated = f.gauge(metric.ClaimMemoryAllocatedBytes, "bytes", "Memory given to the claim: the consumed capacity, else the size of the device or partition", holdLabels())
	f.claimUtilization = f.gauge(metric.ClaimUtilizationRatio, "ratio", "Utilization of the device by the claim, 0 to 1; with attribution shared, the device's own value", accountLabels())
	f.claimMemory = f.gauge(metric.ClaimMemoryUsedBytes, "bytes", "Device memory used by the claim; with attribution shared, the device's own value", accountLabels())
	f.claimPower = f.gauge(metric.ClaimPowerWatts, "watts", "Power drawn for the claim; with attribution shared, the device's own value", accountLabels())
	f.claimEngine = f.gauge(metric.ClaimEngineActiveRatio, "ratio", "Share of time in which an engine was active for the claim, 0 to 1; with attribution shared, the device's own value", accountLabels("engine"))
	f.claimIdle = f.gauge(metric.ClaimIdleSinceTimestampSeconds, "seconds", "Unix time since which the claim has held the device without using it", accountLabels())
	f.claimThrottled = f.counter(metric.ClaimThrottledSeconds, "seconds", "Time during which the device was throttled while the claim held it, by reason", accountLabels("reason"))
	table := [meters]struct{ name, unit, what string }{
		meterBusy:                {metric.ClaimBusySeconds, "seconds", "Integral of the utilization ratio"},
		meterEnergy:              {metric.ClaimEnergyJoules, "joules", "Energy drawn"},
		meterNVLinkTransmit:      {metric.ClaimNVLinkTransmitBytes, "bytes", "Bytes sent over NVLink"},
		meterNVLinkReceive:       {metric.ClaimNVLinkReceiveBytes, "bytes", "Bytes received over NVLink"},
		meterPCIeTransmit:        {metric.ClaimPCIeTransmitBytes, "bytes", "Bytes sent over PCIe"},
		meterPCIeReceive:         {metric.ClaimPCIeReceiveBytes, "bytes", "Bytes received over PCIe"},
		meterNetworkTransmit:     {metric.ClaimNetworkTransmitBytes, "bytes", "Bytes sent by the network adapter"},
		meterNetworkReceive:      {metric.ClaimNetworkReceiveBytes, "bytes", "Bytes received by the network adapter"},
		meterExecutionIdle:       {metric.ClaimExecutionIdleSeconds, "seconds", "Time above idle power without computing"},
		meterExecutionIdleEnergy: {metric.ClaimExecutionIdleJoules, "joules", "Energy beyond idle power without computing"},
	}
	for m, row := range table {
		f.claimMeter[m] = f.counter(row.name, row.unit, row.what+" while the claim held the device; with attribution shared, the device's own value", accountLabels())
	}
}

func (f *families) addFacts() {
	f.claimInfo = f.gauge(metric.ClaimInfo, "", "A claim of a pod on this node; sharing is none, time_slicing, mps or capacity",
		[]string{"node", "namespace", "resourceclaim", "claim_uid", "deviceclass", "template", "sharing", "admin_access", "extended_resource"})
	f.claimDeviceInfo = f.gauge(metric.ClaimDeviceInfo, "", "A device that was allocated to the claim, and the request that it satisfies; pool and device are empty for a bundle",
		[]string{"node", "namespace", "resourceclaim", "request", "deviceclass", "driver", "pool", "device", "uuid", "share_id"})
	f.claimConsumerInfo = f.gauge(metric.ClaimConsumerInfo, "", "A container that may use a device of the claim; has a label_… for each pod label of --labels.pod",
		[]string{"node", "namespace", "resourceclaim", "uuid", "pod", "pod_uid", "container", "owner_kind", "owner_name"})
	f.podWorkload = f.gauge(metric.PodWorkloadInfo, "", "The workload of a pod that uses claims or device plugins, and the pod's place in it: role, index of the replica, rank",
		[]string{"node", "namespace", "pod", "workload_kind", "workload", "role", "replica", "rank", "queue"})
	f.pluginConsumerInfo = f.gauge(metric.DevicePluginConsumerInfo, "", "A container that uses the device through a device plugin",
		[]string{"node", "uuid", "namespace", "pod", "container", "resource"})
}

func (f *families) addNamespaces() {
	f.namespaceDevice = f.counter(metric.NamespaceDeviceSeconds, "seconds", "Time for which claims held devices, weighted by their share; kept after the claims end", namespaceLabels())
	f.namespaceShared = f.counter(metric.NamespaceSharedDeviceSeconds, "seconds", "Device-seconds of shared devices whose use is not split between the holders; kept after the claims end", namespaceLabels())
	f.namespaceBusy = f.counter(metric.NamespaceBusySeconds, "seconds", "Busy time of claims on devices held alone, and of their processes on shared devices; kept after the claims end", namespaceLabels())
	f.namespaceEnergy = f.counter(metric.NamespaceEnergyJoules, "joules", "Energy drawn for claims by devices that are not shared; kept after the claims end", namespaceLabels())
}

// addCost adds the families of what devices cost.
func (f *families) addCost() {
	f.devicePrice = f.gauge(metric.DevicePricePerHour, "", "Price of an hour of the device for each class of its claims; the class is empty without claims; absent without a rule",
		[]string{"node", "uuid", "deviceclass", "currency"})
	f.namespaceCost = f.counter(metric.NamespaceCost, "", "Cost of the namespace's device-seconds by the price list; kept after the claims end",
		append(namespaceLabels(), "currency"))
}

func (f *families) addExporter() {
	f.self = self.NewFamilies()
	f.accessMode = f.gauge(metric.ExporterAccessModeInfo, "", "How the manifests give the agent access to NVIDIA's GPUs, and why: set, or what the chart found; absent without --access.mode", []string{"mode", "reason"})
	f.sampleTime = f.gauge(metric.ExporterSampleTimestampSeconds, "seconds", "Unix time of the newest reading of any device", nil)
	f.unmatched = f.gauge(metric.ExporterUnmatchedDevices, "", "Unmatched devices: allocated without known hardware (published), hardware that its driver does not publish (hardware); absent for a driver that no running source reads", []string{"driver", "side"})
	f.unresolved = f.gauge(metric.ExporterUnresolvedPluginDevices, "", "Ids of device plugins that lead to no hardware, by the form of the id", []string{"form"})
	f.conflicting = f.gauge(metric.ExporterConflictingDevices, "", "Devices that claims hold under more than one published name", nil)
	f.uncounted = f.gauge(metric.ExporterUncountedDevices, "", "Held devices whose device-seconds are not counted, because admin access, their pods or a claim's share is unknown", []string{"reason"})
	f.access = f.gauge(metric.ExporterDeviceAccess, "", "1 for the present state of the agent's access to the GPUs (open, releasing, released) and its reason: file, label, passthrough, unbind, idle or starting", []string{"node", "state", "reason"})
	f.processes = f.gauge(metric.ExporterProcessAttribution, "", "Whether the use of shared devices is split by process: 1 for ok or the reason why it is not, 0 for the others", []string{"reason"})
	f.processes.Zeros = &metric.ZeroRows{Label: "reason"}
	f.resets = f.counter(metric.ExporterHardwareResets, "", "Resets of hardware counters", nil)
}

const (
	// MaxPodLabels is how many labels of pods can be shown: with the other labels of the
	// series, the 30 that Mimir accepts by default.
	MaxPodLabels = 15
	// maxLabelName limits the name of a label, in bytes: VictoriaMetrics' default.
	maxLabelName = 256
)

// CheckPodLabels returns an error unless each label of pods has a metric label of
// its own.
func CheckPodLabels(keys []string) error {
	if len(keys) > MaxPodLabels {
		return fmt.Errorf("show labels of pods: %d labels are more than %d", len(keys), MaxPodLabels)
	}
	owners := make(map[string]string, len(keys))
	for _, key := range keys {
		name := podLabelName(key)
		switch other, ok := owners[name]; {
		case strings.TrimSpace(key) == "":
			return fmt.Errorf("show labels of pods: a label without a name")
		case len(name) > maxLabelName:
			return fmt.Errorf("show labels of pods: the metric label of %s would have %d bytes, and the limit is %d", key, len(name), maxLabelName)
		case ok && other == key:
			return fmt.Errorf("show labels of pods: %s is named twice", key)
		case ok:
			return fmt.Errorf("show labels of pods: %s and %s would both be the metric label %s", other, key, name)
		}
		owners[name] = key
	}
	return nil
}

// podLabelName returns the metric label for a label of pods, with the name that
// kube-state-metrics gives it (--metric-labels-allowlist), so that queries can join
// by it: everything but letters, digits and underscores becomes an underscore, and
// camel case becomes snake case.
func podLabelName(key string) string {
	name := regexp.MustCompile(`[^a-zA-Z0-9_]`).ReplaceAllString(key, "_")
	return "label_" + strings.ToLower(regexp.MustCompile(`([a-z0-9])([A-Z])`).ReplaceAllString(name, "${1}_${2}"))
}

// podLabels are values of a pod's labels, in one string so that facts that have
// them can be compared. No label value has a zero byte.
type podLabels string

func joinPodLabels(pod dra.Pod) podLabels { return podLabels(strings.Join(pod.Labels, "\x00")) }

// listLabels returns the labels that are set, by their names in rows without label_.
func (f *families) listLabels(labels podLabels) []model.Label {
	var list []model.Label
	names := f.claimConsumerInfo.Labels[len(f.claimConsumerInfo.Labels)-f.podLabels:]
	for i, value := range labels.values(f.podLabels) {
		if value != "" {
			list = append(list, model.Label{Name: strings.TrimPrefix(names[i], "label_"), Value: value})
		}
	}
	return list
}

// values returns count values. Those of a pod that only the kubelet reports are
// empty.
func (l podLabels) values(count int) []string {
	values := make([]string, count)
	copy(values, strings.Split(string(l), "\x00"))
	return values
}
