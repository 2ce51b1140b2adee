// Package model is what a role knows at one moment, as typed values: what pages,
// the names of dcgm-exporter and other readers are made from.
//
// A model is immutable and safe for concurrent use. A record behind a pointer, and a
// list that is said to be shared, is the same in memory as in the model before as long
// as nothing in it has changed, so that a reader can keep what it has made of it.
package model

import (
	"math"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/device"
	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/collector/source"
)

// Node is what the node role knows. What claims and pods had is kept for the grace
// period after they have ended.
type Node struct {
	Name      string
	Version   string    // of the exporter
	SampledAt time.Time // when the newest readings were taken; zero: never
	Sources   []source.Status

	ProcessAttribution string // ok if shared devices are split by process, else why not
	Access             Access
	Currency           string // of prices and costs; empty: there are no prices

	Devices []Device // sorted by UUID
	Claims  []*Claim // live ones first, then sorted; shared
	Holds   []Hold   // present ones first, then sorted by claim and UUID
	Pods    []PodUse

	// Plugins are the containers with devices from device plugins, sorted by UUID, pod
	// and container. PastPlugins had some.
	Plugins     []PluginConsumer
	PastPlugins []PluginConsumer // shared

	Workloads       []PodWorkload    // each pod once; shared
	PastWorkloads   []PodWorkload    // of pods that have ended; shared
	ClaimAlignments []ClaimAlignment // of claims with several devices, sorted; shared
	PodAlignments   []PodAlignment   // of pods with several devices, sorted; shared
	Totals          []Totals         // sorted by namespace, class and model

	Incidents  []Incidents  // sorted by model and driver version
	Violations []Violations // sorted by class

	Unmatched   []UnmatchedDevices // by driver, sorted
	Conflicting int                // devices that claims hold under more than one published name
	Unresolved  []Counter          // ids of device plugins that lead to no hardware, by form
	Uncounted   []Counter          // held devices whose device-seconds are not counted, by reason
	Resets      Total              // of hardware counters
}

// Access is the agent's access to the GPUs.
type Access struct {
	State            string // open, releasing, released
	Released         string // why the GPUs are released for others; empty: they are not
	Mode, ModeReason string // how the manifests give it, and why; empty: unknown
}

// Optional is a number that may be unknown.
type Optional struct {
	Value float64
	Known bool
}

// Total is a number that only rises, and when it began at zero. The zero Total is
// unknown.
type Total struct {
	Value float64
	start int64 // Unix time in nanoseconds; noStart; 0: the total is unknown
}

// noStart is the start of a total of which it is not known.
const noStart = math.MinInt64

// NewTotal returns a number that began at zero at start. The zero time: it is not known
// when.
func NewTotal(value float64, start time.Time) Total {
	if start.IsZero() {
		return Total{value, noStart}
	}
	return Total{value, start.UnixNano()}
}

// Known reports whether the number is known.
func (t Total) Known() bool { return t.start != 0 }

// Start returns when the number began at zero, the zero time if that is not known.
func (t Total) Start() time.Time {
	if t.start == 0 || t.start == noStart {
		return time.Time{}
	}
	return time.Unix(0, t.start)
}

// Optional returns the number without its start.
func (t Total) Optional() Optional { return Optional{t.Value, t.Known()} }

// Device is hardware, a partition of it, or a held device without known hardware. It
// is kept for the grace period after it was last there or held.
type Device struct {
	*Identity
	*Details
	Health

	Past     bool             // the hardware is no longer there
	Fresh    bool             // the readings are recent enough for gauges
	Readings []device.Reading // of the newest sample, sorted by quantity; shared
	Busy     Total            // integral of the utilization, seconds
	Holders  HolderCounts

	UnattributedUtilization Optional // by processes of no holder; ratio
	UnattributedMemory      Optional // likewise; bytes
	ForeignProcesses        Optional // processes of pods that hold nothing of it

	Prices     []Price // for the classes through which it is held; shared
	PastPrices []Price // shared
}

// HolderCounts is how many hold a device.
type HolderCounts struct {
	Claims   int // without admin access
	Plugins  int // pods, through device plugins
	Possible int // further pods, whose device plugin may have given it
}

// Identity is what a device is. Fields are empty if they are unknown.
type Identity struct {
	UUID   string // of the hardware, or made from its place or its published name
	Parent string // UUID of the whole device that this one is a partition of

	Vendor        string // in lower case: nvidia, amd
	Model         string
	PCIBusID      string // as the kernel writes it: 0000:c1:00.0
	Profile       string // of a partition
	DriverVersion string
	Source        string // of the readings

	GPUInstance, ComputeInstance int // of a partition; device.Unknown
}

// HasInstances reports whether the instances of a partition are known.
func (i *Identity) HasInstances() bool {
	return i.Parent != "" && i.GPUInstance != device.Unknown && i.ComputeInstance != device.Unknown
}

// Details are how a device is named, where it is, and by what it is found for repair.
type Details struct {
	Hardware  device.Hardware // of a whole device
	Minor     int             // likewise: N of /dev/nvidiaN; device.Unknown
	Published dra.DeviceID    // its last name in a slice; empty: it has none
	Location  dra.Location
}

// IsIdentified reports whether anything is known by which a whole device is found.
func (d *Details) IsIdentified() bool {
	return d.Minor != device.Unknown || d.Hardware != device.Hardware{}
}

// Health is what is reported of the health of a device, and why.
type Health struct {
	ByHardware, ByDriver, ByKubelet Report

	KubeletMessage string      // why the kubelet reports it as unhealthy; text for people
	Signals        []Signal    // that are present; shared
	Taints         []dra.Taint // in the driver's slice, each once; shared

	XIDsWatched  bool  // a source reports the XIDs now: counts are known
	XIDs         []XID // that are counted, by code, other codes last; shared
	HeldFailures Total // how often it became unhealthy while it was held
}

// Report is a report of the health of a device.
type Report uint8

// The reports.
const (
	Unreported Report = iota
	Unhealthy
	Healthy
)

// Signal is a sign of a failure that the hardware reports.
type Signal struct {
	Name     string // xid_79, nvlink and the like
	Critical bool   // else it is a warning
}

// XID is how often an error of NVIDIA's driver came since the start, and when last.
type XID struct {
	Code  int // OtherXID: one without a count of its own
	Count Total
	Last  time.Time // zero: never
}

// OtherXID stands for all codes that are counted together.
const OtherXID = -1

// Price is the price of an hour of a device for holders through a class.
type Price struct {
	Class   string // empty: no claim holds the device, or its class is unknown
	PerHour float64
}

// Claim is a ResourceClaim that pods of this node use or have used.
type Claim struct {
	Ref      dra.ClaimRef
	UID      string
	Class    string // multiple if its requests differ in class
	Template string
	Sharing  string // strategy; none
	Admin    bool   // it has admin access
	Extended bool   // it is of an extended resource

	Live      bool          // pods use it; else all that it has is past
	Devices   []ClaimDevice // sorted by UUID; those with admin access included
	Consumers []Consumer    // sorted by UUID, pod and container

	PastDevices   []ClaimDevice
	PastConsumers []Consumer
}

// ClaimDevice is one result of a claim's allocation, or a bundle of them.
type ClaimDevice struct {
	ID             dra.DeviceID // of a bundle: the driver alone
	UUID           string
	Request, Class string
	Share          string // ID of a share of the device; empty: none
}

// Consumer is a container that may use a device of a claim. Its pod is in the claim's
// namespace.
type Consumer struct {
	UUID, Pod, PodUID, Container string
	OwnerKind, OwnerName         string  // controller of the pod; empty: none
	Labels                       []Label // of the pod, those that are shown and set
}

// Label is a label of a pod, by its name in a metric without label_.
type Label struct{ Name, Value string }

// PluginConsumer is a container that got a device through a device plugin.
type PluginConsumer struct {
	UUID      string
	Pod       dra.PodRef
	Container string
	Resource  string
}

// Hold is what a claim got of a device; with admin access alone it gets nothing.
type Hold struct {
	Claim dra.ClaimRef
	UUID  string

	Held        bool        // now
	Attribution Attribution // of what is not split by process

	Utilization Use              // ratio
	Memory      Use              // bytes
	Power       Optional         // watts
	Engines     []device.Reading // how active each engine of the device is; shared
	IdleSince   time.Time        // zero: it is not idle, or that is unknown

	Allocated     float64 // memory, bytes; 0: unknown
	Bundled       int     // number of devices of a bundle; 0: it is one device
	HeldSeconds   Total   // elapsed seconds
	DeviceSeconds Total   // weighted by the share of the device

	Accounts []Account // by attribution
}

// Account is what accrued while a device was held with one attribution.
type Account struct {
	Attribution Attribution

	Busy                Total // seconds
	Energy              Total // joules
	NVLinkTransmit      Total // bytes
	NVLinkReceive       Total // bytes
	PCIeTransmit        Total // bytes
	PCIeReceive         Total // bytes
	NetworkTransmit     Total // bytes
	NetworkReceive      Total // bytes
	ExecutionIdle       Total // seconds above idle power without computing
	ExecutionIdleEnergy Total // joules beyond idle power without computing

	Throttled []Throttling
}

// Throttling is for how long a device was throttled, for a reason.
type Throttling struct {
	Reason  string
	Seconds Total
}

// Use is how much of a device a holder uses.
type Use struct {
	Value       float64
	Known       bool
	Attribution Attribution
}

// PodUse is how much of a device the processes of a pod use, if several pods use it.
type PodUse struct {
	Pod  dra.PodRef
	UUID string

	Utilization Use // ratio
	Memory      Use // bytes
}

// PodWorkload is what a pod runs for, and the pod's place in it.
type PodWorkload struct {
	Pod      dra.PodRef
	Workload dra.Workload

	Role, Replica, Rank string // as in dra.Member
}

// ClaimAlignment is an alignment of the devices of a claim.
type ClaimAlignment struct {
	Claim dra.ClaimRef
	Alignment
}

// PodAlignment is an alignment of the devices of all claims of a pod.
type PodAlignment struct {
	Pod dra.PodRef
	Alignment
}

// Alignment is how near devices are to each other, and how near they could be on the
// node at best.
type Alignment struct {
	Between  string // devices: with each other; network: each with its nearest network adapter
	Is, Best dra.Alignment
}

// Totals are what the claims of a namespace got of devices of one class and model since
// the exporter started, deleted ones included.
type Totals struct {
	Namespace, Class, Model string

	DeviceSeconds Total // weighted by the shares of the devices
	SharedSeconds Total // the part whose use is not split
	BusySeconds   Total
	Energy        Total // joules
	Cost          Total // in the node's currency
}

// Start returns when the first of them began at zero, the zero time if that is not known.
func (t *Totals) Start() time.Time {
	var first time.Time
	for _, total := range []Total{t.DeviceSeconds, t.SharedSeconds, t.BusySeconds, t.Energy, t.Cost} {
		if start := total.Start(); !start.IsZero() && (first.IsZero() || start.Before(first)) {
			first = start
		}
	}
	return first
}

// Incidents are what happened to devices of a model, of one kind. One event may be of
// several kinds.
type Incidents struct {
	Model, DriverVersion, Kind string

	Count          Total // that began
	WatchedSeconds Total // device-seconds without such an incident
	Seconds        Total // device-seconds with one
	Claims         Total // that held a device when an incident began
}

// Violations are how often a constraint was violated while claims of a class held a
// device.
type Violations struct {
	Class, Constraint string
	Count             Total
}

// UnmatchedDevices are devices of a driver without a counterpart.
type UnmatchedDevices struct {
	Driver    string
	Published Optional // allocated, without known hardware
	Hardware  Optional // that the driver does not publish
}

// Attribution is how the numbers of a holder relate to the device's own.
type Attribution uint8

// The attributions.
const (
	Exclusive    Attribution = iota // the device's own, of its only holder
	Partition                       // the device's own: it is a partition
	Process                         // of the holder's processes
	Shared                          // the device's own, which others use as well
	Attributions                    // their number
)

// String returns the value of the label attribution.
func (a Attribution) String() string {
	return [Attributions]string{Exclusive: "exclusive", Partition: "partition", Process: "process", Shared: "shared"}[a]
}
