package node

import (
	"cmp"
	"maps"
	"slices"
	"sync"

	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/collector/model"
	"github.com/dra-exporter/dra-exporter/collector/vendors"
)

// The values of the label between.
const (
	betweenDevices = "devices" // with each other, without network adapters
	betweenNetwork = "network" // of each with the network adapter that is nearest to it
)

// deviceKind is what devices must have in common so that one could have been allocated
// instead of another.
type deviceKind struct{ driver, model, profile string }

func newDeviceKind(d *dra.PublishedDevice) deviceKind {
	return deviceKind{d.ID.Driver, d.Model, d.Profile}
}

// places counts the devices of the node by kind at each place of each level, whether
// they are allocated or not.
type places struct {
	devices  [dra.AlignmentLevels]map[string]map[deviceKind]int
	adapters [dra.AlignmentLevels]map[string]map[deviceKind]bool
	unknown  bool // it is not known where some of them are
}

func (p *places) add(d *dra.PublishedDevice, at dra.Location, network bool) {
	p.unknown = p.unknown || at.NUMA == "" || at.Link == dra.LinkUnknown
	for level := range dra.AlignmentLevels {
		place := at.At(level)
		switch {
		case place == "":
		case network:
			if p.adapters[level] == nil {
				p.adapters[level] = make(map[string]map[deviceKind]bool)
			}
			if p.adapters[level][place] == nil {
				p.adapters[level][place] = make(map[deviceKind]bool)
			}
			p.adapters[level][place][newDeviceKind(d)] = true
		default:
			if p.devices[level] == nil {
				p.devices[level] = make(map[string]map[deviceKind]int)
			}
			if p.devices[level][place] == nil {
				p.devices[level][place] = make(map[deviceKind]int)
			}
			p.devices[level][place][newDeviceKind(d)]++
		}
	}
}

// best is how near to each other so many devices of each kind could be at best.
func (p *places) best(needed map[deviceKind]int) dra.Alignment {
	for level := range dra.AlignmentLevels {
		for _, there := range p.devices[level] {
			if fits(needed, func(kind deviceKind) int { return there[kind] }) {
				return level
			}
		}
	}
	return p.otherwise()
}

// bestNetwork is how near so many devices of each kind could be to a network adapter
// each, of so many adapters of each kind, at best.
func (p *places) bestNetwork(needed, adapters map[deviceKind]int) dra.Alignment {
	for level := range dra.AlignmentLevels {
		s := placeSearch{missing: maps.Clone(needed), left: placeSearchSteps}
		for kind, count := range adapters {
			s.adapters = append(s.adapters, slices.Repeat([]deviceKind{kind}, count)...)
		}
		for place, there := range p.devices[level] {
			if kinds := p.adapters[level][place]; len(kinds) > 0 {
				s.places = append(s.places, adapterPlace{adapters: kinds, devices: there, name: place})
			}
		}
		slices.SortFunc(s.adapters, compareKinds)
		slices.SortFunc(s.places, func(a, b adapterPlace) int { // most devices first
			return cmp.Or(cmp.Compare(b.useful(needed), a.useful(needed)), cmp.Compare(a.name, b.name))
		})
		if s.choose(0, 0) {
			return level
		}
	}
	return p.otherwise()
}

// placeSearchSteps is how many choices of places are tried: all of them on the machines
// that there are. What is not found counts as impossible, so that there is no alert for it.
const placeSearchSteps = 20_000

// adapterPlace is a place with adapters.
type adapterPlace struct {
	adapters map[deviceKind]bool
	devices  map[deviceKind]int
	name     string
	taken    bool
}

// useful is how many of the devices are there.
func (p *adapterPlace) useful(needed map[deviceKind]int) int {
	sum := 0
	for kind, count := range needed {
		sum += min(count, p.devices[kind])
	}
	return sum
}

// placeSearch looks for a place for each adapter, so that the devices that are needed are
// where an adapter is.
type placeSearch struct {
	places   []adapterPlace
	adapters []deviceKind       // sorted
	missing  map[deviceKind]int // devices; not positive: none
	left     int                // steps
}

// choose chooses places for the adapters from one on, and reports whether no device is
// missing then. Adapters of one kind are chosen in the order of the places: first is the
// first place for the next.
func (s *placeSearch) choose(adapter, first int) bool {
	if fits(s.missing, func(deviceKind) int { return 0 }) {
		return true
	}
	if adapter == len(s.adapters) || s.left <= 0 {
		return false
	}
	s.left--
	kind := s.adapters[adapter]
	for i := first; i < len(s.places); i++ {
		place := &s.places[i]
		if place.taken || !place.adapters[kind] {
			continue
		}
		s.take(place, 1)
		next := 0
		if adapter+1 < len(s.adapters) && s.adapters[adapter+1] == kind {
			next = i + 1
		}
		if s.choose(adapter+1, next) {
			return true
		}
		s.take(place, -1)
	}
	// This kind has no other place: the rest of its adapters are where others are.
	for adapter < len(s.adapters) && s.adapters[adapter] == kind {
		adapter++
	}
	return s.choose(adapter, 0)
}

// take chooses a place for an adapter, or with -1 gives it up.
func (s *placeSearch) take(place *adapterPlace, sign int) {
	place.taken = sign > 0
	for kind := range s.missing {
		s.missing[kind] -= sign * place.devices[kind]
	}
}

func compareKinds(a, b deviceKind) int {
	return cmp.Or(cmp.Compare(a.driver, b.driver), cmp.Compare(a.model, b.model), cmp.Compare(a.profile, b.profile))
}

// otherwise is what is known of devices that are at no place together.
func (p *places) otherwise() dra.Alignment {
	if p.unknown {
		return dra.AlignedUnknown
	}
	return dra.Crossing
}

func fits(needed map[deviceKind]int, available func(deviceKind) int) bool {
	for kind, count := range needed {
		if available(kind) < count {
			return false
		}
	}
	return true
}

// heldPlace is a device that a claim or a pod holds, and where it is.
type heldPlace struct {
	device  *dra.PublishedDevice
	at      dra.Location
	network bool // it is a network adapter
}

// ratePlaces returns what there is to say of the devices of one claim or pod: of at least
// two, each of which counts once.
func ratePlaces(held []heldPlace, node func() *places) []model.Alignment {
	if len(held) < 2 {
		return nil
	}
	seen, kinds, adapterKinds := make(map[dra.DeviceID]bool), make(map[deviceKind]int), make(map[deviceKind]int)
	var devices, adapters []dra.Location
	counts := make(map[dra.Location]int)
	for _, h := range held {
		switch {
		case seen[h.device.ID]:
		case h.network:
			adapters = append(adapters, h.at)
			adapterKinds[newDeviceKind(h.device)]++
		default:
			if counts[h.at]++; counts[h.at] <= 2 { // more are as near to each other as two
				devices = append(devices, h.at)
			}
			kinds[newDeviceKind(h.device)]++
		}
		seen[h.device.ID] = true
	}
	var found []model.Alignment
	if len(devices) > 1 {
		alignment := dra.AlignmentOf(devices)
		found = append(found, model.Alignment{Between: betweenDevices, Is: alignment, Best: min(alignment, node().best(kinds))})
	}
	if len(devices) > 0 && len(adapters) > 0 {
		alignment := dra.AlignmentWithNearest(devices, adapters)
		found = append(found, model.Alignment{Between: betweenNetwork, Is: alignment, Best: min(alignment, node().bestNetwork(kinds, adapterKinds))})
	}
	return found
}

// topology rates how near those of each claim and of each pod
// are to each other.
type topology struct {
	claims []model.ClaimAlignment // immutable
	pods   []model.PodAlignment   // likewise

	bundled map[dra.DeviceID]*dra.PublishedDevice // devices of bundles, as they were published last
}

// update applies the views of claims and what is published, when either has changed.
// Most claims and pods have one device, of which there is nothing to say.
func (t *topology) update(devices *devices, views []claimView, published []dra.PublishedDevice) {
	t.claims, t.pods = nil, nil
	node := sync.OnceValue(func() *places { return buildPlaces(devices, published) })
	t.updateBundled(views, published)
	pods := make(map[dra.PodRef][]heldPlace, len(views))
	var held []heldPlace
	for i := range views {
		view := &views[i]
		held = held[:0]
		for j := range view.devices {
			if place, ok := t.heldPlace(devices, &view.devices[j]); ok {
				held = append(held, place)
			}
		}
		for _, pod := range view.pods {
			pods[pod] = append(pods[pod], held...)
		}
		for _, v := range ratePlaces(held, node) {
			t.claims = append(t.claims, model.ClaimAlignment{Claim: view.ref, Alignment: v})
		}
	}
	maps.DeleteFunc(pods, func(_ dra.PodRef, held []heldPlace) bool { return len(held) < 2 })
	for _, pod := range slices.SortedFunc(maps.Keys(pods), func(a, b dra.PodRef) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	}) {
		for _, v := range ratePlaces(pods[pod], node) {
			t.pods = append(t.pods, model.PodAlignment{Pod: pod, Alignment: v})
		}
	}
}

// updateBundled keeps what is published of the devices of bundles, for as long as
// they are held.
func (t *topology) updateBundled(views []claimView, published []dra.PublishedDevice) {
	previous, newest := t.bundled, make(map[dra.DeviceID]*dra.PublishedDevice)
	t.bundled = make(map[dra.DeviceID]*dra.PublishedDevice)
	for i := range views {
		if len(views[i].bundles) == 0 {
			continue
		}
		if len(newest) == 0 {
			for j := range published {
				newest[published[j].ID] = &published[j]
			}
		}
		for _, d := range views[i].devices {
			if known := cmp.Or(newest[d.id], previous[d.id]); d.bundled && known != nil {
				t.bundled[d.id] = known
			}
		}
	}
}

// heldPlace returns where a device of a claim is; false if nothing is known of it, or
// it is no hardware.
func (t *topology) heldPlace(devices *devices, held *claimDevice) (heldPlace, bool) {
	if held.admin || vendors.IsLogical(held.id.Driver) {
		return heldPlace{}, false
	}
	if held.bundled {
		published := t.bundled[held.id]
		if published == nil {
			return heldPlace{}, false
		}
		return heldPlace{published, publishedLocation(published, devices.locations), devices.isNetwork(published)}, true
	}
	d := devices.get(held.uuid)
	if d == nil || !d.isPublished {
		return heldPlace{}, false
	}
	return heldPlace{&d.published, d.location(devices.locations), devices.isNetwork(&d.published)}, true
}

// isNetwork reports whether a device is a network adapter: by its driver, else by the
// class of its PCI function.
func (s *devices) isNetwork(d *dra.PublishedDevice) bool {
	kind := vendors.ByDriver(d.ID.Driver).Kind
	return kind == vendors.Network || kind == vendors.Unknown && s.locations.At(d.PCIAddress).Network
}

// buildPlaces counts what is published by where it is.
func buildPlaces(devices *devices, published []dra.PublishedDevice) *places {
	matched := make(map[dra.DeviceID]*deviceState)
	for _, d := range devices.all() {
		if d.isPublished {
			matched[d.published.ID] = d
		}
	}
	all := &places{}
	for i := range published {
		d := &published[i]
		if vendors.IsLogical(d.ID.Driver) {
			continue
		}
		at := publishedLocation(d, devices.locations)
		if hardware := matched[d.ID]; hardware != nil {
			at = hardware.location(devices.locations)
		}
		all.add(d, at, devices.isNetwork(d))
	}
	return all
}
