package check

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/dra-exporter/dra-exporter/collector/device"
	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/collector/vendors"
	"github.com/dra-exporter/dra-exporter/internal/words"
)

// matching compares the devices that drivers publish or claims hold on this
// node with the hardware.
type matching struct {
	Published []dra.PublishedDevice
	Allocated []dra.DeviceID // by claims of this node's pods, published or not
	Samples   []device.Sample
	Matches   []deviceMatch
	// SlicesKnown means that Published is complete.
	SlicesKnown bool
}

// deviceMatch is the hardware that a rule found for a device.
type deviceMatch struct {
	Device dra.DeviceID
	Rule   string
	UUID   string // of the hardware; empty where it has none
	PCI    string
	Part   bool // it is a partition, and PCI its parent's address or empty
}

const (
	matchingPage = "docs/check.md#matching"
	mostNamed    = 4 // of devices in one line
)

// matchingFindings reports, driver by driver, which devices have hardware.
func matchingFindings(m matching) []Finding {
	section := area{"matching", matchingPage}
	drivers := m.byDriver()
	if len(drivers) == 0 {
		if !m.SlicesKnown {
			return []Finding{section.skipped("published devices", "are unknown: ResourceSlices cannot be read")}
		}
		if len(m.Samples) == 0 {
			return []Finding{section.skipped("published devices", "none, and no hardware")}
		}
		return []Finding{section.warning("Check that a DRA driver is installed, and that its kubelet plugin runs on this node. `kubectl get resourceslices` shows what is published.",
			"published devices", "no driver publishes a device of this node, although there is hardware: claims cannot get it")}
	}
	var findings []Finding
	for _, driver := range slices.Sorted(maps.Keys(drivers)) {
		findings = append(findings, m.driver(section, driver, drivers[driver]))
	}
	return append(findings, m.unpublished(section)...)
}

// subject is a device that is published or allocated.
type subject struct {
	id        dra.DeviceID
	published dra.PublishedDevice // its ID is empty where it is not published
	allocated bool
	match     *deviceMatch
}

func (m matching) byDriver() map[string][]subject {
	known := map[dra.DeviceID]*subject{}
	at := func(id dra.DeviceID) *subject {
		if known[id] == nil {
			known[id] = &subject{id: id}
		}
		return known[id]
	}
	for _, published := range m.Published {
		at(published.ID).published = published
	}
	for _, id := range m.Allocated {
		at(id).allocated = true
	}
	for i := range m.Matches {
		if s := known[m.Matches[i].Device]; s != nil {
			s.match = &m.Matches[i]
		}
	}
	drivers := map[string][]subject{}
	for _, s := range known {
		drivers[s.id.Driver] = append(drivers[s.id.Driver], *s)
	}
	for _, subjects := range drivers {
		slices.SortFunc(subjects, func(a, b subject) int {
			return cmp.Or(strings.Compare(a.id.Pool, b.id.Pool), strings.Compare(a.id.Name, b.id.Name))
		})
	}
	return drivers
}

// driver reports on one driver. A partition that is not allocated may not exist yet:
// it needs no hardware.
func (m matching) driver(section area, driver string, subjects []subject) Finding {
	var lost []string
	rules, matched, later, allocated := map[string]int{}, 0, 0, 0
	for _, s := range subjects {
		switch {
		case s.match != nil:
			rules[s.match.Rule]++
			matched++
		case s.published.IsPartition() && s.published.UUID == "" && !s.allocated:
			later++
		default:
			lost = append(lost, s.id.Name)
			if s.allocated {
				allocated++
			}
		}
	}
	text := fmt.Sprintf("%d of %s matched", matched, words.Count(len(subjects)-later, "device", "devices"))
	if matched > 0 {
		text += " by " + ruleNames(rules)
	}
	if later > 0 {
		text += fmt.Sprintf("; %s not created yet", words.Count(later, "partition is", "partitions are"))
	}
	switch {
	case len(lost) == 0:
		return section.ok(driver, "%s", text)
	case vendors.IsLogical(driver):
		return section.ok(driver, "%s, which are no hardware", words.Count(len(subjects), "device", "devices"))
	case !vendors.IsMeasured(driver):
		return section.skipped(driver, "%s; no source of this exporter reads such devices: claims have holders, but no hardware values of %s", text, named(lost))
	case vendors.IsNetwork(driver):
		return section.skipped(driver, "%s; no source reads adapters without RDMA, nor those in the network namespace of a pod: claims have holders, but no hardware values of %s", text, named(lost))
	case allocated > 0:
		return section.failure(m.lostRemedy(), driver, "%s; no hardware is known for %s, of which claims hold %d", text, named(lost), allocated)
	default:
		return section.warning(m.lostRemedy(), driver, "%s; no hardware is known for %s", text, named(lost))
	}
}

func (m matching) lostRemedy() string {
	if len(m.Samples) == 0 {
		return "No source finds a device: see the lines about devices above."
	}
	return "The driver publishes neither a UUID nor a PCI address that a source here finds, or the source cannot access these devices. Their claims have holders, but no hardware values."
}

func ruleNames(rules map[string]int) string {
	names := slices.Sorted(maps.Keys(rules))
	if len(names) == 1 {
		return names[0]
	}
	return strings.Join(words.Names(names, func(name string) string { return fmt.Sprintf("%s (%d)", name, rules[name]) }), ", ")
}

func named(all []string) string { return words.List(all, mostNamed) }

// unpublished reports hardware that no published device has.
func (m matching) unpublished(section area) []Finding {
	taken, cut := map[string]bool{}, map[string]bool{}
	for _, match := range m.Matches {
		taken[match.UUID] = true
		if !match.Part {
			taken[match.PCI] = true
		}
	}
	for _, sample := range m.Samples {
		cut[sample.Device.ParentUUID] = true
	}
	for _, published := range m.Published {
		cut[published.ParentPCIAddress], cut[published.ParentUUID] = true, true
	}
	taken[""], cut[""] = false, false
	var lost []string
	for _, sample := range m.Samples {
		d := sample.Device
		if taken[d.UUID] || !d.IsPartition() && (taken[d.PCIBusID] || cut[d.UUID] || cut[d.PCIBusID]) {
			continue
		}
		lost = append(lost, cmp.Or(d.UUID, d.PCIBusID))
	}
	switch {
	case len(lost) == 0 || len(m.Published) == 0 && m.SlicesKnown:
		return nil
	case !m.SlicesKnown:
		return []Finding{section.skipped("hardware", "the published devices are unknown: ResourceSlices cannot be read")}
	default:
		return []Finding{section.skipped("hardware", "%s that no driver publishes, so claims cannot get them: %s", words.Count(len(lost), "device", "devices"), named(lost))}
	}
}
