package dcgmnames

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/collector/metric"
	"github.com/dra-exporter/dra-exporter/collector/model"
)

// plan is the series that exist. It is valid as long as the node has the same devices,
// and the same pods use them.
type plan struct {
	node    *model.Node // the newest for which it is valid
	devices []plannedDevice
	places  []int // of the node's devices in devices; -1: it is not shown
	series  []series
	holders map[holder]int // numbered from 0
	labels  map[labelValues]*metric.Labels
}

// plannedDevice is a device of the plan.
type plannedDevice struct {
	uuid   string
	parent int // index of the GPU of a partition; its own index for others
	first  int // of its series
	end    int
}

// series has the values of a device, for one container that uses it or for none.
type series struct {
	labels     *metric.Labels
	pod, claim int // the holders whose share it shows, in this order; none: -1
}

// holder is a pod or a claim whose processes may be known to use a device.
type holder struct {
	pod                   bool // else a claim
	namespace, name, uuid string
}

// newPlan plans the series of a node. Labels of the plan before, if there was one, are
// used again.
func newPlan(n *model.Node, previous *plan) *plan {
	p := &plan{node: n, places: make([]int, len(n.Devices)), holders: map[holder]int{}, labels: map[labelValues]*metric.Labels{}}
	order := number(n.Devices)
	places, partitioned := map[string]int{}, map[string]bool{}
	for i := range p.places {
		p.places[i] = -1
	}
	for place, at := range order {
		d := n.Devices[at]
		p.places[at], places[d.UUID] = place, place
		if d.Parent != "" {
			partitioned[d.Parent] = true
		}
	}
	users := newUsers(n)
	for place, at := range order {
		d := n.Devices[at].Identity
		containers := users.byDevice[d.UUID]
		if len(containers) == 0 && !partitioned[d.UUID] {
			containers = []user{{}}
		}
		id := labelValues{node: n.Name, whole: model.Identity{UUID: d.Parent}, device: *d}
		parent, ok := places[d.Parent]
		if !ok {
			parent = place
		}
		if gpu := n.Devices[order[parent]].Identity; gpu.Parent == "" {
			id.gpu, id.whole = strconv.Itoa(parent), *gpu
		}
		e := plannedDevice{uuid: d.UUID, parent: parent, first: len(p.series)}
		for _, id.user = range containers {
			id.published = users.published[claimDevice{id.user.claimRef(), d.UUID}]
			p.series = append(p.series, p.newSeries(id, previous))
		}
		e.end = len(p.series)
		p.devices = append(p.devices, e)
	}
	return p
}

// number returns the indexes of the NVIDIA devices that are shown: whole GPUs as
// NVIDIA's libraries number them, by their PCI addresses, and partitions behind them.
// A GPU without an address comes last. A removed partition is not shown: it would have
// the values of its GPU, and its GPU would not be shown. A removed GPU is shown as long
// as it is kept: its last Xid is the reason for its removal, and other GPUs keep their
// numbers.
func number(devices []model.Device) []int {
	var order []int
	for i := range devices {
		if d := &devices[i]; d.Vendor == "nvidia" && (!d.Past || d.Parent == "") {
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(i, j int) int {
		a, b := devices[i].Identity, devices[j].Identity
		return cmp.Or(
			compareFlags(a.Parent == "", b.Parent == ""),
			compareFlags(a.PCIBusID != "", b.PCIBusID != ""),
			strings.Compare(longAddress(a.PCIBusID), longAddress(b.PCIBusID)),
			strings.Compare(a.UUID, b.UUID),
		)
	})
	return order
}

// matches reports whether the plan is valid for a node.
func (p *plan) matches(n *model.Node) bool {
	sameDevice := func(a, b model.Device) bool { return a.Identity == b.Identity && a.Past == b.Past }
	sameHold := func(a, b model.Hold) bool { return a.UUID == b.UUID && a.Claim == b.Claim && a.Held == b.Held }
	return slices.EqualFunc(p.node.Devices, n.Devices, sameDevice) && slices.Equal(p.node.Claims, n.Claims) &&
		slices.EqualFunc(p.node.Holds, n.Holds, sameHold) && slices.Equal(p.node.Plugins, n.Plugins)
}

func (p *plan) newSeries(id labelValues, previous *plan) series {
	s := series{labels: p.seriesLabels(id, previous), pod: -1, claim: -1}
	if id.user.pod != "" && id.device.Parent == "" {
		s.pod = p.holder(holder{true, id.user.namespace, id.user.pod, id.device.UUID})
	}
	if id.user.claim != "" && id.device.Parent == "" {
		s.claim = p.holder(holder{false, id.user.namespace, id.user.claim, id.device.UUID})
	}
	return s
}

func (p *plan) holder(h holder) int {
	place, ok := p.holders[h]
	if !ok {
		place = len(p.holders)
		p.holders[h] = place
	}
	return place
}

func (p *plan) seriesLabels(id labelValues, previous *plan) *metric.Labels {
	if previous != nil {
		p.labels[id] = previous.labels[id]
	}
	if p.labels[id] == nil {
		p.labels[id] = id.labels()
	}
	return p.labels[id]
}

// users are the containers that use devices.
type users struct {
	byDevice  map[string][]user // by uuid
	published map[claimDevice]dra.DeviceID
}

// user is a container that uses a device: through a claim, or through a device plugin
// if there is none.
type user struct{ namespace, pod, container, claim string }

func (u user) claimRef() dra.ClaimRef { return dra.ClaimRef{Namespace: u.namespace, Name: u.claim} }

// claimDevice is a claim and a device of it.
type claimDevice struct {
	claim dra.ClaimRef
	uuid  string
}

// newUsers returns the containers that use each device, each once: by the first claim
// that refers to it, as in dcgm-exporter. A claim that does not hold the device (it has
// admin access) does not count.
func newUsers(n *model.Node) users {
	u := users{byDevice: map[string][]user{}, published: map[claimDevice]dra.DeviceID{}}
	held := make(map[claimDevice]bool, len(n.Holds))
	for i := range n.Holds {
		held[claimDevice{n.Holds[i].Claim, n.Holds[i].UUID}] = n.Holds[i].Held
	}
	for _, claim := range n.Claims {
		if !claim.Live {
			continue
		}
		for _, d := range claim.Devices {
			if key := (claimDevice{claim.Ref, d.UUID}); u.published[key] == (dra.DeviceID{}) {
				u.published[key] = d.ID
			}
		}
		for _, c := range claim.Consumers {
			if held[claimDevice{claim.Ref, c.UUID}] {
				u.add(c.UUID, user{claim.Ref.Namespace, c.Pod, c.Container, claim.Ref.Name})
			}
		}
	}
	for _, c := range n.Plugins {
		u.add(c.UUID, user{namespace: c.Pod.Namespace, pod: c.Pod.Name, container: c.Container})
	}
	return u
}

func (u users) add(uuid string, added user) {
	same := func(other user) bool {
		return other.namespace == added.namespace && other.pod == added.pod && other.container == added.container
	}
	if !slices.ContainsFunc(u.byDevice[uuid], same) {
		u.byDevice[uuid] = append(u.byDevice[uuid], added)
	}
}

// labelValues is the values from which the labels of a series are derived.
type labelValues struct {
	node      string
	gpu       string         // number of the GPU; empty where it is not known
	whole     model.Identity // the GPU; its UUID alone where no more is known
	device    model.Identity // the device: the same, or a partition of it
	user      user
	published dra.DeviceID // name under which it was allocated to the claim
}

// labels returns the labels without empty ones, which is equivalent.
func (id labelValues) labels() *metric.Labels {
	var names, values []string
	for _, pair := range id.pairs() {
		if pair.value != "" {
			names, values = append(names, pair.name), append(values, pair.value)
		}
	}
	return metric.NewLabels(names, values...)
}

type pair struct{ name, value string }

// pairs returns all labels, in the order of the documentation. UUID, address
// and model are those of the GPU, also for its partitions. The uuid of a
// partition distinguishes two of one profile whose instances are unknown.
func (id labelValues) pairs() []pair {
	var device, namespace, profile, partition, instance string
	if id.gpu != "" {
		device = "nvidia" + id.gpu
	}
	if id.user.claim != "" {
		namespace = id.user.namespace
	}
	if id.device.Parent != "" {
		profile, partition = id.device.Profile, id.device.UUID
	}
	if id.device.HasInstances() {
		instance = strconv.Itoa(id.device.GPUInstance)
	}
	return []pair{
		{"gpu", id.gpu},
		{"UUID", id.whole.UUID},
		{"pci_bus_id", longAddress(id.whole.PCIBusID)},
		{"device", device},
		{"modelName", id.whole.Model},
		{"GPU_I_PROFILE", profile},
		{"GPU_I_ID", instance},
		{"Hostname", id.node},
		{"DCGM_FI_DRIVER_VERSION", id.device.DriverVersion},
		{"namespace", id.user.namespace},
		{"pod", id.user.pod},
		{"container", id.user.container},
		{"dra_claim_name", id.user.claim},
		{"dra_claim_namespace", namespace},
		{"dra_driver_name", id.published.Driver},
		{"dra_pool_name", id.published.Pool},
		{"dra_device_name", id.published.Name},
		{"dra_mig_profile", profile},
		{"dra_mig_device_uuid", partition},
		{"resourceclaim", id.user.claim},
	}
}

func labelNames() []string {
	var names []string
	for _, pair := range (labelValues{}).pairs() {
		names = append(names, pair.name)
	}
	return names
}

// compareFlags puts true first.
func compareFlags(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	default:
		return 1
	}
}

// longAddress writes a PCI address as NVIDIA's libraries do, with a domain of
// eight digits and in upper case: 00000000:1A:00.0.
func longAddress(address string) string {
	domain, rest, ok := strings.Cut(address, ":")
	if !ok {
		return address
	}
	return strings.ToUpper(strings.Repeat("0", max(0, 8-len(domain))) + domain + ":" + rest)
}
