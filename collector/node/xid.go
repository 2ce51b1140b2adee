package node

import (
	"cmp"
	"slices"
)

// xidClass is what an Xid asks for, by the column "immediate action" of
// NVIDIA's Xid catalogue
// (https://docs.nvidia.com/deploy/xid-errors/analyzing-xid-catalog.html).
type xidClass uint8

const (
	xidNotice      xidClass = iota // nothing of the GPU, which goes on
	xidApplication                 // the application erred, or must be started again; the GPU goes on
	xidUnclear                     // more than the code is needed to tell, or no action is documented
	xidReset                       // the GPU is sick until it is reset
	xidService                     // the GPU is sick until the machine is restarted or its hardware is seen to
)

func (c xidClass) String() string {
	return [...]string{
		xidNotice: "notice", xidApplication: "application", xidUnclear: "unclear", xidReset: "reset", xidService: "service",
	}[c]
}

// critical reports whether an Xid of the class means that the GPU is sick.
func (c xidClass) critical() bool { return c >= xidReset }

// xidCode is one documented Xid.
type xidCode struct {
	code       int
	class      xidClass
	constraint constraint // noConstraint: no signal of the device's health
	channel    bool       // it is an error of a channel, which may belong to a partition
	means      string
}

// xidOther is the label of all codes that are not in the table.
const xidOther = "other"

// xidTable is the codes that have a label of their own, in ascending order:
// those that mean a sick GPU, and those that on-call engineers ask for. What
// is left out (exceptions of copy and video engines, for the most part) asks
// for no more than a restart of the application.
func xidTable() []xidCode {
	return []xidCode{
		{13, xidApplication, noConstraint, true, "graphics engine exception: access out of bounds, illegal instruction"},
		{31, xidApplication, noConstraint, true, "page fault: access to an illegal address"},
		{32, xidApplication, noConstraint, true, "invalid or corrupted stream of commands"},
		{43, xidNotice, noConstraint, true, "application stopped by a fault of its own"},
		{45, xidApplication, noConstraint, true, "cleanup after an application was killed or hit another error"},
		{46, xidReset, constraintRecovery, true, "GPU stopped processing"},
		{48, xidReset, constraintMemory, true, "uncorrectable ECC error"},
		{54, xidService, constraintPower, false, "auxiliary power is not connected"},
		{62, xidReset, constraintRecovery, false, "internal microcontroller halted"},
		{63, xidNotice, constraintMemory, false, "memory row remapped, or page retired"},
		{64, xidReset, constraintMemory, false, "remapping a row, or retiring a page, failed"},
		{74, xidReset, constraintLink, false, "NVLink error"},
		{79, xidService, constraintRecovery, false, "GPU fell off the bus"},
		{92, xidNotice, constraintMemory, false, "single-bit ECC errors at a high rate"},
		{94, xidApplication, constraintMemory, true, "memory error contained to one application"},
		{95, xidReset, constraintMemory, true, "memory error that was not contained"},
		{109, xidReset, constraintRecovery, true, "context switch timed out"},
		{110, xidReset, constraintRecovery, false, "security fault"},
		{119, xidReset, constraintRecovery, false, "no answer from the GPU's system processor (GSP)"},
		{120, xidReset, constraintRecovery, false, "error of the GPU's system processor (GSP)"},
		{121, xidNotice, constraintLink, false, "corrected error on the link to the processor (C2C)"},
		{136, xidReset, constraintLink, false, "training of a link failed"},
		{137, xidNotice, noConstraint, false, "illegal access to a peer over NVLink"},
		{140, xidReset, constraintMemory, false, "ECC error that was not recovered"},
		{143, xidReset, constraintRecovery, false, "GPU could not be initialized"},
		{144, xidUnclear, constraintLink, false, "NVLink: SAW"},
		{145, xidUnclear, constraintLink, false, "NVLink: RLW"},
		{146, xidUnclear, constraintLink, false, "NVLink: TLW"},
		{147, xidUnclear, constraintLink, false, "NVLink: TREX"},
		{148, xidUnclear, constraintLink, false, "NVLink: NVLPW_CTRL"},
		{149, xidReset, constraintLink, false, "NVLink: NETIR, a link went down"},
		{150, xidReset, constraintLink, false, "NVLink: MSE"},
		{151, xidService, constraintRecovery, false, "key rotation failed (confidential computing)"},
		{154, xidNotice, noConstraint, false, "recovery action changed, see dra_device_recovery_action"},
		{155, xidReset, constraintLink, false, "NVLink taken down by software"},
		{156, xidReset, constraintRecovery, false, "a resource of the GPU was retired"},
		{157, xidNotice, constraintRecovery, false, "retiring a resource of the GPU failed"},
		{158, xidReset, constraintRecovery, false, "fatal timeout"},
		{167, xidUnclear, constraintRecovery, false, "fatal timeout on PCIe"},
		{169, xidUnclear, constraintRecovery, false, "internal microcontroller (SEC2) halted"},
		{171, xidReset, constraintMemory, false, "uncorrectable error of DRAM, together with Xid 48"},
		{172, xidReset, constraintMemory, false, "uncorrectable error of SRAM, together with Xid 48"},
	}
}

// findXID returns where a code is in the table, and the length of the table
// for those that it does not have.
func findXID(table []xidCode, code int) int {
	at, known := slices.BinarySearchFunc(table, code, func(x xidCode, code int) int { return cmp.Compare(x.code, code) })
	if !known {
		return len(table)
	}
	return at
}
