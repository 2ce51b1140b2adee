package vendors

import (
	"encoding/json"
	"strconv"
	"strings"

	"github.com/dra-exporter/dra-exporter/collector/dra"
)

// NVIDIADriver is the DRA driver for NVIDIA's GPUs.
const NVIDIADriver = "gpu.nvidia.com"

// nvidia is NVIDIA's row.
func nvidia() Vendor {
	return Vendor{Name: NVIDIA, PCI: 0x10de, Driver: NVIDIADriver, Kind: GPU, Sources: [2]string{"nvml", "dcgm"}, Resources: [2]string{"nvidia.com/gpu", "nvidia.com/mig-"}, DecodeName: decodeMIGName, DecodeSharing: decodeSharing}
}

// decodeMIGName decodes the name that NVIDIA's driver gives a MIG device,
//
//	gpu-<minor>-mig-<profile without dots>-<giProfileID>-<placementStart>
//
// which is all that is published of where on the GPU an on-demand MIG device
// is. The profile is returned with its dots: 1g10gb is 1g.10gb. A name of
// another form gives no profile and dra.PlacementUnknown.
func decodeMIGName(name string) (profile string, placement int) {
	rest, ok := strings.CutPrefix(name, "gpu-")
	if !ok {
		return "", dra.PlacementUnknown
	}
	minor, rest, ok := strings.Cut(rest, "-mig-")
	if !ok || !isNumber(minor) {
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

// decodeSharing reads the strategy in {"sharing":{"strategy":"TimeSlicing"}}.
// What is not JSON, or has another shape, has none.
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
