package apiserver

import "strings"

// AMD's driver says of each card how it is cut, its computing first and its
// memory second. A card in one piece (spx_nps1) is of the type amdgpu, each of
// the pieces of another (cpx_nps4, say) of the type amdgpu-partition. Both
// publish the card's address under one name, but for some drivers before 1.0,
// which called that of a piece its parent's.

// inOnePiece reports whether a profile is that of a card which is not cut.
func inOnePiece(profile string) bool {
	const single = "spx"
	return len(profile) >= len(single) && strings.EqualFold(profile[:len(single)], single)
}

// pciAddresses returns the device's own PCI address, or its card's if it is
// one of several pieces. The profile is that of a piece, empty for a card
// which is not cut.
func (a attributes) pciAddresses(names spellings, profile string) (own, parent string) {
	own, parent = a.address(names.address), a.address(names.parentAddress)
	isPiece := a.text(names.kind) == "amdgpu-partition" || a.driver == "gpu.amd.com" && profile != ""
	if isPiece && parent == "" {
		return "", own
	}
	return own, parent
}
