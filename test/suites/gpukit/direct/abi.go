package direct

import (
	"encoding/binary"
	"math"
)

// The structures of nvml.h, with the padding of a 64-bit ABI. Those with a
// version have it in their first field: the size in the lower 24 bits, and the
// number in the upper 8. The two of GPM have the number alone.

const (
	memoryVersion     = sizeOfMemoryV2 | 2<<24 // nvmlMemory_v2
	gpmSupportVersion = 1                      // NVML_GPM_SUPPORT_VERSION
	gpmMetricsVersion = 1                      // NVML_GPM_METRICS_GET_VERSION
)

// Sizes in bytes, by gcc's sizeof over nvml.h of 13.0.
const (
	sizeOfMemory        = 24
	sizeOfMemoryV2      = 40
	sizeOfBAR1Memory    = 24
	sizeOfUtilization   = 8
	sizeOfPCIInfo       = 68
	sizeOfFieldValue    = 40
	sizeOfProcessInfo   = 24
	sizeOfProcessSample = 32
	sizeOfGPMMetric     = 40
	sizeOfGPMMetrics    = 13344
	sizeOfGPMSupport    = 8
)

type memoryV1 struct { // nvmlMemory_t
	total, free, used uint64
}

type memoryV2 struct { // nvmlMemory_v2_t
	version                     uint32
	_                           uint32
	total, reserved, free, used uint64
}

type bar1Memory struct { // nvmlBAR1Memory_t
	total, free, used uint64
}

type utilizationRates struct { // nvmlUtilization_t
	gpu, memory uint32 // percent
}

type pciInfo struct { // nvmlPciInfo_t
	_     [16]byte  // busIdLegacy
	_     [5]uint32 // domain, bus, device, pciDeviceId, pciSubSystemId
	busID [32]byte
}

type fieldValue struct { // nvmlFieldValue_t
	id        uint32
	_         uint32   // scopeId: 0, the GPU as a whole
	_         [2]int64 // timestamp, latencyUsec
	valueType uint32
	code      int32
	value     [8]byte // a union
}

type processInfo struct { // nvmlProcessInfo_t
	pid    uint32
	_      uint32
	memory uint64
	_      [2]uint32 // gpuInstanceId, computeInstanceId
}

type processSample struct { // nvmlProcessUtilizationSample_t
	pid                          uint32
	_                            uint32
	timestamp                    uint64 // microseconds
	sm, memory, encoder, decoder uint32 // percent
}

type gpmMetric struct { // nvmlGpmMetric_t
	id    uint32
	code  int32
	value float64
	_     [3]uintptr // metricInfo: texts of the library
}

const maxGPMMetrics = 333 // NVML_GPM_METRIC_MAX; older libraries have fewer, and read only count

type gpmMetrics struct { // nvmlGpmMetricsGet_t
	version, count   uint32
	sample1, sample2 uintptr
	metrics          [maxGPMMetrics]gpmMetric
}

type gpmSupport struct { // nvmlGpmSupport_t
	version, supported uint32
}

// Numbers of enumerations.
const (
	clockGraphics, clockSM, clockMemory, clockVideo = 0, 1, 2, 3 // nvmlClockType_t
	temperatureGPU                                  = 0          // nvmlTemperatureSensors_t
	errorCorrected, errorUncorrected                = 0, 1       // nvmlMemoryErrorType_t
	eccVolatile, eccAggregate                       = 0, 1       // nvmlEccCounterType_t
	pcieTransmit, pcieReceive                       = 0, 1       // nvmlPcieUtilCounter_t
)

// Ids of field values.
const (
	fieldECCCorrectedVolatile    = 3
	fieldECCUncorrectedVolatile  = 4
	fieldECCCorrectedAggregate   = 5
	fieldECCUncorrectedAggregate = 6
	fieldMemoryTemperature       = 82 // degrees Celsius
	fieldPCIeReplays             = 94
	fieldRemappedCorrected       = 142
	fieldRemappedUncorrected     = 143
	fieldRemappedPending         = 144
	fieldRemappedFailure         = 145
	fieldPowerInstant            = 186 // milliwatts
	fieldPCIeTransmitBytes       = 197 // wraps at 2^32
	fieldPCIeReceiveBytes        = 198
)

// Throttle is a reason for which clocks are lowered: the id of the field that
// counts for how many nanoseconds.
type Throttle struct {
	Name  string
	field uint32
}

// Throttles are the reasons whose time some drivers count.
func Throttles() []Throttle {
	return []Throttle{
		{"sw_power_cap", 74},
		{"perf_policy_thermal", 75},
		{"sync_boost", 76},
		{"board_limit", 77},
		{"low_utilization", 78},
		{"reliability", 79},
		{"sw_thermal_slowdown", 269},
		{"hw_thermal_slowdown", 270},
		{"hw_power_brake_slowdown", 271},
	}
}

// GPMMetric is a metric of GPM. Percentages become ratios, and MiB per second
// bytes per second.
type GPMMetric struct {
	Name string
	id   uint32
	per  float64 // units in a base unit
}

// GPMMetrics are the metrics that are read.
func GPMMetrics() []GPMMetric {
	const percent, mebibytes = 100, 1.0 / (1 << 20)
	return []GPMMetric{
		{"graphics", 1, percent},
		{"sm", 2, percent},
		{"sm_occupancy", 3, percent},
		{"integer", 4, percent},
		{"tensor", 5, percent},
		{"dram", 10, percent},
		{"fp64", 11, percent},
		{"fp32", 12, percent},
		{"fp16", 13, percent},
		{"pcie_transmit", 20, mebibytes},
		{"pcie_receive", 21, mebibytes},
	}
}

// Return codes of nvmlReturn_t.
const (
	success          = 0
	insufficientSize = 7
)

// absent reports whether a return code means that a device or its driver does
// not have a quantity. Drivers call a field that they do not know an invalid
// argument, and refuse a MIG device likewise.
func absent(code int32) bool {
	switch code {
	case 2, // NVML_ERROR_INVALID_ARGUMENT
		3,  // NVML_ERROR_NOT_SUPPORTED
		6,  // NVML_ERROR_NOT_FOUND
		13, // NVML_ERROR_FUNCTION_NOT_FOUND
		21, // NVML_ERROR_NO_DATA
		22, // NVML_ERROR_VGPU_ECC_NOT_SUPPORTED
		25, // NVML_ERROR_ARGUMENT_VERSION_MISMATCH
		26: // NVML_ERROR_DEPRECATED
		return true
	}
	return false
}

// number is the value of a field, by its type of nvmlValueType_t; nil for a type
// that is not known.
func (f *fieldValue) number() *float64 {
	long, short := binary.NativeEndian.Uint64(f.value[:]), binary.NativeEndian.Uint32(f.value[:])
	switch f.valueType {
	case 0: // double
		return finite(math.Float64frombits(long))
	case 1: // unsigned int
		return finite(float64(short))
	case 2, 3: // unsigned long, unsigned long long
		return finite(float64(long))
	case 4: // signed long long
		return finite(float64(int64(long)))
	case 5: // signed int
		return finite(float64(int32(short)))
	case 6: // unsigned short
		return finite(float64(binary.NativeEndian.Uint16(f.value[:])))
	}
	return nil
}

// text is a C string in a buffer, as valid UTF-8.
func text(buffer []byte) string {
	for i, b := range buffer {
		if b == 0 {
			return valid(buffer[:i])
		}
	}
	return valid(buffer)
}
