package devicemetrics

import "time"

// Device is a published device with what one read found of it. Pool and Name
// are required; other strings are empty if unknown. The file devicemetrics.proto
// of v1alpha1 states the limits of strings and lists.
type Device struct {
	Pool string // spec.pool.name of the ResourceSlice
	Name string // spec.devices[].name

	UUID          string // the vendor's permanent identifier
	PCIAddress    string // as the kernel writes it: 0000:c1:00.0
	Parent        string // of a partition: name of the whole device, in the same pool
	Model         string
	Vendor        string // lower case
	DriverVersion string

	Readings  []Reading      // what could not be read is left out
	Health    []HealthSignal // what could not be checked is left out
	Processes []Process      // all that use the device; nil: they could not be listed
}

// Reading is one value, in the unit of its quantity.
type Reading struct {
	Quantity  Quantity  // empty for a value of an extension
	Extension string    // name of an extension of Options; empty for a quantity
	Details   []string  // exactly as many as the quantity has
	Value     float64   // finite
	Measured  time.Time // zero: during this read
	// Start is, of a counter, when it was 0; zero: unknown. Set it for what your
	// program counts itself: after a restart, a counter that begins again at 0
	// without a later start is ignored until it is as large as before.
	Start time.Time
}

// Quantity is a name of the table of quantities in devicemetrics.proto.
type Quantity string

// The quantities, with their units and details.
const (
	Utilization     Quantity = "utilization"      // ratio
	EngineActive    Quantity = "engine_active"    // ratio; engine
	MemoryActivity  Quantity = "memory_activity"  // ratio
	MemoryUsed      Quantity = "memory_used"      // bytes
	MemorySize      Quantity = "memory_size"      // bytes
	MemoryReserved  Quantity = "memory_reserved"  // bytes
	Power           Quantity = "power"            // watts
	PowerLimit      Quantity = "power_limit"      // watts
	Energy          Quantity = "energy"           // joules, counter
	Temperature     Quantity = "temperature"      // degrees Celsius; sensor
	ClockFrequency  Quantity = "clock"            // hertz; clock
	PCIeTransmit    Quantity = "pcie_transmit"    // bytes, counter
	PCIeReceive     Quantity = "pcie_receive"     // bytes, counter
	NetworkTransmit Quantity = "network_transmit" // bytes, counter
	NetworkReceive  Quantity = "network_receive"  // bytes, counter
	Throttled       Quantity = "throttled"        // seconds, counter; reason
	ECCErrors       Quantity = "ecc_errors"       // counter; severity
	PCIeReplays     Quantity = "pcie_replays"     // counter
	NetworkLinks    Quantity = "network_links"    // gauge; port, state
	NetworkErrors   Quantity = "network_errors"   // counter; kind
)

// spec describes a quantity.
type spec struct {
	details int
	counter bool
	ratio   bool
	signed  bool // may be negative
}

// specOf returns the spec of a quantity, and false if it is not in the table.
func specOf(q Quantity) (spec, bool) {
	switch q {
	case Utilization, MemoryActivity:
		return spec{ratio: true}, true
	case EngineActive:
		return spec{details: 1, ratio: true}, true
	case MemoryUsed, MemorySize, MemoryReserved, Power, PowerLimit:
		return spec{}, true
	case Temperature:
		return spec{details: 1, signed: true}, true
	case ClockFrequency:
		return spec{details: 1}, true
	case Energy, PCIeTransmit, PCIeReceive, NetworkTransmit, NetworkReceive, PCIeReplays:
		return spec{counter: true}, true
	case Throttled, ECCErrors, NetworkErrors:
		return spec{details: 1, counter: true}, true
	case NetworkLinks:
		return spec{details: 2}, true
	}
	return spec{}, false
}

// Extension declares a quantity that is not in the table. The agent exports it
// as dra_device_ext_<Name> if its flag --plugin.extensions contains the name.
type Extension struct {
	Name    string // a-z, 0-9 and single underscores; begins with a letter
	Unit    string // in the notation of UCUM: By, J, W, Cel, Hz, s, 1, {error}
	Counter bool   // it only rises, from 0
	Help    string // one sentence
}

// HealthState is the state of a health signal.
type HealthState int

// The states.
const (
	Healthy   HealthState = iota + 1
	Degraded              // works with less performance or redundancy
	Unhealthy             // should not be used for new work
)

// HealthSignal is one thing that the driver checks.
type HealthSignal struct {
	Name   string // what is checked, a DNS label: memory, link, firmware
	State  HealthState
	Reason string // why it is not healthy, for people; cut to 256 bytes
}

// Process is the use of a device by one process.
type Process struct {
	PID         uint32   // in the PID namespace of the host
	MemoryBytes *uint64  // nil: unknown
	Utilization *float64 // share of time with its work on the device, 0 to 1; nil: unknown
}
