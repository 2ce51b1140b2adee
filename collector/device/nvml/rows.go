//go:build cgo

package nvml

import (
	"math"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/dra-exporter/dra-exporter/collector/device"
)

// row says how one quantity is read. A row that follows another one for the
// same quantity and detail is asked only where that one is not supported.
type row struct {
	quantity device.Quantity
	detail   string
	tier     device.Tier
	symbol   string // the library's function that read calls
	read     func(*probe) (float64, nvml.Return)
	field    field // instead of read
}

// field is a value that nvmlDeviceGetFieldValues gives, several at a time.
type field struct {
	id      uint32
	scale   float64 // to the base unit
	allOf   bool    // the sum over the links, as the library has it
	perLink bool    // the sum over the links, which are asked one by one
}

const fieldValues = "nvmlDeviceGetFieldValues"

// allLinks is the scope of a field value that is summed over the links.
const allLinks = math.MaxUint32

// wholeRows is the table for whole GPUs.
func wholeRows() []row {
	return append(memoryRows(), []row{
		{device.Utilization, "", device.Fast, "nvmlDeviceGetUtilizationRates", utilization, field{}},
		{device.Power, "", device.Fast, "nvmlDeviceGetPowerUsage", power, field{}},
		{device.PowerLimit, "", device.Slow, "nvmlDeviceGetEnforcedPowerLimit", powerLimit, field{}},
		{device.Energy, "", device.Fast, "nvmlDeviceGetTotalEnergyConsumption", energy, field{}},
		{device.Temperature, "gpu", device.Fast, "nvmlDeviceGetTemperature", temperature, field{}},
		{device.Temperature, "memory", device.Fast, fieldValues, nil, field{id: nvml.FI_DEV_MEMORY_TEMP, scale: 1}},
		{device.ClockFrequency, "sm", device.Fast, "nvmlDeviceGetClockInfo", clockOf(nvml.CLOCK_SM), field{}},
		{device.ClockFrequency, "memory", device.Fast, "nvmlDeviceGetClockInfo", clockOf(nvml.CLOCK_MEM), field{}},
		// KiB, up to NVLink 4; then bytes, from NVLink 5 on, link by link.
		{device.NVLinkTransmit, "", device.Fast, fieldValues, nil, field{id: nvml.FI_DEV_NVLINK_THROUGHPUT_DATA_TX, scale: 1024, allOf: true}},
		{device.NVLinkTransmit, "", device.Fast, fieldValues, nil, field{id: nvml.FI_DEV_NVLINK_COUNT_XMIT_BYTES, scale: 1, perLink: true}},
		{device.NVLinkReceive, "", device.Fast, fieldValues, nil, field{id: nvml.FI_DEV_NVLINK_THROUGHPUT_DATA_RX, scale: 1024, allOf: true}},
		{device.NVLinkReceive, "", device.Fast, fieldValues, nil, field{id: nvml.FI_DEV_NVLINK_COUNT_RCV_BYTES, scale: 1, perLink: true}},
	}...)
}

// migRows is the table for MIG devices. They have no utilization, power,
// energy or NVLink of their own, and never their parent's.
func migRows() []row { return memoryRows() }

// memoryRows are what all devices have. The older call counts what the driver
// keeps for itself as used.
func memoryRows() []row {
	const newer, older = "nvmlDeviceGetMemoryInfo_v2", "nvmlDeviceGetMemoryInfo"
	return []row{
		{device.MemoryUsed, "", device.Fast, newer, func(p *probe) (float64, nvml.Return) { return p.memory(used) }, field{}},
		{device.MemoryUsed, "", device.Fast, older, func(p *probe) (float64, nvml.Return) { return p.olderMemory(used) }, field{}},
		{device.MemorySize, "", device.Fast, newer, func(p *probe) (float64, nvml.Return) { return p.memory(size) }, field{}},
		{device.MemorySize, "", device.Fast, older, func(p *probe) (float64, nvml.Return) { return p.olderMemory(size) }, field{}},
		{device.MemoryReserved, "", device.Fast, newer, func(p *probe) (float64, nvml.Return) { return p.memory(reserved) }, field{}},
	}
}

func used(m nvml.Memory_v2) uint64     { return m.Used }
func size(m nvml.Memory_v2) uint64     { return m.Total }
func reserved(m nvml.Memory_v2) uint64 { return m.Reserved }

// utilization is percent of the time in which a kernel ran.
func utilization(p *probe) (float64, nvml.Return) {
	rates, ret := p.device.GetUtilizationRates()
	return float64(rates.Gpu) / 100, ret
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

// clockOf reads a clock, which is in MHz.
func clockOf(clock nvml.ClockType) func(*probe) (float64, nvml.Return) {
	return func(p *probe) (float64, nvml.Return) {
		megahertz, ret := p.device.GetClockInfo(clock)
		return float64(megahertz) * 1e6, ret
	}
}
