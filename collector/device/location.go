package device

// Location is where a PCI function is in its node. Unknown texts are empty.
type Location struct {
	PCIeRoot string // the root complex that it is behind: pci<domain>:<bus>, pci0000:17
	NUMANode string // the number of the NUMA node that it is next to
	Network  bool   // it is a network adapter
}

// Locations is where the PCI functions of a node are. It is immutable; nil is empty.
type Locations struct{ byAddress map[string]Location }

// NewLocations returns the locations of functions by PCI address, as PCIAddress spells
// it.
func NewLocations(byAddress map[string]Location) *Locations { return &Locations{byAddress} }

// At returns the location of the function with an address.
func (l *Locations) At(address string) Location {
	if l == nil {
		return Location{}
	}
	return l.byAddress[address]
}
