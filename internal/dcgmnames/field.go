package dcgmnames

import (
	"github.com/dra-exporter/dra-exporter/collector/metric"
)

// field is one family of dcgm-exporter and its derivation. Types and units are
// those of its counter files (etc/*.csv) and of dcgm_fields.h. If they
// contradict the values, they are those of the values: NVLINK_BANDWIDTH_TOTAL is a rate.
type field struct {
	family *metric.Family
	unit   string
	of     valueSource
	factor float64 // from the source's unit to the field's
	means  string  // derivation of a derived source; empty: the value of the source
	onMIG  onMIG
	share  splitQuantity
}

// onMIG selects the value of a field for a partition.
type onMIG uint8

const (
	own     onMIG = iota // only its own value
	ofGPU                // its own value, or else its GPU's, which DCGM reports for each instance
	ownXIDs              // its own or its GPU's, whichever is newer
)

func (o onMIG) String() string {
	return [...]string{own: "its own", ofGPU: "its GPU's", ownXIDs: "its own or its GPU's, the later one"}[o]
}

// splitQuantity is the quantity that Split divides between pods.
type splitQuantity uint8

const (
	undivided splitQuantity = iota
	byUtilization
	byMemory

	shares = byMemory + 1
)

// Families returns every family of a Translator, in their order, as new values, for
// documentation and checks.
func Families() []*metric.Family {
	var families []*metric.Family
	for _, f := range fields() {
		families = append(families, f.family)
	}
	return families
}

const (
	percent   = 100
	mebibytes = 1.0 / (1 << 20)
	megahertz = 1e-6
	millis    = 1e3
	mega      = 1e-6
)

func fields() []field {
	return append(deviceFields(), profilingFields()...)
}

func deviceFields() []field {
	gauge, counter := metric.Gauge, metric.Counter
	return []field{
		named("DEV_GPU_UTIL", gauge, "%", "Share of time with work on the GPU", utilization, percent).splitBy(byUtilization),
		named("DEV_MEM_COPY_UTIL", gauge, "%", "Share of time in which device memory was read or written", memoryActivity, percent),
		named("DEV_ENC_UTIL", gauge, "%", "Share of time in which the video encoders were active", encoderActive, percent),
		named("DEV_DEC_UTIL", gauge, "%", "Share of time in which the video decoders were active", decoderActive, percent),
		named("DEV_FB_USED", gauge, "MiB", "Device memory in use", memoryUsed, mebibytes).splitBy(byMemory),
		named("DEV_FB_FREE", gauge, "MiB", "Device memory that is neither in use nor reserved", memoryFree, mebibytes).
			derivedBy("size − used − reserved"),
		named("DEV_FB_RESERVED", gauge, "MiB", "Device memory that driver and firmware reserve", memoryReserved, mebibytes),
		named("DEV_FB_TOTAL", gauge, "MiB", "Size of the device memory", memorySize, mebibytes),
		named("DEV_GPU_TEMP", gauge, "°C", "Temperature of the GPU", gpuTemperature, 1).fromGPU(),
		named("DEV_MEMORY_TEMP", gauge, "°C", "Temperature of the device memory", memoryTemperature, 1).fromGPU(),
		named("DEV_POWER_USAGE", gauge, "W", "Power drawn by the whole GPU", power, 1).fromGPU(),
		named("DEV_TOTAL_ENERGY_CONSUMPTION", counter, "mJ", "Energy drawn by the whole GPU since the hardware's counter began", energy, millis).fromGPU(),
		named("DEV_SM_CLOCK", gauge, "MHz", "Frequency of the streaming multiprocessors", smClock, megahertz).fromGPU(),
		named("DEV_MEM_CLOCK", gauge, "MHz", "Frequency of the device memory", memoryClock, megahertz).fromGPU(),
		named("DEV_XID_ERRORS", gauge, "", "Code of the Xid that was reported last, 0 if none was", lastXID, 1).
			derivedBy("code of the newest").onPartitions(ownXIDs),
		named("DEV_PCIE_REPLAY_COUNTER", counter, "", "PCIe packets that were retransmitted", pcieReplays, 1).fromGPU(),
		named("DEV_NVLINK_BANDWIDTH_TOTAL", gauge, "MB/s", "Data transferred over all NVLinks, in both directions", nvlinkRate, mega).
			derivedBy("growth per second of both, added").fromGPU(),
		named("DEV_CORRECTABLE_REMAPPED_ROWS", counter, "", "Memory rows that were remapped because of correctable errors", correctedRows, 1).fromGPU(),
		named("DEV_UNCORRECTABLE_REMAPPED_ROWS", counter, "", "Memory rows that were remapped because of uncorrectable errors", uncorrectedRows, 1).fromGPU(),
		named("DEV_ROW_REMAP_FAILURE", gauge, "", "1 if remapping a memory row has failed", rowRemapFailed, 1).fromGPU(),
	}
}

func profilingFields() []field {
	gauge := metric.Gauge
	return []field{
		named("PROF_GR_ENGINE_ACTIVE", gauge, "ratio", "Share of time in which the graphics or compute engine was active", graphicsActive, 1),
		named("PROF_SM_ACTIVE", gauge, "ratio", "Share of time in which a streaming multiprocessor had work, over all of them", smActive, 1),
		named("PROF_SM_OCCUPANCY", gauge, "ratio", "Resident warps as a share of the maximum", smOccupancy, 1),
		named("PROF_PIPE_TENSOR_ACTIVE", gauge, "ratio", "Share of time in which the tensor pipes were active", tensorActive, 1),
		named("PROF_PIPE_FP64_ACTIVE", gauge, "ratio", "Share of time in which the FP64 pipes were active", fp64Active, 1),
		named("PROF_PIPE_FP32_ACTIVE", gauge, "ratio", "Share of time in which the FP32 pipes were active", fp32Active, 1),
		named("PROF_PIPE_FP16_ACTIVE", gauge, "ratio", "Share of time in which the FP16 pipes were active", fp16Active, 1),
		named("PROF_DRAM_ACTIVE", gauge, "ratio", "Share of time in which data went from or to the device memory", dramActive, 1),
		named("PROF_PCIE_TX_BYTES", gauge, "B/s", "Data that the GPU sends over PCIe", pcieTransmitRate, 1).derivedBy(growth),
		named("PROF_PCIE_RX_BYTES", gauge, "B/s", "Data that the GPU receives over PCIe", pcieReceiveRate, 1).derivedBy(growth),
		named("PROF_NVLINK_TX_BYTES", gauge, "B/s", "Data that the GPU sends over all NVLinks", nvlinkTransmitRate, 1).derivedBy(growth),
		named("PROF_NVLINK_RX_BYTES", gauge, "B/s", "Data that the GPU receives over all NVLinks", nvlinkReceiveRate, 1).derivedBy(growth),
	}
}

const growth = "growth per second"

func named(name string, kind metric.Type, unit, help string, s valueSource, factor float64) field {
	if unit != "" {
		help += " (" + unit + ")"
	}
	return field{
		family: &metric.Family{Name: "DCGM_FI_" + name, Help: help, Type: kind, Labels: labelNames()},
		unit:   unit, of: s, factor: factor,
	}
}

func (f field) derivedBy(means string) field { f.means = means; return f }

func (f field) splitBy(s splitQuantity) field { f.share = s; return f }

func (f field) onPartitions(m onMIG) field { f.onMIG = m; return f }

func (f field) fromGPU() field { return f.onPartitions(ofGPU) }
