package page

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/device"
	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/collector/model"
	"github.com/dra-exporter/dra-exporter/collector/source"
)

// value returns a number, nil if it is unknown.
func value(number model.Optional) *float64 {
	if !number.Known {
		return nil
	}
	return known(number.Value)
}

func total(number model.Total) *float64 { return value(number.Optional()) }

// known is a number, nil if it is one that could not be shown.
func known(value float64) *float64 {
	if math.IsNaN(value) || math.IsInf(value, 0) {
		return nil
	}
	return &value
}

func useValue(use model.Use) *float64 {
	return value(model.Optional{Value: use.Value, Known: use.Known})
}

// inMilliseconds is a time as documents have it.
func inMilliseconds(t time.Time) time.Time {
	if t.IsZero() {
		return t
	}
	return time.UnixMilli(t.UnixMilli()).UTC()
}

// newSources returns the sources by name. One that is closed on purpose and has never been
// read is none.
func newSources(statuses []source.Status, at time.Time) []Source {
	var sources []Source
	for _, status := range statuses {
		s := Source{Name: status.Name, LastSuccess: inMilliseconds(status.LastSuccess.Wall)}
		s.Age, _ = since(at, s.LastSuccess)
		if !status.Released {
			s.Up, s.Reason = status.Up, string(status.Reason)
		} else if s.LastSuccess.IsZero() {
			continue
		}
		sources = append(sources, s)
	}
	slices.SortFunc(sources, func(a, b Source) int { return cmp.Compare(a.Name, b.Name) })
	return sources
}

// newTotals returns the totals of namespaces, and when the oldest began at zero.
func newTotals(n *model.Node) (totals []Totals, began time.Time) {
	for i := range n.Totals {
		t := &n.Totals[i]
		if start := t.Start(); began.IsZero() || !start.IsZero() && start.Before(began) {
			began = start
		}
		shown := Totals{
			Namespace: t.Namespace, Class: t.Class, Model: t.Model,
			DeviceSeconds: total(t.DeviceSeconds), SharedSeconds: total(t.SharedSeconds), BusySeconds: total(t.BusySeconds),
			Energy: total(t.Energy), Cost: total(t.Cost),
		}
		if t.Cost.Known() {
			shown.Currency = n.Currency
		}
		totals = append(totals, shown)
	}
	slices.SortFunc(totals, compareTotals)
	return totals, began
}

func newWorkloads(n *model.Node) map[dra.PodRef]*PodWorkload {
	byPod := make(map[dra.PodRef]*PodWorkload, len(n.Workloads))
	for _, workloads := range [][]model.PodWorkload{n.Workloads, n.PastWorkloads} {
		for i := range workloads {
			w := &workloads[i]
			byPod[w.Pod] = &PodWorkload{
				Kind: w.Workload.Kind, Name: w.Workload.Name, Role: w.Role, Replica: w.Replica, Rank: w.Rank, Queue: w.Workload.Queue,
			}
		}
	}
	return byPod
}

func newPodAlignments(alignments []model.PodAlignment) map[dra.PodRef][]Alignment {
	byPod := make(map[dra.PodRef][]Alignment, len(alignments))
	for _, a := range alignments {
		byPod[a.Pod] = append(byPod[a.Pod], newAlignment(a.Alignment))
	}
	return byPod
}

func newAlignment(a model.Alignment) Alignment {
	return Alignment{Between: a.Between, Is: a.Is.String(), Best: a.Best.String()}
}

// deviceRecord is a device, the pods that hold it by a device plugin, and its prices.
type deviceRecord struct {
	Device
	plugins  []Holder
	prices   []model.Price
	currency string // of the prices
}

func newDeviceRecord(d *model.Device, currency string) *deviceRecord {
	record := &deviceRecord{prices: d.Prices, currency: currency, Device: Device{
		UUID: d.UUID, ParentUUID: d.Parent, Matched: d.Source != "", Vendor: d.Vendor, Model: d.Model, PCIBusID: d.PCIBusID, Profile: d.Profile,
		PCIeRoot: d.Location.Root, NUMANode: d.Location.NUMA, LinkDomain: d.Location.Link,
		Hardware: newHardware(d.Details), Published: DeviceName{d.Published.Driver, d.Published.Pool, d.Published.Name},
		Health:       newHealth(&d.Health),
		Unattributed: Use{value(d.UnattributedUtilization), value(d.UnattributedMemory)}.known(),
	}}
	record.Prices = record.distinctPrices()
	if d.HasInstances() {
		record.GPUInstance, record.ComputeInstance = strconv.Itoa(d.GPUInstance), strconv.Itoa(d.ComputeInstance)
	}
	if d.Fresh {
		record.read(d.Readings)
	}
	return record
}

// read takes the gauges of the readings.
func (d *deviceRecord) read(readings []device.Reading) {
	for i := range readings {
		r := &readings[i]
		switch r.Quantity {
		case device.Utilization:
			d.Utilization = known(r.Value)
		case device.MemoryUsed:
			d.MemoryUsed = known(r.Value)
		case device.MemorySize:
			d.MemorySize = known(r.Value)
		case device.Power:
			d.Power = known(r.Value)
		case device.PowerLimit:
			d.PowerLimit = known(r.Value)
		case device.Temperature:
			if r.Details[0] == "gpu" {
				d.Temperature = known(r.Value)
			}
		}
	}
}

func newHardware(d *model.Details) Hardware {
	h := Hardware{
		Serial: d.Hardware.Serial, BoardPartNumber: d.Hardware.BoardPartNumber, VBIOS: d.Hardware.VBIOS,
		Index: d.Hardware.Index, ModuleID: d.Hardware.ModuleID,
		ChassisSerial: d.Hardware.ChassisSerial, Slot: d.Hardware.Slot, Tray: d.Hardware.Tray,
	}
	if d.Minor != device.Unknown {
		h.MinorNumber = strconv.Itoa(d.Minor)
	}
	return h
}

// newHealth returns the health, sorted. XIDs that were never reported are left out.
func newHealth(h *model.Health) Health {
	health := Health{
		Hardware: reportValue(h.ByHardware), Driver: reportValue(h.ByDriver), Kubelet: reportValue(h.ByKubelet),
		KubeletMessage: h.KubeletMessage,
	}
	for _, signal := range h.Signals {
		severity := "warning"
		if signal.Critical {
			severity = "critical"
		}
		health.Signals = append(health.Signals, Signal{signal.Name, severity})
	}
	for _, taint := range h.Taints {
		health.Taints = append(health.Taints, Taint(taint))
	}
	for _, xid := range h.XIDs {
		shown := XID{Code: "other", Last: inMilliseconds(xid.Last)}
		if xid.Code != model.OtherXID {
			shown.Code = strconv.Itoa(xid.Code)
		}
		if h.XIDsWatched {
			shown.Count = xid.Count.Value
		}
		if shown.Count > 0 || !shown.Last.IsZero() {
			health.XIDs = append(health.XIDs, shown)
		}
	}
	if failures := total(h.HeldFailures); failures != nil {
		health.HeldFailures = *failures
	}
	health.sort()
	return health
}

// reportValue reports whether a device is healthy; nil: that is not reported.
func reportValue(report model.Report) *bool {
	if report == model.Unreported {
		return nil
	}
	return new(report == model.Healthy)
}

func (d *deviceRecord) addPlugin(c *model.PluginConsumer) {
	for i := range d.plugins {
		holder := &d.plugins[i]
		if pod := &holder.Pods[0]; holder.Resource == c.Resource && pod.Namespace == c.Pod.Namespace && pod.Name == c.Pod.Name {
			pod.Containers = append(pod.Containers, c.Container)
			return
		}
	}
	d.plugins = append(d.plugins, Holder{
		Kind: ByDevicePlugin, Namespace: c.Pod.Namespace, Resource: c.Resource,
		Pods: []Pod{{Namespace: c.Pod.Namespace, Name: c.Pod.Name, Containers: []string{c.Container}}},
	})
}

// priceFor returns the price for claims of the class; nil: unknown.
func (d *deviceRecord) priceFor(class string) *Price {
	for _, price := range d.prices {
		if price.Class == class {
			return &Price{price.PerHour, d.currency}
		}
	}
	return nil
}

// distinctPrices returns the prices of the device, each once: classes may differ.
func (d *deviceRecord) distinctPrices() []Price {
	var prices []Price
	for _, price := range d.prices {
		if shown := (Price{price.PerHour, d.currency}); !slices.Contains(prices, shown) {
			prices = append(prices, shown)
		}
	}
	slices.SortFunc(prices, func(a, b Price) int { return cmp.Compare(a.PerHour, b.PerHour) })
	return prices
}

// claimRecord is a claim, what it gets by UUID, and its consumers.
type claimRecord struct {
	Claim
	devices   map[string]*ClaimDevice
	consumers []*consumerRecord
}

// consumerRecord is a consumer and the devices that it may use now.
type consumerRecord struct {
	Consumer
	present []string
}

// device returns the claim's use of a device, a new one if there is none.
func (c *claimRecord) device(uuid string) *ClaimDevice {
	if c.devices[uuid] == nil {
		c.devices[uuid] = &ClaimDevice{UUID: uuid, Allocations: []Allocation{}, Accounts: []Account{}}
	}
	return c.devices[uuid]
}

// add adds what was allocated to the claim, and who uses it.
func (c *claimRecord) add(claim *model.Claim) {
	c.UID, c.Class, c.Template, c.Sharing = claim.UID, claim.Class, claim.Template, claim.Sharing
	c.AdminAccess, c.ExtendedResource = claim.Admin, claim.Extended
	for _, devices := range [][]model.ClaimDevice{claim.Devices, claim.PastDevices} {
		for _, d := range devices {
			device := c.device(d.UUID)
			device.Allocations = append(device.Allocations, Allocation{
				Request: d.Request, Class: d.Class, Driver: d.ID.Driver, Pool: d.ID.Pool, Device: d.ID.Name, ShareID: d.Share,
			})
		}
	}
	for i := range claim.Consumers {
		c.addConsumer(&claim.Consumers[i], claim.Live)
	}
	for i := range claim.PastConsumers {
		c.addConsumer(&claim.PastConsumers[i], false)
	}
}

func (c *claimRecord) addConsumer(added *model.Consumer, present bool) {
	at := slices.IndexFunc(c.consumers, func(consumer *consumerRecord) bool {
		return consumer.Pod == added.Pod && consumer.PodUID == added.PodUID && consumer.Container == added.Container
	})
	if at < 0 {
		at = len(c.consumers)
		consumer := Consumer{
			Pod: added.Pod, PodUID: added.PodUID, Container: added.Container, OwnerKind: added.OwnerKind, OwnerName: added.OwnerName, Ended: true,
		}
		for _, label := range added.Labels {
			if consumer.Labels == nil {
				consumer.Labels = map[string]string{}
			}
			consumer.Labels[label.Name] = label.Value
		}
		c.consumers = append(c.consumers, &consumerRecord{Consumer: consumer})
	}
	consumer := c.consumers[at]
	consumer.UUIDs = append(consumer.UUIDs, added.UUID)
	if present {
		consumer.present = append(consumer.present, added.UUID)
		consumer.Ended = false
	}
}

// addHold adds what the claim gets of a device. A value that is not split by processes
// has the attribution of the device.
func (c *claimRecord) addHold(h *model.Hold) {
	d := c.device(h.UUID)
	d.Held, d.Bundled = h.Held, h.Bundled
	d.HeldSeconds, d.DeviceSeconds = total(h.HeldSeconds), total(h.DeviceSeconds)
	d.IdleSince = inMilliseconds(h.IdleSince)
	if h.Allocated != 0 {
		d.MemoryAllocated = known(h.Allocated)
	}
	if h.Utilization.Known {
		d.Utilization, d.UtilizationAttribution = useValue(h.Utilization), h.Utilization.Attribution.String()
	}
	if h.Memory.Known {
		d.MemoryUsed, d.MemoryAttribution = useValue(h.Memory), h.Memory.Attribution.String()
	}
	for _, use := range []model.Use{h.Utilization, h.Memory, {Known: h.Power.Known, Attribution: h.Attribution}} {
		if use.Known && use.Attribution != model.Process {
			d.Attribution = use.Attribution.String()
		}
	}
	d.Power = value(h.Power)
	for _, a := range h.Accounts {
		shown := Account{
			Attribution: a.Attribution.String(), Busy: total(a.Busy), Energy: total(a.Energy),
			NVLinkTransmit: total(a.NVLinkTransmit), NVLinkReceive: total(a.NVLinkReceive),
		}
		if shown != (Account{Attribution: shown.Attribution}) {
			d.Accounts = append(d.Accounts, shown)
		}
	}
}
