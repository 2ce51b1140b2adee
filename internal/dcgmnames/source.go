package dcgmnames

import "github.com/dra-exporter/dra-exporter/collector/metric"

// source is one value that fields are derived from.
type source uint8

// Values of rows, followed by values that are derived from them.
const (
	utilization source = iota
	memoryActivity
	memoryUsed
	memorySize
	memoryReserved
	power
	energy
	gpuTemperature
	memoryTemperature
	smClock
	memoryClock
	graphicsActive
	smActive
	tensorActive
	fp64Active
	fp32Active
	fp16Active
	dramActive
	encoderActive
	decoderActive
	smOccupancy
	pcieTransmit
	pcieReceive
	nvlinkTransmit
	nvlinkReceive
	pcieReplays
	correctedRows
	uncorrectedRows
	rowRemapFailed

	memoryFree
	lastXID
	pcieTransmitRate
	pcieReceiveRate
	nvlinkTransmitRate
	nvlinkReceiveRate
	nvlinkRate

	// sources is the number of all, observed the number of those with rows.
	sources
	observed = memoryFree
)

// origin is the family of a source and, if the family has several, the label that
// distinguishes them.
type origin struct{ family, label, value string }

func origins() [observed]origin {
	return [observed]origin{
		utilization:       {family: metric.DeviceUtilizationRatio},
		memoryActivity:    {family: metric.DeviceMemoryActivityRatio},
		memoryUsed:        {family: metric.DeviceMemoryUsedBytes},
		memorySize:        {family: metric.DeviceMemorySizeBytes},
		memoryReserved:    {family: metric.DeviceMemoryReservedBytes},
		power:             {family: metric.DevicePowerWatts},
		energy:            {family: metric.DeviceEnergyJoules},
		gpuTemperature:    {family: metric.DeviceTemperatureCelsius, label: "sensor", value: "gpu"},
		memoryTemperature: {family: metric.DeviceTemperatureCelsius, label: "sensor", value: "memory"},
		smClock:           {family: metric.DeviceClockHertz, label: "clock", value: "sm"},
		memoryClock:       {family: metric.DeviceClockHertz, label: "clock", value: "memory"},
		graphicsActive:    {family: metric.DeviceEngineActiveRatio, label: "engine", value: "graphics"},
		smActive:          {family: metric.DeviceEngineActiveRatio, label: "engine", value: "sm"},
		tensorActive:      {family: metric.DeviceEngineActiveRatio, label: "engine", value: "tensor"},
		fp64Active:        {family: metric.DeviceEngineActiveRatio, label: "engine", value: "fp64"},
		fp32Active:        {family: metric.DeviceEngineActiveRatio, label: "engine", value: "fp32"},
		fp16Active:        {family: metric.DeviceEngineActiveRatio, label: "engine", value: "fp16"},
		dramActive:        {family: metric.DeviceEngineActiveRatio, label: "engine", value: "dram"},
		encoderActive:     {family: metric.DeviceEngineActiveRatio, label: "engine", value: "encoder"},
		decoderActive:     {family: metric.DeviceEngineActiveRatio, label: "engine", value: "decoder"},
		smOccupancy:       {family: metric.DeviceSMOccupancyRatio},
		pcieTransmit:      {family: metric.DevicePCIeTransmitBytes},
		pcieReceive:       {family: metric.DevicePCIeReceiveBytes},
		nvlinkTransmit:    {family: metric.DeviceNVLinkTransmitBytes},
		nvlinkReceive:     {family: metric.DeviceNVLinkReceiveBytes},
		pcieReplays:       {family: metric.DevicePCIeReplays},
		correctedRows:     {family: metric.DeviceRemappedRows, label: "severity", value: "corrected"},
		uncorrectedRows:   {family: metric.DeviceRemappedRows, label: "severity", value: "uncorrected"},
		rowRemapFailed:    {family: metric.DeviceRowRemapFailed},
	}
}

// counterRates returns the counters whose growth a second is the value of a field.
func counterRates() [4]struct{ counter, rate source } {
	return [4]struct{ counter, rate source }{
		{pcieTransmit, pcieTransmitRate},
		{pcieReceive, pcieReceiveRate},
		{nvlinkTransmit, nvlinkTransmitRate},
		{nvlinkReceive, nvlinkReceiveRate},
	}
}

// isCounter reports whether the source is a counter: counters of a device that cannot
// be read keep their rows, gauges do not.
func (s source) isCounter() bool {
	switch s {
	case energy, pcieTransmit, pcieReceive, nvlinkTransmit, nvlinkReceive, pcieReplays:
		return true
	}
	return false
}
