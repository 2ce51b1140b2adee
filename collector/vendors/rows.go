package vendors

import (
	"encoding/json"
	"strconv"
	"strings"

	"github.com/dra-exporter/dra-exporter/collector/dra"
)

// Vendor is one row: a vendor and its DRA driver. Fields that do not apply to a
// vendor are empty or nil.
type Vendor struct {
	Driver string // name of the DRA driver

	// DecodeName decodes the name of a device. Names without a partition have no
	// profile and dra.PlacementUnknown.
	DecodeName func(name string) (profile string, placement int)

	// WholeProfile begins, in lower case, the profiles of devices that are not
	// partitioned.
	WholeProfile string

	// PartitionType is the attribute "type" of partitions that are published
	// with the PCI address of their parent.
	PartitionType string

	// DecodeSharing returns the sharing strategy in opaque parameters:
	// time_slicing, mps, or empty.
	DecodeSharing func(parameters []byte) string
}

// All returns the rows.
func All() []Vendor { return []Vendor{nvidia(), amd()} }

// amd is AMD's row. The driver publishes for each card how it is partitioned:
// the compute partitioning, then that of memory. A card that is not
// partitioned (spx_nps1) has the type amdgpu, each partition (of cpx_nps4, for
// example) the type amdgpu-partition. Both publish the card's address under one
// name, except some drivers before 1.0, which published that of a partition as
// its parent's.
func amd() Vendor {
	return Vendor{Driver: "gpu.amd.com", WholeProfile: "spx", PartitionType: "amdgpu-partition"}
}

// nvidia is NVIDIA's row.
func nvidia() Vendor {
	return Vendor{Driver: "gpu.nvidia.com", DecodeName: decodeMIGName, DecodeSharing: decodeSharing}
}

// decodeMIGName decodes the name that NVIDIA's driver gives a MIG device,
//
//	gpu-<minor>-mig-<profile without dots>-<giProfileID>-<placementStart>
//
// which is the only published information about the placement of an on-demand MIG
// device. The profile is returned with its dots: 1g10gb is 1g.10gb. A name of
// another form has no profile and dra.PlacementUnknown.
func decodeMIGName(name string) (profile string, placement int) {
	rest, found := strings.CutPrefix(name, "gpu-")
	if !found {
		return "", dra.PlacementUnknown
	}
	minor, rest, found := strings.Cut(rest, "-mig-")
	if !found || !isNumber(minor) {
		return "", dra.PlacementUnknown
	}
	parts := strings.Split(rest, "-")
	if len(parts) < 3 {
		return "", dra.PlacementUnknown
	}
	last := len(parts) - 1
	start, err := strconv.ParseUint(parts[last], 10, 16)
	if err != nil || !isNumber(parts[last-1]) {
		return "", dra.PlacementUnknown
	}
	return dotted(parts[0], parts[1:last-1]), int(start)
}

func isNumber(text string) bool {
	_, err := strconv.ParseUint(text, 10, 16)
	return err == nil
}

// dotted restores what a device name cannot have: the dots after the counts of
// compute and GPU slices (1c2g20gb is 1c.2g.20gb), and the plus signs before a
// profile's features, which became hyphens (1g.10gb+me).
func dotted(slices string, features []string) string {
	var b strings.Builder
	for i, r := range slices {
		b.WriteRune(r)
		next := i + 1
		if (r == 'g' || r == 'c') && next < len(slices) && slices[next] >= '0' && slices[next] <= '9' {
			b.WriteByte('.')
		}
	}
	for _, feature := range features {
		b.WriteByte('+')
		b.WriteString(feature)
	}
	return b.String()
}

// decodeSharing decodes the strategy in {"sharing":{"strategy":"TimeSlicing"}}. JSON
// of another format, and other text, has none.
func decodeSharing(parameters []byte) string {
	var shape struct {
		Sharing struct {
			Strategy string `json:"strategy"`
		} `json:"sharing"`
	}
	if json.Unmarshal(parameters, &shape) != nil {
		return ""
	}
	switch shape.Sharing.Strategy {
	case "TimeSlicing":
		return "time_slicing"
	case "MPS":
		return "mps"
	default:
		return ""
	}
}

// isWhole reports whether a profile is that of a device that is not
// partitioned.
func (v Vendor) isWhole(profile string) bool {
	return v.WholeProfile != "" && len(profile) >= len(v.WholeProfile) && strings.EqualFold(profile[:len(v.WholeProfile)], v.WholeProfile)
}

// isPartition reports whether the device is a partition of this vendor that is
// published with the address of its parent.
func (v Vendor) isPartition(device dra.PublishedDevice, kind string) bool {
	return v.PartitionType != "" && (kind == v.PartitionType || device.ID.Driver == v.Driver && device.Profile != "")
}
