package node

import (
	"slices"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/model"
	"github.com/dra-exporter/dra-exporter/collector/price"
	"github.com/dra-exporter/dra-exporter/collector/vendors"
)

// prices looks up what each device costs its holders.
type prices struct {
	grace    time.Duration
	list     *price.Prices // nil: no prices are known, now or later
	devices  *devices
	holders  *holders
	byDevice map[*deviceState]*devicePrices
}

// devicePrices is what a device costs, and what that was looked up by.
type devicePrices struct {
	classes []string // of the claims that hold the device; one empty class if none does
	asked   struct {
		list    *price.Prices
		classes []string
		device  price.PricedDevice
	}
	facts factList[model.Price] // past ones for the grace, as released holds are priced by them; all by the list in use
}

func newPrices(config Config, devices *devices, holders *holders) *prices {
	return &prices{
		grace: config.Grace, list: config.Prices,
		devices: devices, holders: holders, byDevice: make(map[*deviceState]*devicePrices),
	}
}

// update looks the prices up. list is a price list that was reloaded; nil if none
// was. What was charged before is not changed.
func (s *prices) update(list *price.Prices, views []claimView, now clock.Instant) {
	if s.list == nil {
		return
	}
	if list != nil {
		s.list = list
	}
	for _, d := range s.devices.all() {
		p := s.byDevice[d]
		if p == nil {
			p = &devicePrices{}
			s.byDevice[d] = p
		}
		p.classes = p.classes[:0]
	}
	for i := range views {
		view := &views[i]
		for _, d := range view.devices {
			if !d.admin {
				s.byDevice[s.devices.get(d.uuid)].addClass(view.classOn(d.uuid))
			}
		}
	}
	for _, d := range s.devices.all() {
		// Of a device that is divided, only the partitions can be held.
		if p, h := s.byDevice[d], s.holders.of(d); len(p.classes) == 0 && !h.cut && (d.present || h.isHeld()) {
			p.classes = append(p.classes, "")
		}
		s.updateDevice(d, now)
	}
}

// updateDevice looks the prices of a device up again if anything that they
// depend on has changed. The price without a class ends as soon as the device is
// held.
func (s *prices) updateDevice(d *deviceState, now clock.Instant) {
	p := s.byDevice[d]
	device := price.PricedDevice{Driver: d.driver(), Model: d.model(), Profile: d.profile(), Partition: d.isPartition(), NamedOnly: namedOnly(d)}
	if p.asked.list != s.list || p.asked.device != device || !slices.Equal(p.asked.classes, p.classes) {
		reloaded := p.asked.list != s.list
		p.asked.list, p.asked.device, p.asked.classes = s.list, device, slices.Clone(p.classes)
		var current []model.Price
		for _, device.DeviceClass = range p.classes {
			if perHour, ok := s.list.PerHour(device); ok {
				current = append(current, model.Price{Class: device.DeviceClass, PerHour: perHour})
			}
		}
		p.facts.update(current, now, func(a, b model.Price) bool { return a.Class == b.Class })
		p.facts.retired = slices.DeleteFunc(p.facts.retired, func(r retiredFact[model.Price]) bool { return r.fact.Class == "" })
		if reloaded {
			p.reprice(device)
		}
	}
	p.facts.evict(now, s.grace)
}

// namedOnly reports whether a price for any device is not for this one: CPUs, what is
// no hardware, and devices of which nothing is known but a driver that no source reads.
func namedOnly(d *deviceState) bool {
	row := vendors.ByDriver(d.driver())
	switch row.Kind {
	case vendors.CPU, vendors.Channel:
		return true
	case vendors.GPU:
		return false
	default:
		return !d.hardware && len(row.Sources) == 0
	}
}

// reprice gives the past prices of a device those of the list that was reloaded, and
// removes those for which it has none.
func (p *devicePrices) reprice(device price.PricedDevice) {
	retired := p.facts.retired[:0]
	for _, r := range p.facts.retired {
		device.DeviceClass = r.fact.Class
		if perHour, ok := p.asked.list.PerHour(device); ok {
			r.fact.PerHour = perHour
			retired = append(retired, r)
		}
	}
	clear(p.facts.retired[len(retired):])
	p.facts.retired = retired
}

func (s *prices) remove(d *deviceState) { delete(s.byDevice, d) }

// currency is that of the price list; empty if there is none.
func (s *prices) currency() string {
	if s.list == nil {
		return ""
	}
	return s.list.Currency
}

// perHour returns the price of an hour of the device for holders through the
// class.
func (s *prices) perHour(d *deviceState, class string) (perHour float64, known bool) {
	p := s.byDevice[d]
	if p == nil {
		return 0, false
	}
	for _, price := range p.facts.current {
		if price.Class == class {
			return price.PerHour, true
		}
	}
	return 0, false
}

// models returns the prices of a device for the classes through which it is held, and
// those for which it was.
func (s *prices) models(d *deviceState) (current, past []model.Price) {
	p := s.byDevice[d]
	if p == nil {
		return nil, nil
	}
	return p.facts.current, p.facts.past()
}

func (p *devicePrices) addClass(class string) {
	if at, ok := slices.BinarySearch(p.classes, class); !ok {
		p.classes = slices.Insert(p.classes, at, class)
	}
}
