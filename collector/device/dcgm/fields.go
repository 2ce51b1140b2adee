package dcgm

// The fields that are read, by their numbers (dcgm_fields.h), which never
// change. Beside each is its name since DCGM 4.6 and, where it had another
// one before, that. DCGM 4.7 has base-unit fields beside those of other units
// (1603 and above); both kinds are there, so that no number depends on the release.
const (
	driverVersion = 1  // DCGM_FI_SYSTEM_DRIVER_VERSION, DCGM_FI_DRIVER_VERSION
	gpuName       = 50 // DCGM_FI_DEV_GPU_NAME, DCGM_FI_DEV_NAME
	nvmlIndex     = 52 // DCGM_FI_DEV_NVML_INDEX
	boardSerial   = 53 // DCGM_FI_DEV_BOARD_SERIAL, DCGM_FI_DEV_SERIAL
	gpuUUID       = 54 // DCGM_FI_DEV_GPU_UUID, DCGM_FI_DEV_UUID
	gpuMinor      = 55 // DCGM_FI_DEV_GPU_MINOR_NUMBER, DCGM_FI_DEV_MINOR_NUMBER
	pciBusID      = 57 // DCGM_FI_DEV_PCI_BUS_ID, DCGM_FI_DEV_PCI_BUSID
	migMode       = 67 // DCGM_FI_DEV_MIG_MODE: 1 while it is enabled
	vbiosVersion  = 85 // DCGM_FI_DEV_VBIOS_VERSION

	smClock            = 100 // DCGM_FI_DEV_SM_CLOCK, MHz
	memoryClock        = 101 // DCGM_FI_DEV_MEM_CLOCK, MHz
	clocksEventReasons = 112 // DCGM_FI_DEV_CLOCKS_EVENT_REASONS, DCGM_FI_DEV_CLOCK_THROTTLE_REASONS: bits
	memoryTemperature  = 140 // DCGM_FI_DEV_MEMORY_TEMP_CELSIUS, DCGM_FI_DEV_MEMORY_TEMP
	gpuTemperature     = 150 // DCGM_FI_DEV_GPU_TEMP_CELSIUS, DCGM_FI_DEV_GPU_TEMP
	boardPower         = 155 // DCGM_FI_DEV_BOARD_POWER_WATTS, DCGM_FI_DEV_POWER_USAGE
	totalEnergy        = 156 // DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION, mJ
	enforcedPowerLimit = 164 // DCGM_FI_DEV_BOARD_POWER_LIMIT_ENFORCED_WATTS, DCGM_FI_DEV_ENFORCED_POWER_LIMIT
	fabricStatus       = 170 // DCGM_FI_DEV_FABRIC_MANAGER_STATUS: dcgmFabricManagerStatus_t
	pcieReplays        = 202 // DCGM_FI_DEV_PCIE_REPLAY_TOTAL, DCGM_FI_DEV_PCIE_REPLAY_COUNTER
	gpuUtilization     = 203 // DCGM_FI_DEV_GPU_UTIL, percent; DCGM 4.6 names it DCGM_FI_DEV_GPU_UTIL_RATIO, which is 1613, a ratio, since 4.7
	memoryUtilization  = 204 // DCGM_FI_DEV_MEM_COPY_UTIL, percent
	encoderUtilization = 206 // DCGM_FI_DEV_ENC_UTIL, percent
	decoderUtilization = 207 // DCGM_FI_DEV_DEC_UTIL, percent
	xidError           = 230 // DCGM_FI_DEV_XID_ERROR, DCGM_FI_DEV_XID_ERRORS: the last one

	// Time under violations, nanoseconds.
	powerViolation       = 240 // DCGM_FI_DEV_POWER_VIOLATION
	thermalViolation     = 241 // DCGM_FI_DEV_THERMAL_VIOLATION
	syncBoostViolation   = 242 // DCGM_FI_DEV_SYNC_BOOST_VIOLATION
	boardLimitViolation  = 243 // DCGM_FI_DEV_BOARD_LIMIT_VIOLATION
	lowUtilViolation     = 244 // DCGM_FI_DEV_LOW_UTIL_VIOLATION
	reliabilityViolation = 245 // DCGM_FI_DEV_RELIABILITY_VIOLATION

	// Memory, MiB although the header says MB.
	framebufferTotal    = 250 // DCGM_FI_DEV_FB_TOTAL
	framebufferUsed     = 252 // DCGM_FI_DEV_FB_USED
	framebufferReserved = 253 // DCGM_FI_DEV_FB_RESERVED

	eccCorrected        = 312 // DCGM_FI_DEV_ECC_SBE_AGG_TOTAL
	eccUncorrected      = 313 // DCGM_FI_DEV_ECC_DBE_AGG_TOTAL
	retiredCorrected    = 390 // DCGM_FI_DEV_PAGE_RETIRED_SBE_TOTAL, DCGM_FI_DEV_RETIRED_SBE
	retiredUncorrected  = 391 // DCGM_FI_DEV_PAGE_RETIRED_DBE_TOTAL, DCGM_FI_DEV_RETIRED_DBE
	remappedUncorrected = 393 // DCGM_FI_DEV_ROW_REMAP_UNCORRECTABLE_TOTAL, DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS
	remappedCorrected   = 394 // DCGM_FI_DEV_ROW_REMAP_CORRECTABLE_TOTAL, DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS
	remapFailed         = 395 // DCGM_FI_DEV_ROW_REMAP_FAILED, DCGM_FI_DEV_ROW_REMAP_FAILURE
	remapPending        = 396 // DCGM_FI_DEV_ROW_REMAP_PENDING

	// Sums over the NVLinks.
	nvlinkFlitErrors     = 409  // DCGM_FI_DEV_NVLINK_CRC_FLIT_ERROR_TOTAL, DCGM_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL
	nvlinkDataErrors     = 419  // DCGM_FI_DEV_NVLINK_CRC_DATA_ERROR_TOTAL, DCGM_FI_DEV_NVLINK_CRC_DATA_ERROR_COUNT_TOTAL
	nvlinkReplays        = 429  // DCGM_FI_DEV_NVLINK_REPLAY_ERROR_TOTAL, DCGM_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL
	nvlinkRecoveries     = 439  // DCGM_FI_DEV_NVLINK_RECOVERY_ERROR_TOTAL, DCGM_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL
	nvlinkTransmit       = 1201 // DCGM_FI_DEV_NVLINK_TX_BYTES_TOTAL, DCGM_FI_DEV_NVLINK_COUNT_TX_BYTES: NVLink 5
	nvlinkReceive        = 1203 // DCGM_FI_DEV_NVLINK_RX_BYTES_TOTAL, DCGM_FI_DEV_NVLINK_COUNT_RX_BYTES: NVLink 5
	nvlinkRecoveryEvents = 1213 // DCGM_FI_DEV_NVLINK_RECOVERY_EVENT_TOTAL, DCGM_FI_DEV_NVLINK_COUNT_LINK_RECOVERY_EVENTS: NVLink 5

	// Profiling: ratios, and rates in bytes a second, both averages over the
	// interval at which the engine samples.
	graphicsActive     = 1001 // DCGM_FI_PROF_GR_ENGINE_UTIL_RATIO, DCGM_FI_PROF_GR_ENGINE_ACTIVE
	smActive           = 1002 // DCGM_FI_PROF_SM_UTIL_RATIO, DCGM_FI_PROF_SM_ACTIVE
	smOccupancy        = 1003 // DCGM_FI_PROF_SM_OCCUPANCY_RATIO, DCGM_FI_PROF_SM_OCCUPANCY
	tensorActive       = 1004 // DCGM_FI_PROF_TENSOR_UTIL_RATIO, DCGM_FI_PROF_PIPE_TENSOR_ACTIVE
	dramActive         = 1005 // DCGM_FI_PROF_DRAM_UTIL_RATIO, DCGM_FI_PROF_DRAM_ACTIVE
	fp64Active         = 1006 // DCGM_FI_PROF_FP64_UTIL_RATIO, DCGM_FI_PROF_PIPE_FP64_ACTIVE
	fp32Active         = 1007 // DCGM_FI_PROF_FP32_UTIL_RATIO, DCGM_FI_PROF_PIPE_FP32_ACTIVE
	fp16Active         = 1008 // DCGM_FI_PROF_FP16_UTIL_RATIO, DCGM_FI_PROF_PIPE_FP16_ACTIVE
	pcieTransmitRate   = 1009 // DCGM_FI_PROF_PCIE_TX_BYTES
	pcieReceiveRate    = 1010 // DCGM_FI_PROF_PCIE_RX_BYTES
	nvlinkTransmitRate = 1011 // DCGM_FI_PROF_NVLINK_TX_BYTES
	nvlinkReceiveRate  = 1012 // DCGM_FI_PROF_NVLINK_RX_BYTES

	// Throttled time by reason, nanoseconds.
	softwarePowerCap   = 1420 // DCGM_FI_DEV_CLOCKS_EVENT_REASON_SW_POWER_CAP_NS
	syncBoost          = 1421 // DCGM_FI_DEV_CLOCKS_EVENT_REASON_SYNC_BOOST_NS
	softwareThermal    = 1422 // DCGM_FI_DEV_CLOCKS_EVENT_REASON_SW_THERM_SLOWDOWN_NS
	hardwareThermal    = 1423 // DCGM_FI_DEV_CLOCKS_EVENT_REASON_HW_THERM_SLOWDOWN_NS
	hardwarePowerBrake = 1424 // DCGM_FI_DEV_CLOCKS_EVENT_REASON_HW_POWER_BRAKE_SLOWDOWN_NS

	recoveryAction = 1523 // DCGM_FI_DEV_GPU_RECOVERY_ACTION, DCGM_FI_DEV_GET_GPU_RECOVERY_ACTION: nvmlDeviceGpuRecoveryAction_t
)

// firstProfiling and lastProfiling bound the fields of DCGM's profiling.
const (
	firstProfiling = graphicsActive
	lastProfiling  = 1099
)

// Bits of clocksEventReasons (DCGM_CLOCKS_EVENT_REASON_*).
const (
	reasonSoftwarePowerCap   = 0x04
	reasonHardwareSlowdown   = 0x08
	reasonSyncBoost          = 0x10
	reasonSoftwareThermal    = 0x20
	reasonHardwareThermal    = 0x40
	reasonHardwarePowerBrake = 0x80
)
