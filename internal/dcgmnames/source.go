package dcgmnames

import "github.com/dra-exporter/dra-exporter/collector/device"

// valueSource is one value that fields are derived from.
type valueSource uint8

// Readings, followed by values that are derived from them.
const (
	utilization valueSource = iota
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

	// sources is the number of all, observed the number of those that are read.
	sources
	observed = memoryFree
)

// origin is the quantity of a source and, if it has several readings, the detail that
// distinguishes them.
type origin struct {
	quantity device.Quantity
	detail   string
}

func origins() [observed]origin {
	return [observed]origin{
		utilization:       {quantity: device.Utilization},
		memoryActivity:    {quantity: device.MemoryActivity},
		memoryUsed:        {quantity: device.MemoryUsed},
		memorySize:        {quantity: device.MemorySize},
		memoryReserved:    {quantity: device.MemoryReserved},
		power:             {quantity: device.Power},
		energy:            {quantity: device.Energy},
		gpuTemperature:    {device.Temperature, "gpu"},
		memoryTemperature: {device.Temperature, "memory"},
		smClock:           {device.ClockFrequency, "sm"},
		memoryClock:       {device.ClockFrequency, "memory"},
		graphicsActive:    {device.EngineActive, "graphics"},
		smActive:          {device.EngineActive, "sm"},
		tensorActive:      {device.EngineActive, "tensor"},
		fp64Active:        {device.EngineActive, "fp64"},
		fp32Active:        {device.EngineActive, "fp32"},
		fp16Active:        {device.EngineActive, "fp16"},
		dramActive:        {device.EngineActive, "dram"},
		encoderActive:     {device.EngineActive, "encoder"},
		decoderActive:     {device.EngineActive, "decoder"},
		smOccupancy:       {quantity: device.SMOccupancy},
		pcieTransmit:      {quantity: device.PCIeTransmit},
		pcieReceive:       {quantity: device.PCIeReceive},
		nvlinkTransmit:    {quantity: device.NVLinkTransmit},
		nvlinkReceive:     {quantity: device.NVLinkReceive},
		pcieReplays:       {quantity: device.PCIeReplays},
		correctedRows:     {device.RemappedRows, "corrected"},
		uncorrectedRows:   {device.RemappedRows, "uncorrected"},
		rowRemapFailed:    {quantity: device.RowRemapFailed},
	}
}

// sourceTable has the sources of each quantity.
type sourceTable [device.Quantities][]detailSource

type detailSource struct {
	detail string
	source valueSource
}

func newSourceTable() *sourceTable {
	var table sourceTable
	for s, o := range origins() {
		table[o.quantity] = append(table[o.quantity], detailSource{o.detail, valueSource(s)})
	}
	return &table
}

// find returns the source of a reading; false if no field needs it.
func (t *sourceTable) find(r *device.Reading) (valueSource, bool) {
	for _, s := range t[r.Quantity] {
		if s.detail == r.Details[0] {
			return s.source, true
		}
	}
	return 0, false
}

// counterRates returns the counters whose growth a second is the value of a field.
func counterRates() [4]struct{ counter, rate valueSource } {
	return [4]struct{ counter, rate valueSource }{
		{pcieTransmit, pcieTransmitRate},
		{pcieReceive, pcieReceiveRate},
		{nvlinkTransmit, nvlinkTransmitRate},
		{nvlinkReceive, nvlinkReceiveRate},
	}
}

// isCounter reports whether the source is a counter: counters of a device that cannot
// be read stay, gauges do not.
func (s valueSource) isCounter() bool {
	switch s {
	case energy, pcieTransmit, pcieReceive, nvlinkTransmit, nvlinkReceive, pcieReplays:
		return true
	}
	return false
}
