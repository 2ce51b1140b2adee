package node

import (
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/device"
	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/collector/metric"
	"github.com/dra-exporter/dra-exporter/collector/model"
)

// TestModelAgreesWithRows compares the model of each step of random histories, and of a
// dense node whose pods end, with the rows of that step: what both have must be the same.
func TestModelAgreesWithRows(t *testing.T) {
	seeds := uint64(30)
	if testing.Short() {
		seeds = 6
	}
	seen := make(map[string]int)
	for seed := range seeds {
		h := newHistory(t, seed)
		kept := h.state
		h.reducer = func(facts Facts, now clock.Instant) {
			var snapshot Snapshot
			kept, snapshot, _ = Step(kept, facts, now)
			compareModel(t, snapshot, seen)
		}
		for range 200 {
			h.advance()
		}
	}
	d := newDense()
	config := denseConfig()
	config.Grace, config.PodLabels = 5*time.Second, []string{"team"}
	state := NewState(config)
	for step := range 20 {
		d.tick()
		if step == 5 {
			cluster := &d.facts.Cluster
			cluster.Claims, cluster.Pods, d.facts.Listing = cluster.Claims[2:], cluster.Pods[2:], dra.PodResources{}
		}
		var snapshot Snapshot
		state, snapshot, _ = Step(state, d.facts, d.now)
		compareModel(t, snapshot, seen)
	}
	for name := range modelFamilies() {
		if seen[name] == 0 {
			t.Errorf("no history has %s", name)
		}
	}
}

// compareModel compares the model of a snapshot with its rows, and counts these.
func compareModel(t *testing.T, snapshot Snapshot, seen map[string]int) {
	t.Helper()
	got, want := modelLines(snapshot.Model), modelRowLines(snapshot.Rows())
	if !slices.Equal(got, want) {
		at := 0
		for at < min(len(got), len(want)) && got[at] == want[at] {
			at++
		}
		t.Fatalf("the model has %q, the rows %q", got[at:min(at+3, len(got))], want[at:min(at+3, len(want))])
	}
	for _, row := range snapshot.Rows() {
		seen[row.Family.Name]++
	}
}

// modelFamilies are the families whose rows the model has as well, each with the labels
// that are compared.
func modelFamilies() map[string][]string {
	device := func(more ...string) []string { return append([]string{"uuid"}, more...) }
	hold := func(more ...string) []string { return append([]string{"namespace", "resourceclaim", "uuid"}, more...) }
	totals := []string{"namespace", "deviceclass", "model"}
	return map[string][]string{
		metric.DeviceInfo:                    device("parent_uuid", "vendor", "model", "pci_bus_id", "partition_profile", "driver_version", "source"),
		metric.DeviceHardwareInfo:            device("serial", "board_part_number", "vbios", "minor_number", "index", "module_id", "chassis_serial", "slot", "tray"),
		metric.DevicePublishedInfo:           device("driver", "pool", "device"),
		metric.DeviceTopologyInfo:            device("pcie_root", "numa_node", "link_domain"),
		metric.DevicePartitionInfo:           device("gpu_instance_id", "compute_instance_id"),
		metric.DeviceUtilizationRatio:        device(),
		metric.DeviceMemoryUsedBytes:         device(),
		metric.DeviceEnergyJoules:            device(),
		metric.DevicePricePerHour:            device("deviceclass", "currency"),
		metric.DeviceHealthy:                 device("by"),
		metric.DeviceHealthSignalInfo:        device("signal", "severity"),
		metric.DeviceTaintInfo:               device("key", "value", "effect"),
		metric.DeviceXIDErrors:               device("xid"),
		metric.DeviceXIDLastTimestampSeconds: device("xid"),
		metric.DeviceHeldFailures:            device(),

		metric.DeviceUnattributedUtilizationRatio: device(),
		metric.DeviceUnattributedMemoryBytes:      device(),

		metric.ClaimInfo:         {"namespace", "resourceclaim", "claim_uid", "deviceclass", "template", "sharing", "admin_access", "extended_resource"},
		metric.ClaimDeviceInfo:   hold("request", "deviceclass", "driver", "pool", "device", "share_id"),
		metric.ClaimConsumerInfo: hold("pod", "pod_uid", "container", "owner_kind", "owner_name"),
		metric.ClaimTopologyInfo: {"namespace", "resourceclaim", "between", "alignment", "best"},

		metric.ClaimHeld:                      hold(),
		metric.ClaimUtilizationRatio:          hold("attribution"),
		metric.ClaimMemoryUsedBytes:           hold("attribution"),
		metric.ClaimPowerWatts:                hold("attribution"),
		metric.ClaimIdleSinceTimestampSeconds: hold(),
		metric.ClaimMemoryAllocatedBytes:      hold(),
		metric.ClaimBundledDevices:            hold(),
		metric.ClaimHeldSeconds:               hold(),
		metric.ClaimDeviceSeconds:             hold(),
		metric.ClaimBusySeconds:               hold("attribution"),
		metric.ClaimEnergyJoules:              hold("attribution"),
		metric.ClaimNVLinkTransmitBytes:       hold("attribution"),
		metric.ClaimNVLinkReceiveBytes:        hold("attribution"),

		metric.DevicePluginConsumerInfo: device("namespace", "pod", "container", "resource"),
		metric.PodUtilizationRatio:      {"namespace", "pod", "uuid"},
		metric.PodMemoryUsedBytes:       {"namespace", "pod", "uuid"},
		metric.PodWorkloadInfo:          {"namespace", "pod", "workload_kind", "workload", "role", "replica", "rank", "queue"},
		metric.PodTopologyInfo:          {"namespace", "pod", "between", "alignment", "best"},

		metric.NamespaceDeviceSeconds:       totals,
		metric.NamespaceSharedDeviceSeconds: totals,
		metric.NamespaceBusySeconds:         totals,
		metric.NamespaceEnergyJoules:        totals,
		metric.NamespaceCost:                append(totals[:3:3], "currency"),

		metric.ExporterProcessAttribution:     {"reason"},
		metric.ExporterDeviceAccess:           {"reason"},
		metric.ExporterBuildInfo:              {"version"},
		metric.ExporterSampleTimestampSeconds: {},
	}
}

// modelRowLines are the rows of what the model has, sorted. It has no past price, and of
// process attribution the present state alone.
func modelRowLines(rows []metric.Row) []string {
	var lines []string
	families := modelFamilies()
	for _, row := range rows {
		name := row.Family.Name
		labels, ok := families[name]
		if !ok || row.Past && name == metric.DevicePricePerHour || row.Value == 0 && name == metric.ExporterProcessAttribution {
			continue
		}
		var values []string
		for _, label := range labels {
			values = append(values, row.Labels.Get(label))
		}
		lines = append(lines, modelLine(name, row.Past && name != metric.PodWorkloadInfo, row.Value, values...))
	}
	slices.Sort(lines)
	return lines
}

func modelLine(family string, past bool, value float64, labels ...string) string {
	return fmt.Sprintf("%s %q %t %v", family, labels, past, value)
}

// modelLineList collects the lines of a model.
type modelLineList []string

func (l *modelLineList) add(family string, value float64, labels ...string) {
	*l = append(*l, modelLine(family, false, value, labels...))
}

func (l *modelLineList) addFact(family string, past bool, labels ...string) {
	*l = append(*l, modelLine(family, past, 1, labels...))
}

func (l *modelLineList) addOptional(family string, value model.Optional, labels ...string) {
	if value.Known {
		l.add(family, value.Value, labels...)
	}
}

func (l *modelLineList) addUse(family string, use model.Use, labels ...string) {
	l.addOptional(family, model.Optional{Value: use.Value, Known: use.Known}, labels...)
}

func unixSeconds(t time.Time) float64 { return float64(t.UnixMilli()) / 1000 }

// modelLines are the lines of a model, sorted.
func modelLines(n *model.Node) []string {
	var l modelLineList
	for i := range n.Devices {
		l.addDevice(&n.Devices[i], n.Currency)
	}
	for _, claim := range n.Claims {
		l.addClaim(claim)
	}
	for i := range n.Holds {
		l.addHold(&n.Holds[i])
	}
	for _, pod := range n.Pods {
		l.addUse(metric.PodUtilizationRatio, pod.Utilization, pod.Pod.Namespace, pod.Pod.Name, pod.UUID)
		l.addUse(metric.PodMemoryUsedBytes, pod.Memory, pod.Pod.Namespace, pod.Pod.Name, pod.UUID)
	}
	for past, consumers := range map[bool][]model.PluginConsumer{false: n.Plugins, true: n.PastPlugins} {
		for _, c := range consumers {
			l.addFact(metric.DevicePluginConsumerInfo, past, c.UUID, c.Pod.Namespace, c.Pod.Name, c.Container, c.Resource)
		}
	}
	for _, w := range n.Workloads {
		l.addFact(metric.PodWorkloadInfo, false, w.Pod.Namespace, w.Pod.Name, w.Workload.Kind, w.Workload.Name, w.Role, w.Replica, w.Rank, w.Workload.Queue)
	}
	for _, a := range n.ClaimAlignments {
		l.addFact(metric.ClaimTopologyInfo, false, a.Claim.Namespace, a.Claim.Name, a.Between, a.Is.String(), a.Best.String())
	}
	for _, a := range n.PodAlignments {
		l.addFact(metric.PodTopologyInfo, false, a.Pod.Namespace, a.Pod.Name, a.Between, a.Is.String(), a.Best.String())
	}
	for _, t := range n.Totals {
		key := []string{t.Namespace, t.Class, t.Model}
		l.addOptional(metric.NamespaceDeviceSeconds, t.DeviceSeconds, key...)
		l.addOptional(metric.NamespaceSharedDeviceSeconds, t.SharedSeconds, key...)
		l.addOptional(metric.NamespaceBusySeconds, t.BusySeconds, key...)
		l.addOptional(metric.NamespaceEnergyJoules, t.Energy, key...)
		l.addOptional(metric.NamespaceCost, t.Cost, append(key, n.Currency)...)
	}
	l.addFact(metric.ExporterProcessAttribution, false, n.ProcessAttribution)
	l.addFact(metric.ExporterDeviceAccess, false, n.Released)
	l.addFact(metric.ExporterBuildInfo, false, n.Version)
	if !n.SampledAt.IsZero() {
		l.add(metric.ExporterSampleTimestampSeconds, unixSeconds(n.SampledAt))
	}
	slices.Sort(l)
	return l
}

func (l *modelLineList) addDevice(d *model.Device, currency string) {
	l.addFact(metric.DeviceInfo, d.Past, d.UUID, d.Parent, d.Vendor, d.Model, d.PCIBusID, d.Profile, d.DriverVersion, d.Source)
	if d.HasInstances() {
		l.addFact(metric.DevicePartitionInfo, false, d.UUID, strconv.Itoa(d.GPUInstance), strconv.Itoa(d.ComputeInstance))
	}
	if h := d.Hardware; h != (device.Hardware{}) || d.Minor != device.Unknown {
		minor := ""
		if d.Minor != device.Unknown {
			minor = strconv.Itoa(d.Minor)
		}
		l.addFact(metric.DeviceHardwareInfo, false, d.UUID, h.Serial, h.BoardPartNumber, h.VBIOS, minor, h.Index, h.ModuleID, h.ChassisSerial, h.Slot, h.Tray)
	}
	if d.Published != (dra.DeviceID{}) {
		l.addFact(metric.DevicePublishedInfo, false, d.UUID, d.Published.Driver, d.Published.Pool, d.Published.Name)
	}
	if d.Location != (dra.Location{}) {
		l.addFact(metric.DeviceTopologyInfo, false, d.UUID, d.Location.Root, d.Location.NUMA, d.Location.Link)
	}
	for _, price := range d.Prices {
		l.add(metric.DevicePricePerHour, price.PerHour, d.UUID, price.Class, currency)
	}
	l.addOptional(metric.DeviceUnattributedUtilizationRatio, d.UnattributedUtilization, d.UUID)
	l.addOptional(metric.DeviceUnattributedMemoryBytes, d.UnattributedMemory, d.UUID)
	for _, reading := range d.Readings {
		if !d.Fresh && device.Specs()[reading.Quantity].Kind == device.Gauge {
			continue
		}
		switch reading.Quantity {
		case device.Utilization:
			l.add(metric.DeviceUtilizationRatio, reading.Value, d.UUID)
		case device.MemoryUsed:
			l.add(metric.DeviceMemoryUsedBytes, reading.Value, d.UUID)
		case device.Energy:
			l.add(metric.DeviceEnergyJoules, reading.Value, d.UUID)
		}
	}
	l.addHealth(d.UUID, &d.Health)
}

func (l *modelLineList) addHealth(uuid string, h *model.Health) {
	for by, report := range map[string]model.Report{"hardware": h.ByHardware, "driver": h.ByDriver, "kubelet": h.ByKubelet} {
		if report != model.Unreported {
			l.add(metric.DeviceHealthy, one(report == model.Healthy), uuid, by)
		}
	}
	for _, signal := range h.Signals {
		l.addFact(metric.DeviceHealthSignalInfo, false, uuid, signal.Name, severity(signal.Critical))
	}
	for _, taint := range h.Taints {
		l.addFact(metric.DeviceTaintInfo, false, uuid, taint.Key, taint.Value, taint.Effect)
	}
	for _, xid := range h.XIDs {
		code := strconv.Itoa(xid.Code)
		if xid.Code == model.OtherXID {
			code = xidOther
		}
		if h.XIDsWatched {
			l.add(metric.DeviceXIDErrors, xid.Count, uuid, code)
		}
		if !xid.Last.IsZero() {
			l.add(metric.DeviceXIDLastTimestampSeconds, unixSeconds(xid.Last), uuid, code)
		}
	}
	l.addOptional(metric.DeviceHeldFailures, h.HeldFailures, uuid)
}

func (l *modelLineList) addClaim(c *model.Claim) {
	l.addFact(metric.ClaimInfo, !c.Live, c.Ref.Namespace, c.Ref.Name, c.UID, c.Class, c.Template, c.Sharing, flag(c.Admin), flag(c.Extended))
	for past, devices := range map[bool][]model.ClaimDevice{false: c.Devices, true: c.PastDevices} {
		for _, d := range devices {
			l.addFact(metric.ClaimDeviceInfo, past || !c.Live, c.Ref.Namespace, c.Ref.Name, d.UUID, d.Request, d.Class, d.ID.Driver, d.ID.Pool, d.ID.Name, d.Share)
		}
	}
	for past, consumers := range map[bool][]model.Consumer{false: c.Consumers, true: c.PastConsumers} {
		for _, u := range consumers {
			l.addFact(metric.ClaimConsumerInfo, past || !c.Live, c.Ref.Namespace, c.Ref.Name, u.UUID, u.Pod, u.PodUID, u.Container, u.OwnerKind, u.OwnerName)
		}
	}
}

func (l *modelLineList) addHold(h *model.Hold) {
	key := []string{h.Claim.Namespace, h.Claim.Name, h.UUID}
	with := func(a model.Attribution) []string { return append(key[:3:3], a.String()) }
	if h.Held {
		l.addFact(metric.ClaimHeld, false, key...)
	}
	l.addUse(metric.ClaimUtilizationRatio, h.Utilization, with(h.Utilization.Attribution)...)
	l.addUse(metric.ClaimMemoryUsedBytes, h.Memory, with(h.Memory.Attribution)...)
	l.addOptional(metric.ClaimPowerWatts, h.Power, with(h.Attribution)...)
	if !h.IdleSince.IsZero() {
		l.add(metric.ClaimIdleSinceTimestampSeconds, unixSeconds(h.IdleSince), key...)
	}
	if h.Allocated > 0 {
		l.add(metric.ClaimMemoryAllocatedBytes, h.Allocated, key...)
	}
	if h.Bundled > 0 {
		l.add(metric.ClaimBundledDevices, float64(h.Bundled), key...)
	}
	l.addOptional(metric.ClaimHeldSeconds, h.HeldSeconds, key...)
	l.addOptional(metric.ClaimDeviceSeconds, h.DeviceSeconds, key...)
	for _, a := range h.Accounts {
		l.addOptional(metric.ClaimBusySeconds, a.Busy, with(a.Attribution)...)
		l.addOptional(metric.ClaimEnergyJoules, a.Energy, with(a.Attribution)...)
		l.addOptional(metric.ClaimNVLinkTransmitBytes, a.NVLinkTransmit, with(a.Attribution)...)
		l.addOptional(metric.ClaimNVLinkReceiveBytes, a.NVLinkReceive, with(a.Attribution)...)
	}
}

// TestModelIsShared checks that what has not changed is the same in memory in the next
// model, although the devices have new readings: readers keep what they made of it.
func TestModelIsShared(t *testing.T) {
	d := newDense()
	state := d.unheld()
	var first, second *model.Node
	for range 4 {
		d.tick()
		var snapshot Snapshot
		state, snapshot, _ = Step(state, d.facts, d.now)
		first, second = second, snapshot.Model
	}
	if len(first.Devices) == 0 || len(first.Claims) == 0 {
		t.Fatalf("%d devices, %d claims", len(first.Devices), len(first.Claims))
	}
	for i := range first.Devices {
		a, b := first.Devices[i], second.Devices[i]
		if a.Identity != b.Identity || a.Details != b.Details {
			t.Errorf("the identity of %s, or its details, is another record", a.UUID)
		}
		if newListIdentity(a.Prices) != newListIdentity(b.Prices) || newListIdentity(a.Signals) != newListIdentity(b.Signals) || newListIdentity(a.Taints) != newListIdentity(b.Taints) || newListIdentity(a.XIDs) != newListIdentity(b.XIDs) {
			t.Errorf("a list of %s is another one", a.UUID)
		}
	}
	if &first.Claims[0] != &second.Claims[0] {
		t.Error("the list of claims is another one")
	}
	if newListIdentity(first.Workloads) != newListIdentity(second.Workloads) || newListIdentity(first.PodAlignments) != newListIdentity(second.PodAlignments) {
		t.Error("the list of workloads or alignments is another one")
	}
}
