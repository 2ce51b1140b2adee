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
	after    string // another detail, which an earlier row has: this one is asked only where that is not supported
	tier     device.Tier
	symbol   string // the library's function that read calls
	read     func(*probe) (float64, nvml.Return)
	field    field // instead of read

	// tell appends several readings, where there is not the one that read or
	// field gives.
	tell func(*probe, []device.Reading) ([]device.Reading, nvml.Return)
}

// field is a value that nvmlDeviceGetFieldValues gives, several at a time.
type field struct {
	id      uint32
	scale   float64 // to the base unit
	allOf   bool    // the sum over the links, as the library has it
	perLink bool    // asked link by link; the value is the sum
	wraps   bool    // a counter that begins anew where its width ends
}

const fieldValues = "nvmlDeviceGetFieldValues"

// allLinks is the scope of a field value that is summed over the links.
const allLinks = math.MaxUint32

// called is a row that a function of its own answers.
func called(q device.Quantity, detail string, tier device.Tier, symbol string, read func(*probe) (float64, nvml.Return)) row {
	return row{quantity: q, detail: detail, tier: tier, symbol: symbol, read: read}
}

// valued is a row that a field value answers.
func valued(q device.Quantity, detail string, tier device.Tier, f field) row {
	return row{quantity: q, detail: detail, tier: tier, symbol: fieldValues, field: f}
}

// wholeRows is the table for whole GPUs; the links by themselves are in it
// only where they are asked for.
func wholeRows(links bool) []row {
	rows := append(memoryRows(), []row{
		called(device.Utilization, "", device.Fast, "nvmlDeviceGetUtilizationRates", utilization),
		called(device.MemoryActivity, "", device.Fast, "nvmlDeviceGetUtilizationRates", memoryActivity),
		called(device.Power, "", device.Fast, "nvmlDeviceGetPowerUsage", power),
		called(device.PowerLimit, "", device.Slow, "nvmlDeviceGetEnforcedPowerLimit", powerLimit),
		called(device.Energy, "", device.Fast, "nvmlDeviceGetTotalEnergyConsumption", energy),
		called(device.Temperature, "gpu", device.Fast, "nvmlDeviceGetTemperature", temperature),
		valued(device.Temperature, "memory", device.Fast, field{id: nvml.FI_DEV_MEMORY_TEMP, scale: 1}),
		called(device.ClockFrequency, "sm", device.Fast, "nvmlDeviceGetClockInfo", clockOf(nvml.CLOCK_SM)),
		called(device.ClockFrequency, "memory", device.Fast, "nvmlDeviceGetClockInfo", clockOf(nvml.CLOCK_MEM)),
		// Bytes. The library says that the counters can wrap: what is seen of
		// them is 32 bits wide. They are told though a fast link could wrap
		// them twice between two reads, as the least that went over it.
		valued(device.PCIeTransmit, "", device.Fast, field{id: nvml.FI_DEV_PCIE_COUNT_TX_BYTES, scale: 1, wraps: true}),
		valued(device.PCIeReceive, "", device.Fast, field{id: nvml.FI_DEV_PCIE_COUNT_RX_BYTES, scale: 1, wraps: true}),
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
		called(device.MemoryUsed, "", device.Fast, newer, func(p *probe) (float64, nvml.Return) { return p.newerMemory(used) }),
		called(device.MemoryUsed, "", device.Fast, older, func(p *probe) (float64, nvml.Return) { return p.olderMemory(used) }),
		called(device.MemorySize, "", device.Fast, newer, func(p *probe) (float64, nvml.Return) { return p.newerMemory(size) }),
		called(device.MemorySize, "", device.Fast, older, func(p *probe) (float64, nvml.Return) { return p.olderMemory(size) }),
		called(device.MemoryReserved, "", device.Fast, newer, func(p *probe) (float64, nvml.Return) { return p.newerMemory(reserved) }),
	}
}

func used(m nvml.Memory_v2) uint64     { return m.Used }
func size(m nvml.Memory_v2) uint64     { return m.Total }
func reserved(m nvml.Memory_v2) uint64 { return m.Reserved }

// utilization is percent of the time in which a kernel ran.
func utilization(p *probe) (float64, nvml.Return) {
	rates, ret := p.rates.once(p.device.GetUtilizationRates)
	return float64(rates.Gpu) / 100, ret
}

// memoryActivity is percent of the time in which device memory was read or written.
func memoryActivity(p *probe) (float64, nvml.Return) {
	rates, ret := p.rates.once(p.device.GetUtilizationRates)
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

// clockOf reads a clock, which is in MHz.
func clockOf(clock nvml.ClockType) func(*probe) (float64, nvml.Return) {
	return func(p *probe) (float64, nvml.Return) {
		megahertz, ret := p.device.GetClockInfo(clock)
		return float64(megahertz) * 1e6, ret
	}
}
