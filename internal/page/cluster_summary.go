package page

import (
	"slices"
	"strings"
)

// Devices are those of all drivers.
func (v ClusterView) Devices() DeviceStates {
	var all DeviceStates
	for _, driver := range v.Drivers {
		all.add(driver.Devices)
	}
	return all
}

// ClaimCount is how many claims are in any state; nil where that is not known:
// of some states only who knows the pods can tell.
func (v ClusterView) ClaimCount() *float64 {
	if len(v.Unread("pods", "resourceclaims")) > 0 {
		return nil
	}
	var sum float64
	for _, count := range v.Claims {
		sum += count
	}
	return &sum
}

// Wrong are the kinds of what looks wrong now.
func (v ClusterView) Wrong() []Oddities { return v.odd(false) }

// Noted are the kinds of what is worth knowing, and nothing wrong now.
func (v ClusterView) Noted() []Oddities { return v.odd(true) }

func (v ClusterView) odd(quiet bool) []Oddities {
	return slices.DeleteFunc(slices.Clone(v.Odd), func(kind Oddities) bool { return kind.Quiet != quiet })
}

// WrongCount counts what looks wrong now.
func (v ClusterView) WrongCount() int {
	count := 0
	for _, kind := range v.Wrong() {
		count += len(kind.Items)
	}
	return count
}

// Overlooked are the sources that were never read, and without which something
// may look wrong that nobody sees. An API server need not have taint rules:
// then there is no such source.
func (v ClusterView) Overlooked() []Source {
	needed := []string{"pods", "resourceclaims", "resourceslices"}
	if slices.ContainsFunc(v.Sources, func(s Source) bool { return s.Name == "devicetaintrules" }) {
		needed = append(needed, "devicetaintrules")
	}
	return v.Unread(needed...)
}

// Unread are, of the sources that something is known by, those that have never
// been read. Where there are none, what no row tells of is not there.
func (v ClusterView) Unread(needed ...string) []Source {
	var unread []Source
	for _, name := range needed {
		i := slices.IndexFunc(v.Sources, func(s Source) bool { return s.Name == name })
		switch {
		case i < 0:
			unread = append(unread, Source{Name: name})
		case v.Sources[i].LastSuccess.IsZero() && !v.Sources[i].Up:
			unread = append(unread, v.Sources[i])
		}
	}
	return unread
}

// namesOnly names sources.
func namesOnly(sources []Source) string {
	names := make([]string, len(sources))
	for i, source := range sources {
		names[i] = source.Name
	}
	return strings.Join(names, ", ")
}

// listed names sources, each with its reason.
func listed(sources []Source) string {
	names := make([]string, len(sources))
	for i, source := range sources {
		names[i] = strings.TrimSuffix(source.Name+": "+source.Reason, ": ")
	}
	return strings.Join(names, ", ")
}
