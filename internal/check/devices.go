package check

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/dra-exporter/dra-exporter/collector/device"
	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/collector/source"
	"github.com/dra-exporter/dra-exporter/collector/vendors"
	"github.com/dra-exporter/dra-exporter/internal/words"
)

// sources is the results of the device sources.
type sources struct {
	Statuses  []source.Status
	Optional  map[string]bool // sources that may be missing
	OpenError error           // a source named by flags cannot be opened
	Samples   []device.Sample // merged; each has the name of the first source that reported it
	PCI       []PCIFunction
	Published []dra.PublishedDevice
	Profiling bool // --device.profiling
	// Withheld means that profiling was enabled and not tried, because the
	// running agent may have the counters.
	Withheld bool
}

const (
	devicesPage = "docs/check.md#devices"
	accessPage  = "docs/access.md"
)

// sourceFindings reports on the devices of each source, and on hardware that no
// source reports.
func sourceFindings(s sources) []Finding {
	section := area{"devices", devicesPage}
	if s.OpenError != nil {
		return []Finding{section.failure("Correct the flag; `dra-exporter node --help` lists its values.", "flags", "%v", s.OpenError)}
	}
	var findings []Finding
	for _, status := range s.Statuses {
		findings = append(findings, s.source(section, status)...)
	}
	findings = append(findings, s.boards(section)...)
	findings = append(findings, s.unseen(section)...)
	findings = append(findings, s.quantities(section)...)
	if s.Withheld {
		findings = append(findings, section.skipped("profiling", "is not tried, because the counters allow one reader at a time: check the running agent (check agent URL)"))
	}
	return findings
}

func (s sources) source(section area, status source.Status) []Finding {
	devices := s.seenBy(status.Name)
	switch {
	case s.Optional[status.Name] && status.NeverFound():
		return []Finding{section.skipped(status.Name, "not available: %s", status.Message)}
	case !status.HungSince.IsZero() || status.LastSuccess.IsZero() && status.Errors == 0:
		return []Finding{section.failure("A call into the driver or the library hangs: check the node's kernel log (dmesg), and whether the vendor's own tool (nvidia-smi, rocm-smi) hangs too.", status.Name, "does not answer")}
	case !status.Up:
		return []Finding{about(accessPage, section.failure(sourceRemedy(status), status.Name, "%s", status.Message))}
	}
	var findings []Finding
	if status.Reason != source.ReasonNone {
		findings = append(findings, section.warning("One of several devices fails: see docs/health.md, and check with the vendor's own tool.", status.Name, "%s", status.Message))
	}
	switch {
	case len(devices) > 0:
		return append(findings, section.ok(status.Name, "%s", models(devices)))
	case len(s.Samples) > 0:
		return append(findings, section.skipped(status.Name, "answers; it finds no device beside those of earlier sources"))
	default:
		return append(findings, section.skipped(status.Name, "answers, and finds no device"))
	}
}

func sourceRemedy(status source.Status) string {
	const unavailable = "There is no answer at this address: check that the host engine runs, and that this pod can reach it."
	return cmp.Or(map[source.Reason]string{
		source.ReasonLibraryMissing: "Give the agent the vendor's library: by the RuntimeClass nvidia, CDI, or a claim; or read from a DCGM host engine.",
		source.ReasonPermission:     "The driver refuses access: this needs more privilege (MIG, profiling), or the container has no access to a device.",
		source.ReasonUnavailable:    unavailable,
		source.ReasonTimeout:        unavailable,
	}[status.Reason], "Check with the vendor's own tool on the node.")
}

// seenBy are the devices that the source saw first.
func (s sources) seenBy(name string) []device.Device {
	var devices []device.Device
	for _, sample := range s.Samples {
		if sample.Source == name {
			devices = append(devices, sample.Device)
		}
	}
	return devices
}

// models counts devices by model, partitions by profile, with their driver.
func models(devices []device.Device) string {
	return tally(words.Names(devices, func(d device.Device) string {
		if d.DriverVersion != "" && !d.IsPartition() {
			return deviceKind(d) + " (driver " + d.DriverVersion + ")"
		}
		return deviceKind(d)
	}))
}

// tally counts equal names: "2 × a, 1 × b".
func tally(names []string) string {
	counts := map[string]int{}
	for _, name := range names {
		counts[name]++
	}
	return strings.Join(words.Names(slices.Sorted(maps.Keys(counts)), func(name string) string { return fmt.Sprintf("%d × %s", counts[name], name) }), ", ")
}

// boards reports what identifies each whole device to whoever replaces it.
func (s sources) boards(section area) []Finding {
	var boards []string
	for _, sample := range s.Samples {
		if board := board(sample.Device.Hardware); board != "" {
			boards = append(boards, cmp.Or(sample.Device.UUID, sample.Device.PCIBusID)+": "+board)
		}
	}
	if len(boards) == 0 {
		return nil
	}
	return []Finding{section.ok("boards", "%s", strings.Join(boards, "; "))}
}

// board is what identifies a board, in words.
func board(h device.Hardware) string {
	var parts []string
	for _, part := range []struct{ name, text string }{
		{"serial number", h.Serial}, {"part number", h.BoardPartNumber}, {"VBIOS", h.VBIOS}, {"index", h.Index},
		{"module", h.ModuleID}, {"chassis", h.ChassisSerial}, {"slot", h.Slot}, {"tray", h.Tray},
	} {
		if part.text != "" {
			parts = append(parts, part.name+" "+part.text)
		}
	}
	return strings.Join(parts, ", ")
}

// deviceKind returns the model, of a partition that of its whole device.
func deviceKind(d device.Device) string {
	model := cmp.Or(d.Model, d.Vendor, "device")
	if d.IsPartition() {
		return "partition " + cmp.Or(d.Profile, "of "+model)
	}
	return model
}

// unseen reports hardware on the PCI bus that no source reports: the most
// common failure.
func (s sources) unseen(section area) []Finding {
	var findings []Finding
	for _, vendor := range []string{vendors.NVIDIA, vendors.AMD} {
		findings = append(findings, s.unseenByVendor(section, vendor)...)
	}
	switch {
	case len(s.Samples) > 0 || len(findings) > 0:
	case slices.ContainsFunc(s.Published, func(d dra.PublishedDevice) bool { return vendors.IsMeasured(d.ID.Driver) }):
		findings = append(findings, about(accessPage, section.failure("Find the source that reads such devices, and give it what it needs.", "hardware", "drivers publish %s here, and no source finds any", words.Count(len(s.Published), "device", "devices"))))
	default:
		findings = append(findings, section.skipped("hardware", "none: this node has no device that can be measured"))
	}
	return findings
}

// unseenByVendor is unseen for one vendor. Devices bound to vfio-pci belong to a
// virtual machine.
func (s sources) unseenByVendor(section area, vendor string) []Finding {
	var driven []string
	bare := 0
	for _, function := range s.PCI {
		switch {
		case !function.GPU || function.Vendor != vendor || function.Driver == "vfio-pci":
		case function.Driver == "":
			bare++
		default:
			driven = append(driven, function.Address)
		}
	}
	var findings []Finding
	if bare > 0 {
		findings = append(findings, section.warning("Install or load the vendor's kernel driver: check dmesg and lsmod on the node. For GPUs of virtual machines, ignore this.",
			vendor, "%s on the PCI bus without a kernel driver: they cannot be read", words.Count(bare, "GPU is", "GPUs are")))
	}
	seen := slices.ContainsFunc(s.Samples, func(sample device.Sample) bool { return sample.Device.Vendor == vendor })
	if len(driven) > 0 && !seen {
		return append(findings, about(accessPage, section.failure(unseenRemedy(vendor), vendor, "%s on the PCI bus, and no source finds any", words.Count(len(driven), "GPU is", "GPUs are"))))
	}
	if lost := s.lost(vendor, driven); len(lost) > 0 {
		findings = append(findings, about(accessPage, section.warning("Give the agent all of them (NVIDIA_VISIBLE_DEVICES=all, or a claim of all); if it has them, check dmesg and the vendor's own tool on the node: a GPU that fell off the bus stays in this list.",
			vendor, "no source finds %d of %s on the PCI bus: %s", len(lost), words.Count(len(driven), "GPU", "GPUs"), named(lost))))
	}
	return findings
}

// lost returns the addresses without a device of any source; nil where the
// address of some device is not known, since it might be one of them.
func (s sources) lost(vendor string, addresses []string) []string {
	seen := map[string]bool{}
	for _, sample := range s.Samples {
		d := sample.Device
		if d.Vendor != vendor {
			continue
		}
		if d.PCIBusID == "" && (!d.IsPartition() || !s.located(d.ParentUUID)) {
			return nil
		}
		seen[d.PCIBusID] = true
	}
	return slices.DeleteFunc(slices.Clone(addresses), func(address string) bool { return seen[address] })
}

// located reports whether the address of the device with the UUID is known.
func (s sources) located(uuid string) bool {
	return slices.ContainsFunc(s.Samples, func(sample device.Sample) bool {
		return uuid != "" && sample.Device.UUID == uuid && sample.Device.PCIBusID != ""
	})
}

func unseenRemedy(vendor string) string {
	return cmp.Or(map[string]string{
		vendors.AMD:   "Check that the kernel driver amdgpu has them, and that --path.sysfs is the node's sysfs.",
		vendors.Intel: "Check that the kernel driver xe or i915 has them, and that --path.sysfs is the node's sysfs.",
	}[vendor], "Give the agent access to them: a DCGM host engine (--dcgm.host-engine), the RuntimeClass nvidia, CDI, or a claim of its own.")
}
