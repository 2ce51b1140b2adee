package amdgpu

import "github.com/dra-exporter/dra-exporter/collector/device"

// row maps a file to a quantity. A row that follows another one for the same
// quantity and detail is used only if that one's value is absent.
type row struct {
	quantity device.Quantity
	detail   string
	tier     device.Tier
	hwmon    bool    // the file is in the folder of the hwmon device
	label    string  // of a temperature: the label of its sensor, instead of a file
	file     string  //
	per      float64 // divisor to the base unit
	max      float64 // a larger value is an error; 0: no limit
}

// same reports whether two rows have the same quantity and detail.
func (r row) same(other row) bool { return r.quantity == other.quantity && r.detail == other.detail }

// rows are the quantities that have a file with one number. Temperatures are in
// thousandths of a degree, power in millionths of a watt, clocks in hertz.
//
// The temperature of the GPU is that at the edge of its die, as other vendors
// report it; cards without that sensor (MI300) have that of the hottest point,
// the junction, instead. The power is the average where the card has one, else
// the current power; on APUs it includes the processor's.
func rows() []row {
	return []row{
		{quantity: device.Utilization, file: "gpu_busy_percent", per: 100, max: 1},
		{quantity: device.MemoryUsed, file: "mem_info_vram_used", per: 1},
		{quantity: device.MemorySize, file: "mem_info_vram_total", per: 1, tier: device.Slow},
		{quantity: device.Power, hwmon: true, file: "power1_average", per: 1e6},
		{quantity: device.Power, hwmon: true, file: "power1_input", per: 1e6},
		{quantity: device.PowerLimit, hwmon: true, file: "power1_cap", per: 1e6, tier: device.Slow},
		{quantity: device.Temperature, detail: "gpu", hwmon: true, label: "edge", per: 1e3},
		{quantity: device.Temperature, detail: "gpu", hwmon: true, label: "junction", per: 1e3},
		{quantity: device.Temperature, detail: "memory", hwmon: true, label: "mem", per: 1e3},
		{quantity: device.ClockFrequency, detail: "sm", hwmon: true, file: "freq1_input", per: 1},
		{quantity: device.ClockFrequency, detail: "memory", hwmon: true, file: "freq2_input", per: 1},
		{quantity: device.PCIeReplays, file: "pcie_replay_count", per: 1, tier: device.Slow},
	}
}
