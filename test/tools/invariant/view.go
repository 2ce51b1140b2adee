package invariant

import (
	"strings"

	"github.com/dra-exporter/dra-exporter/collector/metric"
)

// view is a page, indexed for rules. It is immutable.
type view struct {
	Page
	families map[string][]Series
	names    []string // of the families, in the order of the page
	node     string   // empty for a page of the cluster role
	process  float64  // start time of the process; 0 if the page does not have it

	held    map[hold]bool
	holders map[string][]claim // of each uuid
	devices map[string]deviceInfo
	uses    []*use
	capped  map[string]bool // families of which rows were dropped
}

// claim is a ResourceClaim by name.
type claim struct{ namespace, name string }

func (c claim) String() string { return c.namespace + "/" + c.name }

// hold is a claim and a device.
type hold struct {
	claim
	uuid string
}

// deviceInfo is the page's information on a device.
type deviceInfo struct {
	parent  string
	source  string // empty: its hardware is unknown
	plugins int    // pods that got it through a device plugin
}

func newView(page Page) *view {
	v := &view{
		Page: page, families: map[string][]Series{}, held: map[hold]bool{},
		holders: map[string][]claim{}, devices: map[string]deviceInfo{}, capped: map[string]bool{},
	}
	for first := 0; first < len(page.Series); {
		name, end := page.Series[first].Name, first+1
		for end < len(page.Series) && page.Series[end].Name == name {
			end++
		}
		if _, known := v.families[name]; !known {
			v.names = append(v.names, name)
		}
		if concerns(name) {
			v.families[name] = append(v.families[name], page.Series[first:end]...)
		}
		first = end
	}
	if start := v.families[processStart]; len(start) == 1 {
		v.process = start[0].Value
	}
	for _, row := range v.families[metric.ExporterSeriesDropped] {
		v.capped[row.Labels.Get("family")] = row.Value > 0
	}
	v.findDevices()
	v.findHolders()
	v.uses = v.findUses()
	return v
}

func (v *view) findDevices() {
	for _, row := range v.families[metric.DeviceInfo] {
		v.node = row.Labels.Get("node")
		v.devices[row.Labels.Get("uuid")] = deviceInfo{parent: row.Labels.Get("parent_uuid"), source: row.Labels.Get("source")}
	}
	for _, row := range v.families[metric.DeviceHolders] {
		if row.Labels.Get("kind") == "device_plugin" {
			uuid := row.Labels.Get("uuid")
			info := v.devices[uuid]
			info.plugins, info.parent = int(row.Value), row.Labels.Get("parent_uuid")
			v.devices[uuid] = info
		}
	}
}

func (v *view) findHolders() {
	for _, row := range v.families[metric.ClaimHeld] {
		if h := holdOf(row); !v.held[h] {
			v.held[h] = true
			v.holders[h.uuid] = append(v.holders[h.uuid], h.claim)
		}
	}
}

func holdOf(row Series) hold {
	return hold{claim{row.Labels.Get("namespace"), row.Labels.Get("resourceclaim")}, row.Labels.Get("uuid")}
}

// whole reports whether all rows of the family are on the page: it is a whole
// page of the node role, no cap dropped any of them, and some are there, so that
// --metrics.level and --metrics.exclude did not leave the family out.
func (v *view) whole(family string) bool {
	return len(v.families[metric.DeviceInfo]) > 0 && len(v.families[family]) > 0 && !v.capped[family]
}

// isCounter reports whether a family is a counter, by its name.
func isCounter(family string) bool { return strings.HasSuffix(family, "_total") }

// Prefixes of families about a device, about a claim on a device, or about a
// pod on a device. The quantity follows.
const (
	ofDevice       = "dra_device_"
	ofClaim        = "dra_claim_"
	ofPod          = "dra_pod_"
	ofUnattributed = "dra_device_unattributed_"
)

// Counterparts returns the families that belong to a claim's family with an
// attribution: the device's own value, and the part of it that is unattributed.
// Not every quantity has both.
func Counterparts(claimFamily string) (device, unattributed string) {
	quantity := strings.TrimPrefix(claimFamily, ofClaim)
	return ofDevice + quantity, ofUnattributed + strings.Replace(quantity, "_used_", "_", 1)
}

// use is one quantity of one device, with its parts by holder.
type use struct {
	quantity string // the family without its prefix, such as power_watts
	uuid     string
	details  string // further labels, such as engine="sm"; mostly empty

	own          float64
	known        bool // the page has the device's own value
	shares       []share
	pods         []share
	unattributed float64
	measured     bool // the page has what is unattributed
}

// share is the part of one claim or pod.
type share struct {
	claim
	attribution string
	value       float64
}

// whole reports whether the share is all of the device's own value.
func (s share) whole() bool { return s.attribution != "process" }

// sum adds up the claims' parts of the device's own value.
func (u *use) sum() float64 {
	sum := 0.0
	for _, s := range u.shares {
		if s.attribution != shared {
			sum += s.value
		}
	}
	return sum
}

const shared = "shared"

type useKey struct{ quantity, uuid, details string }

// uses are found family by family.
type uses struct {
	list       []*use
	known      map[useKey]*use
	quantities map[string]bool // of list
}

// findUses finds all parts of devices that claims and pods have, and the
// unattributed parts.
func (v *view) findUses() []*use {
	found := uses{known: map[useKey]*use{}, quantities: map[string]bool{}}
	for _, name := range v.names {
		found.addShares(name, v.families[name])
	}
	for _, name := range v.names {
		if quantity, is := strings.CutPrefix(name, ofDevice); is {
			_, unattributed := Counterparts(ofClaim + quantity)
			found.addDevice(quantity, v.families[name], v.families[unattributed])
		}
	}
	return found.list
}

// addShares adds the rows of a family of claims or pods.
func (u *uses) addShares(family string, rows []Series) {
	quantity, ofClaims := strings.CutPrefix(family, ofClaim)
	if !ofClaims {
		var ofPods bool
		if quantity, ofPods = strings.CutPrefix(family, ofPod); !ofPods {
			return
		}
	}
	for _, row := range rows {
		attribution := row.Labels.Get("attribution")
		switch {
		case ofClaims && attribution != "":
			of := u.at(quantity, row)
			of.shares = append(of.shares, share{holdOf(row).claim, attribution, row.Value})
		case !ofClaims && row.Labels.Get("uuid") != "": // else of the cluster role
			of := u.at(quantity, row)
			of.pods = append(of.pods, share{claim: claim{row.Labels.Get("namespace"), row.Labels.Get("pod")}, value: row.Value})
		}
	}
}

// addDevice adds the unattributed parts, and the devices' own values of the
// quantities with parts.
func (u *uses) addDevice(quantity string, own, unattributed []Series) {
	for _, row := range unattributed {
		of := u.at(quantity, row)
		of.unattributed, of.measured = row.Value, true
	}
	if !u.quantities[quantity] {
		return
	}
	for _, row := range own {
		if of := u.known[keyOf(quantity, row)]; of != nil {
			of.own, of.known = row.Value, true
		}
	}
}

func (u *uses) at(quantity string, row Series) *use {
	key := keyOf(quantity, row)
	if u.known[key] == nil {
		u.known[key] = &use{quantity: key.quantity, uuid: key.uuid, details: key.details}
		u.list, u.quantities[quantity] = append(u.list, u.known[key]), true
	}
	return u.known[key]
}

func keyOf(quantity string, row Series) useKey {
	return useKey{quantity, row.Labels.Get("uuid"), detailsOf(row)}
}

// detailsOf returns the labels of the part of a device that a value is about,
// such as the engine.
func detailsOf(row Series) string {
	details := ""
	for name, value := range row.Labels.Each {
		switch name {
		case "node", "uuid", "parent_uuid", "namespace", "resourceclaim", "pod", "attribution":
		default:
			details += " " + name + "=" + value
		}
	}
	return details
}

// isSummed reports whether claims' values are compared with the device's of
// the same page: gauges, and the busy time, which is accrued for both. Other
// counters of a device began when its hardware did.
func isSummed(quantity string) bool {
	return !isCounter(quantity) || quantity == "busy_seconds_total"
}

// The families of the time that claims are charged for.
const (
	heldSeconds   = metric.ClaimHeldSeconds
	deviceSeconds = metric.ClaimDeviceSeconds
)
