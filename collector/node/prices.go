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
	grace time.Duration
	list  *price.Prices // nil: no prices are known, now or later
}

// update looks the prices up. list is a price list that was reloaded; nil if none
// was. What was charged before is not changed.
func (s *prices) update(devices *devices, list *price.Prices, views []claimView, now clock.Instant) {
	if s.list == nil {
		return
	}
	if list != nil {
		s.list = list
	}
	for _, d := range devices.all() {
		d.prices.classes = d.prices.classes[:0]
	}
	for i := range views {
		view := &views[i]
		for _, d := range view.devices {
			if !d.admin {
				devices.get(d.uuid).prices.addClass(view.classOn(d.uuid))
			}
		}
	}
	for _, d := range devices.all() {
		// Of a device that is divided, only the partitions can be held.
		if p, h := &d.prices, &d.holders; len(p.classes) == 0 && !h.cut && (d.present || h.isHeld()) {
			p.classes = append(p.classes, "")
		}
		s.updateDevice(d, now)
	}
}

// updateDevice looks the prices of a device up again if anything that they
// depend on has changed. The price without a class ends as soon as the device is
// held.
func (s *prices) updateDevice(d *deviceState, now clock.Instant) {
	p := &d.prices
	device := price.PricedDevice{Driver: d.driver().name, Model: d.model(), Profile: d.profile(), Partition: d.isPartition(), NamedOnly: namedOnly(d)}
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
	driver := d.driver()
	switch driver.kind {
	case vendors.CPU, vendors.Channel:
		return true
	case vendors.GPU:
		return false
	default:
		return !d.hardware && !driver.measured
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

// currency is that of the price list; empty if there is none.
func (s *prices) currency() string {
	if s.list == nil {
		return ""
	}
	return s.list.Currency
}

// perHour returns the price of an hour of the device for holders through the
// class.
func (p *devicePrices) perHour(class string) (perHour float64, known bool) {
	for _, price := range p.facts.current {
		if price.Class == class {
			return price.PerHour, true
		}
	}
	return 0, false
}

func (p *devicePrices) addClass(class string) {
	if at, ok := slices.BinarySearch(p.classes, class); !ok {
		p.classes = slices.Insert(p.classes, at, class)
	}
}
