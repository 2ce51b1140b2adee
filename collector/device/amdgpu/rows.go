package amdgpu

import "github.com/dra-exporter/dra-exporter/collector/device"

// row says in which file a quantity is. A row that follows another one for
// the same quantity and detail is used only where that one's value is absent.
type row struct {
	quantity device.Quantity
	detail   string
	tier     device.Tier
	hwmon    bool    // the file is in the folder of the hwmon device
	label    string  // of a temperature: that of its sensor, instead of a file
	file     string  //
	per      float64 // so many make one of the base unit
	most     float64 // above it the value is no value; 0: no bound
}

// same reports whether two rows are about the same thing.
func (r row) same(other row) bool { return r.quantity == other.quantity && r.detail == other.detail }

// rows is the table of what is one number in one file. Temperatures are in
// thousandths of a degree, power in millionths of a watt, clocks in hertz.
//
// The temperature of the GPU is that at the edge of its die, as other vendors
// report it; cards without that sensor (MI300) have the hottest point's, the
// junction, instead. The power is the average where the card has one, else
// that of the moment; on APUs it includes the processor's.
func rows() []row {
	return []row{
		{quantity: device.Utilization, file: "gpu_busy_percent", per: 100, most: 1},
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
