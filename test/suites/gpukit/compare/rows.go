package compare

import (
	"strconv"
	"strings"

	"github.com/dra-exporter/dra-exporter/test/suites/gpukit/direct"
	"github.com/dra-exporter/dra-exporter/test/suites/gpukit/smi"
)

// Units of the rows.
const (
	unitBytes   = "bytes"
	unitWatts   = "watts"
	unitJoules  = "joules"
	unitCelsius = "degrees Celsius"
	unitHertz   = "hertz"
	unitSeconds = "seconds"
	unitRatio   = "ratio"
)

// Rows are the rows of everything that the agent exports of NVIDIA's devices
// without --device.profiling and that another side has, and of what is compared
// with nothing because the agent does not export it.
func Rows() []Row {
	var all []Row
	for _, some := range [][]Row{identityRows(), memoryRows(), powerRows(), clockRows(), errorRows(), pcieRows(), throttleRows(), utilizationRows()} {
		all = append(all, some...)
	}
	return all
}

func identityRows() []Row {
	return []Row{
		{Name: "model", Of: AllDevices, Metric: deviceInfo, Label: "model",
			SMI: func(g SMIGPU) Value { return words(g.Name) },
			Library: func(d LibraryDevice) Value {
				model, _, _ := strings.Cut(d.Name, " MIG ")
				return words(model)
			}},
		{Name: "PCI address", Metric: deviceInfo, Label: "pci_bus_id",
			SMI:     func(g SMIGPU) Value { return address(g.PCIBusID) },
			Library: func(d LibraryDevice) Value { return address(d.PCIBusID) }},
		{Name: "driver version", Of: AllDevices, Metric: deviceInfo, Label: "driver_version",
			SMI:     func(g SMIGPU) Value { return words(g.DriverVersion) },
			Library: func(d LibraryDevice) Value { return words(d.DriverVersion) }},
		{Name: "serial number",
			SMI:     func(g SMIGPU) Value { return words(g.Serial) },
			Library: func(d LibraryDevice) Value { return words(d.Serial) }},
		{Name: "MIG: GPU", Of: Partitions, Metric: deviceInfo, Label: "parent_uuid",
			Library: func(d LibraryDevice) Value { return words(d.ParentUUID) }},
		{Name: "MIG: profile", Of: Partitions, Metric: deviceInfo, Label: "partition_profile",
			Library: func(d LibraryDevice) Value {
				_, profile, _ := strings.Cut(d.Name, " MIG ")
				return words(profile)
			}},
		{Name: "MIG: GPU instance", Of: Partitions, Metric: devicePartitionInfo, Label: "gpu_instance_id",
			SMIPartition: func(m smi.MIGDevice) Value { return id(printed(m.GPUInstance)) },
			Library:      func(d LibraryDevice) Value { return id(number(d.GPUInstance)) }},
		{Name: "MIG: compute instance", Of: Partitions, Metric: devicePartitionInfo, Label: "compute_instance_id",
			SMIPartition: func(m smi.MIGDevice) Value { return id(printed(m.ComputeInstance)) },
			Library:      func(d LibraryDevice) Value { return id(number(d.ComputeInstance)) }},
	}
}

// id is a number as a label has it.
func id(v Value) Value {
	if !v.Known {
		return v
	}
	return words(strconv.FormatFloat(v.Number, 'f', -1, 64))
}

// memoryTolerance is for what the driver allocates for itself between two reads.
const memoryTolerance = 1 << 20

func memoryRows() []Row {
	row := func(name, family string, kind Kind, of func(smi.Memory) smi.Number, library func(direct.Memory) *float64) Row {
		return Row{
			Name: name, Unit: unitBytes, Kind: kind, Of: AllDevices, Metric: family,
			SMI:          func(g SMIGPU) Value { return printed(of(g.Memory)) },
			SMIPartition: func(m smi.MIGDevice) Value { return printed(of(m.Memory)) },
			Library:      func(d LibraryDevice) Value { return number(library(d.Memory)) },
		}
	}
	total := row("memory size", deviceMemorySizeBytes, Constant,
		func(m smi.Memory) smi.Number { return m.Total }, func(m direct.Memory) *float64 { return m.Total })
	used := row("memory used", deviceMemoryUsedBytes, Gauge,
		func(m smi.Memory) smi.Number { return m.Used }, func(m direct.Memory) *float64 { return m.Used })
	reserved := row("memory reserved", deviceMemoryReservedBytes, Gauge,
		func(m smi.Memory) smi.Number { return m.Reserved }, func(m direct.Memory) *float64 { return m.Reserved })
	free := row("memory free", "", Gauge,
		func(m smi.Memory) smi.Number { return m.Free }, func(m direct.Memory) *float64 { return m.Free })
	used.Tolerance, reserved.Tolerance = Tolerance{Absolute: memoryTolerance}, Tolerance{Absolute: memoryTolerance}
	bar1 := func(name string, of func(smi.Memory) smi.Number, library func(direct.Memory) *float64) Row {
		return Row{Name: name, Unit: unitBytes, Kind: Gauge,
			SMI:     func(g SMIGPU) Value { return printed(of(g.BAR1)) },
			Library: func(d LibraryDevice) Value { return number(library(d.BAR1)) }}
	}
	return []Row{
		total, used, reserved, free,
		bar1("BAR1 size", func(m smi.Memory) smi.Number { return m.Total }, func(m direct.Memory) *float64 { return m.Total }),
		bar1("BAR1 used", func(m smi.Memory) smi.Number { return m.Used }, func(m direct.Memory) *float64 { return m.Used }),
	}
}

func powerRows() []Row {
	limit := func(name string, of func(smi.Power) smi.Number, library func(direct.Power) *float64) Row {
		return Row{Name: name, Unit: unitWatts, Kind: Gauge,
			SMI:     func(g SMIGPU) Value { return printed(of(g.Power)) },
			Library: func(d LibraryDevice) Value { return number(library(d.Power)) }}
	}
	enforced := limit("power limit", func(p smi.Power) smi.Number { return p.Limit }, func(p direct.Power) *float64 { return p.EnforcedLimit })
	enforced.Metric, enforced.Age = devicePowerLimitWatts, slowAge
	return []Row{
		// The driver's average of a second moves between two reads.
		{Name: "power", Unit: unitWatts, Kind: Gauge, Metric: devicePowerWatts, Tolerance: Tolerance{Absolute: 2, Relative: 0.03},
			SMI: func(g SMIGPU) Value {
				return either(printed(g.Power.Average), printed(g.Power.Draw), printed(g.Power.Instant))
			},
			Library: func(d LibraryDevice) Value { return number(d.Power.Usage) }},
		enforced,
		limit("default power limit", func(p smi.Power) smi.Number { return p.Default }, func(p direct.Power) *float64 { return p.DefaultLimit }),
		limit("minimum power limit", func(p smi.Power) smi.Number { return p.Minimum }, func(p direct.Power) *float64 { return p.MinimumLimit }),
		limit("maximum power limit", func(p smi.Power) smi.Number { return p.Maximum }, func(p direct.Power) *float64 { return p.MaximumLimit }),
		{Name: "energy", Unit: unitJoules, Kind: Counter, Metric: deviceEnergyJoules, Origin: true, Tolerance: Tolerance{Absolute: 1, Relative: 0.01},
			Library: func(d LibraryDevice) Value { return number(d.Energy) }},
		{Name: "GPU temperature", Unit: unitCelsius, Kind: Gauge, Metric: deviceTemperatureCelsius, Labels: map[string]string{"sensor": "gpu"},
			Tolerance: Tolerance{Absolute: 1},
			SMI:       func(g SMIGPU) Value { return printed(g.Temperature.GPU) },
			Library:   func(d LibraryDevice) Value { return number(d.Temperature.GPU) }},
		{Name: "memory temperature", Unit: unitCelsius, Kind: Gauge, Metric: deviceTemperatureCelsius, Labels: map[string]string{"sensor": "memory"},
			Tolerance: Tolerance{Absolute: 1},
			SMI:       func(g SMIGPU) Value { return printed(g.Temperature.Memory) },
			Library:   func(d LibraryDevice) Value { return number(d.Temperature.Memory) }},
	}
}

// clockTolerance is one step of a GPU's clocks.
const clockTolerance = 15e6

func clockRows() []Row {
	row := func(name, label string, of func(smi.Clocks) smi.Number, library func(direct.Clocks) *float64) Row {
		r := Row{Name: name, Unit: unitHertz, Kind: Gauge, Tolerance: Tolerance{Absolute: clockTolerance},
			SMI:     func(g SMIGPU) Value { return printed(of(g.Clocks)) },
			Library: func(d LibraryDevice) Value { return number(library(d.Clocks)) }}
		if label != "" {
			r.Metric, r.Labels = deviceClockHertz, map[string]string{"clock": label}
		}
		return r
	}
	maximum := func(name string, of func(smi.Clocks) smi.Number, library func(direct.Clocks) *float64) Row {
		return Row{Name: name, Unit: unitHertz, Kind: Gauge,
			SMI:     func(g SMIGPU) Value { return printed(of(g.MaxClocks)) },
			Library: func(d LibraryDevice) Value { return number(library(d.MaxClocks)) }}
	}
	graphics := func(c smi.Clocks) smi.Number { return c.Graphics }
	sm := func(c smi.Clocks) smi.Number { return c.SM }
	memory := func(c smi.Clocks) smi.Number { return c.Memory }
	return []Row{
		row("SM clock", "sm", sm, func(c direct.Clocks) *float64 { return c.SM }),
		row("memory clock", "memory", memory, func(c direct.Clocks) *float64 { return c.Memory }),
		row("graphics clock", "", graphics, func(c direct.Clocks) *float64 { return c.Graphics }),
		maximum("maximum SM clock", sm, func(c direct.Clocks) *float64 { return c.SM }),
		maximum("maximum memory clock", memory, func(c direct.Clocks) *float64 { return c.Memory }),
	}
}

func errorRows() []Row {
	const corrected, uncorrected = "corrected", "uncorrected"
	severity := func(of string) map[string]string { return map[string]string{"severity": of} }
	correctedOf := func(e smi.ECCErrors) Value {
		return add(printed(e.SRAMCorrectable), printed(e.DRAMCorrectable), printed(e.SingleBit))
	}
	// Newer drivers print the uncorrectable errors of SRAM in two parts.
	uncorrectedOf := func(e smi.ECCErrors) Value {
		return add(printed(e.SRAMUncorrectable), printed(e.SRAMUncorrectableParity), printed(e.SRAMUncorrectableSECDED),
			printed(e.DRAMUncorrectable), printed(e.DoubleBit))
	}
	return []Row{
		{Name: "ECC errors, corrected", Kind: Counter, Metric: deviceECCErrors, Labels: severity(corrected), Age: slowAge, Origin: true,
			SMI:     func(g SMIGPU) Value { return whole(correctedOf(g.ECC.Aggregate)) },
			Library: func(d LibraryDevice) Value { return number(d.ECC.AggregateCorrected) }},
		{Name: "ECC errors, uncorrected", Kind: Counter, Metric: deviceECCErrors, Labels: severity(uncorrected), Origin: true,
			SMI:     func(g SMIGPU) Value { return whole(uncorrectedOf(g.ECC.Aggregate)) },
			Library: func(d LibraryDevice) Value { return number(d.ECC.AggregateUncorrected) }},
		{Name: "ECC errors since the driver was loaded, corrected", Kind: Counter,
			SMI:     func(g SMIGPU) Value { return whole(correctedOf(g.ECC.Volatile)) },
			Library: func(d LibraryDevice) Value { return number(d.ECC.VolatileCorrected) }},
		{Name: "ECC errors since the driver was loaded, uncorrected", Kind: Counter,
			SMI:     func(g SMIGPU) Value { return whole(uncorrectedOf(g.ECC.Volatile)) },
			Library: func(d LibraryDevice) Value { return number(d.ECC.VolatileUncorrected) }},
		{Name: "remapped rows, corrected", Kind: Gauge, Metric: deviceRemappedRows, Labels: severity(corrected), Age: slowAge,
			SMI:     func(g SMIGPU) Value { return whole(printed(g.Rows.Correctable)) },
			Library: func(d LibraryDevice) Value { return number(d.Rows.Corrected) }},
		{Name: "remapped rows, uncorrected", Kind: Gauge, Metric: deviceRemappedRows, Labels: severity(uncorrected), Age: slowAge,
			SMI:     func(g SMIGPU) Value { return whole(printed(g.Rows.Uncorrectable)) },
			Library: func(d LibraryDevice) Value { return number(d.Rows.Uncorrected) }},
		{Name: "row remapping pending", Kind: Gauge, Metric: deviceRowRemapPending,
			SMI:     func(g SMIGPU) Value { return flag(g.Rows.Pending) },
			Library: func(d LibraryDevice) Value { return number(d.Rows.Pending) }},
		{Name: "row remapping failed", Kind: Gauge, Metric: deviceRowRemapFailed,
			SMI:     func(g SMIGPU) Value { return flag(g.Rows.Failure) },
			Library: func(d LibraryDevice) Value { return number(d.Rows.Failed) }},
	}
}

// whole is a count, which nvidia-smi does not round.
func whole(v Value) Value {
	v.Resolution = 0
	return v
}

func pcieRows() []Row {
	row := func(name, unit string, of func(smi.PCIe) smi.Number, library func(direct.PCIe) *float64) Row {
		return Row{Name: name, Unit: unit, Kind: Gauge,
			SMI:     func(g SMIGPU) Value { return printed(of(g.PCIe)) },
			Library: func(d LibraryDevice) Value { return number(library(d.PCIe)) }}
	}
	// The driver's own traffic goes on while nothing is copied.
	traffic := Tolerance{Absolute: 1 << 20, Relative: 0.02}
	return []Row{
		{Name: "PCIe bytes transmitted", Unit: unitBytes, Kind: Counter, Metric: devicePCIeTransmitBytes, Wraps: true, Tolerance: traffic,
			Library: func(d LibraryDevice) Value { return number(d.PCIe.TransmitBytes) }},
		{Name: "PCIe bytes received", Unit: unitBytes, Kind: Counter, Metric: devicePCIeReceiveBytes, Wraps: true, Tolerance: traffic,
			Library: func(d LibraryDevice) Value { return number(d.PCIe.ReceiveBytes) }},
		{Name: "PCIe replays", Kind: Counter, Metric: devicePCIeReplays, Age: slowAge, Origin: true,
			SMI:     func(g SMIGPU) Value { return whole(printed(g.PCIe.Replays)) },
			Library: func(d LibraryDevice) Value { return number(d.PCIe.Replays) }},
		row("PCIe generation", "", func(p smi.PCIe) smi.Number { return p.Generation }, func(p direct.PCIe) *float64 { return p.Generation }),
		row("PCIe width", "", func(p smi.PCIe) smi.Number { return p.Width }, func(p direct.PCIe) *float64 { return p.Width }),
		row("PCIe transmit rate", "bytes per second", func(p smi.PCIe) smi.Number { return p.Transmitted }, func(p direct.PCIe) *float64 { return p.TransmitRate }),
		row("PCIe receive rate", "bytes per second", func(p smi.PCIe) smi.Number { return p.Received }, func(p direct.PCIe) *float64 { return p.ReceiveRate }),
	}
}

// throttleRows have the reasons whose time drivers count. Where a driver does
// not count it, the agent adds up how long it has seen the reason. The reason
// hw_slowdown is always such a sum, and has no row.
func throttleRows() []Row {
	row := func(reason string, printedAs []string, names ...string) Row {
		r := Row{
			Name: "throttled, " + reason, Unit: unitSeconds, Kind: Counter, Metric: deviceThrottledSeconds,
			Labels: map[string]string{"reason": reason}, Origin: true, Tolerance: Tolerance{Absolute: 0.01, Relative: 0.02},
			Library: func(d LibraryDevice) Value {
				for _, name := range names {
					if value, reported := d.Throttled[name]; reported {
						return number(&value)
					}
				}
				return Value{}
			},
		}
		if len(printedAs) > 0 {
			r.SMI = func(g SMIGPU) Value {
				var found Value
				for _, name := range printedAs {
					found = either(found, printed(g.EventCounters[name]))
				}
				return found
			}
			r.Derived = func(d LibraryDevice) bool { return d.EventReasons != nil }
		}
		return r
	}
	return []Row{
		row("power_cap", []string{"sw_power_cap"}, "sw_power_cap"),
		row("thermal", []string{"sw_therm_slowdown", "sw_thermal_slowdown"}, "sw_thermal_slowdown", "perf_policy_thermal"),
		row("hw_thermal", []string{"hw_therm_slowdown", "hw_thermal_slowdown"}, "hw_thermal_slowdown"),
		row("hw_power_brake", []string{"hw_power_braking", "hw_power_brake_slowdown"}, "hw_power_brake_slowdown"),
		row("sync_boost", []string{"sync_boost"}, "sync_boost"),
		row("board_limit", nil, "board_limit"),
		row("reliability", nil, "reliability"),
		row("low_utilization", nil, "low_utilization"),
	}
}

// utilizationTolerance is for two readers that see different sample periods of
// the driver: a period of a sixth of a second may have one part more or less of a
// load that works for a part of each tenth.
const utilizationTolerance = 0.1

func utilizationRows() []Row {
	return []Row{
		{Name: "utilization", Unit: unitRatio, Kind: Gauge, Metric: deviceUtilizationRatio, Tolerance: Tolerance{Absolute: utilizationTolerance},
			SMI:     func(g SMIGPU) Value { return printed(g.Utilization.GPU) },
			Library: func(d LibraryDevice) Value { return number(d.Utilization.GPU) }},
		{Name: "memory activity", Unit: unitRatio, Kind: Gauge, Metric: deviceMemoryActivityRatio, Tolerance: Tolerance{Absolute: utilizationTolerance},
			SMI:     func(g SMIGPU) Value { return printed(g.Utilization.Memory) },
			Library: func(d LibraryDevice) Value { return number(d.Utilization.Memory) }},
		{Name: "MIG mode",
			Kind: Gauge, SMI: func(g SMIGPU) Value { return flag(g.MIG.Mode) },
			Library: func(d LibraryDevice) Value { return number(d.MIGMode) }},
	}
}

// ProfilingRows are those of an agent with --device.profiling.
func ProfilingRows() []Row {
	row := func(name, family, metricName string, labels map[string]string) Row {
		return Row{
			Name: name, Unit: unitRatio, Kind: Gauge, Of: AllDevices, Metric: family, Labels: labels,
			// Two readers measure between different instants.
			Tolerance: Tolerance{Absolute: 0.1},
			Library: func(d LibraryDevice) Value {
				value, reported := d.GPM[metricName]
				if !reported {
					return Value{}
				}
				return number(&value)
			},
		}
	}
	var rows []Row
	for _, engine := range []string{"graphics", "sm", "tensor", "fp64", "fp32", "fp16", "dram"} {
		rows = append(rows, row("engine active, "+engine, deviceEngineActiveRatio, engine, map[string]string{"engine": engine}))
	}
	// The driver reports the utilization of whole GPUs only.
	mig := row("MIG: utilization", deviceUtilizationRatio, "graphics", nil)
	mig.Of = Partitions
	return append(rows, row("SM occupancy", deviceSMOccupancyRatio, "sm_occupancy", nil), mig)
}
