package page

import (
	"cmp"
	"slices"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/metric"
)

// Price is what an hour of a device costs.
type Price struct {
	PerHour  float64 `json:"perHour"`
	Currency string  `json:"currency"`
}

// classPrice is the price of a device for those who hold it through a class.
type classPrice struct {
	class string
	Price
}

// Totals are what claims of a namespace have had of devices of one class and
// model since the exporter started, claims that have gone included.
type Totals struct {
	Namespace     string   `json:"namespace"`
	Class         string   `json:"deviceClass,omitempty"`
	Model         string   `json:"model,omitempty"`
	DeviceSeconds *float64 `json:"deviceSeconds,omitempty"`
	SharedSeconds *float64 `json:"sharedDeviceSeconds,omitempty"` // the part whose use is not split
	BusySeconds   *float64 `json:"busySeconds,omitempty"`
	Energy        *float64 `json:"energyJoules,omitempty"`
	Cost          *float64 `json:"cost,omitempty"`
	Currency      string   `json:"currency,omitempty"`
}

// price passes over what the device cost those who held it before.
func (r *reader) price(row metric.Row) {
	if row.Past {
		return
	}
	device, get := r.device(row), row.Labels.Get
	if perHour := known(row.Value); perHour != nil {
		device.prices = append(device.prices, classPrice{get("deviceclass"), Price{*perHour, get("currency")}})
	}
}

// priceFor is the price for who holds the device through a class, nil if none
// is known.
func (d *heldDevice) priceFor(class string) *Price {
	for _, price := range d.prices {
		if price.class == class {
			return &price.Price
		}
	}
	return nil
}

// finalPrices are the prices of the device, each once: classes may differ.
func (d *heldDevice) finalPrices() []Price {
	var prices []Price
	for _, price := range d.prices {
		if !slices.Contains(prices, price.Price) {
			prices = append(prices, price.Price)
		}
	}
	slices.SortFunc(prices, func(a, b Price) int { return cmp.Compare(a.PerHour, b.PerHour) })
	return prices
}

// ofNamespace stores a total of a namespace.
func ofNamespace(field func(*Totals) **float64) func(*reader, metric.Row) {
	return func(r *reader, row metric.Row) { *field(r.totals(row)) = known(row.Value) }
}

func (r *reader) cost(row metric.Row) {
	totals := r.totals(row)
	totals.Cost, totals.Currency = known(row.Value), row.Labels.Get("currency")
}

// totals finds those that the row is about, or begins them.
func (r *reader) totals(row metric.Row) *Totals {
	get := row.Labels.Get
	r.node(row)
	if began := row.Start; !began.IsZero() && (r.view.CountedSince.IsZero() || began.Before(r.view.CountedSince)) {
		r.view.CountedSince = began
	}
	key := Totals{Namespace: get("namespace"), Class: get("deviceclass"), Model: get("model")}
	at := slices.IndexFunc(r.view.Totals, func(t Totals) bool {
		return t.Namespace == key.Namespace && t.Class == key.Class && t.Model == key.Model
	})
	if at < 0 {
		at = len(r.view.Totals)
		r.view.Totals = append(r.view.Totals, key)
	}
	return &r.view.Totals[at]
}

func compareTotals(a, b Totals) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Class, b.Class), cmp.Compare(a.Model, b.Model))
}

// NamespaceUse is a namespace's totals over all classes and models.
type NamespaceUse struct {
	Namespace                    string
	Device, Shared, Busy, Energy *float64 // seconds, joules; of the totals that are known
	Cost                         *float64
	Currency                     string
	Unpriced                     *float64 // device-seconds that have no price, nil if all have one
}

// ByNamespace adds up the totals of each namespace.
func (v View) ByNamespace() []NamespaceUse {
	var uses []NamespaceUse
	for _, totals := range v.Totals { // sorted by namespace
		if last := len(uses) - 1; last < 0 || uses[last].Namespace != totals.Namespace {
			uses = append(uses, NamespaceUse{Namespace: totals.Namespace})
		}
		uses[len(uses)-1].add(totals)
	}
	return uses
}

// Total is over all namespaces.
func (v View) Total() NamespaceUse {
	var total NamespaceUse
	for _, totals := range v.Totals {
		total.add(totals)
	}
	return total
}

func (u *NamespaceUse) add(t Totals) {
	u.Device, u.Shared = orPlus(u.Device, t.DeviceSeconds), orPlus(u.Shared, t.SharedSeconds)
	u.Busy, u.Energy = orPlus(u.Busy, t.BusySeconds), orPlus(u.Energy, t.Energy)
	u.Cost, u.Currency = orPlus(u.Cost, t.Cost), cmp.Or(u.Currency, t.Currency)
	if t.Cost == nil {
		u.Unpriced = orPlus(u.Unpriced, t.DeviceSeconds)
	}
}

// orPlus adds what is known.
func orPlus(a, b *float64) *float64 {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	}
	sum := *a + *b
	return &sum
}

// Counted is for how long totals have been counted; false if that is unknown.
func (v View) Counted() (time.Duration, bool) { return since(v.At, v.CountedSince) }
