package dcgmnames

// source is one value that fields are derived from.
type source uint8

// What rows have of a device, followed by what is derived from that.
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

	// sources is how many there are, observed how many of them have rows.
	sources
	observed = memoryFree
)

// origin is the family of a source and, if the family has several, the label that
// distinguishes them.
type origin struct{ family, label, value string }

func origins() [observed]origin {
	return [observed]origin{
		utilization:       {family: "dra_device_utilization_ratio"},
		memoryActivity:    {family: "dra_device_memory_activity_ratio"},
		memoryUsed:        {family: "dra_device_memory_used_bytes"},
		memorySize:        {family: "dra_device_memory_size_bytes"},
		memoryReserved:    {family: "dra_device_memory_reserved_bytes"},
		power:             {family: "dra_device_power_watts"},
		energy:            {family: "dra_device_energy_joules_total"},
		gpuTemperature:    {family: "dra_device_temperature_celsius", label: "sensor", value: "gpu"},
		memoryTemperature: {family: "dra_device_temperature_celsius", label: "sensor", value: "memory"},
		smClock:           {family: "dra_device_clock_hertz", label: "clock", value: "sm"},
		memoryClock:       {family: "dra_device_clock_hertz", label: "clock", value: "memory"},
		graphicsActive:    {family: "dra_device_engine_active_ratio", label: "engine", value: "graphics"},
		smActive:          {family: "dra_device_engine_active_ratio", label: "engine", value: "sm"},
		tensorActive:      {family: "dra_device_engine_active_ratio", label: "engine", value: "tensor"},
		fp64Active:        {family: "dra_device_engine_active_ratio", label: "engine", value: "fp64"},
		fp32Active:        {family: "dra_device_engine_active_ratio", label: "engine", value: "fp32"},
		fp16Active:        {family: "dra_device_engine_active_ratio", label: "engine", value: "fp16"},
		dramActive:        {family: "dra_device_engine_active_ratio", label: "engine", value: "dram"},
		encoderActive:     {family: "dra_device_engine_active_ratio", label: "engine", value: "encoder"},
		decoderActive:     {family: "dra_device_engine_active_ratio", label: "engine", value: "decoder"},
		smOccupancy:       {family: "dra_device_sm_occupancy_ratio"},
		pcieTransmit:      {family: "dra_device_pcie_transmit_bytes_total"},
		pcieReceive:       {family: "dra_device_pcie_receive_bytes_total"},
		nvlinkTransmit:    {family: "dra_device_nvlink_transmit_bytes_total"},
		nvlinkReceive:     {family: "dra_device_nvlink_receive_bytes_total"},
		pcieReplays:       {family: "dra_device_pcie_replays_total"},
		correctedRows:     {family: "dra_device_remapped_rows", label: "severity", value: "corrected"},
		uncorrectedRows:   {family: "dra_device_remapped_rows", label: "severity", value: "uncorrected"},
		rowRemapFailed:    {family: "dra_device_row_remap_failed"},
	}
}

// counted returns the counters of which fields show the growth a second.
func counted() [4]struct{ counter, rate source } {
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
