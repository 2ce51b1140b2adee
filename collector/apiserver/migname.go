package apiserver

import (
	"strconv"
	"strings"

	"github.com/dra-exporter/dra-exporter/collector/dra"
)

// migName reads what NVIDIA's driver puts into the name of a MIG device,
//
//	gpu-<minor>-mig-<profile without dots>-<giProfileID>-<placementStart>
//
// which is all that an on-demand MIG device tells of its place on the GPU.
// The profile comes back with its dots: 1g10gb is 1g.10gb. A name of another
// form gives no profile and dra.PlacementUnknown.
func migName(name string) (profile string, placement int) {
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

// dotted puts the dots back that a device name cannot have, after the counts
// of compute and GPU slices (1c2g20gb is 1c.2g.20gb), and the plus signs
// before a profile's features, which became hyphens (1g.10gb+me).
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
