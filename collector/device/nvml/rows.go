//go:build cgo

package nvml

import (
	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/dra-exporter/dra-exporter/collector/device"
)

// wholeRows is the table for whole GPUs. It includes single links only if
// requested.
func wholeRows(links bool) []row {
	rows := append(memoryRows(), []row{
		functionRow(device.Utilization, "", device.Fast, "nvmlDeviceGetUtilizationRates", utilization),
		functionRow(device.MemoryActivity, "", device.Fast, "nvmlDeviceGetUtilizationRates", memoryActivity),
		functionRow(device.Power, "", device.Fast, "nvmlDeviceGetPowerUsage", power),
		functionRow(device.PowerLimit, "", device.Slow, "nvmlDeviceGetEnforcedPowerLimit", powerLimit),
		functionRow(device.Energy, "", device.Fast, "nvmlDeviceGetTotalEnergyConsumption", energy),
		functionRow(device.Temperature, "gpu", device.Fast, "nvmlDeviceGetTemperature", temperature),
		fieldRow(device.Temperature, "memory", device.Fast, field{id: nvml.FI_DEV_MEMORY_TEMP, scale: 1}),
		functionRow(device.ClockFrequency, "sm", device.Fast, "nvmlDeviceGetClockInfo", readClock(nvml.CLOCK_SM)),
		functionRow(device.ClockFrequency, "memory", device.Fast, "nvmlDeviceGetClockInfo", readClock(nvml.CLOCK_MEM)),
		// Bytes. The library says that the counters can wrap: they have 32 bits. A
		// fast link could wrap them twice between two reads, so that the value is
		// a lower bound.
		fieldRow(device.PCIeTransmit, "", device.Fast, field{id: nvml.FI_DEV_PCIE_COUNT_TX_BYTES, scale: 1, wraps: true}),
		fieldRow(device.PCIeReceive, "", device.Fast, field{id: nvml.FI_DEV_PCIE_COUNT_RX_BYTES, scale: 1, wraps: true}),
	}...)
	rows = append(rows, nvlinkRows()...)
	if links {
		rows = append(rows, linkRows()...)
	}
	rows = append(rows, throttleRows()...)
	return append(rows, healthRows()...)
}

// migRows is the table for MIG devices. They have no power, energy or NVLink
// of their own, and never their parent's. What else is measured of them is
// their engines' activity, and by it their utilization.
func migRows() []row { return memoryRows() }

// memoryRows are what all devices have. The older call counts what the driver
// keeps for itself as used.
func memoryRows() []row {
	const newer, older = "nvmlDeviceGetMemoryInfo_v2", "nvmlDeviceGetMemoryInfo"
	return []row{
		functionRow(device.MemoryUsed, "", device.Fast, newer, func(p *probe) (float64, nvml.Return) { return p.newerMemory(used) }),
		functionRow(device.MemoryUsed, "", device.Fast, older, func(p *probe) (float64, nvml.Return) { return p.olderMemory(used) }),
		functionRow(device.MemorySize, "", device.Fast, newer, func(p *probe) (float64, nvml.Return) { return p.newerMemory(size) }),
		functionRow(device.MemorySize, "", device.Fast, older, func(p *probe) (float64, nvml.Return) { return p.olderMemory(size) }),
		functionRow(device.MemoryReserved, "", device.Fast, newer, func(p *probe) (float64, nvml.Return) { return p.newerMemory(reserved) }),
	}
}

func used(m nvml.Memory_v2) uint64 { return m.Used }

func size(m nvml.Memory_v2) uint64 { return m.Total }

func reserved(m nvml.Memory_v2) uint64 { return m.Reserved }

// utilization is percent of the time in which a kernel ran.
func utilization(p *probe) (float64, nvml.Return) {
	rates, ret := p.rates.get(p.device.GetUtilizationRates)
	return float64(rates.Gpu) / 100, ret
}

// memoryActivity is percent of the time in which device memory was read or written.
func memoryActivity(p *probe) (float64, nvml.Return) {
	rates, ret := p.rates.get(p.device.GetUtilizationRates)
	return float64(rates.Memory) / 100, ret
}

// power is in milliwatts, as is its limit.
func power(p *probe) (float64, nvml.Return) {
	milliwatts, ret := p.device.GetPowerUsage()
	return float64(milliwatts) / 1000, ret
}

func powerLimit(p *probe) (float64, nvml.Return) {
	milliwatts, ret := p.device.GetEnforcedPowerLimit()
	return float64(milliwatts) / 1000, ret
}

// energy is in millijoules since the driver was loaded.
func energy(p *probe) (float64, nvml.Return) {
	millijoules, ret := p.device.GetTotalEnergyConsumption()
	return float64(millijoules) / 1000, ret
}

func temperature(p *probe) (float64, nvml.Return) {
	celsius, ret := p.device.GetTemperature(nvml.TEMPERATURE_GPU)
	return float64(celsius), ret
}

// readClock reads a clock, which is in MHz.
func readClock(clock nvml.ClockType) func(*probe) (float64, nvml.Return) {
	return func(p *probe) (float64, nvml.Return) {
		megahertz, ret := p.device.GetClockInfo(clock)
		return float64(megahertz) * 1e6, ret
	}
}

// Reasons why a GPU is slowed down, for which the binding has no names: the
// constants nvmlClocksThrottleReason… of nvml.h.
const (
	hwSlowdown        = 0x08
	hwThermalSlowdown = 0x40
	hwPowerBrake      = 0x80
)

// throttleRows are the reasons why a GPU slows itself down. If it counts for how
// long, its field is read, in nanoseconds; if not, the reasons at each read are
// added up.
//
// The reasons are closed: power_cap, thermal (the software keeps the GPU below
// its highest operating temperature), hw_thermal, hw_power_brake and
// hw_slowdown (the hardware halves the clocks at least: because it is too hot,
// because the supply asserts a brake, for any of the two or a fast trip of the
// power; the last has no counter), sync_boost, board_limit, reliability,
// low_utilization.
func throttleRows() []row {
	return []row{
		throttled("power_cap", nvml.FI_DEV_CLOCKS_EVENT_REASON_SW_POWER_CAP),
		throttledNow("power_cap", nvml.ClocksEventReasonSwPowerCap),
		throttled("thermal", nvml.FI_DEV_CLOCKS_EVENT_REASON_SW_THERM_SLOWDOWN),
		throttled("thermal", nvml.FI_DEV_PERF_POLICY_THERMAL),
		throttledNow("thermal", nvml.ClocksEventReasonSwThermalSlowdown),
		throttled("hw_thermal", nvml.FI_DEV_CLOCKS_EVENT_REASON_HW_THERM_SLOWDOWN),
		throttledNow("hw_thermal", hwThermalSlowdown),
		throttled("hw_power_brake", nvml.FI_DEV_CLOCKS_EVENT_REASON_HW_POWER_BRAKE_SLOWDOWN),
		throttledNow("hw_power_brake", hwPowerBrake),
		throttledNow("hw_slowdown", hwSlowdown),
		throttled("sync_boost", nvml.FI_DEV_CLOCKS_EVENT_REASON_SYNC_BOOST),
		throttledNow("sync_boost", nvml.ClocksEventReasonSyncBoost),
		throttled("board_limit", nvml.FI_DEV_PERF_POLICY_BOARD_LIMIT),
		throttled("reliability", nvml.FI_DEV_PERF_POLICY_RELIABILITY),
		throttled("low_utilization", nvml.FI_DEV_PERF_POLICY_LOW_UTILIZATION),
	}
}

func throttled(reason string, id uint32) row {
	return fieldRow(device.Throttled, reason, device.Fast, field{id: id, scale: 1e-9})
}

func throttledNow(reason string, bit uint64) row {
	return functionRow(device.Throttled, reason, device.Fast, currentReasons, func(p *probe) (float64, nvml.Return) {
		return p.throttledFor(bit)
	})
}

const (
	currentReasons   = "nvmlDeviceGetCurrentClocksEventReasons"
	supportedReasons = "nvmlDeviceGetSupportedClocksEventReasons"
)

// throttledFor is for how long the GPU has been seen slowed down for a
// reason, in seconds since it was first read.
func (p *probe) throttledFor(reason uint64) (float64, nvml.Return) {
	if p.has.has(supportedReasons) {
		all, ret := p.supported.get(p.device.GetSupportedClocksEventReasons)
		if ret == nvml.SUCCESS && all&reason == 0 {
			return 0, nvml.ERROR_NOT_SUPPORTED
		}
	}
	now, ret := p.reasons.get(func() (uint64, nvml.Return) {
		now, ret := p.device.GetCurrentClocksEventReasons()
		if ret == nvml.SUCCESS && now <= knownReasons {
			p.history.throttle.observe(now, p.now)
		}
		return now, ret
	})
	if now > knownReasons {
		return device.Implausible(), ret
	}
	return p.history.throttle.seconds[reason], ret
}

// healthRows are the health of a GPU. Signs that a GPU should not be used any
// more are read fast, so that it shows within seconds: as field
// values, all of them cost one call.
func healthRows() []row {
	const eccErrors, remappedRows = "nvmlDeviceGetTotalEccErrors", "nvmlDeviceGetRemappedRows"
	return []row{
		// Over the GPU's lifetime: the counts since the driver was loaded are others.
		fieldRow(device.ECCErrors, "uncorrected", device.Fast, field{id: nvml.FI_DEV_ECC_DBE_AGG_TOTAL, scale: 1}),
		functionRow(device.ECCErrors, "uncorrected", device.Fast, eccErrors, memoryErrors(nvml.MEMORY_ERROR_TYPE_UNCORRECTED)),
		fieldRow(device.ECCErrors, "corrected", device.Slow, field{id: nvml.FI_DEV_ECC_SBE_AGG_TOTAL, scale: 1}),
		functionRow(device.ECCErrors, "corrected", device.Slow, eccErrors, memoryErrors(nvml.MEMORY_ERROR_TYPE_CORRECTED)),
		// From Ampere on rows are remapped; before, pages were retired.
		fieldRow(device.RemappedRows, "corrected", device.Slow, field{id: nvml.FI_DEV_REMAPPED_COR, scale: 1}),
		functionRow(device.RemappedRows, "corrected", device.Slow, remappedRows, readRemapped(func(r remapped) float64 { return r.corrected })),
		fieldRow(device.RemappedRows, "uncorrected", device.Slow, field{id: nvml.FI_DEV_REMAPPED_UNC, scale: 1}),
		functionRow(device.RemappedRows, "uncorrected", device.Slow, remappedRows, readRemapped(func(r remapped) float64 { return r.uncorrected })),
		fieldRow(device.RowRemapPending, "", device.Fast, field{id: nvml.FI_DEV_REMAPPED_PENDING, scale: 1}),
		functionRow(device.RowRemapPending, "", device.Fast, remappedRows, readRemapped(func(r remapped) float64 { return r.pending })),
		fieldRow(device.RowRemapFailed, "", device.Fast, field{id: nvml.FI_DEV_REMAPPED_FAILURE, scale: 1}),
		functionRow(device.RowRemapFailed, "", device.Fast, remappedRows, readRemapped(func(r remapped) float64 { return r.failed })),
		fieldRow(device.RetiredPages, "corrected", device.Slow, field{id: nvml.FI_DEV_RETIRED_SBE, scale: 1}),
		fieldRow(device.RetiredPages, "uncorrected", device.Slow, field{id: nvml.FI_DEV_RETIRED_DBE, scale: 1}),
		fieldRow(device.PCIeReplays, "", device.Slow, field{id: nvml.FI_DEV_PCIE_REPLAY_COUNTER, scale: 1}),
		functionRow(device.PCIeReplays, "", device.Slow, "nvmlDeviceGetPcieReplayCounter", pcieReplays),
		stateSet(fieldRow(device.RecoveryAction, "", device.Fast, field{id: nvml.FI_DEV_GET_GPU_RECOVERY_ACTION, scale: 1}),
			"none", "gpu_reset", "node_reboot", "drain_p2p", "drain_and_reset", "recover_imex_domain", "other"),
		stateSet(functionRow(device.FabricState, "", device.Slow, fabricInfo, fabric),
			"not_started", "in_progress", "success", "failure"),
	}
}

// mostStates is the largest number that may stand for a state, known or not.
const mostStates = 255

// stateSet makes a row a state set: its value is the index of the present state.
// The last state is used for all other values.
func stateSet(r row, words ...string) row {
	single := r
	r.readAll = func(p *probe, readings []device.Reading) ([]device.Reading, nvml.Return) {
		value, ret := p.rowValue(single)
		if ret != nvml.SUCCESS {
			return readings, ret
		}
		present := len(words) - 1
		if value < 0 || value > mostStates {
			return append(readings, device.Reading{Quantity: single.quantity, Details: [2]string{words[present]}, Value: device.Implausible()}), ret
		}
		if value < float64(present) {
			present = int(value)
		}
		for i, word := range words {
			readings = append(readings, device.Reading{
				Quantity: single.quantity, Details: [2]string{word}, Value: boolValue(i == present),
			})
		}
		return readings, ret
	}
	return r
}

// memoryErrors counts the errors of a kind over the GPU's lifetime.
func memoryErrors(kind nvml.MemoryErrorType) func(*probe) (float64, nvml.Return) {
	return func(p *probe) (float64, nvml.Return) {
		count, ret := p.device.GetTotalEccErrors(kind, nvml.AGGREGATE_ECC)
		return float64(count), ret
	}
}

func readRemapped(field func(remapped) float64) func(*probe) (float64, nvml.Return) {
	return func(p *probe) (float64, nvml.Return) {
		rows, ret := p.rows.get(func() (remapped, nvml.Return) {
			corrected, uncorrected, pending, failed, ret := p.device.GetRemappedRows()
			return remapped{float64(corrected), float64(uncorrected), boolValue(pending), boolValue(failed)}, ret
		})
		return field(rows), ret
	}
}

func boolValue(value bool) float64 {
	if value {
		return 1
	}
	return 0
}

func pcieReplays(p *probe) (float64, nvml.Return) {
	count, ret := p.device.GetPcieReplayCounter()
	return float64(count), ret
}

// fabric is how far the GPU is registered with the NVLink fabric: not started,
// in progress, done, failed. A GPU without a fabric has no such state. The
// call's successor reports no more about it.
func fabric(p *probe) (float64, nvml.Return) {
	info, ret := p.device.GetGpuFabricInfo()
	if ret != nvml.SUCCESS {
		return 0, ret
	}
	switch info.State {
	case nvml.GPU_FABRIC_STATE_NOT_STARTED:
		return 0, ret
	case nvml.GPU_FABRIC_STATE_IN_PROGRESS:
		return 1, ret
	case nvml.GPU_FABRIC_STATE_COMPLETED:
		if nvml.Return(info.Status) == nvml.SUCCESS {
			return 2, ret
		}
		return 3, ret
	default:
		return 0, nvml.ERROR_NOT_SUPPORTED
	}
}
