package node

import (
	"cmp"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/device"
	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/collector/model"
	"github.com/dra-exporter/dra-exporter/collector/vendors"
)

// unresolvedPlugin is a pod that got devices through a device plugin whose ids lead
// to no hardware, by the form of the ids.
type unresolvedPlugin struct {
	pod      dra.PodRef
	form     vendors.PluginForm
	resource string   // of the first id
	id       string   // the first one
	count    int      // of ids
	devices  []string // uuids of the devices that may be meant, sorted
}

// plugins determines which containers got devices through device plugins. Only
// the kubelet reports it.
type plugins struct {
	node       string
	consumers  []model.PluginConsumer             // sorted
	unresolved []unresolvedPlugin                 // sorted by pod and form
	since      [vendors.PluginForms]clock.Instant // since when there are unresolved ids of a form; zero: there are none
	logged     [vendors.PluginForms]bool
	absent     absences
	facts      factList[model.PluginConsumer]
	past       []model.PluginConsumer // of the facts
	causes     pluginCauses           // of the consumers
}

// pluginCauses is everything that the consumers depend on while the List is
// complete.
type pluginCauses struct {
	listed   listIdentity[dra.PluginAssignment]
	hardware uint64
}

func newPlugins(node string) *plugins {
	return &plugins{node: node, absent: make(absences)}
}

// update applies the kubelet's List. Where it may not be complete, the API
// server decides which of the missing pods are gone, or, without the API
// server, a second List does. Its events are about ids that lead to no hardware.
func (p *plugins) update(devices *devices, facts Facts, now clock.Instant) []Event {
	switch {
	case facts.ListedAt.IsZero():
		return nil
	case complete(facts.Listing, p.node):
		clear(p.absent)
		causes := pluginCauses{newListIdentity(facts.Listing.Plugins), devices.changes}
		if causes == p.causes {
			return p.log(now)
		}
		p.causes = causes
		p.consumers, p.unresolved = resolvePlugins(devices, facts.Listing.Plugins)
	default:
		p.causes = pluginCauses{}
		missing, gone := p.absent.observe(p.pods(), facts.Listing, facts.ListedAt)
		if facts.Cluster.Enabled && facts.Cluster.Fresh {
			gone = withoutPods(missing, facts.Cluster.Pods, facts.Cluster.PluginPods)
		}
		kept := slices.DeleteFunc(slices.Clone(p.consumers), func(c model.PluginConsumer) bool { return !missing[c.Pod] || gone[c.Pod] })
		keptUnresolved := slices.DeleteFunc(slices.Clone(p.unresolved), func(u unresolvedPlugin) bool { return !missing[u.pod] || gone[u.pod] })
		consumers, unresolved := resolvePlugins(devices, facts.Listing.Plugins)
		p.consumers, p.unresolved = append(kept, consumers...), append(keptUnresolved, unresolved...)
		slices.SortFunc(p.consumers, comparePluginConsumers)
	}
	if p.facts.update(p.consumers, now, func(a, b model.PluginConsumer) bool { return a == b }) {
		p.past = p.facts.past()
	}
	return p.log(now)
}

// log returns an event, once for each form, about ids that have led to no hardware
// for long.
func (p *plugins) log(now clock.Instant) []Event {
	var events []Event
	var first [vendors.PluginForms]*unresolvedPlugin
	for i := range p.unresolved {
		if u := &p.unresolved[i]; first[u.form] == nil {
			first[u.form] = u
		}
	}
	for form, u := range first {
		switch {
		case u == nil:
			p.since[form] = clock.Instant{}
		case p.since[form].IsZero():
			p.since[form] = now
		case !p.logged[form] && now.Since(p.since[form]) >= unmatchedDelay:
			p.logged[form] = true
			events = append(events, Event{slog.LevelWarn, "id of a device plugin leads to no hardware", []slog.Attr{
				slog.String("resource", u.resource), slog.String("id", u.id), slog.String("form", u.form.String()),
				slog.String("pod", u.pod.String()), slog.Int("possible_devices", len(u.devices))}})
		}
	}
	return events
}

func (p *plugins) pods() []dra.PodRef {
	pods := make([]dra.PodRef, 0, len(p.consumers)+len(p.unresolved))
	for _, c := range p.consumers {
		pods = append(pods, c.Pod)
	}
	for i := range p.unresolved {
		pods = append(pods, p.unresolved[i].pod)
	}
	return pods
}

// resolvePlugins finds the hardware of devices that device plugins allocated. An id that
// leads to no hardware may be of hardware whose place is not known, or of hardware
// that no source sees.
func resolvePlugins(devices *devices, assignments []dra.PluginAssignment) (consumers []model.PluginConsumer, unresolved []unresolvedPlugin) {
	if len(assignments) == 0 {
		return nil, nil
	}
	hardware := newPluginHardware(devices)
	for _, a := range assignments {
		vendor, accelerators := vendors.ByResource(a.Resource)
		known := make(map[string]bool) // ids without the number of a share
		for _, text := range a.DeviceIDs {
			id := vendors.DecodePluginID(text)
			if uuid, ok := hardware.find(id); ok {
				consumers = append(consumers, model.PluginConsumer{UUID: uuid, Pod: a.Pod, Container: a.Container, Resource: a.Resource})
				continue
			}
			if !accelerators && id.Vendor == "" {
				continue // of anything: a fuse, a virtual function of a network adapter
			}
			u := addUnresolved(&unresolved, unresolvedPlugin{pod: a.Pod, form: id.Form, resource: a.Resource, id: text})
			u.count++
			uuid := id.UUIDs[len(id.UUIDs)-1]
			if known[uuid] {
				continue
			}
			known[uuid] = true
			for _, uuid := range hardware.possible(id, cmp.Or(id.Vendor, vendor)) {
				if at, ok := slices.BinarySearch(u.devices, uuid); !ok {
					u.devices = slices.Insert(u.devices, at, uuid)
				}
			}
		}
	}
	slices.SortFunc(consumers, comparePluginConsumers)
	return slices.Compact(consumers), unresolved
}

// addUnresolved returns the entry of a pod and a form, which it adds if there is
// none. Assignments are sorted by pod.
func addUnresolved(list *[]unresolvedPlugin, added unresolvedPlugin) *unresolvedPlugin {
	for i := len(*list) - 1; i >= 0 && (*list)[i].pod == added.pod; i-- {
		if (*list)[i].form == added.form {
			return &(*list)[i]
		}
	}
	*list = append(*list, added)
	return &(*list)[len(*list)-1]
}

// pluginHardware finds hardware by the ids of device plugins.
type pluginHardware struct {
	devices   *devices
	byUUID    map[string]*deviceState // by every spelling
	byAddress map[string]*deviceState
	byNode    map[string]*deviceState // whole devices by their files
}

func newPluginHardware(all *devices) *pluginHardware {
	h := &pluginHardware{devices: all, byUUID: make(map[string]*deviceState), byAddress: make(map[string]*deviceState), byNode: make(map[string]*deviceState)}
	index := make(hardwareIndex)
	for _, d := range all.all() {
		if !d.hardware {
			continue
		}
		for _, uuid := range deviceUUID(d.device, index) {
			h.byUUID[uuid] = d
		}
		addOnly(h.byAddress, deviceAddress(d.device, index), d)
		addOnly(h.byNode, wholeNodes(d.device), d)
	}
	return h
}

// addOnly adds a device by its keys. A key of two devices is of none for certain.
func addOnly(devices map[string]*deviceState, keys []string, d *deviceState) {
	for _, key := range keys {
		if _, ok := devices[key]; ok {
			devices[key] = nil
			continue
		}
		devices[key] = d
	}
}

// find returns the uuid of the one device that an id is certainly of.
func (h *pluginHardware) find(id vendors.PluginID) (string, bool) {
	for _, uuid := range id.UUIDs {
		if d := h.byUUID[uuid]; d != nil {
			return d.uuid, true
		}
		if d := h.devices.get(uuid); d != nil && d.hardware {
			return d.uuid, true
		}
	}
	d := h.byAddress[id.Address]
	switch {
	case id.Form == vendors.PluginNode:
		d = h.byNode[id.Node]
	case id.Form == vendors.PluginPartition && id.GPUInstance >= 0:
		if parts := h.instance(id); len(parts) == 1 {
			d = parts[0]
		}
	}
	if d == nil || id.Vendor != "" && d.device.Vendor != id.Vendor {
		return "", false
	}
	return d.uuid, true
}

// instance returns the partitions of a GPU instance, one for each of its compute
// instances.
func (h *pluginHardware) instance(id vendors.PluginID) []*deviceState {
	parent := h.byNode[fmt.Sprintf("/dev/nvidia%d", id.Minor)]
	if parent == nil {
		return nil
	}
	var parts []*deviceState
	for _, d := range h.devices.all() {
		if d.present && placed(d.device) && d.device.ParentUUID == parent.uuid && d.device.GPUInstance == id.GPUInstance {
			parts = append(parts, d)
		}
	}
	return parts
}

// possible returns the uuids of the devices of a vendor, of any if it is empty, that
// an id may be of: not those that would have been found. A whole device may be
// meant where it is not known to be divided otherwise.
func (h *pluginHardware) possible(id vendors.PluginID, vendor string) []string {
	var uuids []string
	for _, d := range h.devices.all() {
		driver := cmp.Or(d.device.Published.Driver, vendors.DriverOf(d.device.Vendor))
		other := vendor != "" && driver != "" && driver != vendors.DriverOf(vendor)
		if d.present && d.hardware && !other && !isNetwork(d.device) && h.mayBe(id, d.device) {
			uuids = append(uuids, d.uuid)
		}
	}
	return uuids
}

func (h *pluginHardware) mayBe(id vendors.PluginID, d device.Device) bool {
	nodes := wholeNodes(d)
	switch id.Form {
	case vendors.PluginUUID:
		return d.UUID == "" || strings.HasPrefix(id.UUIDs[0], "MIG-")
	case vendors.PluginAddress:
		return d.PCIBusID == ""
	case vendors.PluginNode:
		folder := strings.TrimRight(id.Node, "0123456789")
		known := func(node string) bool { return strings.TrimRight(node, "0123456789") == folder }
		return !d.IsPartition() && !slices.ContainsFunc(nodes, known)
	case vendors.PluginPartition:
		if id.Minor < 0 {
			return true
		}
		whole := d
		if parent := h.devices.get(d.ParentUUID); d.IsPartition() && parent != nil {
			whole = parent.device
		}
		return whole.Minor == device.Unknown || whole.Minor == id.Minor && (!placed(d) || d.GPUInstance == id.GPUInstance)
	default:
		return true
	}
}

// isNetwork reports whether hardware is a network adapter.
func isNetwork(d device.Device) bool {
	return d.Vendor == vendors.Mellanox || slices.ContainsFunc(d.Nodes, func(node string) bool { return strings.HasPrefix(node, "/dev/infiniband/") })
}

// evict removes the facts whose grace has ended.
func (p *plugins) evict(now clock.Instant, grace time.Duration) {
	if p.facts.evict(now, grace) {
		p.past = p.facts.past()
	}
}

// unresolvedModels returns the number of ids that lead to no hardware, by form.
func (p *plugins) unresolvedModels() []model.Counter {
	counts := make([]model.Counter, vendors.PluginForms)
	for form := range vendors.PluginForms {
		counts[form].Name = form.String()
	}
	for i := range p.unresolved {
		counts[p.unresolved[i].form].Count += float64(p.unresolved[i].count)
	}
	return counts
}

func comparePluginConsumers(a, b model.PluginConsumer) int {
	return cmp.Or(cmp.Compare(a.UUID, b.UUID), cmp.Compare(a.Pod.String(), b.Pod.String()), cmp.Compare(a.Container, b.Container), cmp.Compare(a.Resource, b.Resource))
}

// withoutPods returns the pods without those that a list of the API server has as
// not finished.
func withoutPods(pods map[dra.PodRef]bool, lists ...[]dra.Pod) map[dra.PodRef]bool {
	left := maps.Clone(pods)
	for _, list := range lists {
		for i := range list {
			if !list[i].Terminal {
				delete(left, list[i].Ref)
			}
		}
	}
	return left
}
