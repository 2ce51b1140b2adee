package device

import (
	"cmp"
	"strings"
	"time"
)

// Quantity is one thing that can be read of a device. Values are in the base
// unit that its Spec states, converted once, where the hardware is read.
type Quantity uint8

// The quantities.
const (
	Utilization Quantity = iota
	EngineActive
	SMOccupancy
	MemoryActivity
	MemoryUsed
	MemorySize
	MemoryReserved
	Power
	PowerLimit
	Energy
	Temperature
	ClockFrequency
	NVLinkTransmit
	NVLinkReceive
	NVLinkLinkTransmit
	NVLinkLinkReceive
	PCIeTransmit
	PCIeReceive
	NetworkTransmit
	NetworkReceive
	Throttled
	ECCErrors
	RemappedRows
	RowRemapPending
	RowRemapFailed
	PCIeReplays
	NVLinkErrors
	RecoveryAction
	RetiredPages
	NVLinks
	FabricState
	HealthCheck
	NetworkLinks
	NetworkErrors
	Lost
	XGMIErrors
	DriverHealth

	// Quantities is how many there are.
	Quantities = int(DriverHealth) + 1
)

// Tier says how often a quantity is read.
type Tier uint8

// Fast quantities are read at every sample (a second), slow ones, and the
// identity of the devices, every half minute. What claims accrue (utilization,
// energy, traffic, throttled time) is fast in every source: the growth of a
// slow counter could not be divided between claims that held the device one
// after the other.
const (
	Fast Tier = iota
	Slow
)

// Kind distinguishes values that may rise and fall from those that only count up.
type Kind uint8

// The kinds. A Counter counts since an unknown time, and starts again from zero when the hardware resets.
const (
	Gauge Kind = iota
	Counter
)

// Spec describes a quantity.
type Spec struct {
	Name    string   // as the simulated source and messages spell it
	Unit    string   // base unit: ratio, bytes, watts, joules, celsius, hertz, seconds; empty for counts
	Kind    Kind     //
	Details []string // names of the reading's details, two at most
}

// Specs describes every quantity, indexed by it.
func Specs() [Quantities]Spec {
	return [Quantities]Spec{
		Utilization:        {"utilization", "ratio", Gauge, nil},
		EngineActive:       {"engine_active", "ratio", Gauge, []string{"engine"}},
		SMOccupancy:        {"sm_occupancy", "ratio", Gauge, nil},
		MemoryActivity:     {"memory_activity", "ratio", Gauge, nil},
		MemoryUsed:         {"memory_used", "bytes", Gauge, nil},
		MemorySize:         {"memory_size", "bytes", Gauge, nil},
		MemoryReserved:     {"memory_reserved", "bytes", Gauge, nil},
		Power:              {"power", "watts", Gauge, nil},
		PowerLimit:         {"power_limit", "watts", Gauge, nil},
		Energy:             {"energy", "joules", Counter, nil},
		Temperature:        {"temperature", "celsius", Gauge, []string{"sensor"}},
		ClockFrequency:     {"clock", "hertz", Gauge, []string{"clock"}},
		NVLinkTransmit:     {"nvlink_transmit", "bytes", Counter, nil},
		NVLinkReceive:      {"nvlink_receive", "bytes", Counter, nil},
		NVLinkLinkTransmit: {"nvlink_link_transmit", "bytes", Counter, []string{"link", "peer"}},
		NVLinkLinkReceive:  {"nvlink_link_receive", "bytes", Counter, []string{"link", "peer"}},
		PCIeTransmit:       {"pcie_transmit", "bytes", Counter, nil},
		PCIeReceive:        {"pcie_receive", "bytes", Counter, nil},
		NetworkTransmit:    {"network_transmit", "bytes", Counter, nil},
		NetworkReceive:     {"network_receive", "bytes", Counter, nil},
		Throttled:          {"throttled", "seconds", Counter, []string{"reason"}},
		ECCErrors:          {"ecc_errors", "", Counter, []string{"severity"}},
		RemappedRows:       {"remapped_rows", "", Gauge, []string{"severity"}},
		RowRemapPending:    {"row_remap_pending", "", Gauge, nil},
		RowRemapFailed:     {"row_remap_failed", "", Gauge, nil},
		PCIeReplays:        {"pcie_replays", "", Counter, nil},
		NVLinkErrors:       {"nvlink_errors", "", Counter, []string{"kind"}},
		RecoveryAction:     {"recovery_action", "", Gauge, []string{"action"}},
		RetiredPages:       {"retired_pages", "", Gauge, []string{"severity"}},
		NVLinks:            {"nvlinks", "", Gauge, []string{"state"}},
		FabricState:        {"fabric_state", "", Gauge, []string{"state"}},
		HealthCheck:        {"health_check", "", Gauge, []string{"system", "result"}},
		NetworkLinks:       {"network_links", "", Gauge, []string{"port", "state"}},
		NetworkErrors:      {"network_errors", "", Counter, []string{"kind"}},
		Lost:               {"lost", "", Gauge, nil},
		XGMIErrors:         {"xgmi_errors", "", Counter, []string{"severity"}},
		DriverHealth:       {"driver_health", "", Gauge, []string{"signal", "state"}},
	}
}

// Reading is one value of one quantity. Details are the values of the
// quantity's details (engine, sensor …), empty where it has none. Measured is
// when the value was measured; in a Sample it is always set.
type Reading struct {
	Quantity Quantity
	Details  [2]string
	Value    float64
	Measured Window
}

// Window bounds when a value was measured: not before From and not after To,
// in elapsed time of the sampler's clock. A library that caches its values, or
// a call that takes seconds, returns a value that is older than the answer. A
// source that knows better than the duration of its read says so; for all
// others the sampler sets the time of the read. The zero Window is unknown.
type Window struct{ From, To time.Duration }

// IsZero reports whether it is unknown when the value was measured.
func (w Window) IsZero() bool { return w == Window{} }

// compare orders readings by quantity, then details.
func (r Reading) compare(other Reading) int {
	if r.Quantity != other.Quantity {
		return cmp.Compare(r.Quantity, other.Quantity)
	}
	if order := strings.Compare(r.Details[0], other.Details[0]); order != 0 {
		return order
	}
	return strings.Compare(r.Details[1], other.Details[1])
}

// quantitySet is a set of quantities, one bit each.
type quantitySet uint64

func (s quantitySet) has(q Quantity) bool { return s&(1<<q) != 0 }
func (s quantitySet) with(readings []Reading) quantitySet {
	for _, reading := range readings {
		s |= 1 << reading.Quantity
	}
	return s
}
