package dcgm

import (
	"strconv"
	"strings"
)

// isGPU reports whether a UUID is one of a GPU: an engine that cannot query the
// driver returns an error text in its place.
func isGPU(uuid string) bool { return strings.HasPrefix(uuid, "GPU-") }

// isMIG reports whether a UUID is one of a MIG device.
func isMIG(uuid string) bool { return strings.HasPrefix(uuid, "MIG-") }

// profile returns the profile in the name that an engine gives a compute
// instance: 1g.10gb, 1c.3g.40gb or 1g.10gb+me, with or without words before it.
// It returns "" if there is none.
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

// majorVersion returns the version in DCGM's build information,
// "version:4.6.1;arch:x86_64;…", and its first number; 0 if there is none.
func majorVersion(build string) (major int, version string) {
	for pair := range strings.SplitSeq(build, ";") {
		key, text, _ := strings.Cut(pair, ":")
		if strings.TrimSpace(key) != "version" {
			continue
		}
		version = strings.TrimSpace(text)
		first, _, _ := strings.Cut(version, ".")
		major, _ = strconv.Atoi(first)
		return major, version
	}
	return 0, ""
}
