package intelgpu

import "github.com/dra-exporter/dra-exporter/collector/device"

// folder is where a file is.
type folder uint8

const (
	function folder = iota // of the PCI function
	sensors                // of the hwmon device
	drm                    // of the card's DRM device
)

// row maps a file to a quantity. A row that follows another one for the same
// quantity and detail is used only if that one's value is absent.
type row struct {
	quantity device.Quantity
	detail   string
	tier     device.Tier
	in       folder
	file     string
	per      float64 // divisor to the base unit
	disabled bool    // 0 means that there is none
}

// same reports whether two rows have the same quantity and detail.
func (r row) same(other row) bool { return r.quantity == other.quantity && r.detail == other.detail }

// rows are the quantities of a driver's cards. Temperatures are in thousandths of
// a degree, energy and power in millionths of a joule and of a watt, clocks in
// megahertz.
//
// Energy and the power limit are those of the whole card where the driver has
// them, else those of the GPU's package. The power limit is the sustained one
// (PL1). The clock is that of the first graphics tile, 0 while it sleeps.
func rows(driver string) []row {
	if driver == i915 {
		return []row{
			{quantity: device.Energy, in: sensors, file: "energy1_input", per: 1e6},
			{quantity: device.PowerLimit, in: sensors, file: "power1_max", per: 1e6, tier: device.Slow, disabled: true},
			{quantity: device.ClockFrequency, detail: "sm", in: drm, file: "gt/gt0/rps_act_freq_mhz", per: 1e-6},
			{quantity: device.ClockFrequency, detail: "sm", in: drm, file: "gt_act_freq_mhz", per: 1e-6},
		}
	}
	return []row{
		{quantity: device.Energy, in: sensors, file: "energy1_input", per: 1e6},
		{quantity: device.Energy, in: sensors, file: "energy2_input", per: 1e6},
		{quantity: device.PowerLimit, in: sensors, file: "power1_max", per: 1e6, tier: device.Slow, disabled: true},
		{quantity: device.PowerLimit, in: sensors, file: "power2_max", per: 1e6, tier: device.Slow, disabled: true},
		{quantity: device.Temperature, detail: "gpu", in: sensors, file: "temp2_input", per: 1e3},
		{quantity: device.Temperature, detail: "memory", in: sensors, file: "temp3_input", per: 1e3},
		{quantity: device.ClockFrequency, detail: "sm", in: function, file: "tile0/gt0/freq0/act_freq", per: 1e-6},
	}
}
