package dcgm

import (
	"slices"

	"github.com/dra-exporter/dra-exporter/collector/device"
)

// row says how one quantity is read. Of several rows for the same quantity
// and detail the first that the device answers is used, and for as long as the
// source lives: two of them may count from different origins.
type row struct {
	field       uint16
	quantity    device.Quantity
	detail      string
	tier        device.Tier
	level       entityKind // of the entity that has it of its own
	conversion  how
	scale       float64  // to the base unit
	bit         uint64   // of a mask
	states      []string // by value; empty: says nothing; a last "other" stands for all further ones
	fallbackFor uint16   // a field that says the same in other words: used only where that does not answer
}

// how is what becomes of a value.
type how uint8

const (
	plain     how = iota // a number
	rate                 // a number a second, averaged over the engine's interval: to be integrated over it
	reasonBit            // a mask, of which one bit is time that passes while it is set
	stateSet             // one of several states
)

const (
	percent  = 0.01
	mega     = 1e6
	milli    = 1e-3
	nano     = 1e-9
	mebibyte = 1 << 20
)

// wholeRows is the table for whole GPUs.
//
// Left out are the fields 449 (both directions of the NVLinks in one) and 200,
// 201 (PCIe, which no engine fills any more).
func wholeRows() []row {
	return concat(
		[]row{
			number(gpuUtilization, device.Utilization, "", percent),
			number(memoryUtilization, device.MemoryActivity, "", percent),
			number(encoderUtilization, device.EngineActive, "encoder", percent),
			number(decoderUtilization, device.EngineActive, "decoder", percent),
			number(boardPower, device.Power, "", 1),
			number(enforcedPowerLimit, device.PowerLimit, "", 1).slow(),
			number(totalEnergy, device.Energy, "", milli),
			number(gpuTemperature, device.Temperature, "gpu", 1),
			number(memoryTemperature, device.Temperature, "memory", 1),
			number(smClock, device.ClockFrequency, "sm", mega),
			number(memoryClock, device.ClockFrequency, "memory", mega),
		},
		memoryRows(wholeGPU), engineRows(wholeGPU, wholeGPU), trafficRows(), throttleRows(), errorRows(),
	)
}

// partitionRows is the table for MIG devices: what an instance has of its
// own. Of other fields an engine tells it what the whole GPU has
// (DcgmCacheManager::SetPracticalEntityInfo). The share of time in which the
// graphics engine was active is also the utilization of an instance, which has
// no other.
func partitionRows() []row {
	busy := number(graphicsActive, device.Utilization, "", 1)
	busy.level = computeInstance
	return concat(memoryRows(gpuInstance), engineRows(computeInstance, gpuInstance), []row{busy})
}

func concat(tables ...[]row) (all []row) {
	for _, rows := range tables {
		all = append(all, rows...)
	}
	return all
}

// memoryRows are what whole GPUs and GPU instances have. The compute
// instances that share a GPU instance share its memory.
func memoryRows(level entityKind) []row {
	rows := []row{
		number(framebufferUsed, device.MemoryUsed, "", mebibyte),
		number(framebufferTotal, device.MemorySize, "", mebibyte),
		number(framebufferReserved, device.MemoryReserved, "", mebibyte),
	}
	for i := range rows {
		rows[i].level = level
	}
	return rows
}

// engineRows are how busy the parts of a device are. The memory's activity is
// told of GPU instances, the rest of compute instances.
func engineRows(level, memory entityKind) []row {
	rows := []row{
		number(graphicsActive, device.EngineActive, "graphics", 1),
		number(smActive, device.EngineActive, "sm", 1),
		number(tensorActive, device.EngineActive, "tensor", 1),
		number(fp64Active, device.EngineActive, "fp64", 1),
		number(fp32Active, device.EngineActive, "fp32", 1),
		number(fp16Active, device.EngineActive, "fp16", 1),
		number(smOccupancy, device.SMOccupancy, "", 1),
		number(dramActive, device.EngineActive, "dram", 1),
	}
	for i := range rows {
		rows[i].level = level
		if rows[i].field == dramActive {
			rows[i].level = memory
		}
	}
	return rows
}

// trafficRows are the bytes that a GPU moved: counters where it has them,
// rates of its profiling otherwise.
func trafficRows() []row {
	integrated := func(field uint16, q device.Quantity) row {
		return row{field: field, quantity: q, level: wholeGPU, conversion: rate, scale: 1}
	}
	return []row{
		number(nvlinkTransmit, device.NVLinkTransmit, "", 1),
		integrated(nvlinkTransmitRate, device.NVLinkTransmit),
		number(nvlinkReceive, device.NVLinkReceive, "", 1),
		integrated(nvlinkReceiveRate, device.NVLinkReceive),
		integrated(pcieTransmitRate, device.PCIeTransmit),
		integrated(pcieReceiveRate, device.PCIeReceive),
	}
}

// throttleRows are the times in which something held the clocks back: by the
// hardware's counters, newer ones first, else by looking again and again. The
// reasons: power_cap, thermal (the software keeps the GPU below its highest
// operating temperature; where only thermalViolation counts, the hardware's
// part as well), hw_thermal, hw_power_brake and hw_slowdown (the hardware
// halves the clocks at least; the last, which has no counter, for any cause),
// sync_boost, board_limit, low_utilization, reliability.
func throttleRows() []row {
	counted := func(field uint16, reason string) row {
		return number(field, device.Throttled, reason, nano)
	}
	sampled := func(bit uint64, reason string) row {
		return row{
			field: clocksEventReasons, quantity: device.Throttled, detail: reason,
			level: wholeGPU, conversion: reasonBit, bit: bit,
		}
	}
	sampledThermal := sampled(reasonHardwareThermal, "hw_thermal")
	sampledThermal.fallbackFor = thermalViolation
	return []row{
		counted(softwarePowerCap, "power_cap"),
		counted(powerViolation, "power_cap"),
		sampled(reasonSoftwarePowerCap, "power_cap"),
		counted(softwareThermal, "thermal"),
		counted(thermalViolation, "thermal"),
		sampled(reasonSoftwareThermal, "thermal"),
		counted(hardwareThermal, "hw_thermal"),
		sampledThermal,
		counted(hardwarePowerBrake, "hw_power_brake"),
		sampled(reasonHardwarePowerBrake, "hw_power_brake"),
		sampled(reasonHardwareSlowdown, "hw_slowdown"),
		counted(syncBoost, "sync_boost"),
		counted(syncBoostViolation, "sync_boost"),
		sampled(reasonSyncBoost, "sync_boost"),
		counted(boardLimitViolation, "board_limit"),
		counted(lowUtilViolation, "low_utilization"),
		counted(reliabilityViolation, "reliability"),
	}
}

// errorRows are what speaks of a GPU's health. What a verdict may hang on at
// once is fast.
func errorRows() []row {
	states := func(field uint16, q device.Quantity, names ...string) row {
		return row{field: field, quantity: q, level: wholeGPU, conversion: stateSet, states: names}
	}
	return []row{
		number(eccCorrected, device.ECCErrors, "corrected", 1).slow(),
		number(eccUncorrected, device.ECCErrors, "uncorrected", 1),
		number(remappedCorrected, device.RemappedRows, "corrected", 1).slow(),
		number(remappedUncorrected, device.RemappedRows, "uncorrected", 1).slow(),
		number(remapPending, device.RowRemapPending, "", 1),
		number(remapFailed, device.RowRemapFailed, "", 1),
		number(retiredCorrected, device.RetiredPages, "corrected", 1).slow(),
		number(retiredUncorrected, device.RetiredPages, "uncorrected", 1).slow(),
		number(pcieReplays, device.PCIeReplays, "", 1).slow(),
		number(nvlinkFlitErrors, device.NVLinkErrors, "crc_flit", 1).slow(),
		number(nvlinkDataErrors, device.NVLinkErrors, "crc_data", 1).slow(),
		number(nvlinkReplays, device.NVLinkErrors, "replay", 1).slow(),
		number(nvlinkRecoveries, device.NVLinkErrors, "recovery", 1).slow(),
		number(nvlinkRecoveryEvents, device.NVLinkErrors, "recovery", 1).slow(),
		states(recoveryAction, device.RecoveryAction,
			"none", "gpu_reset", "node_reboot", "drain_p2p", "drain_and_reset", "recover_imex_domain", "other"),
		// 0, 5 and 6 are "not supported", "unrecognized" and "driver too old".
		states(fabricStatus, device.FabricState,
			"", "not_started", "in_progress", "success", "failure").slow(),
	}
}

// number is a row whose value is a number of a whole GPU.
func number(field uint16, q device.Quantity, detail string, scale float64) row {
	return row{field: field, quantity: q, detail: detail, level: wholeGPU, scale: scale}
}

func (r row) slow() row {
	r.tier = device.Slow
	return r
}

// profiling reports whether the field takes the GPU's profiling counters.
func (r row) profiling() bool { return r.field >= firstProfiling && r.field <= lastProfiling }

// watched are the rows that are read: those of profiling only when asked for.
func watched(rows []row, profiling bool) []row {
	if profiling {
		return rows
	}
	return slices.DeleteFunc(rows, row.profiling)
}
