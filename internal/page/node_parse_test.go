package page

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/device"
	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/collector/metric"
	"github.com/dra-exporter/dra-exporter/collector/model"
	"github.com/dra-exporter/dra-exporter/collector/source"
)

// parseNode returns the model that the rows of a node are of, in any order; nil of nil.
// Tests write their scenes as rows: these are short, and known from a scrape.
func parseNode(rows []metric.Row) *model.Node {
	if rows == nil {
		return nil
	}
	p := nodeParser{&model.Node{}}
	for _, row := range rows {
		p.node.Name = cmp.Or(p.node.Name, row.Labels.Get("node"))
		p.device(row)
		p.claim(row)
		p.hold(row)
		p.pod(row)
		p.totals(row)
		parseSource(&p.node.Sources, row)
		p.exporter(row)
	}
	return p.node
}

type nodeParser struct{ node *model.Node }

// element returns the element of a list that the condition holds for, a new one if there
// is none.
func element[T any](list *[]T, begin T, condition func(*T) bool) *T {
	for i := range *list {
		if condition(&(*list)[i]) {
			return &(*list)[i]
		}
	}
	*list = append(*list, begin)
	return &(*list)[len(*list)-1]
}

// device reads a row of a device.
func (p nodeParser) device(row metric.Row) {
	get, uuid := row.Labels.Get, row.Labels.Get("uuid")
	if uuid == "" || get("resourceclaim") != "" && get("parent_uuid") == "" || row.Family.Name == metric.DevicePluginConsumerInfo {
		return
	}
	d := element(&p.node.Devices, model.Device{
		Identity: &model.Identity{UUID: uuid, GPUInstance: device.Unknown, ComputeInstance: device.Unknown},
		Details:  &model.Details{Minor: device.Unknown}, Fresh: true,
	}, func(d *model.Device) bool { return d.UUID == uuid })
	d.Parent = cmp.Or(get("parent_uuid"), d.Parent)
	if quantity, ok := gauges()[row.Family.Name]; ok {
		d.Readings = append(d.Readings, device.Reading{Quantity: quantity, Details: [2]string{get("sensor")}, Value: row.Value})
	}
	switch row.Family.Name {
	case metric.DeviceInfo:
		d.Vendor, d.Model, d.PCIBusID, d.Profile, d.Source = get("vendor"), get("model"), get("pci_bus_id"), get("partition_profile"), get("source")
	case metric.DeviceHardwareInfo:
		d.Hardware = device.Hardware{
			Serial: get("serial"), BoardPartNumber: get("board_part_number"), VBIOS: get("vbios"), Index: get("index"), ModuleID: get("module_id"),
			ChassisSerial: get("chassis_serial"), Slot: get("slot"), Tray: get("tray"),
		}
		d.Minor = parseNumber(get("minor_number"))
	case metric.DevicePublishedInfo:
		d.Published = dra.DeviceID{Driver: get("driver"), Pool: get("pool"), Name: get("device")}
	case metric.DevicePartitionInfo:
		d.GPUInstance, d.ComputeInstance = parseNumber(get("gpu_instance_id")), parseNumber(get("compute_instance_id"))
	case metric.DeviceTopologyInfo:
		d.Location = dra.Location{Root: get("pcie_root"), NUMA: get("numa_node"), Link: get("link_domain")}
	case "dra_device_price_per_hour":
		if !row.Past {
			p.node.Currency = get("currency")
			d.Prices = append(d.Prices, model.Price{Class: get("deviceclass"), PerHour: row.Value})
		}
	case "dra_device_unattributed_utilization_ratio":
		d.UnattributedUtilization = model.Optional{Value: row.Value, Known: true}
	case "dra_device_unattributed_memory_bytes":
		d.UnattributedMemory = model.Optional{Value: row.Value, Known: true}
	}
	parseHealth(&d.Health, row)
}

// gauges maps families to what the page shows of the readings of devices.
func gauges() map[string]device.Quantity {
	return map[string]device.Quantity{
		metric.DeviceUtilizationRatio: device.Utilization, metric.DeviceMemoryUsedBytes: device.MemoryUsed, metric.DeviceMemorySizeBytes: device.MemorySize,
		metric.DevicePowerWatts: device.Power, metric.DevicePowerLimitWatts: device.PowerLimit, metric.DeviceTemperatureCelsius: device.Temperature,
	}
}

func parseHealth(h *model.Health, row metric.Row) {
	get := row.Labels.Get
	xid := func() *model.XID {
		code := parseNumber(get("xid"))
		return element(&h.XIDs, model.XID{Code: code}, func(x *model.XID) bool { return x.Code == code })
	}
	switch row.Family.Name {
	case metric.DeviceHealthy:
		report := model.Unhealthy
		if row.Value == 1 {
			report = model.Healthy
		}
		switch get("by") {
		case "hardware":
			h.ByHardware = report
		case "driver":
			h.ByDriver = report
		case "kubelet":
			h.ByKubelet = report
		}
	case "dra_device_health_signal_info":
		h.Signals = append(h.Signals, model.Signal{Name: get("signal"), Critical: strings.HasPrefix(get("severity"), "critical")})
	case "dra_device_taint_info":
		h.Taints = append(h.Taints, dra.Taint{Key: get("key"), Value: get("value"), Effect: get("effect")})
	case metric.DeviceXIDErrors:
		xid().Count, h.XIDsWatched = parseTotal(row), true
	case "dra_device_xid_last_timestamp_seconds":
		xid().Last = moment(row)
	case "dra_device_held_failures_total":
		h.HeldFailures = parseTotal(row)
	}
}

// parseNumber returns the number that a text is; -1 if it is none.
func parseNumber(text string) int {
	number, err := strconv.Atoi(text)
	if err != nil {
		return -1 // device.Unknown, model.OtherXID
	}
	return number
}

// claim reads a row of a claim.
func (p nodeParser) claim(row metric.Row) {
	get := row.Labels.Get
	ref := dra.ClaimRef{Namespace: get("namespace"), Name: get("resourceclaim")}
	find := func() *model.Claim {
		return *element(&p.node.Claims, &model.Claim{Ref: ref, Live: true}, func(c **model.Claim) bool { return (*c).Ref == ref })
	}
	switch row.Family.Name {
	case metric.ClaimInfo:
		c := find()
		c.UID, c.Class, c.Template, c.Sharing = get("claim_uid"), get("deviceclass"), get("template"), get("sharing")
		c.Admin, c.Extended = get("admin_access") == "true", get("extended_resource") == "true"
	case "dra_claim_device_info":
		c := find()
		c.Devices = append(c.Devices, model.ClaimDevice{
			ID: dra.DeviceID{Driver: get("driver"), Pool: get("pool"), Name: get("device")}, UUID: get("uuid"),
			Request: get("request"), Class: get("deviceclass"), Share: get("share_id"),
		})
	case metric.ClaimConsumerInfo:
		c := find()
		consumers := &c.Consumers
		if row.Past {
			consumers = &c.PastConsumers
		}
		*consumers = append(*consumers, model.Consumer{
			UUID: get("uuid"), Pod: get("pod"), PodUID: get("pod_uid"), Container: get("container"),
			OwnerKind: get("owner_kind"), OwnerName: get("owner_name"), Labels: parseLabels(row),
		})
	case metric.ClaimTopologyInfo:
		p.node.ClaimAlignments = append(p.node.ClaimAlignments, model.ClaimAlignment{Claim: ref, Alignment: parseAlignment(row)})
	}
}

func parseLabels(row metric.Row) []model.Label {
	var labels []model.Label
	for name, value := range row.Labels.Each {
		if label, ok := strings.CutPrefix(name, "label_"); ok && value != "" {
			labels = append(labels, model.Label{Name: label, Value: value})
		}
	}
	return labels
}

func parseAlignment(row metric.Row) model.Alignment {
	level := func(text string) dra.Alignment {
		for level := range dra.Alignment(dra.Alignments) {
			if strings.HasPrefix(text, level.String()) {
				return level
			}
		}
		return dra.AlignedUnknown
	}
	return model.Alignment{Between: row.Labels.Get("between"), Is: level(row.Labels.Get("alignment")), Best: level(row.Labels.Get("best"))}
}

// hold reads a row of what a claim gets of a device.
func (p nodeParser) hold(row metric.Row) {
	get := row.Labels.Get
	find := func() *model.Hold {
		hold := model.Hold{Claim: dra.ClaimRef{Namespace: get("namespace"), Name: get("resourceclaim")}, UUID: get("uuid")}
		return element(&p.node.Holds, hold, func(h *model.Hold) bool { return h.Claim == hold.Claim && h.UUID == hold.UUID })
	}
	attribution := parseAttribution(get("attribution"))
	account := func() *model.Account {
		accounts := &find().Accounts
		return element(accounts, model.Account{Attribution: attribution}, func(a *model.Account) bool { return a.Attribution == attribution })
	}
	number, use := model.Optional{Value: row.Value, Known: true}, model.Use{Value: row.Value, Known: true, Attribution: attribution}
	switch row.Family.Name {
	case metric.ClaimHeld:
		if row.Value != 1 {
			return
		}
		find().Held = true
	case metric.ClaimUtilizationRatio:
		find().Utilization = use
	case metric.ClaimMemoryUsedBytes:
		find().Memory = use
	case metric.ClaimPowerWatts:
		find().Power, find().Attribution = number, attribution
	case "dra_claim_idle_since_timestamp_seconds":
		find().IdleSince = moment(row)
	case metric.ClaimMemoryAllocatedBytes:
		find().Allocated = row.Value
	case metric.ClaimBundledDevices:
		find().Bundled = int(row.Value)
	case metric.ClaimHeldSeconds:
		find().HeldSeconds = parseTotal(row)
	case metric.ClaimDeviceSeconds:
		find().DeviceSeconds = parseTotal(row)
	case metric.ClaimBusySeconds:
		account().Busy = parseTotal(row)
	case metric.ClaimEnergyJoules:
		account().Energy = parseTotal(row)
	case metric.ClaimNVLinkTransmitBytes:
		account().NVLinkTransmit = parseTotal(row)
	case metric.ClaimNVLinkReceiveBytes:
		account().NVLinkReceive = parseTotal(row)
	default:
		return
	}
	slices.SortFunc(find().Accounts, func(a, b model.Account) int { return cmp.Compare(a.Attribution, b.Attribution) })
}

func parseTotal(row metric.Row) model.Total { return model.NewTotal(row.Value, row.Start) }

func parseAttribution(text string) model.Attribution {
	for a := range model.Attributions {
		if strings.HasPrefix(text, a.String()) {
			return a
		}
	}
	return model.Shared
}

// pod reads a row of a pod.
func (p nodeParser) pod(row metric.Row) {
	get, use := row.Labels.Get, model.Use{Value: row.Value, Known: true, Attribution: model.Process}
	ref := dra.PodRef{Namespace: get("namespace"), Name: get("pod")}
	find := func() *model.PodUse {
		return element(&p.node.Pods, model.PodUse{Pod: ref, UUID: get("uuid")}, func(u *model.PodUse) bool { return u.Pod == ref && u.UUID == get("uuid") })
	}
	switch row.Family.Name {
	case metric.PodUtilizationRatio:
		find().Utilization = use
	case metric.PodMemoryUsedBytes:
		find().Memory = use
	case metric.DevicePluginConsumerInfo:
		consumers := &p.node.Plugins
		if row.Past {
			consumers = &p.node.PastPlugins
		}
		*consumers = append(*consumers, model.PluginConsumer{UUID: get("uuid"), Pod: ref, Container: get("container"), Resource: get("resource")})
	case "dra_pod_workload_info":
		p.node.Workloads = append(p.node.Workloads, model.PodWorkload{
			Pod: ref, Workload: dra.Workload{Kind: get("workload_kind"), Name: get("workload"), Queue: get("queue")},
			Role: get("role"), Replica: get("replica"), Rank: get("rank"),
		})
	case metric.PodTopologyInfo:
		p.node.PodAlignments = append(p.node.PodAlignments, model.PodAlignment{Pod: ref, Alignment: parseAlignment(row)})
	}
}

// totals reads a row of the totals of a namespace.
func (p nodeParser) totals(row metric.Row) {
	get := row.Labels.Get
	find := func() *model.Totals {
		totals := model.Totals{Namespace: get("namespace"), Class: get("deviceclass"), Model: get("model")}
		return element(&p.node.Totals, totals, func(t *model.Totals) bool {
			return t.Namespace == totals.Namespace && t.Class == totals.Class && t.Model == totals.Model
		})
	}
	switch row.Family.Name {
	case "dra_namespace_device_seconds_total":
		find().DeviceSeconds = parseTotal(row)
	case "dra_namespace_shared_device_seconds_total":
		find().SharedSeconds = parseTotal(row)
	case "dra_namespace_busy_seconds_total":
		find().BusySeconds = parseTotal(row)
	case "dra_namespace_energy_joules_total":
		find().Energy = parseTotal(row)
	case "dra_namespace_cost_total":
		find().Cost, p.node.Currency = parseTotal(row), get("currency")
	}
}

// parseSource reads a row of a source.
func parseSource(sources *[]source.Status, row metric.Row) {
	name := row.Labels.Get("source")
	find := func() *source.Status {
		return element(sources, source.Status{Name: name}, func(s *source.Status) bool { return s.Name == name })
	}
	switch row.Family.Name {
	case metric.ExporterSourceUp:
		find().Up = row.Value == 1
	case metric.ExporterSourceErrorInfo:
		find().Reason = source.Reason(row.Labels.Get("reason"))
	case metric.ExporterSourceLastSuccessTimestampSeconds:
		find().LastSuccess = clock.Instant{Wall: moment(row), Elapsed: time.Second}
	}
}

// moment is the time of a _timestamp_seconds row, to the millisecond.
func moment(row metric.Row) time.Time {
	if known(row.Value) == nil {
		return time.Time{}
	}
	return time.UnixMilli(int64(math.Round(row.Value * 1000))).UTC()
}

// exporter reads a row of the exporter.
func (p nodeParser) exporter(row metric.Row) {
	switch row.Family.Name {
	case metric.ExporterProcessAttribution:
		if row.Value == 1 {
			p.node.ProcessAttribution = row.Labels.Get("reason")
		}
	case metric.ExporterDeviceAccess:
		p.node.Access.Released = row.Labels.Get("reason")
	case metric.ExporterBuildInfo:
		p.node.Version = row.Labels.Get("version")
	case metric.ExporterSampleTimestampSeconds:
		p.node.SampledAt = moment(row)
	}
}
