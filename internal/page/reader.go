package page

import (
	"slices"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/metric"
)

// reader gathers what rows say of each device, claim and source. The order of
// the families does not matter to it.
type reader struct {
	sourceReader
	view    View
	devices map[string]*heldDevice
	claims  map[claimKey]*claimOf
}

type claimKey struct{ namespace, name string }

// heldDevice is a device, the pods that hold it by a device plugin, and what
// is known of its processes and prices.
type heldDevice struct {
	Device
	plugins      []Holder
	unattributed Use
	pods         map[podKey]*Use
	prices       []classPrice
}

// claimOf is a claim, what it gets by UUID, and its consumers.
type claimOf struct {
	Claim
	devices   map[string]*ClaimDevice
	consumers []*consumerOf
}

// consumerOf is a consumer and which devices it may use now.
type consumerOf struct {
	Consumer
	present []string
}

func newReader(at time.Time) *reader {
	return &reader{
		sourceReader: sourceReader{at: at},
		view:         View{At: at},
		devices:      map[string]*heldDevice{},
		claims:       map[claimKey]*claimOf{},
	}
}

// device finds the device that the row is about, or begins it.
func (r *reader) device(row metric.Row) *heldDevice {
	uuid := row.Labels.Get("uuid")
	found := r.devices[uuid]
	if found == nil {
		found = &heldDevice{Device: Device{UUID: uuid}}
		r.devices[uuid] = found
	}
	if parent := row.Labels.Get("parent_uuid"); parent != "" {
		found.ParentUUID = parent
	}
	r.node(row)
	return found
}

// claim finds the claim that the row is about, or begins it.
func (r *reader) claim(row metric.Row) *claimOf {
	key := claimKey{row.Labels.Get("namespace"), row.Labels.Get("resourceclaim")}
	found := r.claims[key]
	if found == nil {
		found = &claimOf{Claim: Claim{Namespace: key.namespace, Name: key.name}, devices: map[string]*ClaimDevice{}}
		r.claims[key] = found
	}
	r.node(row)
	return found
}

// held finds what the row's claim gets of the row's device, or begins it.
func (r *reader) held(row metric.Row) *ClaimDevice {
	devices, uuid := r.claim(row).devices, row.Labels.Get("uuid")
	if devices[uuid] == nil {
		devices[uuid] = &ClaimDevice{UUID: uuid, Allocations: []Allocation{}, Accounts: []Account{}}
	}
	return devices[uuid]
}

func (r *reader) account(row metric.Row) *Account {
	device, attribution := r.held(row), row.Labels.Get("attribution")
	i := slices.IndexFunc(device.Accounts, func(a Account) bool { return a.Attribution == attribution })
	if i < 0 {
		i = len(device.Accounts)
		device.Accounts = append(device.Accounts, Account{Attribution: attribution})
	}
	return &device.Accounts[i]
}

func (r *reader) node(row metric.Row) {
	if r.view.Node == "" {
		r.view.Node = row.Labels.Get("node")
	}
}

func (r *reader) deviceInfo(row metric.Row) {
	device, get := r.device(row), row.Labels.Get
	device.Vendor, device.Model, device.PCIBusID = get("vendor"), get("model"), get("pci_bus_id")
	device.Profile, device.Matched = get("partition_profile"), get("source") != ""
}

func (r *reader) publishedInfo(row metric.Row) {
	get := row.Labels.Get
	r.device(row).Published = DeviceName{get("driver"), get("pool"), get("device")}
}

func (r *reader) temperature(row metric.Row) {
	if row.Labels.Get("sensor") == "gpu" {
		r.device(row).Temperature = known(row.Value)
	}
}

func (r *reader) healthy(row metric.Row) {
	health, well := &r.device(row).Health, row.Value == 1
	switch row.Labels.Get("by") {
	case "hardware":
		health.Hardware = &well
	case "driver":
		health.Driver = &well
	case "kubelet":
		health.Kubelet = &well
	}
}

func (r *reader) healthSignal(row metric.Row) {
	health, get := &r.device(row).Health, row.Labels.Get
	health.Signals = append(health.Signals, Signal{get("signal"), get("severity")})
}

func (r *reader) taint(row metric.Row) {
	health, get := &r.device(row).Health, row.Labels.Get
	health.Taints = append(health.Taints, Taint{get("key"), get("value"), get("effect")})
}

func (r *reader) xidCount(row metric.Row) {
	if count := known(row.Value); count != nil && *count > 0 {
		r.xid(row).Count = *count
	}
}

func (r *reader) xidLast(row metric.Row) { r.xid(row).Last = moment(row) }

// xid finds the XID that the row is about, or begins it.
func (r *reader) xid(row metric.Row) *XID {
	health, code := &r.device(row).Health, row.Labels.Get("xid")
	i := slices.IndexFunc(health.XIDs, func(x XID) bool { return x.Code == code })
	if i < 0 {
		i = len(health.XIDs)
		health.XIDs = append(health.XIDs, XID{Code: code})
	}
	return &health.XIDs[i]
}

// pluginConsumer passes over who got the device before.
func (r *reader) pluginConsumer(row metric.Row) {
	if row.Past {
		return
	}
	device, get := r.device(row), row.Labels.Get
	for i := range device.plugins {
		holder := &device.plugins[i]
		if pod := &holder.Pods[0]; holder.Resource == get("resource") && pod.Namespace == get("namespace") && pod.Name == get("pod") {
			pod.Containers = append(pod.Containers, get("container"))
			return
		}
	}
	device.plugins = append(device.plugins, Holder{
		Kind: ByDevicePlugin, Namespace: get("namespace"), Resource: get("resource"),
		Pods: []Pod{{Namespace: get("namespace"), Name: get("pod"), Containers: []string{get("container")}}},
	})
}

func (r *reader) claimInfo(row metric.Row) {
	claim, get := r.claim(row), row.Labels.Get
	claim.UID, claim.Class, claim.Template, claim.Sharing = get("claim_uid"), get("deviceclass"), get("template"), get("sharing")
	claim.AdminAccess, claim.ExtendedResource = get("admin_access") == "true", get("extended_resource") == "true"
}

func (r *reader) claimDevice(row metric.Row) {
	device, get := r.held(row), row.Labels.Get
	device.Allocations = append(device.Allocations, Allocation{
		Request: get("request"), Class: get("deviceclass"),
		Driver: get("driver"), Pool: get("pool"), Device: get("device"), ShareID: get("share_id"),
	})
}

func (r *reader) claimConsumer(row metric.Row) {
	claim, get := r.claim(row), row.Labels.Get
	for _, c := range claim.consumers {
		if c.Pod == get("pod") && c.PodUID == get("pod_uid") && c.Container == get("container") {
			c.add(row)
			return
		}
	}
	c := &consumerOf{Consumer: Consumer{
		Pod: get("pod"), PodUID: get("pod_uid"), Container: get("container"),
		OwnerKind: get("owner_kind"), OwnerName: get("owner_name"), Labels: labelsOf(row), Ended: true,
	}}
	c.add(row)
	claim.consumers = append(claim.consumers, c)
}

// add says of another device that the consumer may use it, or might.
func (c *consumerOf) add(row metric.Row) {
	uuid := row.Labels.Get("uuid")
	c.UUIDs = append(c.UUIDs, uuid)
	if !row.Past {
		c.present = append(c.present, uuid)
		c.Ended = false
	}
}

func (r *reader) claimHeld(row metric.Row) {
	if row.Value == 1 {
		r.held(row).Held = true
	}
}

func (r *reader) claimIdle(row metric.Row) { r.held(row).IdleSince = moment(row) }

func (r *reader) buildInfo(row metric.Row)  { r.view.Version = row.Labels.Get("version") }
func (r *reader) sampleTime(row metric.Row) { r.view.SampledAt = moment(row) }
