package check

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/dra-exporter/dra-exporter/collector/device"
	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/collector/source"
)

// Sources is what the device sources have found.
type Sources struct {
	Statuses  []source.Status
	Optional  map[string]bool // those that may well not exist here
	OpenError error           // the flags name one that cannot be opened
	Samples   []device.Sample // merged; each has the name of the first source that saw it
	PCI       []PCIFunction
	Published []dra.PublishedDevice
	Profiling bool // --device.profiling
	// Withheld says that profiling was asked for and not tried, because the
	// running agent may have the counters.
	Withheld bool
}

const (
	devicesPage = "docs/check.md#devices"
	accessPage  = "docs/access.md"
)

// SourceFindings judges what each source sees, and what none does.
func SourceFindings(s Sources) []Finding {
	in := area{"devices", devicesPage}
	if s.OpenError != nil {
		return []Finding{in.failure("Put the flag right; `dra-exporter node --help` lists what it takes.", "flags", "%v", s.OpenError)}
	}
	var findings []Finding
	for _, status := range s.Statuses {
		findings = append(findings, s.source(in, status)...)
	}
	findings = append(findings, s.unseen(in)...)
	findings = append(findings, s.quantities(in)...)
	if s.Withheld {
		findings = append(findings, in.skipped("profiling", "is not tried, since one reader at a time can have the counters: ask the running agent (check agent URL)"))
	}
	return findings
}

func (s Sources) source(in area, status source.Status) []Finding {
	devices := s.seenBy(status.Name)
	switch {
	case s.Optional[status.Name] && status.NeverFound():
		return []Finding{in.skipped(status.Name, "not here: %s", status.Message)}
	case !status.HungSince.IsZero() || status.LastSuccess.IsZero() && status.Errors == 0:
		return []Finding{in.failure("A call into the driver or the library hangs: see the node's kernel log (dmesg), and whether the vendor's own tool (nvidia-smi, rocm-smi) hangs too.", status.Name, "does not answer")}
	case !status.Up:
		return []Finding{about(accessPage, in.failure(sourceRemedy(status), status.Name, "%s", status.Message))}
	}
	var findings []Finding
	if status.Reason != source.ReasonNone {
		findings = append(findings, in.warning("See docs/health.md and the vendor's own tool: one of several devices fails.", status.Name, "%s", status.Message))
	}
	if len(devices) == 0 {
		return append(findings, in.skipped(status.Name, "answers, and sees no device"))
	}
	return append(findings, in.ok(status.Name, "%s", models(devices)))
}

func sourceRemedy(status source.Status) string {
	switch status.Reason {
	case source.ReasonLibraryMissing:
		return "Give the agent the vendor's library: the RuntimeClass nvidia, CDI, or a claim; or read from a DCGM host engine."
	case source.ReasonPermission:
		return "The driver refuses: more privilege is needed for this (MIG, profiling), or a device was not given to the container."
	case source.ReasonUnavailable, source.ReasonTimeout:
		return "Nobody answers at that address: is the host engine running, and may this pod reach it?"
	default:
		return "See what the vendor's own tool says on the node."
	}
}

// seenBy are the devices that the source saw first.
func (s Sources) seenBy(name string) []device.Device {
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
	counts := map[string]int{}
	var kinds []string
	for _, d := range devices {
		kind := kindOf(d)
		if d.DriverVersion != "" && !d.IsPartition() {
			kind += " (driver " + d.DriverVersion + ")"
		}
		if counts[kind]++; counts[kind] == 1 {
			kinds = append(kinds, kind)
		}
	}
	slices.Sort(kinds)
	for i, kind := range kinds {
		kinds[i] = fmt.Sprintf("%d × %s", counts[kind], kind)
	}
	return strings.Join(kinds, ", ")
}

// kindOf is the model, or that of which a partition is one.
func kindOf(d device.Device) string {
	model := cmp.Or(d.Model, d.Vendor, "device")
	if d.IsPartition() {
		return "partition " + cmp.Or(d.Profile, "of "+model)
	}
	return model
}

// unseen is hardware on the PCI bus that no source sees: the commonest thing
// to go wrong.
func (s Sources) unseen(in area) []Finding {
	var findings []Finding
	for _, vendor := range []string{"nvidia", "amd"} {
		there := 0
		for _, function := range s.PCI {
			if function.GPU && function.Vendor == vendor && function.Driver != "" && function.Driver != "vfio-pci" {
				there++
			}
		}
		seen := slices.ContainsFunc(s.Samples, func(sample device.Sample) bool { return sample.Device.Vendor == vendor })
		if there > 0 && !seen {
			findings = append(findings, about(accessPage, in.failure(unseenRemedy(vendor), vendor, "%s on the PCI bus, and no source sees any", counted(there, "GPU is", "GPUs are"))))
		}
	}
	switch {
	case len(s.Samples) > 0 || len(findings) > 0:
	case slices.ContainsFunc(s.Published, func(d dra.PublishedDevice) bool { return measured(d.ID.Driver) }):
		findings = append(findings, about(accessPage, in.failure("See which source reads such devices, and give it what it needs.", "hardware", "drivers publish %s here, and no source sees any", counted(len(s.Published), "device", "devices"))))
	default:
		findings = append(findings, in.skipped("hardware", "none: this node has no device that could be measured"))
	}
	return findings
}

func unseenRemedy(vendor string) string {
	if vendor == "amd" {
		return "See whether the kernel driver amdgpu has them and sysfs is the node's: --path.sysfs."
	}
	return "Give the agent a way to them: a DCGM host engine (--dcgm.host-engine), the RuntimeClass nvidia, CDI, or a claim of its own."
}
