package vendors

import (
	"fmt"
	"strconv"
	"strings"
)

// PCIAddress normalizes a PCI address to the spelling in which addresses are
// compared: lower case, a domain of at least four digits, 0000:c1:00.0. It
// accepts a missing domain, and one of eight digits as NVIDIA's library writes
// it. It returns the empty string for anything else.
func PCIAddress(text string) string {
	location, function, found := strings.Cut(text, ".")
	if !found || len(function) != 1 || function[0] < '0' || function[0] > '7' {
		return ""
	}
	parts := strings.Split(location, ":")
	if len(parts) == 2 {
		parts = append([]string{"0"}, parts...)
	}
	if len(parts) != 3 {
		return ""
	}
	domain, domainErr := strconv.ParseUint(parts[0], 16, 32)
	bus, busErr := strconv.ParseUint(parts[1], 16, 8)
	slot, slotErr := strconv.ParseUint(parts[2], 16, 8)
	if domainErr != nil || busErr != nil || slotErr != nil || slot > 0x1f {
		return ""
	}
	return fmt.Sprintf("%04x:%02x:%02x.%s", domain, bus, slot, function)
}
