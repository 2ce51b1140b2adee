package boards

import "github.com/grafana/grafana-foundation-sdk/go/dashboard"

// xid is what a code means, as docs/health.md has it (a test compares the two).
type xid struct {
	code     string
	severity string // critical, warning, or empty: no signal
	meaning  string
}

// xids are the codes that the exporter counts one by one; all others are "other".
func xids() []xid {
	return []xid{
		{"13", "", "graphics engine exception: access out of bounds, illegal instruction"},
		{"31", "", "page fault: access to an illegal address"},
		{"32", "", "invalid or corrupted stream of commands"},
		{"43", "", "application stopped by a fault of its own"},
		{"45", "", "cleanup after an application was killed or hit another error"},
		{"46", "critical", "GPU stopped processing"},
		{"48", "critical", "uncorrectable ECC error"},
		{"54", "critical", "auxiliary power is not connected"},
		{"62", "critical", "internal microcontroller halted"},
		{"63", "warning", "memory row remapped, or page retired"},
		{"64", "critical", "remapping a row, or retiring a page, failed"},
		{"74", "critical", "NVLink error"},
		{"79", "critical", "GPU fell off the bus"},
		{"92", "warning", "single-bit ECC errors at a high rate"},
		{"94", "warning", "memory error contained to one application"},
		{"95", "critical", "memory error that was not contained"},
		{"109", "critical", "context switch timed out"},
		{"110", "critical", "security fault"},
		{"119", "critical", "no answer from the GPU's system processor (GSP)"},
		{"120", "critical", "error of the GPU's system processor (GSP)"},
		{"121", "warning", "corrected error on the link to the processor (C2C)"},
		{"136", "critical", "training of a link failed"},
		{"137", "", "illegal access to a peer over NVLink"},
		{"140", "critical", "ECC error that was not recovered"},
		{"143", "critical", "GPU could not be initialized"},
		{"144", "warning", "NVLink: SAW"},
		{"145", "warning", "NVLink: RLW"},
		{"146", "warning", "NVLink: TLW"},
		{"147", "warning", "NVLink: TREX"},
		{"148", "warning", "NVLink: NVLPW_CTRL"},
		{"149", "critical", "NVLink: NETIR, a link went down"},
		{"150", "critical", "NVLink: MSE"},
		{"151", "critical", "key rotation failed (confidential computing)"},
		{"154", "", "recovery action changed, see dra_device_recovery_action"},
		{"155", "critical", "NVLink taken down by software"},
		{"156", "critical", "a resource of the GPU was retired"},
		{"157", "warning", "retiring a resource of the GPU failed"},
		{"158", "critical", "fatal timeout"},
		{"167", "warning", "fatal timeout on PCIe"},
		{"169", "warning", "internal microcontroller (SEC2) halted"},
		{"171", "critical", "uncorrectable error of DRAM, together with Xid 48"},
		{"172", "critical", "uncorrectable error of SRAM, together with Xid 48"},
	}
}

// xidMappings write the meaning beside the code, in the colour of its severity.
func xidMappings() []dashboard.ValueMapping {
	colours := map[string]string{"critical": critical, "warning": warning, "": unknown}
	all := []named{{"other", "other (see the driver's log)", unknown}}
	for _, x := range xids() {
		all = append(all, named{x.code, x.code + ": " + x.meaning, colours[x.severity]})
	}
	return words(all...)
}
