// Package price finds the price of an hour of a device.
package price

import "strings"

// Prices is a price list: rules in their order. The first rule that matches a device
// has its price. It is immutable, and nil is a list without rules.
type Prices struct {
	Currency string // ISO 4217, or any other name
	Rules    []Rule
}

// Rule is a price and the devices that it is for. Empty fields match everything, but
// only a rule with a profile or a device class matches a partition. In
// Model and Profile a * matches any text, also an empty one.
type Rule struct {
	DeviceClass string
	Driver      string
	Model       string
	Profile     string // of a partition
	PerHour     float64
}

// PricedDevice is the device to find a price for. Unknown fields are empty, and do
// not match rules that set them.
type PricedDevice struct {
	DeviceClass string // through which it is held; empty while it is free
	Driver      string
	Model       string // of a partition: of the device that it is cut from
	Profile     string // of a partition
	Partition   bool   // it is one, though its profile may be unknown
	NamedOnly   bool   // it has no price but one that names its class, driver or model
}

// PerHour returns the price of an hour of the device; false if no rule matches.
func (p *Prices) PerHour(device PricedDevice) (float64, bool) {
	if p == nil {
		return 0, false
	}
	for _, rule := range p.Rules {
		if rule.fits(device) {
			return rule.PerHour, true
		}
	}
	return 0, false
}

func (r Rule) fits(device PricedDevice) bool {
	reaches := r.reachesWhole()
	if device.Partition || device.Profile != "" {
		reaches = r.reachesPartitions()
	}
	return reaches && (r.isNamed() || !device.NamedOnly) &&
		(r.Driver == "" || r.Driver == device.Driver) &&
		(r.DeviceClass == "" || r.DeviceClass == device.DeviceClass) &&
		isLike(device.Model, r.Model) && isLike(device.Profile, r.Profile)
}

// isNamed reports whether the rule names what it is for: it does not match any device.
func (r Rule) isNamed() bool {
	return r.DeviceClass != "" || r.Driver != "" || r.Profile != "" || strings.Trim(r.Model, "*") != ""
}

// reachesWhole reports whether the rule can match a whole device.
func (r Rule) reachesWhole() bool { return r.Profile == "" }

// reachesPartitions reports whether it can match a partition.
func (r Rule) reachesPartitions() bool { return r.Profile != "" || r.DeviceClass != "" }

// covers reports whether the rule matches everything that the other one matches, so
// that the other one is never used after this one. One that names nothing also covers
// those of models, though these reach a few devices more.
func (r Rule) covers(other Rule) bool {
	return (r.reachesWhole() || !other.reachesWhole()) &&
		(r.reachesPartitions() || !other.reachesPartitions()) &&
		(r.isNamed() || other.Driver == "") &&
		(r.Driver == "" || r.Driver == other.Driver) &&
		(r.DeviceClass == "" || r.DeviceClass == other.DeviceClass) &&
		isLike(other.Model, r.Model) && isLike(other.Profile, r.Profile)
}

// isLike reports whether the pattern matches the text; an empty pattern matches any. If
// the text is a pattern too, it reports whether the second matches everything that the
// first matches: only a * matches a *. Brackets and slashes are literal, unlike in
// patterns of files, because names of models contain them.
func isLike(text, pattern string) bool {
	if pattern == "" {
		return true
	}
	begin, rest, starred := strings.Cut(pattern, "*")
	if !starred {
		return text == pattern
	}
	text, begins := strings.CutPrefix(text, begin)
	if !begins || text == "" && begin == "" {
		return false // an unknown text matches only an empty pattern
	}
	parts := strings.Split(rest, "*")
	end := parts[len(parts)-1]
	for _, part := range parts[:len(parts)-1] {
		at := strings.Index(text, part)
		if at < 0 {
			return false
		}
		text = text[at+len(part):]
	}
	return strings.HasSuffix(text, end)
}
