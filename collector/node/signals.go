package node

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/device"
	"github.com/dra-exporter/dra-exporter/collector/model"
)

// constraint is a property that a device is expected to keep while a claim holds
// it.
type constraint uint8

const (
	constraintTemperature constraint = iota
	constraintPower
	constraintMemory
	constraintLink
	constraintRecovery
	constraints  // how many there are
	noConstraint = constraints
)

func (c constraint) String() string {
	return [...]string{
		constraintTemperature: "temperature", constraintPower: "power", constraintMemory: "memory_error",
		constraintLink: "link", constraintRecovery: "recovery", noConstraint: "",
	}[c]
}

// incidentKind is what happens to a device, for the statistics of incidents. One event
// may be an incident of several kinds.
type incidentKind uint8

const (
	incidentUnhealthy incidentKind = iota // any critical signal
	incidentXIDApplication
	incidentXIDUnclear
	incidentXIDReset
	incidentXIDService
	incidentLost
	incidentECC
	incidentRemap
	incidentLink
	incidentThrottling
	incidentOther
	incidentTaint // by the driver
	incidentKinds // how many there are
	noIncident    = incidentKinds
)

func (k incidentKind) String() string {
	return [...]string{
		incidentUnhealthy: "unhealthy", incidentXIDApplication: "xid_application", incidentXIDUnclear: "xid_unclear",
		incidentXIDReset: "xid_reset", incidentXIDService: "xid_service", incidentLost: "lost", incidentECC: "ecc",
		incidentRemap: "row_remap", incidentLink: "link", incidentThrottling: "throttling", incidentOther: "other",
		incidentTaint: "taint", noIncident: "",
	}[k]
}

// incidentTotal is one of the totals of a kind.
type incidentTotal int

const (
	incidentCount incidentTotal = iota
	incidentWatchedSeconds
	incidentSeconds
	incidentClaims
	incidentTotals
)

// signalID identifies a signal: one of those below, or firstXIDSignal and an
// index into the table of Xids.
type signalID int

const (
	signalLost signalID = iota
	signalRecoveryAction
	signalECC
	signalRemapFailed
	signalRemapPending
	signalNVLink
	signalNetworkLink
	signalFabric
	signalThermal
	signalPowerBrake
	signalDCGMMemory
	signalDCGMLink
	signalDCGMTemperature
	signalDCGMPower
	signalDCGMOther
	signalDriver
	signalParent
	firstXIDSignal
)

// signal is a sign of a problem of a device.
type signal struct {
	name       string
	critical   bool // the device is unhealthy; of DCGM's systems: if the result is fail
	constraint constraint
	incident   incidentKind // unless it is less severe than here
	means      string
}

// signalTable returns every signal, indexed by its id.
func signalTable(xids []xidCode) []signal {
	table := []signal{
		signalLost:            {"lost", true, constraintRecovery, incidentLost, "the driver has lost the device"},
		signalRecoveryAction:  {"recovery_action", true, constraintRecovery, incidentOther, "the recovery action is not none"},
		signalECC:             {"ecc_uncorrected", true, constraintMemory, incidentECC, "the count of uncorrected memory errors grew"},
		signalRemapFailed:     {"row_remap_failed", true, constraintMemory, incidentRemap, "remapping a memory row failed"},
		signalRemapPending:    {"row_remap_pending", false, constraintRecovery, incidentRemap, "a row remapping is pending until the device is reset"},
		signalNVLink:          {"nvlink_down", true, constraintLink, incidentLink, "for more than 6 s, fewer NVLinks are active than before"},
		signalNetworkLink:     {"network_link_down", true, constraintLink, incidentLink, "a port that was active has been down for 60 s with the same holders; a warning while the device is free"},
		signalFabric:          {"fabric_failure", true, constraintLink, incidentLink, "registration with the NVLink fabric failed"},
		signalThermal:         {"thermal_throttling", true, constraintTemperature, incidentThrottling, "too large a share of the last minute in thermal slowdown"},
		signalPowerBrake:      {"power_brake", true, constraintPower, incidentThrottling, "too large a share of the last minute under the hardware's power brake"},
		signalDCGMMemory:      {"dcgm_memory", true, constraintMemory, incidentECC, "DCGM's health watch of memory"},
		signalDCGMLink:        {"dcgm_link", true, constraintLink, incidentLink, "DCGM's health watches of PCIe, NVLink and NVSwitch"},
		signalDCGMTemperature: {"dcgm_thermal", true, constraintTemperature, incidentThrottling, "DCGM's health watch of temperature"},
		signalDCGMPower:       {"dcgm_power", true, constraintPower, incidentThrottling, "DCGM's health watch of power"},
		signalDCGMOther:       {"dcgm_other", true, constraintRecovery, incidentOther, "DCGM's other health watches: SM, InfoROM, driver, microcontrollers"},
		signalDriver:          {"driver", true, constraintRecovery, incidentOther, "a health signal that the driver reports with its device metrics; a warning if it is degraded"},
		signalParent:          {"parent", true, noConstraint, noIncident, "the device that the partition is cut from is unhealthy"},
	}
	for _, x := range xids {
		table = append(table, signal{"xid_" + strconv.Itoa(x.code), x.class.critical(), x.constraint, x.class.incident(), "Xid " + strconv.Itoa(x.code)})
	}
	return table
}

// healthQuantities are the quantities that report a device's health: the health
// of a device that has none of them is not known.
func healthQuantities() []device.Quantity {
	return []device.Quantity{
		device.Lost, device.RecoveryAction, device.ECCErrors, device.RowRemapFailed,
		device.NVLinks, device.FabricState, device.HealthCheck, device.NetworkLinks, device.DriverHealth,
	}
}

// dcgmSignal is the signal of a system that DCGM watches.
func dcgmSignal(system string) signalID {
	switch system {
	case "memory":
		return signalDCGMMemory
	case "pcie", "nvlink", "nvswitch", "nvswitch_fatal", "nvswitch_nonfatal":
		return signalDCGMLink
	case "thermal":
		return signalDCGMTemperature
	case "power":
		return signalDCGMPower
	default:
		return signalDCGMOther
	}
}

// xidClass is the action that an Xid requires, by the column "immediate action" of
// NVIDIA's Xid catalogue
// (https://docs.nvidia.com/deploy/xid-errors/analyzing-xid-catalog.html).
type xidClass uint8

const (
	xidNotice      xidClass = iota // no action; the GPU continues
	xidApplication                 // the application failed, or must be restarted; the GPU continues
	xidUnclear                     // the code alone does not decide, or no action is documented
	xidReset                       // the GPU is unhealthy until it is reset
	xidService                     // the GPU is unhealthy until the machine is restarted or its hardware is repaired
)

func (c xidClass) String() string {
	return [...]string{
		xidNotice: "notice", xidApplication: "application", xidUnclear: "unclear", xidReset: "reset", xidService: "service",
	}[c]
}

// critical reports whether an Xid of the class means that the GPU is unhealthy.
func (c xidClass) critical() bool { return c >= xidReset }

// incident returns the kind of incident that an Xid of the class is.
func (c xidClass) incident() incidentKind {
	return [...]incidentKind{
		xidNotice: noIncident, xidApplication: incidentXIDApplication, xidUnclear: incidentXIDUnclear,
		xidReset: incidentXIDReset, xidService: incidentXIDService,
	}[c]
}

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

// xidTable returns the codes that have a label of their own, in ascending order:
// those that mean an unhealthy GPU, and those that on-call engineers look for.
// The codes that are left out (mostly exceptions of copy and video engines)
// require no more than a restart of the application.
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

// xidsFromZero returns the codes of class service, whose counters are exported from
// 0 at the level default. Those of other codes are exported from their first error
// on, except at the level full.
func xidsFromZero(table []xidCode) []string {
	var codes []string
	for _, x := range table {
		if x.class == xidService {
			codes = append(codes, strconv.Itoa(x.code))
		}
	}
	return codes
}

// findXID returns where a code is in the table, and the length of the table
// for those that it does not have.
func findXID(table []xidCode, code int) int {
	at, ok := slices.BinarySearchFunc(table, code, func(x xidCode, code int) int { return cmp.Compare(x.code, code) })
	if !ok {
		return len(table)
	}
	return at
}

func severity(critical bool) string {
	if critical {
		return "critical"
	}
	return "warning"
}

// xidCounts counts the Xids of a device: one count for each code of the table,
// and a last one for all others.
type xidCounts struct {
	watched  bool         // a source watches the Xids of the device now
	based    bool         // reported is what the source reported last
	reported []device.XID // shared with the source
	source   string       // of reported; need not be the source of the readings
	counts   []xidCount   // empty until the Xids are watched
	shown    []model.XID  // of the counts; nil: outdated
}

// xidCount counts one code, or all the others.
type xidCount struct {
	tally
	last time.Time     // the newest error; zero: none
	at   time.Duration // when that was, in elapsed time; negative before the start of the process
	grew bool          // in this step
}

// apply counts what the source has reported since the step before; zero: there was
// none.
func (x *xidCounts) apply(d *deviceState, table []xidCode, previous, now clock.Instant) {
	for i := range x.counts {
		x.counts[i].grew = false
	}
	x.watched = d.xids != nil
	if !x.watched {
		return
	}
	x.open(table, d.device.IsPartition(), now.Wall)
	known := x.based && x.source == d.xidSource
	earlier := x.reported
	for _, xid := range d.xids {
		var last device.XID
		for len(earlier) > 0 && earlier[0].Code <= xid.Code {
			last, earlier = earlier[0], earlier[1:]
		}
		if last.Code != xid.Code {
			last = device.XID{}
		}
		count, age := uint64(0), xidAge(xid.Last, previous, now)
		switch {
		case known:
			count = xidsSince(last, xid)
		case previous.IsZero():
			count = xid.Count
		case age < now.Since(previous):
			count = 1
		}
		if x.counts[findXID(table, xid.Code)].add(count, xid.Last, age, now) {
			x.shown = nil
		}
	}
	if x.shown == nil {
		x.shown = listXIDs(table, x.counts)
	}
	x.reported, x.source, x.based = d.xids, d.xidSource, true
}

// xidAge returns how long ago an error happened, of which only the wall time is known.
// If the wall clock was set since the step before, the error may be of before that or
// of after it: the shorter time is taken that is not in the future.
func xidAge(last time.Time, previous, now clock.Instant) time.Duration {
	age := now.Wall.Sub(last)
	if previous.IsZero() {
		return max(age, 0)
	}
	forward := now.Wall.Sub(previous.Wall) - now.Since(previous)
	if other := age - forward; age < 0 || other >= 0 && other < age {
		age = other
	}
	return max(age, 0)
}

// xidsSince returns how many errors are new. A count that fell began again; if
// its last error is not newer than the one known before, it is another source's
// count of the same errors.
func xidsSince(previous, current device.XID) uint64 {
	switch {
	case current.Count >= previous.Count:
		return current.Count - previous.Count
	case current.Last.After(previous.Last):
		return current.Count
	default:
		return 0
	}
}

// open creates the counts. Those start at zero that the device may need: for a
// partition, errors of a channel alone, as errors of the whole GPU are never
// reported for its partitions.
func (x *xidCounts) open(table []xidCode, partition bool, now time.Time) {
	if x.counts != nil {
		return
	}
	x.counts = make([]xidCount, len(table)+1)
	for i := range x.counts {
		if i == len(table) || !partition || table[i].channel {
			x.counts[i].open(now)
		}
	}
}

// add counts errors, and reports whether the count or the newest one is another one now.
func (a *xidCount) add(errors uint64, last time.Time, age time.Duration, now clock.Instant) (changed bool) {
	changed = !a.isOpen()
	a.open(now.Wall)
	if at := now.Elapsed - age; a.last.IsZero() || errors > 0 && at >= a.at {
		a.last, a.at, changed = last, at, true
	}
	if errors > 0 {
		a.total += float64(errors)
		a.grew, changed = true, true
	}
	return changed
}

// listXIDs returns how often each code came, and when last.
func listXIDs(table []xidCode, counts []xidCount) []model.XID {
	var list []model.XID
	for i := range counts {
		if !counts[i].isOpen() {
			continue
		}
		code := model.OtherXID
		if i < len(table) {
			code = table[i].code
		}
		list = append(list, model.XID{Code: code, Count: counts[i].model(), Last: counts[i].last})
	}
	return list
}

// xidLabel is a code in the label xid.
func xidLabel(code int) string {
	if code == model.OtherXID {
		return xidOther
	}
	return strconv.Itoa(code)
}
