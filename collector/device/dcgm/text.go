package dcgm

import (
	"fmt"
	"strconv"
	"strings"
)

// pciAddress spells a bus id of an engine (00000000:1A:00.0) as the kernel
// does (0000:1a:00.0): lower case, a domain of at least four digits. It is
// empty for anything else.
func pciAddress(busID string) string {
	parts := strings.Split(strings.ToLower(busID), ":")
	if len(parts) != 3 {
		return ""
	}
	slot, function, _ := strings.Cut(parts[2], ".")
	var numbers [4]uint64
	for i, part := range []string{parts[0], parts[1], slot, function} {
		n, err := strconv.ParseUint(part, 16, []int{32, 8, 8, 8}[i])
		if err != nil {
			return ""
		}
		numbers[i] = n
	}
	return fmt.Sprintf("%04x:%02x:%02x.%x", numbers[0], numbers[1], numbers[2], numbers[3])
}

// isGPU reports whether a UUID is one of a GPU: an engine that cannot ask the
// driver tells an error in words in its place.
func isGPU(uuid string) bool { return strings.HasPrefix(uuid, "GPU-") }

// isMIG reports whether a UUID is one of a MIG device.
func isMIG(uuid string) bool { return strings.HasPrefix(uuid, "MIG-") }

// profile is the profile in the name that an engine gives a compute instance:
// 1g.10gb, 1c.3g.40gb or 1g.10gb+me, with or without words before it.
// It is empty where there is none.
func profile(name string) string {
	words := strings.Fields(name)
	if len(words) == 0 {
		return ""
	}
	last := words[len(words)-1]
	slices, memory, found := strings.Cut(last, "g.")
	memory, _, _ = strings.Cut(memory, "+")
	if !found || !strings.HasSuffix(memory, "gb") || slices == "" || slices[0] < '1' || slices[0] > '9' {
		return ""
	}
	return last
}

// majorVersion is the first number of the version in what DCGM tells of its
// build, "version:4.6.1;arch:x86_64;…", with the whole of it; 0 where there is
// none.
func majorVersion(build string) (major int, version string) {
	for pair := range strings.SplitSeq(build, ";") {
		key, told, _ := strings.Cut(pair, ":")
		if strings.TrimSpace(key) != "version" {
			continue
		}
		version = strings.TrimSpace(told)
		first, _, _ := strings.Cut(version, ".")
		major, _ = strconv.Atoi(first)
		return major, version
	}
	return 0, ""
}
