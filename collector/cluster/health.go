package cluster

import (
	"cmp"
	"log/slog"
	"slices"
	"strings"

	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/collector/model"
)

// healthReport is what a kubelet reports of one device in a pod's status.
type healthReport struct {
	device  dra.DeviceID
	healthy bool
}

// healthReports compares the health of devices as reported by kubelets with
// what their drivers report, where both do.
type healthReports struct {
	pods    map[*podEntry][]healthReport
	devices map[dra.DeviceID]*deviceHealth
	order   []*deviceHealth // sorted
	added   []*deviceHealth // not yet in order
	changed bool            // reports of kubelets have, since they were compared

	list          stableList[*model.DeviceHealth] // of devices that are comparable
	disagreements stableList[dra.DeviceID]

	supply *dra.Supply           // from which driver was determined
	driver map[dra.DeviceID]bool // tainted devices: true if the driver reports it unhealthy, false if it does not monitor it
}

type deviceHealth struct {
	device             dra.DeviceID
	healthy, unhealthy int // number of kubelets' reports
	comparable         bool
	disagreement       bool
	model              *model.DeviceHealth // nil: outdated
}

func newHealthReports() *healthReports {
	return &healthReports{pods: make(map[*podEntry][]healthReport), devices: make(map[dra.DeviceID]*deviceHealth)}
}

// update applies what the status of each of these pods reports, in place of
// what it reported before.
func (h *healthReports) update(pods map[*podEntry]struct{}) {
	for p := range pods {
		previous, now := h.pods[p], listReports(p)
		if slices.Equal(previous, now) {
			continue
		}
		for _, report := range previous {
			h.count(report, -1)
		}
		for _, report := range now {
			h.count(report, 1)
		}
		if h.pods[p] = now; len(now) == 0 {
			delete(h.pods, p)
		}
	}
}

func (h *healthReports) count(report healthReport, delta int) {
	d, ok := h.devices[report.device]
	if !ok {
		d = &deviceHealth{device: report.device}
		h.devices[report.device] = d
		h.added = append(h.added, d)
	}
	h.changed = true
	if report.healthy {
		d.healthy += delta
	} else {
		d.unhealthy += delta
	}
}

// listReports lists the reports in a pod's status whose device is known.
func listReports(p *podEntry) []healthReport {
	if p.removed || p.object.Terminal {
		return nil
	}
	var reports []healthReport
	for i := range p.object.Health {
		health := &p.object.Health[i]
		at := slices.IndexFunc(p.refs, func(r reference) bool { // a claim for extended resources has no name within the pod
			return r.name == health.PodClaim || health.PodClaim == "" && r.extended > 0
		})
		if at < 0 || !p.refs[at].exists() {
			continue
		}
		if device, ok := reportedDevice(p.refs[at].claim.object.Results, health); ok {
			reports = append(reports, healthReport{device, health.Healthy})
		}
	}
	return reports
}

// reportedDevice is the device that a report is about. A kubelet names a device
// by its first CDI id, which is not known here, else by driver, pool and name.
// So an id counts only if one device of the claim and the request is possible,
// as in the node role.
func reportedDevice(results []dra.AllocatedDevice, health *dra.ResourceHealth) (dra.DeviceID, bool) {
	var found dra.DeviceID
	candidates := 0
	for i := range results {
		if !(dra.Use{Request: health.Request}).Covers(results[i].Request) {
			continue
		}
		device := results[i].Device
		if device.String() == health.ResourceID {
			return device, true
		}
		if candidates == 0 || device != found {
			candidates++
		}
		found = device
	}
	return found, candidates == 1
}

// compare compares the kubelets' reports with the drivers', and returns an event
// for each device where they began to differ.
func (h *healthReports) compare(supply *dra.Supply) []Event {
	if supply == h.supply && !h.changed {
		return nil
	}
	h.applyTaints(supply)
	h.sort()
	var pools []*dra.PoolSupply
	if supply != nil {
		pools = supply.Pools
	}
	var events []Event
	for _, d := range h.order {
		for len(pools) > 0 && d.compareToPool(pools[0]) > 0 {
			pools = pools[1:] // sorted as the devices are
		}
		published := len(pools) > 0 && d.compareToPool(pools[0]) == 0 && publishes(pools[0], d.device.Name)
		unhealthy, ok := h.driver[d.device]
		previous := d.disagreement
		d.comparable = published && (!ok || unhealthy)
		d.disagreement = d.comparable && unhealthy != (d.unhealthy > 0)
		if d.disagreement != previous {
			d.model = nil
		}
		if d.disagreement && !previous {
			events = append(events, Event{slog.LevelWarn, "driver and kubelet disagree on the health of a device", []slog.Attr{
				slog.String("device", d.device.String()), slog.Bool("driver_healthy", !unhealthy), slog.Bool("kubelet_healthy", d.unhealthy == 0),
			}})
		}
	}
	return events
}

// publishes reports whether the pool has the device: its driver reports nothing
// of a device that is withdrawn.
func publishes(pool *dra.PoolSupply, device string) bool {
	_, ok := slices.BinarySearch(pool.Names, device)
	return ok
}

// applyTaints applies what the drivers report: a taint that excludes pods means
// unhealthy, one named unmonitored that the driver does not know. Taints of
// rules are an administrator's, not the driver's.
func (h *healthReports) applyTaints(supply *dra.Supply) {
	if supply == h.supply {
		return
	}
	h.supply, h.driver = supply, make(map[dra.DeviceID]bool)
	if supply == nil {
		return
	}
	for i := range supply.Tainted {
		tainted := &supply.Tainted[i]
		for _, taint := range tainted.Taints {
			switch {
			case taint.Effect == "NoSchedule" || taint.Effect == "NoExecute":
				h.driver[tainted.Device] = true
			case strings.HasSuffix(taint.Key, "/unmonitored") && !h.driver[tainted.Device]:
				h.driver[tainted.Device] = false
			}
		}
	}
}

// sort brings the order up to date, and evicts devices without reports. It runs
// once all pods were updated: a report that one pod no longer has another may
// have.
func (h *healthReports) sort() {
	if !h.changed {
		return
	}
	evict := func(d *deviceHealth) bool {
		if d.healthy > 0 || d.unhealthy > 0 {
			return false
		}
		delete(h.devices, d.device)
		return true
	}
	h.added = slices.DeleteFunc(h.added, evict)
	slices.SortFunc(h.added, compareDevices)
	h.order = merge(slices.DeleteFunc(h.order, evict), h.added, compareDevices)
	clear(h.added)
	h.added, h.changed = h.added[:0], false
}

func compareDevices(a, b *deviceHealth) int {
	return cmp.Or(cmp.Compare(a.device.Driver, b.device.Driver), cmp.Compare(a.device.Pool, b.device.Pool), cmp.Compare(a.device.Name, b.device.Name))
}

func (d *deviceHealth) compareToPool(pool *dra.PoolSupply) int {
	return cmp.Or(cmp.Compare(d.device.Driver, pool.Driver), cmp.Compare(d.device.Pool, pool.Pool))
}

// lists returns the devices of which both kubelets and driver report, and those on which
// they disagree.
func (h *healthReports) lists() (all []*model.DeviceHealth, disagreements []dra.DeviceID) {
	for _, d := range h.order {
		if !d.comparable {
			continue
		}
		if d.model == nil {
			d.model = &model.DeviceHealth{Device: d.device, Disagree: d.disagreement}
		}
		h.list.add(d.model)
		if d.disagreement {
			h.disagreements.add(d.device)
		}
	}
	return h.list.take(), h.disagreements.take()
}
