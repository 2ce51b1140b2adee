package top

import (
	"cmp"
	"slices"
	"strings"

	"github.com/dra-exporter/dra-exporter/internal/words"

	"github.com/dra-exporter/dra-exporter/internal/page"
)

// item is a line of a view: a claim, a device, a workload, a pending claim or a
// node. Items are immutable.
type item struct {
	key             string // identifies it across readings
	namespace, name string
	kind            string // of a workload
	node            string // empty: several, or none
	rows            []*Row // the devices that claims hold of it
	device          *Device
	parted          bool // the device has partitions
	pending         *page.PendingRef
	state           *NodeState
	usage
}

// usage is what the claims of an item use. What is unknown is nil.
type usage struct {
	utilization        *float64 // the mean of those that are known
	memory, memorySize *float64 // sums of those that are known, like power and cost
	power              *float64
	idle               *float64 // seconds; nil unless all are idle
	held               *float64 // the longest
	cost               *float64 // nil if the currencies differ
	currency           string
	devices, free      *float64 // counts
	claims             int
	pods               []string // sorted, each once
	health             string   // the worst
	reasons            []string // of it

	wholeUtilization, wholeMemory, wholePower bool // some are a whole device's, which several claims share
}

// deviceKey identifies a device of the fleet.
type deviceKey struct{ node, uuid string }

func (r *Row) deviceKey() deviceKey { return deviceKey{r.Node, r.UUID} }

// sumUsage adds up rows. What is the whole device's is added once.
func sumUsage(rows []*Row) usage {
	var sum usage
	add := func(field **float64, value *float64) {
		if value != nil {
			sum := *value
			if *field != nil {
				sum += **field
			}
			*field = &sum
		}
	}
	var seen map[deviceKey]bool
	var claims map[[2]string]bool
	if len(rows) > 1 {
		seen, claims = make(map[deviceKey]bool, len(rows)), make(map[[2]string]bool, len(rows))
	}
	var utilization *float64
	measured, idle := 0, true
	for _, r := range rows {
		again := seen[r.deviceKey()]
		if seen != nil {
			seen[r.deviceKey()], claims[[2]string{r.Namespace, r.Claim}] = true, true
		}
		if r.Utilization != nil && (!again || !r.WholeUtilization()) {
			add(&utilization, r.Utilization)
			measured++
		}
		if !again || !r.WholeMemory() {
			add(&sum.memory, r.MemoryUsed)
			add(&sum.memorySize, r.MemoryAllocated)
		}
		if !again || !r.wholePower() {
			add(&sum.power, r.Power)
		}
		sum.wholeUtilization = sum.wholeUtilization || r.WholeUtilization()
		sum.wholeMemory, sum.wholePower = sum.wholeMemory || r.WholeMemory(), sum.wholePower || r.wholePower()
		if idle = idle && r.Idle != nil; idle && (sum.idle == nil || *r.Idle < *sum.idle) {
			sum.idle = r.Idle
		}
		if r.Held != nil && (sum.held == nil || *r.Held > *sum.held) {
			sum.held = r.Held
		}
		sum.pods = append(sum.pods, r.Pods...)
		sum.addHealth(r.Health, r.Reasons)
	}
	if !idle {
		sum.idle = nil
	}
	if measured > 0 {
		sum.utilization = new(*utilization / float64(measured))
	}
	sum.devices, sum.claims = new(float64(max(len(seen), min(len(rows), 1)))), max(len(claims), min(len(rows), 1))
	slices.Sort(sum.pods)
	sum.pods = slices.Compact(sum.pods)
	sum.setCost(rows)
	return sum
}

// addHealth keeps the worst health.
func (u *usage) addHealth(health string, reasons []string) {
	if grade := severity(health); grade != nil {
		if worst := severity(u.health); worst == nil || *grade > *worst {
			u.health, u.reasons = health, reasons
		}
	}
}

func (u *usage) setCost(rows []*Row) {
	sum, currency := 0.0, ""
	for _, r := range rows {
		switch {
		case r.Cost == nil:
		case currency != "" && r.Currency != currency:
			return
		default:
			sum, currency = sum+*r.Cost, r.Currency
		}
	}
	if currency != "" {
		u.cost, u.currency = &sum, currency
	}
}

// grouped returns an item for each key of rows. of returns the items of a row;
// those with the same key are one.
func grouped(rows []*Row, split func(*Row) []item) []*item {
	byKey, all := make(map[string]*item, len(rows)), make([]*item, 0, len(rows))
	for _, r := range rows {
		for _, i := range split(r) {
			known := byKey[i.key]
			if known == nil {
				known = &i
				known.node = r.Node
				byKey[i.key], all = known, append(all, known)
			}
			if known.node != r.Node {
				known.node = ""
			}
			known.rows = append(known.rows, r)
		}
	}
	for _, i := range all {
		slices.SortFunc(i.rows, compareNames)
		i.usage = sumUsage(i.rows)
	}
	return all
}

// key joins names; no name has a NUL.
func key(names ...string) string { return strings.Join(names, "\x00") }

func claimItems(reading *FleetState) []*item {
	return grouped(reading.Rows, func(r *Row) []item {
		return []item{{key: key(r.Namespace, r.Claim), namespace: r.Namespace, name: r.Claim}}
	})
}

// workloadItems are the workloads of pods, and pods without one.
func workloadItems(reading *FleetState) []*item {
	return grouped(reading.Rows, func(r *Row) []item {
		var items []item
		for _, user := range r.Users {
			kind, name := user.Kind, user.Workload
			if name == "" {
				kind, name = "Pod", user.Pod
			}
			i := item{key: key(r.Namespace, kind, name), namespace: r.Namespace, kind: kind, name: name}
			if !slices.ContainsFunc(items, func(other item) bool { return other.key == i.key }) {
				items = append(items, i)
			}
		}
		return items
	})
}

// deviceItems are all devices, as far as agents list them, and those that claims
// hold.
func deviceItems(reading *FleetState) []*item {
	byDevice, all := make(map[deviceKey]*item, len(reading.All)), make([]*item, 0, len(reading.All))
	find := func(id deviceKey, name string) *item {
		known := byDevice[id]
		if known == nil {
			known = &item{key: key(id.node, id.uuid), node: id.node, name: cmp.Or(name, id.uuid)}
			byDevice[id], all = known, append(all, known)
		}
		return known
	}
	for _, device := range reading.All {
		find(deviceKey{device.Node, device.UUID}, device.Device).device = device
	}
	for _, device := range reading.All {
		if whole := byDevice[deviceKey{device.Node, device.ParentUUID}]; whole != nil {
			whole.parted = true
		}
	}
	for _, r := range reading.Rows {
		device := find(r.deviceKey(), r.Device)
		device.rows = append(device.rows, r)
	}
	for _, entry := range all {
		slices.SortFunc(entry.rows, compareNames)
		entry.usage = sumUsage(entry.rows)
		for i, r := range entry.rows {
			if entry.namespace = r.Namespace; i > 0 && r.Namespace != entry.rows[i-1].Namespace {
				entry.namespace = ""
				break
			}
		}
		if d := entry.device; d != nil {
			entry.utilization, entry.memory, entry.memorySize, entry.power = d.Utilization, d.MemoryUsed, d.MemorySize, d.Power
			entry.wholeUtilization, entry.wholeMemory, entry.wholePower = false, false, false
			entry.health, entry.reasons, entry.free = d.health, d.reasons, new(0.0)
			if d.Free {
				entry.free = new(1.0)
			}
			entry.pods = append(entry.pods, d.PluginPods...)
		}
	}
	return all
}

// holder is what has the device.
func (i *item) holder() string {
	claims := words.Names(i.rows, func(r *Row) string { return r.Claim })
	switch d := i.device; {
	case len(claims) > 0:
		return podsCell(claims)
	case d == nil:
		return ""
	case d.Free:
		return "free"
	case len(d.PluginPods) > 0:
		return "device plugin" // its pods are in another column
	case i.parted:
		return "partitions"
	default:
		return "in use" // by a claim of a namespace that is not shown
	}
}

func nodeItems(reading *FleetState) []*item {
	byNode, all := make(map[string]*item, len(reading.Nodes)), make([]*item, 0, len(reading.Nodes))
	for i := range reading.Nodes {
		state := &reading.Nodes[i]
		i := &item{key: state.Agent, node: state.Node, name: cmp.Or(state.Node, state.Agent), state: state}
		byNode[state.Node], all = i, append(all, i)
	}
	for _, r := range reading.Rows {
		if i := byNode[r.Node]; i != nil {
			i.rows = append(i.rows, r)
		}
	}
	for _, i := range all {
		slices.SortFunc(i.rows, compareNames)
		i.usage = sumUsage(i.rows)
		if i.devices = nil; i.state.Devices != nil {
			i.devices = new(float64(i.state.Devices.Devices))
		}
	}
	for _, d := range reading.All {
		i := byNode[d.Node]
		if i == nil {
			continue
		}
		i.addHealth(d.health, d.reasons)
		if i.free == nil {
			i.free = new(0.0)
		}
		if d.Free {
			*i.free++
		}
	}
	return all
}

func pendingItems(reading *FleetState) []*item {
	if reading.Pending == nil {
		return nil
	}
	now := reading.Pending.moment(reading.At)
	var all []*item
	for _, list := range [][]page.PendingRef{reading.Pending.refs, reading.Pending.gated} {
		for i := range list {
			ref := &list[i]
			i := &item{key: key(ref.Namespace, ref.Pod, ref.PodClaim), namespace: ref.Namespace, name: ref.Pod, pending: ref}
			if i.pods = []string{ref.Pod}; !ref.Since.IsZero() {
				i.held = new(max(now.Sub(ref.Since), 0).Seconds())
			}
			all = append(all, i)
		}
	}
	return all
}

// itemValue returns the value that a key compares; nil for names.
func (k Key) itemValue() func(*item) *float64 {
	return map[Key]func(*item) *float64{
		ByUtilization: func(i *item) *float64 { return i.utilization },
		ByMemory:      func(i *item) *float64 { return i.memory },
		ByPower:       func(i *item) *float64 { return i.power },
		ByIdle:        func(i *item) *float64 { return i.idle },
		ByHeld:        func(i *item) *float64 { return i.held },
		byAge:         func(i *item) *float64 { return i.held },
		ByCost:        func(i *item) *float64 { return i.cost },
		ByHealth:      func(i *item) *float64 { return severity(i.health) },
		byDevices:     func(i *item) *float64 { return i.devices },
		byFree:        func(i *item) *float64 { return i.free },
	}[k]
}

func compareItems(a, b *item) int {
	return cmp.Or(cmp.Compare(a.namespace, b.namespace), cmp.Compare(a.name, b.name), cmp.Compare(a.node, b.node), cmp.Compare(a.key, b.key))
}

// sortItems orders the items. What has an unknown value comes last either way, and equal
// values are in the order of their names.
func sortItems(items []*item, order Order) {
	value, names := order.Key.itemValue(), compareItems
	if order.Key == byReason {
		names = func(a, b *item) int {
			return cmp.Or(cmp.Compare(a.pending.Reason, b.pending.Reason), compareItems(a, b))
		}
	}
	slices.SortFunc(items, func(a, b *item) int {
		if value == nil {
			return turned(names(a, b), order.Reversed)
		}
		return cmp.Or(compareValues(value(a), value(b), order.Reversed), names(a, b))
	})
}
