package node

import (
	"slices"
	"strconv"

	"github.com/dra-exporter/dra-exporter/collector/device"
	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/collector/metric"
	"github.com/dra-exporter/dra-exporter/collector/model"
	"github.com/dra-exporter/dra-exporter/collector/self"
)

// definition is a family of the node role, and the function that makes its rows from a
// model. docs/metrics.md is generated from the definitions.
type definition = metric.Definition[*labelled]

// fill adds the rows of a family.
type fill = func(*labelled, *metric.Builder)

// Families returns every family that the node role can export, but those of
// extensions, for the documentation and for checks.
func Families() []*metric.Family {
	return slices.Concat(define(Config{}).Families(), []*metric.Family{self.ReadDuration()}, self.NewFamilies().All())
}

// define returns the families in the order of their rows: those of devices, of claims,
// of facts that queries join with, of namespaces, and of the exporter itself.
func define(config Config) metric.Definitions[*labelled] {
	return slices.Concat(
		deviceFamilies(), quantityFamilies(), extensionFamilies(config.Extensions), processFamilies(),
		healthFamilies(), incidentFamilies(), holdFamilies(), accountFamilies(), claimFamilies(config.PodLabels),
		podFamilies(), namespaceFamilies(), exporterFamilies(),
	)
}

func gauge(name, unit, help string, labels []string, rows fill) definition {
	return definition{Family: metric.Family{Name: name, Unit: unit, Help: help, Type: metric.Gauge, Labels: labels}, Fill: rows}
}

func counter(name, unit, help string, labels []string, rows fill) definition {
	d := gauge(name, unit, help, labels, rows)
	d.Type = metric.Counter
	return d
}

// zeros has rows of value 0 left out below the level full, unless the label has one of
// the values. Without a label it is all of them.
func zeros(d definition, label string, values ...string) definition {
	d.Zeros = &metric.ZeroRows{Label: label, Values: values}
	return d
}

// The labels that families share.
func deviceLabels(more ...string) []string {
	return slices.Concat([]string{"node", "uuid", "parent_uuid"}, more)
}

func claimLabels(more ...string) []string {
	return slices.Concat([]string{"node", "namespace", "resourceclaim"}, more)
}

func holdLabels(more ...string) []string { return slices.Concat(claimLabels("uuid"), more) }

func accountLabels(more ...string) []string { return slices.Concat(holdLabels("attribution"), more) }

func podLabels(more ...string) []string {
	return slices.Concat([]string{"node", "namespace", "pod"}, more)
}

func namespaceLabels(more ...string) []string {
	return slices.Concat([]string{"node", "namespace", "deviceclass", "model"}, more)
}

func incidentLabels() []string { return []string{"node", "model", "driver_version", "kind"} }

func deviceFamilies() []definition {
	return []definition{
		gauge(metric.DeviceInfo, "", "A device of this node: hardware, its partitions, and held devices without known hardware",
			deviceLabels("vendor", "model", "pci_bus_id", "partition_profile", "driver_version", "source"),
			deviceInfoRows(func(d *model.Device) []string {
				return []string{d.Parent, d.Vendor, d.Model, d.PCIBusID, d.Profile, d.DriverVersion, d.Source}
			}, func(d *model.Device) bool { return d.Past })),
		gauge(metric.DeviceHardwareInfo, "", "What identifies the whole device for repair or replacement, as far as a source reads it; empty: unknown",
			[]string{"node", "uuid", "serial", "board_part_number", "vbios", "minor_number", "index", "module_id", "chassis_serial", "slot", "tray"},
			deviceInfoRows(hardwareValues, isPresent)),
		gauge(metric.DevicePublishedInfo, "", "Name under which a DRA driver publishes the device",
			deviceLabels("driver", "pool", "device"),
			deviceInfoRows(func(d *model.Device) []string {
				if d.Published == (dra.DeviceID{}) {
					return nil
				}
				return []string{d.Parent, d.Published.Driver, d.Published.Pool, d.Published.Name}
			}, isPresent)),
		gauge(metric.DeviceTopologyInfo, "", "Where the device is: its PCIe root complex, NUMA node, and NVLink domain or xGMI hive; empty: unknown, or none",
			deviceLabels("pcie_root", "numa_node", "link_domain"),
			deviceInfoRows(func(d *model.Device) []string {
				if d.Location == (dra.Location{}) {
					return nil
				}
				return []string{d.Parent, d.Location.Root, d.Location.NUMA, d.Location.Link}
			}, isPresent)),
		gauge(metric.DevicePartitionInfo, "", "Ids of the GPU instance and the compute instance of a MIG device",
			deviceLabels("gpu_instance_id", "compute_instance_id"),
			deviceInfoRows(func(d *model.Device) []string {
				if !d.HasInstances() {
					return nil
				}
				return []string{d.Parent, strconv.Itoa(d.GPUInstance), strconv.Itoa(d.ComputeInstance)}
			}, isPresent)),
		zeros(gauge(metric.DeviceHolders, "", "Number of holders by kind: claims (without admin access), pods that use the device through a device plugin, and, if there are any, pods whose device plugin may have given it (possible)",
			deviceLabels("kind"),
			deviceKindRows([3]string{"claim", "device_plugin", "possible"}, func(d *model.Device) [3]model.Optional {
				h := &d.Holders
				return [3]model.Optional{known(h.Claims), known(h.Plugins), {Value: float64(h.Possible), Known: h.Possible > 0}}
			})), "kind", "claim"),
	}
}

func known(count int) model.Optional { return model.Optional{Value: float64(count), Known: true} }

// isPresent is for info rows that end with what they are about.
func isPresent(*model.Device) (past bool) { return false }

// hardwareValues are what identifies a device for its repair; nil: nothing does.
func hardwareValues(d *model.Device) []string {
	if !d.IsIdentified() {
		return nil
	}
	minor, h := "", &d.Hardware
	if d.Minor != device.Unknown {
		minor = strconv.Itoa(d.Minor)
	}
	return []string{h.Serial, h.BoardPartNumber, h.VBIOS, minor, h.Index, h.ModuleID, h.ChassisSerial, h.Slot, h.Tray}
}

// quantityFamilies are what the hardware reports, a family for each quantity. No query
// needs the zero of a state that is not the normal one. Those of row remappings, whose
// alert looks back, are needed.
func quantityFamilies() []definition {
	specs := device.Specs()
	quantity := func(q device.Quantity, help string) definition {
		d := gauge(specs[q].Family(), specs[q].Unit, help, deviceLabels(specs[q].Details...), readingRows(q, specs[q].Kind == device.Gauge))
		if specs[q].Kind == device.Counter {
			d.Type = metric.Counter
		}
		return d
	}
	return []definition{
		quantity(device.Utilization, "Share of time with work on the device, 0 to 1"),
		quantity(device.EngineActive, "Share of time in which an engine of the device was active, 0 to 1"),
		quantity(device.SMOccupancy, "Resident warps as a share of the maximum, 0 to 1"),
		quantity(device.MemoryActivity, "Share of time in which device memory was being read or written, 0 to 1"),
		quantity(device.MemoryUsed, "Device memory in use"),
		quantity(device.MemorySize, "Size of the device memory"),
		quantity(device.MemoryReserved, "Device memory that driver and firmware reserve"),
		quantity(device.Power, "Power drawn by the whole device"),
		quantity(device.PowerLimit, "Power at which the device throttles itself"),
		quantity(device.Energy, "Energy drawn since the hardware's counter began"),
		quantity(device.Temperature, "Temperature at a sensor of the device"),
		quantity(device.ClockFrequency, "Frequency of a clock of the device"),
		quantity(device.NVLinkTransmit, "Bytes sent over all NVLinks since the hardware's counter began"),
		quantity(device.NVLinkReceive, "Bytes received over all NVLinks since the hardware's counter began"),
		quantity(device.NVLinkLinkTransmit, "Bytes sent over one NVLink; peer is the other GPU's uuid, or switch"),
		quantity(device.NVLinkLinkReceive, "Bytes received over one NVLink; peer is the other GPU's uuid, or switch"),
		quantity(device.PCIeTransmit, "Bytes sent over PCIe since the hardware's counter began; with NVML a lower bound above 4 GiB between two reads"),
		quantity(device.PCIeReceive, "Bytes received over PCIe since the hardware's counter began; with NVML a lower bound above 4 GiB between two reads"),
		quantity(device.NetworkTransmit, "Bytes sent by a network or RDMA device"),
		quantity(device.NetworkReceive, "Bytes received by a network or RDMA device"),
		zeros(quantity(device.Throttled, "Time during which the device was throttled, by reason"), "reason", "thermal"),
		quantity(device.ECCErrors, "Memory errors over the hardware's lifetime, by severity: corrected, uncorrected"),
		zeros(quantity(device.RemappedRows, "Memory rows that were remapped, by the severity of the error that caused it"), ""),
		quantity(device.RowRemapPending, "1 if a row remapping is pending until the device is reset, else 0"),
		quantity(device.RowRemapFailed, "1 if a row remapping has failed, else 0"),
		quantity(device.PCIeReplays, "PCIe packets that were retransmitted"),
		quantity(device.NVLinkErrors, "NVLink errors, by kind"),
		zeros(quantity(device.RecoveryAction, "Recovery action that the hardware requests: 1 for the current action, 0 for the others"), "action", "none"),
		zeros(quantity(device.RetiredPages, "Memory pages that were retired, by the severity of the error that caused it"), ""),
		zeros(quantity(device.NVLinks, "NVLinks by state: active, inactive"), "state", "active"),
		zeros(quantity(device.FabricState, "State of the device's registration with the NVLink fabric: 1 for the current state, 0 for the others"), "state", "success"),
		zeros(quantity(device.HealthCheck, "Result of DCGM's health watch of a part of the device: 1 for the current one of pass, warn and fail, else 0"), "result", "pass"),
		zeros(quantity(device.NetworkLinks, "State of a port of a network or RDMA device: 1 for the current state, 0 for the others"), "state", "active"),
		quantity(device.NetworkErrors, "Errors of a network or RDMA device, by kind; the counters of InfiniBand ports stop at their maximum of 4, 8 or 16 bits"),
		zeros(quantity(device.Lost, "1 if the driver has lost the device (fell off the bus, or needs a reset), else 0"), ""),
		quantity(device.XGMIErrors, "Errors of the links between AMD GPUs (xGMI), by severity: corrected, uncorrected"),
		zeros(quantity(device.DriverHealth, "State of a health signal that the driver reports with its device metrics: 1 for the current one of healthy, degraded and unhealthy, else 0"), "state", "healthy"),
	}
}

// extensionFamilies are a family for each extension that is exported, by the name of its
// metric.
func extensionFamilies(names []string) []definition {
	var families []definition
	for _, name := range names {
		details, err := device.ParseExtension(name)
		if err != nil { // the flag has been checked
			continue
		}
		add := gauge
		if details[1] == device.ExtensionCounter {
			add = counter
		}
		families = append(families, add(metric.DeviceExtensionPrefix+name, "", "What a DRA driver reports with its device metrics as its extension "+details[0], deviceLabels(),
			deviceRows(func(d *labelledDevice, b *metric.Builder) {
				if !d.Fresh && details[1] != device.ExtensionCounter {
					return
				}
				first, end := d.span(device.Extension)
				for _, reading := range d.Readings[first:end] {
					if reading.Details == details {
						b.Add(d.plain, reading.Value)
					}
				}
			})))
	}
	return families
}

// processFamilies are the use of devices over time and by processes.
func processFamilies() []definition {
	pod := podLabels("uuid")
	return []definition{
		counter(metric.DeviceBusySeconds, "seconds", "Time integral of the utilization ratio while it was known", deviceLabels(),
			deviceRows(func(d *labelledDevice, b *metric.Builder) { addTotal(b, d.plain, d.Busy) })),
		gauge("dra_device_unattributed_utilization_ratio", "ratio", "Utilization of the device, 0 to 1, by processes that belong to no holder; absent if it is not split by process", deviceLabels(),
			deviceRows(func(d *labelledDevice, b *metric.Builder) { addOptional(b, d.plain, d.UnattributedUtilization) })),
		gauge("dra_device_unattributed_memory_bytes", "bytes", "Device memory used by processes that belong to no holder of the device; absent if it is not split by process", deviceLabels(),
			deviceRows(func(d *labelledDevice, b *metric.Builder) { addOptional(b, d.plain, d.UnattributedMemory) })),
		zeros(gauge("dra_device_foreign_processes", "", "Processes of pods that hold nothing of the device and have no admin access to it, such as those of a pod that was deleted by force; absent if the device's processes are not known", deviceLabels(),
			deviceRows(func(d *labelledDevice, b *metric.Builder) { addOptional(b, d.plain, d.ForeignProcesses) })), ""),
		gauge(metric.PodUtilizationRatio, "ratio", "Utilization of the device, 0 to 1, by the pod's processes, if several pods use it and it is split by process", pod,
			func(n *labelled, b *metric.Builder) {
				for i, labels := range n.pods {
					addUse(b, labels.Labels, n.Pods[i].Utilization)
				}
			}),
		gauge(metric.PodMemoryUsedBytes, "bytes", "Device memory used by the pod's processes, if several pods use the device and it is split by process", pod,
			func(n *labelled, b *metric.Builder) {
				for i, labels := range n.pods {
					addUse(b, labels.Labels, n.Pods[i].Memory)
				}
			}),
	}
}

func healthFamilies() []definition {
	xids := zeros(counter(metric.DeviceXIDErrors, "", "Errors that NVIDIA's driver reported for the device, by Xid code; other is every code that docs/health.md does not list",
		deviceLabels("xid"),
		deviceRows(func(d *labelledDevice, b *metric.Builder) {
			if !d.XIDsWatched {
				return // none is not known then; the counts come back
			}
			for i, labels := range d.xids {
				addTotal(b, labels.Labels, d.XIDs[i].Count)
			}
		})), "xid", xidsFromZero(xidTable())...)
	// The dashboard about health knows by one counter of a device that its Xids are
	// counted. The rules count first errors without a zero.
	xids.LeanZeros = &metric.ZeroRows{Label: "xid", Values: []string{"79"}}
	return []definition{
		gauge(metric.DeviceHealthy, "", "Health of the device as reported by hardware, driver or kubelet: 1 healthy, 0 unhealthy; absent if not reported",
			deviceLabels("by"),
			deviceKindRows([3]string{"driver", "hardware", "kubelet"}, func(d *model.Device) [3]model.Optional {
				return [3]model.Optional{reportNumber(d.ByDriver), reportNumber(d.ByHardware), reportNumber(d.ByKubelet)}
			})),
		gauge("dra_device_health_signal_info", "", "A current problem of the device; severity critical makes its hardware unhealthy (0), warning does not",
			deviceLabels("signal", "severity"),
			deviceFactRows(func(d *model.Device) []model.Signal { return d.Signals },
				func(s model.Signal) []string { return []string{s.Name, severity(s.Critical)} })),
		gauge("dra_device_taint_info", "", "A taint of the device in its driver's ResourceSlice",
			deviceLabels("key", "value", "effect"),
			deviceFactRows(func(d *model.Device) []dra.Taint { return d.Taints },
				func(t dra.Taint) []string { return []string{t.Key, t.Value, t.Effect} })),
		xids,
		gauge("dra_device_xid_last_timestamp_seconds", "seconds", "Unix time when the Xid was last reported for the device",
			deviceLabels("xid"),
			deviceRows(func(d *labelledDevice, b *metric.Builder) {
				for i, labels := range d.xids {
					addTime(b, labels.Labels, d.XIDs[i].Last)
				}
			})),
		counter("dra_constraint_violations_total", "", "Violations that began while a claim of the class held the device or a partition of it; kept after the claims end",
			[]string{"node", "deviceclass", "constraint"},
			violationRows()),
	}
}

func reportNumber(report model.Report) model.Optional {
	return model.Optional{Value: flag(report == model.Healthy), Known: report != model.Unreported}
}

func incidentFamilies() []definition {
	incidents := func(total func(*model.Incidents) model.Total) fill {
		return func(n *labelled, b *metric.Builder) {
			for i, labels := range n.incidents {
				addTotal(b, labels.Labels, total(&n.Incidents[i]))
			}
		}
	}
	return []definition{
		zeros(counter("dra_incidents_total", "", "Incidents that began on devices of the model, by kind; one event may be of several kinds: do not sum over kinds", incidentLabels(),
			incidents(func(i *model.Incidents) model.Total { return i.Count })), ""),
		counter("dra_incident_watched_seconds_total", "seconds", "Time for which devices of the model were watched for incidents of the kind and had none, summed over devices", incidentLabels(),
			incidents(func(i *model.Incidents) model.Total { return i.WatchedSeconds })),
		zeros(counter("dra_incident_seconds_total", "seconds", "Time for which devices of the model had an incident of the kind, summed over devices", incidentLabels(),
			incidents(func(i *model.Incidents) model.Total { return i.Seconds })), ""),
		zeros(counter("dra_incident_claims_total", "", "Claims that held a device of the model, or a partition of it, when an incident of the kind began", incidentLabels(),
			incidents(func(i *model.Incidents) model.Total { return i.Claims })), ""),
		zeros(counter("dra_device_held_failures_total", "", "Times that the device or a partition of it became unhealthy, by its hardware, while a claim or a pod held it", deviceLabels(),
			deviceRows(func(d *labelledDevice, b *metric.Builder) { addTotal(b, d.plain, d.HeldFailures) })), ""),
	}
}

// holdFamilies are what claims hold and use at present.
func holdFamilies() []definition {
	return []definition{
		gauge(metric.ClaimHeld, "", "1 while the claim holds the device; absent as soon as it does not", holdLabels(),
			holdRows(func(h *labelledHold, b *metric.Builder) {
				if h.Held {
					b.Add(h.plain, 1)
				}
			})),
		counter(metric.ClaimHeldSeconds, "seconds", "Time for which the claim held the device", holdLabels(),
			holdRows(func(h *labelledHold, b *metric.Builder) { addTotal(b, h.plain, h.HeldSeconds) })),
		counter(metric.ClaimDeviceSeconds, "seconds", "Time for which the claim held the device, weighted by its share of it, or by the number of bundled devices", holdLabels(),
			holdRows(func(h *labelledHold, b *metric.Builder) { addTotal(b, h.plain, h.DeviceSeconds) })),
		gauge(metric.ClaimBundledDevices, "", "Number of devices of a bundle: of one driver, which no source reads, and of one claim, under one uuid; absent for other devices", holdLabels(),
			holdRows(func(h *labelledHold, b *metric.Builder) { addNonZero(b, h.plain, float64(h.Bundled)) })),
		gauge(metric.ClaimMemoryAllocatedBytes, "bytes", "Memory given to the claim: the consumed capacity, else the size of the device or partition", holdLabels(),
			holdRows(func(h *labelledHold, b *metric.Builder) { addNonZero(b, h.plain, h.Allocated) })),
		gauge(metric.ClaimUtilizationRatio, "ratio", "Utilization of the device by the claim, 0 to 1; with attribution shared, the device's own value", accountLabels(),
			holdRows(func(h *labelledHold, b *metric.Builder) {
				addUse(b, h.accounts[h.Utilization.Attribution], h.Utilization)
			})),
		gauge(metric.ClaimMemoryUsedBytes, "bytes", "Device memory used by the claim; with attribution shared, the device's own value", accountLabels(),
			holdRows(func(h *labelledHold, b *metric.Builder) { addUse(b, h.accounts[h.Memory.Attribution], h.Memory) })),
		gauge(metric.ClaimPowerWatts, "watts", "Power drawn for the claim; with attribution shared, the device's own value", accountLabels(),
			holdRows(func(h *labelledHold, b *metric.Builder) { addOptional(b, h.accounts[h.Attribution], h.Power) })),
		gauge(metric.ClaimEngineActiveRatio, "ratio", "Share of time in which an engine was active for the claim, 0 to 1; with attribution shared, the device's own value", accountLabels("engine"),
			engineRows()),
		gauge("dra_claim_idle_since_timestamp_seconds", "seconds", "Unix time since which the claim has held the device without using it", accountLabels(),
			holdRows(func(h *labelledHold, b *metric.Builder) {
				addTime(b, h.accounts[h.Utilization.Attribution], h.IdleSince)
			})),
	}
}

// accountFamilies are what claims accrued, under every attribution that they ever had.
func accountFamilies() []definition {
	account := func(name, unit, subject string, total func(*model.Account) model.Total) definition {
		return counter(name, unit, subject+" while the claim held the device; with attribution shared, the device's own value", accountLabels(), accountRows(total))
	}
	return []definition{
		account(metric.ClaimBusySeconds, "seconds", "Integral of the utilization ratio", func(a *model.Account) model.Total { return a.Busy }),
		account(metric.ClaimEnergyJoules, "joules", "Energy drawn", func(a *model.Account) model.Total { return a.Energy }),
		account(metric.ClaimNVLinkTransmitBytes, "bytes", "Bytes sent over NVLink", func(a *model.Account) model.Total { return a.NVLinkTransmit }),
		account(metric.ClaimNVLinkReceiveBytes, "bytes", "Bytes received over NVLink", func(a *model.Account) model.Total { return a.NVLinkReceive }),
		account(metric.ClaimPCIeTransmitBytes, "bytes", "Bytes sent over PCIe", func(a *model.Account) model.Total { return a.PCIeTransmit }),
		account(metric.ClaimPCIeReceiveBytes, "bytes", "Bytes received over PCIe", func(a *model.Account) model.Total { return a.PCIeReceive }),
		account(metric.ClaimNetworkTransmitBytes, "bytes", "Bytes sent by the network adapter", func(a *model.Account) model.Total { return a.NetworkTransmit }),
		account(metric.ClaimNetworkReceiveBytes, "bytes", "Bytes received by the network adapter", func(a *model.Account) model.Total { return a.NetworkReceive }),
		account(metric.ClaimExecutionIdleSeconds, "seconds", "Time above idle power without computing", func(a *model.Account) model.Total { return a.ExecutionIdle }),
		account(metric.ClaimExecutionIdleJoules, "joules", "Energy beyond idle power without computing", func(a *model.Account) model.Total { return a.ExecutionIdleEnergy }),
		zeros(counter(metric.ClaimThrottledSeconds, "seconds", "Time during which the device was throttled while the claim held it, by reason", accountLabels("reason"),
			throttledRows()), "reason", "thermal"),
	}
}

// claimFamilies are facts about claims, and about pods' labels with the keys.
func claimFamilies(keys []string) []definition {
	consumer := holdLabels("pod", "pod_uid", "container", "owner_kind", "owner_name")
	for _, key := range keys {
		consumer = append(consumer, podLabelName(key))
	}
	podLabels := consumer[len(consumer)-len(keys):]
	return []definition{
		gauge(metric.ClaimInfo, "", "A claim of a pod on this node; sharing is none, time_slicing, mps or capacity",
			claimLabels("claim_uid", "deviceclass", "template", "sharing", "admin_access", "extended_resource"),
			claimFactRows(func(*model.Claim) (live, all int) { return 1, 1 }, func(c *model.Claim, _ int) []string {
				return []string{c.UID, c.Class, c.Template, c.Sharing, strconv.FormatBool(c.Admin), strconv.FormatBool(c.Extended)}
			})),
		gauge("dra_claim_device_info", "", "A device that was allocated to the claim, and the request that it satisfies; pool and device are empty for a bundle",
			claimLabels("request", "deviceclass", "driver", "pool", "device", "uuid", "share_id"),
			claimFactRows(func(c *model.Claim) (live, all int) { return len(c.Devices), len(c.Devices) + len(c.PastDevices) },
				func(c *model.Claim, i int) []string {
					d := element(c.Devices, c.PastDevices, i)
					return []string{d.Request, d.Class, d.ID.Driver, d.ID.Pool, d.ID.Name, d.UUID, d.Share}
				})),
		gauge(metric.ClaimConsumerInfo, "", "A container that may use a device of the claim; has a label_… for each pod label of --labels.pod",
			consumer,
			claimFactRows(func(c *model.Claim) (live, all int) { return len(c.Consumers), len(c.Consumers) + len(c.PastConsumers) },
				func(c *model.Claim, i int) []string {
					u := element(c.Consumers, c.PastConsumers, i)
					values := []string{u.UUID, u.Pod, u.PodUID, u.Container, u.OwnerKind, u.OwnerName}
					for _, name := range podLabels {
						values = append(values, podLabelValue(u.Labels, name))
					}
					return values
				})),
	}
}

// podFamilies are facts about pods, and about the topology of what they and claims have.
func podFamilies() []definition {
	return []definition{
		gauge("dra_pod_workload_info", "", "The workload of a pod that uses claims or device plugins, and the pod's place in it: role, index of the replica, rank",
			podLabels("workload_kind", "workload", "role", "replica", "rank", "queue"),
			factRows(func(n *model.Node) (live, past []model.PodWorkload) { return n.Workloads, n.PastWorkloads },
				func(p model.PodWorkload) []string {
					return []string{p.Pod.Namespace, p.Pod.Name, p.Workload.Kind, p.Workload.Name, p.Role, p.Replica, p.Rank, p.Workload.Queue}
				})),
		gauge(metric.ClaimTopologyInfo, "", "How near the claim's devices are to each other, or each to its nearest network adapter, and how near they could be",
			claimLabels("between", "alignment", "best"),
			factRows(func(n *model.Node) (live, past []model.ClaimAlignment) { return n.ClaimAlignments, nil },
				func(a model.ClaimAlignment) []string {
					return []string{a.Claim.Namespace, a.Claim.Name, a.Between, a.Is.String(), a.Best.String()}
				})),
		gauge(metric.PodTopologyInfo, "", "How near the devices of all of the pod's claims are to each other; labels as in dra_claim_topology_info",
			podLabels("between", "alignment", "best"),
			factRows(func(n *model.Node) (live, past []model.PodAlignment) { return n.PodAlignments, nil },
				func(a model.PodAlignment) []string {
					return []string{a.Pod.Namespace, a.Pod.Name, a.Between, a.Is.String(), a.Best.String()}
				})),
		gauge(metric.DevicePluginConsumerInfo, "", "A container that uses the device through a device plugin",
			[]string{"node", "uuid", "namespace", "pod", "container", "resource"},
			factRows(func(n *model.Node) (live, past []model.PluginConsumer) { return n.Plugins, n.PastPlugins },
				func(c model.PluginConsumer) []string {
					return []string{c.UUID, c.Pod.Namespace, c.Pod.Name, c.Container, c.Resource}
				})),
	}
}

// namespaceFamilies are totals of namespaces, and what devices cost.
func namespaceFamilies() []definition {
	totals := func(total func(*model.Totals) model.Total) fill {
		return func(n *labelled, b *metric.Builder) {
			for i, labels := range n.totals {
				addTotal(b, labels.Labels, total(&n.Totals[i]))
			}
		}
	}
	return []definition{
		counter("dra_namespace_device_seconds_total", "seconds", "Time for which claims held devices, weighted by their share; kept after the claims end", namespaceLabels(),
			totals(func(t *model.Totals) model.Total { return t.DeviceSeconds })),
		counter("dra_namespace_shared_device_seconds_total", "seconds", "Device-seconds of shared devices whose use is not split between the holders; kept after the claims end", namespaceLabels(),
			totals(func(t *model.Totals) model.Total { return t.SharedSeconds })),
		counter("dra_namespace_busy_seconds_total", "seconds", "Busy time of claims on devices held alone, and of their processes on shared devices; kept after the claims end", namespaceLabels(),
			totals(func(t *model.Totals) model.Total { return t.BusySeconds })),
		counter("dra_namespace_energy_joules_total", "joules", "Energy drawn for claims by devices that are not shared; kept after the claims end", namespaceLabels(),
			totals(func(t *model.Totals) model.Total { return t.Energy })),
		gauge("dra_device_price_per_hour", "", "Price of an hour of the device for each class of its claims; the class is empty without claims; absent without a rule",
			[]string{"node", "uuid", "deviceclass", "currency"}, priceRows()),
		counter("dra_namespace_cost_total", "", "Cost of the namespace's device-seconds by the price list; kept after the claims end",
			namespaceLabels("currency"), costRows()),
	}
}

// exporterFamilies are about the exporter itself. Those that both roles have are in self.
func exporterFamilies() []definition {
	return []definition{
		zeros(gauge(metric.ExporterProcessAttribution, "", "Whether the use of shared devices is split by process: 1 for ok or the reason why it is not, 0 for the others",
			[]string{"reason"}, processStateRows()), "reason"),
		gauge(metric.ExporterDeviceAccess, "", "1 for the present state of the agent's access to the GPUs (open, releasing, released) and its reason: file, label, passthrough, unbind, idle or starting",
			[]string{"node", "state", "reason"},
			accessRow(func(n *model.Node) []string { return []string{n.Name, n.Access.State, n.Access.Released} })),
		gauge("dra_exporter_access_mode_info", "", "How the manifests give the agent access to NVIDIA's GPUs, and why: set, or what the chart found; absent without --access.mode",
			[]string{"mode", "reason"},
			accessRow(func(n *model.Node) []string {
				if n.Access.Mode == "" {
					return nil
				}
				return []string{n.Access.Mode, n.Access.ModeReason}
			})),
		gauge(metric.ExporterSampleTimestampSeconds, "seconds", "Unix time of the newest reading of any device", nil,
			func(n *labelled, b *metric.Builder) { addTime(b, n.none, n.SampledAt) }),
		gauge(metric.ExporterUnmatchedDevices, "", "Unmatched devices: allocated without known hardware (published), hardware that its driver does not publish (hardware); absent for a driver that no running source reads", []string{"driver", "side"},
			unmatchedRows()),
		gauge("dra_exporter_conflicting_devices", "", "Devices that claims hold under more than one published name", nil,
			func(n *labelled, b *metric.Builder) { b.Add(n.none, float64(n.Conflicting)) }),
		gauge("dra_exporter_unresolved_plugin_devices", "", "Ids of device plugins that lead to no hardware, by the form of the id", []string{"form"},
			countRows(func(n *model.Node) []model.Counter { return n.Unresolved })),
		gauge("dra_exporter_uncounted_devices", "", "Held devices whose device-seconds are not counted, because admin access, their pods or a claim's share is unknown", []string{"reason"},
			countRows(func(n *model.Node) []model.Counter { return n.Uncounted })),
		counter(metric.ExporterHardwareResets, "", "Resets of hardware counters", nil,
			func(n *labelled, b *metric.Builder) { addTotal(b, n.none, n.Resets) }),
	}
}
