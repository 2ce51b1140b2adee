package dcgm

import (
	"slices"

	"github.com/dra-exporter/dra-exporter/collector/device"
)

// row describes how one quantity is read. Of several rows for the same quantity
// and detail, the first that has a value for the device is used as long as the
// source exists, because two of them may count from different origins.
type row struct {
	field       uint16
	quantity    device.Quantity
	detail      string
	tier        device.Tier
	level       entityKind // of the entity that has the value
	conversion  how
	scale       float64  // to the base unit
	most        float64  // of a rate: more is impossible, base units a second
	bit         uint64   // of a mask
	states      []string // by value; "": no reading; a last "other" stands for all further values
	fallbackFor uint16   // a field that counts the same: the row is used only where that has no value
}

// how is how a value is converted to a reading.
type how uint8

const (
	plain     how = iota // a number
	rate                 // a number per second, averaged over the engine's interval: integrated over time
	reasonBit            // a mask: the time is counted in which one bit is set
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
// It leaves out the fields 449 (both directions of the NVLinks in one) and 200,
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

// partitionRows is the table for MIG devices: the quantities of an instance
// itself. For other fields an engine returns the whole GPU's value
// (DcgmCacheManager::SetPracticalEntityInfo). The ratio of time in which the
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

// memoryRows are the memory quantities of whole GPUs and GPU instances. The
// compute instances of a GPU instance share its memory.
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

// engineRows are the activities of the parts of a device. Engines report the
// memory's activity for GPU instances, and the rest for compute instances.
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

// trafficRows are the bytes that a GPU moved: by counters where it has them,
// otherwise by rates of its profiling.
func trafficRows() []row {
	integrated := func(field uint16, q device.Quantity) row {
		return row{field: field, quantity: q, level: wholeGPU, conversion: rate, scale: 1, most: device.Specs()[q].Bounds.Rate}
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

// throttleRows are the times in which clocks were reduced: by the hardware's
// counters, newer ones first, otherwise by sampling the reasons. The reasons:
// power_cap, thermal (the software keeps the GPU below its maximum operating
// temperature; where only thermalViolation counts, the hardware's part as
// well), hw_thermal, hw_power_brake and hw_slowdown (the hardware at least
// halves the clocks; the last, which has no counter, for any cause),
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

// errorRows are the errors and states of a GPU that determine its health. Those
// that can change its health immediately are fast.
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

// profiling reports whether the field uses the GPU's profiling counters.
func (r row) profiling() bool { return r.field >= firstProfiling && r.field <= lastProfiling }

// watched returns the rows that are read: those of profiling only if it is
// enabled.
func watched(rows []row, profiling bool) []row {
	if profiling {
		return rows
	}
	return slices.DeleteFunc(rows, row.profiling)
}
