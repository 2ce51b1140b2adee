// Package smi decodes what `nvidia-smi -q -x` prints: the XML text of the
// drivers 470 to 580, whose schemas are nvsmi_device_v10.dtd to
// nvsmi_device_v13.dtd. Names that have changed from one to the next are one
// field. What a driver does not print is not known, and never zero.
//
// The text has neither energy nor NVLinks in these schemas. GPU.Text reads what
// newer ones may have.
package smi

// Log is one text.
type Log struct {
	Schema        string // nvsmi_device_v12.dtd; "" if the text names none
	Timestamp     string // local time, as printed
	DriverVersion string
	CUDAVersion   string // the newest that the driver supports
	AttachedGPUs  Number
	GPUs          []GPU // in the driver's order
}

// GPU is what is known of one GPU. Texts are "" where they are not known.
type GPU struct {
	ID               string // PCI address, as pci_bus_id
	UUID             string // GPU-…
	Name             string
	Brand            string
	Architecture     string
	Serial           string
	BoardPartNumber  string
	VBIOS            string
	Minor            Number // of /dev/nvidia<minor>
	PCIBusID         string // 00000000:53:00.0
	PersistenceMode  Flag
	ComputeMode      string
	PerformanceState string // P0 (fastest) to P15
	RecoveryAction   string // None, Reset, …
	AddressingMode   string

	Memory      Memory
	BAR1        Memory
	Utilization Utilization
	Power       Power // of the GPU with its board, as far as the driver says
	ModulePower Power // of a module with CPU and GPU
	MemoryPower Power
	Temperature Temperature
	Clocks      Clocks
	MaxClocks   Clocks
	ECC         ECC
	Rows        RemappedRows
	Pages       RetiredPages
	PCIe        PCIe
	Fabric      Fabric
	FanSpeed    Number // ratio
	Voltage     Number // volts

	// EventReasons are the reasons why clocks are lowered, by the name of
	// their element without its prefix: gpu_idle, sw_power_cap, …. A reason is
	// absent if it is not known whether it is active.
	EventReasons map[string]bool
	// EventCounters are how long (seconds) clocks have been lowered for a
	// reason, likewise: sw_power_cap, sw_therm_slowdown, ….
	EventCounters map[string]Number

	MIG       MIG
	Processes []Process

	tree *node
}

// Memory is in bytes.
type Memory struct {
	Total, Reserved, Used, Free Number
}

// Utilization are ratios of time, of the driver's last sample period.
type Utilization struct {
	GPU, Memory, Encoder, Decoder, JPEG, OFA Number
}

// Power is in watts. Older drivers print one draw, without whether it is an
// average; newer ones print an average and a momentary one.
type Power struct {
	Draw      Number // of drivers that print one
	Average   Number
	Instant   Number
	Limit     Number // in effect
	Requested Number // set by an administrator
	Default   Number
	Minimum   Number
	Maximum   Number
	State     string // P0 …
}

// Temperature is in degrees Celsius. Up to Ampere the driver prints limits,
// from Ada and Hopper on how far the temperature may rise: margins are relative
// to the same limit, and a negative one is above it.
type Temperature struct {
	GPU, Memory, Target                                              Number
	Shutdown, Slowdown, MaxOperating, MemoryMaxOperating             Number
	Margin                                                           Number
	ShutdownMargin, SlowdownMargin, MaxOperatingMargin, MemoryMargin Number
}

// Clocks are in hertz.
type Clocks struct {
	Graphics, SM, Memory, Video Number
}

// ECC counts memory errors: since the driver was loaded, and in the GPU's life.
type ECC struct {
	Mode, PendingMode   Flag
	Volatile, Aggregate ECCErrors
}

// ECCErrors counts errors. Which of them a GPU has depends on its architecture:
// before Turing the counts of bits, later those of SRAM and DRAM, whose
// uncorrectable SRAM errors newer drivers print in two parts.
type ECCErrors struct {
	SRAMCorrectable, SRAMUncorrectable               Number
	SRAMUncorrectableParity, SRAMUncorrectableSECDED Number
	DRAMCorrectable, DRAMUncorrectable               Number
	SingleBit, DoubleBit                             Number
	SRAMThresholdExceeded                            Flag
}

// RemappedRows are rows of memory that have been replaced.
type RemappedRows struct {
	Correctable, Uncorrectable Number
	Pending, Failure           Flag
	// Banks of memory by how many spare rows they have left.
	BanksMax, BanksHigh, BanksPartial, BanksLow, BanksNone Number
}

// RetiredPages are pages of memory that are not used any more, on GPUs that do
// not remap rows.
type RetiredPages struct {
	SingleBit, DoubleBit Number
	Pending              Flag
}

// PCIe is the GPU's link to the host.
type PCIe struct {
	Generation, MaxGeneration Number // of the link
	DeviceMaxGeneration       Number
	HostMaxGeneration         Number
	Width, MaxWidth           Number // lanes
	Transmitted, Received     Number // bytes per second, from the GPU's side
	Replays, ReplayRollovers  Number
}

// Fabric is the GPU's registration with a fabric of NVLinks.
type Fabric struct {
	State, Status, Clique, ClusterUUID, Health string
}

// MIG is how a GPU is partitioned.
type MIG struct {
	Mode, PendingMode Flag
	Devices           []MIGDevice
}

// MIGDevice is a compute instance of a GPU.
type MIGDevice struct {
	Index, GPUInstance, ComputeInstance Number
	UUID                                string // MIG-…, if printed
	Multiprocessors                     Number
	Memory, BAR1                        Memory
	SRAMUncorrectable                   Number // since the driver was loaded
}

// Process is a process that uses a GPU.
type Process struct {
	PID                          Number
	Type                         string // C, G, C+G or M+C: compute, graphics, MPS
	Name                         string
	Memory                       Number // bytes
	GPUInstance, ComputeInstance Number // of a partitioned GPU
}

// Text returns the text of the element at a path of names, such as
// "inforom_version/img_version", and whether there is one.
func (g GPU) Text(path string) (text string, found bool) {
	if g.tree == nil {
		return "", false
	}
	n := g.tree.at(path)
	return n.text, n.name != ""
}
