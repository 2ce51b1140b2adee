package device

import (
	"cmp"
	"fmt"
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
	// Extension is a quantity of a driver's own, which its first detail names. Its
	// second one is its kind, ExtensionGauge or ExtensionCounter.
	Extension

	// Quantities is how many there are.
	Quantities = int(Extension) + 1
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

// QuantityKind distinguishes values that may rise and fall from those that only count up.
type QuantityKind uint8

// The kinds. A Counter counts since an unknown time, and starts again from zero when the hardware resets.
const (
	Gauge QuantityKind = iota
	Counter
)

// The kinds of an Extension.
const (
	ExtensionGauge   = "gauge"
	ExtensionCounter = "counter"
)

// maxExtensionName is how many bytes the name of an extension may have.
const maxExtensionName = 63

// IsExtensionName reports whether a name of an extension is valid: lower-case
// letters, digits and single underscores, without _total at its end.
func IsExtensionName(name string) bool {
	if len(name) > maxExtensionName || strings.HasSuffix(name, "_total") {
		return false
	}
	for i, word := range strings.Split(name, "_") {
		if word == "" || i == 0 && (word[0] < 'a' || word[0] > 'z') {
			return false
		}
		for _, c := range []byte(word) {
			if (c < 'a' || c > 'z') && (c < '0' || c > '9') {
				return false
			}
		}
	}
	return true
}

// ParseExtension returns the details of an extension by the name of its metric after
// dra_device_ext_: that of a counter ends with _total.
func ParseExtension(metric string) (details [2]string, err error) {
	details = [2]string{metric, ExtensionGauge}
	if name, isCounter := strings.CutSuffix(metric, "_total"); isCounter {
		details = [2]string{name, ExtensionCounter}
	}
	if !IsExtensionName(details[0]) {
		return details, fmt.Errorf("%q is not the name of an extension: lower-case letters, digits and single underscores, at most %d bytes", metric, maxExtensionName)
	}
	return details, nil
}

// ExtensionMetric is the name of an extension's metric after dra_device_ext_, as
// ParseExtension takes it.
func ExtensionMetric(details [2]string) string {
	if details[1] == ExtensionCounter {
		return details[0] + "_total"
	}
	return details[0]
}

// Spec describes a quantity.
type Spec struct {
	Name    string       // as the simulated source and messages spell it
	Unit    string       // base unit: ratio, bytes, watts, joules, celsius, hertz, seconds; empty for counts
	Kind    QuantityKind //
	Details []string     // names of the reading's details, two at most
	Bounds  Bounds       // what a value can be
}

// FamilyPrefix begins the names of the metric families of devices.
const FamilyPrefix = "dra_device_"

// Family returns the name of the quantity's metric family: its own name, its unit, and
// _total for a counter. Links are families of their states.
func (s Spec) Family() string {
	switch s.Name {
	case "nvlinks":
		return FamilyPrefix + "nvlink_links"
	case "network_links":
		return FamilyPrefix + "network_link_state"
	}
	name := FamilyPrefix + s.Name
	if s.Unit != "" {
		name += "_" + s.Unit
	}
	if s.Kind == Counter {
		name += "_total"
	}
	return name
}

// Bounds are what values of a quantity can be in hardware that exists or is
// announced, with room to spare. Readings outside of the bounds are refused,
// whichever source they come from. If Most is zero, there is no upper bound.
type Bounds struct {
	Least, Most float64
	Rate        float64 // of a counter: the most that it grows by in a second; 0: no bound
	ZeroIsNone  bool    // libraries report 0 for what a device does not have
	Constant    bool    // a property: a value that differs has to last

	// Limit is the quantity of the same device that bounds this one (a gauge its value,
	// a counter its rate): LimitFactor times its value, and never less than LimitFloor.
	Limit       Quantity
	LimitFactor float64 // 0: there is none
	LimitFloor  float64
}

// Rates that no device reaches, per second.
const (
	mostWatts        = 20e3 // the largest announced module draws 3.6 kW
	mostNVLinkBytes  = 20e12
	mostLinkBytes    = 2e12
	mostPCIeBytes    = 1e12 // generation 7 with 16 lanes: 242 GB/s in each direction
	mostNetworkBytes = 1e12
	mostMemory       = 1 << 45 // bytes
	mostErrors       = 1e8     // of a link: no more than it has packets
	mostMemoryErrors = 1e5
)

// Specs describes every quantity, indexed by Quantity.
func Specs() [Quantities]Spec {
	ratio, flag, count := Bounds{Most: 1}, Bounds{Most: 1}, Bounds{Most: 1e6}
	memory := Bounds{Most: mostMemory, Limit: MemorySize, LimitFactor: 1.01}
	grows := func(rate float64) Bounds { return Bounds{Rate: rate} }
	return [Quantities]Spec{
		Utilization:        {"utilization", "ratio", Gauge, nil, ratio},
		EngineActive:       {"engine_active", "ratio", Gauge, []string{"engine"}, ratio},
		SMOccupancy:        {"sm_occupancy", "ratio", Gauge, nil, ratio},
		MemoryActivity:     {"memory_activity", "ratio", Gauge, nil, ratio},
		MemoryUsed:         {"memory_used", "bytes", Gauge, nil, memory},
		MemorySize:         {"memory_size", "bytes", Gauge, nil, Bounds{Most: mostMemory, ZeroIsNone: true, Constant: true}},
		MemoryReserved:     {"memory_reserved", "bytes", Gauge, nil, memory},
		Power:              {"power", "watts", Gauge, nil, Bounds{Most: mostWatts, Limit: PowerLimit, LimitFactor: 4, LimitFloor: 200}},
		PowerLimit:         {"power_limit", "watts", Gauge, nil, Bounds{Most: mostWatts, ZeroIsNone: true}},
		Energy:             {"energy", "joules", Counter, nil, Bounds{Rate: mostWatts, Limit: PowerLimit, LimitFactor: 4, LimitFloor: 200}},
		Temperature:        {"temperature", "celsius", Gauge, []string{"sensor"}, Bounds{Least: -60, Most: 150, ZeroIsNone: true}},
		ClockFrequency:     {"clock", "hertz", Gauge, []string{"clock"}, Bounds{Most: 20e9}},
		NVLinkTransmit:     {"nvlink_transmit", "bytes", Counter, nil, grows(mostNVLinkBytes)},
		NVLinkReceive:      {"nvlink_receive", "bytes", Counter, nil, grows(mostNVLinkBytes)},
		NVLinkLinkTransmit: {"nvlink_link_transmit", "bytes", Counter, []string{"link", "peer"}, grows(mostLinkBytes)},
		NVLinkLinkReceive:  {"nvlink_link_receive", "bytes", Counter, []string{"link", "peer"}, grows(mostLinkBytes)},
		PCIeTransmit:       {"pcie_transmit", "bytes", Counter, nil, grows(mostPCIeBytes)},
		PCIeReceive:        {"pcie_receive", "bytes", Counter, nil, grows(mostPCIeBytes)},
		NetworkTransmit:    {"network_transmit", "bytes", Counter, nil, grows(mostNetworkBytes)},
		NetworkReceive:     {"network_receive", "bytes", Counter, nil, grows(mostNetworkBytes)},
		Throttled:          {"throttled", "seconds", Counter, []string{"reason"}, grows(1.2)},
		ECCErrors:          {"ecc_errors", "", Counter, []string{"severity"}, grows(mostMemoryErrors)},
		RemappedRows:       {"remapped_rows", "", Gauge, []string{"severity"}, count},
		RowRemapPending:    {"row_remap_pending", "", Gauge, nil, flag},
		RowRemapFailed:     {"row_remap_failed", "", Gauge, nil, flag},
		PCIeReplays:        {"pcie_replays", "", Counter, nil, grows(mostErrors)},
		NVLinkErrors:       {"nvlink_errors", "", Counter, []string{"kind"}, grows(mostErrors)},
		RecoveryAction:     {"recovery_action", "", Gauge, []string{"action"}, flag},
		RetiredPages:       {"retired_pages", "", Gauge, []string{"severity"}, count},
		NVLinks:            {"nvlinks", "", Gauge, []string{"state"}, Bounds{Most: 1024}},
		FabricState:        {"fabric_state", "", Gauge, []string{"state"}, flag},
		HealthCheck:        {"health_check", "", Gauge, []string{"system", "result"}, flag},
		NetworkLinks:       {"network_links", "", Gauge, []string{"port", "state"}, flag},
		NetworkErrors:      {"network_errors", "", Counter, []string{"kind"}, grows(mostErrors)},
		Lost:               {"lost", "", Gauge, nil, flag},
		XGMIErrors:         {"xgmi_errors", "", Counter, []string{"severity"}, grows(mostErrors)},
		Extension:          {"extension", "", Gauge, []string{"name", "kind"}, Bounds{}},
		DriverHealth:       {"driver_health", "", Gauge, []string{"signal", "state"}, flag},
	}
}

// Reading is one value of one quantity. Details are the values of the quantity's
// details (engine, sensor …), empty where it has none. Measured is when the value was
// measured; in a Sample it is always set. Counters with different origins began at
// different times: they come from different sources, from one source before and after a
// value that cannot have followed the previous one, or from different metrics. A source
// gives origins below 256.
type Reading struct {
	Quantity Quantity
	Origin   uint16
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
