package node

import (
	"slices"
	"strconv"
	"strings"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/device"
)

// A constraint is what a device is expected to keep while a claim holds it.
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

// signalID names a signal: one of those below, or firstXIDSignal and an
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
	signalParent
	firstXIDSignal
)

// A signal speaks against a device's health.
type signal struct {
	name       string
	critical   bool // it makes the hardware's verdict; of DCGM's systems: if the result is fail
	constraint constraint
	means      string
}

// signalTable is every signal, indexed by its id.
func signalTable(xids []xidCode) []signal {
	table := []signal{
		signalLost:            {"lost", true, constraintRecovery, "the driver has lost the device"},
		signalRecoveryAction:  {"recovery_action", true, constraintRecovery, "the recovery action is not none"},
		signalECC:             {"ecc_uncorrected", true, constraintMemory, "the count of uncorrected memory errors grew"},
		signalRemapFailed:     {"row_remap_failed", true, constraintMemory, "remapping a memory row failed"},
		signalRemapPending:    {"row_remap_pending", false, constraintRecovery, "a row remapping is pending until the device is reset"},
		signalNVLink:          {"nvlink_down", true, constraintLink, "for more than 6 s, fewer NVLinks are active than before"},
		signalNetworkLink:     {"network_link_down", true, constraintLink, "a port that was active has been down for 60 s with the same holders; a warning while the device is free"},
		signalFabric:          {"fabric_failure", true, constraintLink, "registration with the NVLink fabric failed"},
		signalThermal:         {"thermal_throttling", true, constraintTemperature, "too large a share of the last minute in thermal slowdown"},
		signalPowerBrake:      {"power_brake", true, constraintPower, "too large a share of the last minute under the hardware's power brake"},
		signalDCGMMemory:      {"dcgm_memory", true, constraintMemory, "DCGM's health watch of memory"},
		signalDCGMLink:        {"dcgm_link", true, constraintLink, "DCGM's health watches of PCIe, NVLink and NVSwitch"},
		signalDCGMTemperature: {"dcgm_thermal", true, constraintTemperature, "DCGM's health watch of temperature"},
		signalDCGMPower:       {"dcgm_power", true, constraintPower, "DCGM's health watch of power"},
		signalDCGMOther:       {"dcgm_other", true, constraintRecovery, "DCGM's other health watches: SM, InfoROM, driver, microcontrollers"},
		signalParent:          {"parent", true, noConstraint, "the device that the partition is cut from is unhealthy"},
	}
	for _, x := range xids {
		table = append(table, signal{"xid_" + strconv.Itoa(x.code), x.class.critical(), x.constraint, "Xid " + strconv.Itoa(x.code)})
	}
	return table
}

// testimony is the quantities that speak of a device's health: who has none
// of them is neither well nor sick.
func testimony() []device.Quantity {
	return []device.Quantity{
		device.Lost, device.RecoveryAction, device.ECCErrors, device.RowRemapFailed,
		device.NVLinks, device.FabricState, device.HealthCheck, device.NetworkLinks,
	}
}

// examine raises the signals that the readings of the unit give: a state for
// as long as it lasts, and what grew or has been missing for a while.
func (u *deviceState) examine(config Config, now clock.Instant) {
	u.examineStates(now)
	h := &u.health
	raise := func(id signalID, critical, present bool) {
		if present {
			h.raise(id, critical, now)
		}
	}
	if u.newer {
		raise(signalECC, true, h.ecc.grew(u.uncorrected()))
		h.watchLinks(u, config.Staleness())
		h.watchThrottling(u, config.Staleness())
	}
	raise(signalNVLink, true, h.links.missed(u.at))
	raise(signalNetworkLink, u.isHeld(), h.ports.missed(u.at))
	if config.ThrottleRatio > 0 {
		raise(signalThermal, true, h.thermal.share() > config.ThrottleRatio)
		raise(signalPowerBrake, true, h.brake.share() > config.ThrottleRatio)
	}
}

// examineStates raises the signals that a single read gives.
func (u *deviceState) examineStates(now clock.Instant) {
	h := &u.health
	raise := func(q device.Quantity, id signalID, critical, present bool) {
		if present {
			r := h.raise(id, critical, now)
			r.inherited = r.inherited || h.judged&(1<<q) == 0
		}
	}
	asks, _ := u.recovery()
	raise(device.Lost, signalLost, true, u.positive(device.Lost))
	raise(device.RecoveryAction, signalRecoveryAction, true, asks)
	raise(device.RowRemapFailed, signalRemapFailed, true, u.positive(device.RowRemapFailed))
	raise(device.RowRemapPending, signalRemapPending, false, u.positive(device.RowRemapPending))
	raise(device.FabricState, signalFabric, true, u.fabricFailed())
	for _, reading := range u.of(device.HealthCheck) {
		result := reading.Details[1]
		raise(device.HealthCheck, dcgmSignal(reading.Details[0]), result == "fail", reading.Value > 0 && (result == "fail" || result == "warn"))
	}
	for _, reading := range u.readings {
		h.judged |= 1 << reading.Quantity
	}
}

func (u *deviceState) positive(q device.Quantity) bool {
	value, known := u.reading(q)
	return known && value > 0
}

// recovery reports whether the hardware asks for a recovery action, and
// whether it tells.
func (u *deviceState) recovery() (asks, told bool) {
	for _, r := range u.of(device.RecoveryAction) {
		if r.Value > 0 {
			return r.Details[0] != "none", true
		}
	}
	return false, false
}

// waitsForRecovery reports whether the hardware needs a reset, or more, before
// what happened to it is over. It says so itself; where it does not tell, a
// remapped row that waits for a reset is taken for the same.
func (u *deviceState) waitsForRecovery() bool {
	asks, told := u.recovery()
	return asks || !told && u.positive(device.RowRemapPending)
}

func (u *deviceState) fabricFailed() bool {
	return slices.ContainsFunc(u.of(device.FabricState), func(r device.Reading) bool { return r.Value > 0 && r.Details[0] == "failure" })
}

// uncorrected is the count of uncorrected memory errors.
func (u *deviceState) uncorrected() (count float64, known bool) {
	for _, reading := range u.of(device.ECCErrors) {
		if reading.Details[0] == "uncorrected" {
			return reading.Value, true
		}
	}
	return 0, false
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

// thermal and powerBrake tell apart the reasons of throttled time. That the
// software keeps to a power limit is how devices work, and no fault.
func thermal(reason string) bool    { return strings.Contains(reason, "thermal") }
func powerBrake(reason string) bool { return strings.Contains(reason, "power_brake") }
