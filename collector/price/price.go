// Package price says what an hour of a device costs.
package price

// Prices is a price list: rules in their order, of which the first that fits a
// device is its price. It is immutable.
type Prices struct {
	Currency string // ISO 4217, or whatever its owner calls it
	Rules    []Rule
}

// Rule is a price and what it is for. Empty fields fit everything, but a
// partition is only meant by a rule that names a profile or a device class.
type Rule struct {
	DeviceClass string
	Model       string
	Profile     string // of a partition
	PerHour     float64
}

// PerHour is what an hour of a device costs, held through the device class
// (empty while it is free); false if no rule fits.
func (p *Prices) PerHour(class, model, profile string) (float64, bool) {
	if p == nil {
		return 0, false
	}
	for _, rule := range p.Rules {
		if rule.fits(class, model, profile) {
			return rule.PerHour, true
		}
	}
	return 0, false
}

func (r Rule) fits(class, model, profile string) bool {
	if profile != "" && r.Profile == "" && r.DeviceClass == "" {
		return false
	}
	return (r.DeviceClass == "" || r.DeviceClass == class) &&
		(r.Model == "" || r.Model == model) &&
		(r.Profile == "" || r.Profile == profile)
}
