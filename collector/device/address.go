package device

import (
	"fmt"
	"strconv"
	"strings"
)

// PCIAddress spells a PCI address as the kernel does, 0000:1a:00.0: lower
// case, a domain of at least four digits. Libraries write longer domains and
// upper case (00000000:1A:00.0). It is empty for anything else.
func PCIAddress(spelled string) string {
	domain, rest, _ := strings.Cut(spelled, ":")
	bus, rest, _ := strings.Cut(rest, ":")
	slot, function, _ := strings.Cut(rest, ".")
	var numbers [4]uint64
	for i, part := range []string{domain, bus, slot, function} {
		n, err := strconv.ParseUint(part, 16, []int{32, 8, 5, 3}[i])
		if err != nil {
			return ""
		}
		numbers[i] = n
	}
	return fmt.Sprintf("%04x:%02x:%02x.%x", numbers[0], numbers[1], numbers[2], numbers[3])
}
