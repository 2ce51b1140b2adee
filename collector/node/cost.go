package node

import (
	"slices"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/metric"
	"github.com/dra-exporter/dra-exporter/collector/price"
)

// devicePrice is what dra_device_price_per_hour says: the price of an hour of
// a device for who holds it through the class. The class is empty where no
// class is known, and while no claim holds the device.
type devicePrice struct {
	class   string
	perHour float64
}

// pricing is what a unit costs, and what that was looked up by.
type pricing struct {
	classes []string // of the claims that hold the unit; one empty class where none does
	asked   struct {
		prices  *price.Prices
		classes []string
		device  price.Device
	}
	rows infoRows[devicePrice] // the past ones for the grace, as claims that have let go are priced by them
}

// takePrices takes in a price list that was reloaded. What was charged before
// stays as it is.
func (s *State) takePrices(prices *price.Prices) {
	if s.config.Prices != nil && prices != nil {
		s.config.Prices = prices
	}
}

// priceDevices looks up what each device costs those who hold it. It comes
// before the ledger, which charges them.
func (s *State) priceDevices(now clock.Instant) {
	if s.config.Prices == nil {
		return
	}
	for _, u := range s.devices.byUUID {
		u.pricing.classes = u.pricing.classes[:0]
	}
	for i := range s.join.views {
		view := &s.join.views[i]
		for _, d := range view.devices {
			if u, known := s.devices.byUUID[d.uuid]; known && !d.admin {
				u.pricing.hold(view.classOn(d.uuid))
			}
		}
	}
	for _, u := range s.devices.byUUID {
		// Of one that is cut, partitions are what one can have.
		if p := &u.pricing; len(p.classes) == 0 && !u.holders.cut && (u.present || u.isHeld()) {
			p.classes = append(p.classes, "")
		}
		s.price(u, now)
	}
}

func (p *pricing) hold(class string) {
	if at, found := slices.BinarySearch(p.classes, class); !found {
		p.classes = slices.Insert(p.classes, at, class)
	}
}

// price looks the unit's prices up anew where anything that they depend on has
// changed. A price while free is nobody's as soon as it is not free.
func (s *State) price(u *deviceState, now clock.Instant) {
	p := &u.pricing
	device := price.Device{Model: u.model(), Profile: u.profile(), Partition: u.isPartition()}
	if p.asked.prices != s.config.Prices || p.asked.device != device || !slices.Equal(p.asked.classes, p.classes) {
		p.asked.prices, p.asked.device, p.asked.classes = s.config.Prices, device, slices.Clone(p.classes)
		var prices []devicePrice
		for _, device.DeviceClass = range p.classes {
			if perHour, known := s.config.Prices.PerHour(device); known {
				prices = append(prices, devicePrice{device.DeviceClass, perHour})
			}
		}
		p.rows.update(prices, now,
			func(a, b devicePrice) bool { return a.class == b.class },
			func(d devicePrice) *metric.Labels {
				return metric.NewLabels(s.rows.families.devicePrice.Labels, s.config.Node, u.uuid, d.class, s.config.Prices.Currency)
			})
		p.rows.retired = slices.DeleteFunc(p.rows.retired, func(row infoRow[devicePrice]) bool { return row.says.class == "" })
	}
	p.rows.forget(now, s.config.Grace)
}

// perHour is what an hour of the unit costs who holds it through the class.
func (u *deviceState) perHour(class string) (perHour float64, known bool) {
	for i := range u.pricing.rows.live {
		if says := u.pricing.rows.live[i].says; says.class == class {
			return says.perHour, true
		}
	}
	return 0, false
}

// costTotal is what a namespace's device-seconds cost, in the currency of the
// price list. It is opened where a price is known.
type costTotal struct {
	tally
	labels *metric.Labels
}

// charge adds what weighted device-seconds of the unit cost.
func (n *namespaceTotals) charge(u *deviceState, class string, seconds float64, now time.Time) {
	if perHour, known := u.perHour(class); known {
		n.cost.add(seconds*perHour/time.Hour.Seconds(), now)
	}
}
