package page

import (
	"time"
)

// ClusterView is a cluster at one moment. What is unknown is nil, empty or the
// zero time, never a number.
type ClusterView struct {
	Version string    // of the exporter
	At      time.Time // when the view was made
	Sources []Source  // by name

	Waiting  []Waiting  // pending claims, those that are pending longest first
	Gated    []Waiting  // likewise: references of pods with scheduling gates, which are not pending
	Underway []Underway // likewise: allocated, and not running yet

	Claims  map[string]float64 // by state
	Classes []ClassSupply      // by name
	Drivers []DriverSupply     // by name
	Odd     []Oddities         // what looks wrong, or did, by kind
}

// Waiting is a pod's claim reference, or its request of an extended resource,
// that is not satisfied. The JSON names are those of docs/api.md.
type Waiting struct {
	Namespace string    `json:"namespace"`
	Pod       string    `json:"pod"`
	PodClaim  string    `json:"podClaim"`
	Claim     string    `json:"claim,omitempty"`
	Class     string    `json:"deviceClass,omitempty"`
	Since     time.Time `json:"since,omitzero"`
	Reason    string    `json:"reason,omitempty"`
	Funnel    []Funnel  `json:"funnel,omitempty"` // by request
}

// Underway is a phase that a pod with an allocated claim is in.
type Underway struct {
	Namespace, Pod, Claim string
	Phase                 string
	Since                 time.Time
}

// DeviceStates counts devices by what can be done with them.
type DeviceStates struct {
	Allocated, Free, Unavailable *float64
}

// Total is how many devices there are; nil where nothing is known of any.
func (s DeviceStates) Total() *float64 {
	var total *float64
	for _, count := range []*float64{s.Allocated, s.Free, s.Unavailable} {
		total = sumOf(total, count)
	}
	return total
}

// add adds the counts of other devices.
func (s *DeviceStates) add(other DeviceStates) {
	s.Allocated, s.Free = sumOf(s.Allocated, other.Allocated), sumOf(s.Free, other.Free)
	s.Unavailable = sumOf(s.Unavailable, other.Unavailable)
}

// sumOf adds what is known; nil where nothing is.
func sumOf(a, b *float64) *float64 {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	}
	sum := *a + *b
	return &sum
}

// ClassSupply is a device class and the devices that it selects, which other
// classes may select, too.
type ClassSupply struct {
	Name             string
	ExtendedResource string
	Devices          DeviceStates
}

// DriverSupply is what a driver publishes in all its pools.
type DriverSupply struct {
	Name       string
	Pools      int
	Devices    DeviceStates
	Capacities []CapacityUse // by name; of devices that several claims may share
}

// CapacityUse is how much of a capacity claims have been given, over all
// devices of a driver that claims may share. Its unit is the capacity's own.
type CapacityUse struct {
	Name            string
	Devices         int
	Total, Consumed float64
}

// Ratio is the share that has been given away; nil where there is none to give.
func (c CapacityUse) Ratio() *float64 { return share(&c.Consumed, &c.Total) }

// Oddities are things of one kind that look wrong.
type Oddities struct {
	Kind    string // for programs that read the page
	Title   string
	Meaning string // what it means, or what to do
	Quiet   bool   // worth knowing, and nothing wrong now
	Items   []Oddity
}

// Oddity is one of them.
type Oddity struct {
	Name   string
	Detail string
	Since  time.Time
}
