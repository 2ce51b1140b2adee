package invariant

import (
	"cmp"
	"fmt"
	"hash/maphash"
	"slices"
	"strings"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/metric"
)

// rounding is the tolerance of seconds that were added up and rendered as text.
const rounding = 1e-6

// isHardwareCounter reports whether the hardware counts, from 0 after a reset, and not
// the exporter.
func isHardwareCounter(family string) bool {
	return strings.HasPrefix(family, ofDevice) && family != metric.DeviceBusySeconds && family != metric.DeviceXIDErrors
}

func countersRise(before, after *view, f *findings) {
	seed := maphash.MakeSeed()
	for _, name := range after.names {
		if !isCounter(name) || isHardwareCounter(name) || len(before.families[name]) == 0 {
			continue
		}
		earlier := make(map[uint64]Series, len(before.families[name]))
		for _, row := range before.families[name] {
			earlier[hashOf(seed, row)] = row
		}
		for _, row := range after.families[name] {
			was, known := earlier[hashOf(seed, row)]
			if !known || row.Value >= was.Value || seriesText(was) != seriesText(row) {
				continue
			}
			h := holdOf(row)
			if h.uuid != "" && h.name != "" && !before.held[h] {
				continue // its grace period may have ended between the pages before it returned
			}
			f.add(h.uuid, nil, "%s fell from %v to %v while the process went on", short(seriesText(row)), was.Value, row.Value)
		}
	}
}

// resets returns the number of resets of hardware counters that the exporter has observed.
func (v *view) resets() float64 {
	sum := 0.0
	for _, row := range v.families[metric.ExporterHardwareResets] {
		sum += row.Value
	}
	return sum
}

func growthWithinDevice(before, after *view, f *findings) {
	if before.resets() != after.resets() {
		return // a counter that has fallen was reset: the device's own growth is unknown
	}
	earlier, late := map[useKey]*use{}, pair{before, after}.caughtUp()
	for _, u := range before.uses {
		earlier[useKey{u.quantity, u.uuid, u.details}] = u
	}
	for _, u := range after.uses {
		was := earlier[useKey{u.quantity, u.uuid, u.details}]
		if was == nil || late[u.uuid] || !isCounter(u.quantity) || !u.known || !was.known || u.own < was.own || before.devices[u.uuid].source != after.devices[u.uuid].source {
			continue
		}
		sum, parts := growthOf(was, u)
		own := u.own - was.own
		if noise := 1e-12 * (u.own + u.sum()); sum > own*(1+tolerance)+noise {
			names, text := described(parts)
			f.add(u.uuid, names, "the claims of %s accrued %v of %s, which grew by %v: %s", short(u.uuid), sum, ofDevice+u.quantity+u.detailsText(), own, text)
		}
	}
}

// growthOf returns the growth of the claims' parts of a use.
func growthOf(before, after *use) (sum float64, parts []share) {
	type account struct {
		claim
		attribution string
	}
	earlier := make(map[account]float64, len(before.shares))
	for _, s := range before.shares {
		earlier[account{s.claim, s.attribution}] = s.value
	}
	for _, s := range after.shares {
		s.value = counterGrowth(earlier[account{s.claim, s.attribution}], s.value)
		if s.value > 0 && s.attribution != shared {
			sum += s.value
			parts = append(parts, s)
		}
	}
	return sum, parts
}

// counterGrowth returns the growth of a counter; one that has fallen was reset to 0.
func counterGrowth(before, after float64) float64 {
	if after < before {
		return after
	}
	return after - before
}

// charge is the time of a device that was attributed to a claim between two pages.
type charge struct {
	share
	held float64 // growth of its held time
	all  bool    // it held the device at both ends
}

// charges returns the charges of each device of a node.
func (p pair) charges() map[string][]charge {
	held, seconds := p.growth(heldSeconds), p.growth(deviceSeconds)
	held0, counted0 := p.before.holds(heldSeconds), p.before.holds(deviceSeconds)
	charges := map[string][]charge{}
	for _, row := range p.after.families[deviceSeconds] {
		h := holdOf(row)
		if held0[h] && !counted0[h] {
			continue // the previous page does not have its device-seconds
		}
		charges[h.uuid] = append(charges[h.uuid], charge{
			share: share{claim: h.claim, value: seconds[h]}, held: held[h], all: p.before.held[h] && p.after.held[h],
		})
	}
	return charges
}

// holds returns the holds for which a page has a row of the family.
func (v *view) holds(family string) map[hold]bool {
	holds := make(map[hold]bool, len(v.families[family]))
	for _, row := range v.families[family] {
		holds[holdOf(row)] = true
	}
	return holds
}

func (p pair) growth(family string) map[hold]float64 {
	growth := make(map[hold]float64, len(p.after.families[family]))
	earlier := make(map[hold]float64, len(p.before.families[family]))
	for _, row := range p.before.families[family] {
		earlier[holdOf(row)] = row.Value
	}
	for _, row := range p.after.families[family] {
		h := holdOf(row)
		growth[h] = counterGrowth(earlier[h], row.Value)
	}
	return growth
}

// elapsed returns the longest time between the values of the pages.
func (p pair) elapsed() time.Duration {
	return p.after.At.Sub(p.before.At.Add(-p.before.Slack))
}

// catchUp is the most time that may be attributed late to a claim: its accounting is
// suspended while it is unknown whether its pod still exists.
const catchUp = 15 * time.Second

// caughtUp returns the devices of which a claim may be charged time before the first
// page: it is charged more time than that between the pages, or it was unknown whether
// its hold had ended.
func (p pair) caughtUp() map[string]bool {
	passed, late := p.elapsed().Seconds(), map[string]bool{}
	for h, held := range p.growth(heldSeconds) {
		if p.before.held[h] && held > passed*(1+tolerance)+rounding {
			late[h.uuid] = true
		}
	}
	for h := range p.before.held {
		if !p.after.held[h] {
			late[h.uuid] = true
		}
	}
	return late
}

// isBundle reports whether a uuid is that of several devices of a claim.
func isBundle(uuid string) bool { return strings.Contains(uuid, metric.BundleMark) }

// devices returns how many devices have the uuid: one, or those of a bundle on the page
// that has more of them; 0: neither page has their number.
func (p pair) devices(uuid string) float64 {
	if !isBundle(uuid) {
		return 1
	}
	most := 0.0
	for _, v := range []*view{p.before, p.after} {
		for _, row := range v.families[metric.ClaimBundledDevices] {
			if row.Labels.Get("uuid") == uuid {
				most = max(most, row.Value)
			}
		}
	}
	return most
}

func deviceTime(before, after *view, f *findings) {
	p := pair{before, after}
	passed := p.elapsed().Seconds()
	for uuid, charges := range p.charges() {
		devices := p.devices(uuid)
		if devices == 0 {
			continue // a bundle that was held between the pages only
		}
		sum, together, longest, waited := 0.0, 0.0, 0.0, passed
		for _, c := range charges {
			sum += c.value
			if c.all {
				longest = max(longest, c.held)
			}
			waited = max(waited, c.held)
			if c.held > passed*(1+tolerance)+rounding+catchUp.Seconds() {
				f.add(uuid, []string{c.String()}, "%s held %s for %.3f s in %.3f s", short(c.String()), short(uuid), c.held, passed)
			}
		}
		for _, c := range charges {
			if c.all && c.held > longest-rounding {
				together += c.value
			}
		}
		names, text := charged(charges)
		switch {
		case sum > devices*waited*(1+tolerance)+rounding:
			f.add(uuid, names, "claims are charged %.3f device-seconds of %s in %.3f s: %s", sum, short(uuid), passed, text)
		case together > devices*longest*(1+tolerance)+rounding:
			// The page's own time is more exact than the time of reading.
			f.add(uuid, names, "claims that held %s for the same %.3f s are charged %.3f device-seconds: %s", short(uuid), longest, together, text)
		}
	}
}

// charged returns the charged claims, and a text with the amounts.
func charged(charges []charge) (claims []string, text string) {
	var who, each names
	slices.SortStableFunc(charges, func(a, b charge) int {
		return cmp.Or(strings.Compare(a.namespace, b.namespace), strings.Compare(a.name, b.name))
	})
	for i := range charges {
		if c := &charges[i]; c.value > 0 {
			who.add(c.String())
			each.add(fmt.Sprintf("%s %.3f", short(c.String()), c.value))
		}
	}
	return who.first, each.String()
}
