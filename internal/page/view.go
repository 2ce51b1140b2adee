// Package page shows the rows of a snapshot to people, as a page that renews
// itself, and to programs, as JSON. It reads nothing but the rows that a
// scrape gets, so that the three cannot disagree.
package page

import "time"

// View is a node at one moment. What is unknown is nil, empty or the zero
// time, never a number. The JSON names of claims are those of docs/api.md.
type View struct {
	Node      string
	Version   string    // of the exporter
	At        time.Time // when the view was made
	SampledAt time.Time // when the newest readings were taken
	Sources   []Source  // by name

	// ProcessAttribution says whether shared devices are split by process:
	// ok, or why they are not; empty while nobody says.
	ProcessAttribution string

	Devices []Device // whole devices, sick ones first, then by published name; partitions lie within
	Claims  []Claim  // those that hold sick devices first, then by namespace and name

	Totals       []Totals  // by namespace, class and model
	CountedSince time.Time // when the oldest of the totals began at zero
}

// Age is how old the newest readings are; false before the first.
func (v View) Age() (time.Duration, bool) { return since(v.At, v.SampledAt) }

// Device is a whole device or a partition.
type Device struct {
	UUID       string
	ParentUUID string // of a partition
	ParentName string // likewise: the name of its whole device
	Matched    bool   // its hardware is known; else it has no quantities
	Vendor     string
	Model      string
	PCIBusID   string
	Published  DeviceName
	Health     Health
	Prices     []Price // of an hour; several where it is held through classes that differ

	Profile                      string // of a partition
	GPUInstance, ComputeInstance string // ids of a MIG partition

	Utilization *float64 // ratio
	MemoryUsed  *float64 // bytes
	MemorySize  *float64 // bytes
	Power       *float64 // watts
	PowerLimit  *float64 // watts
	Temperature *float64 // celsius, of the device itself

	// Unattributed is what processes do that work for no holder: strays,
	// where nobody holds the device. Nil where its processes are unknown.
	Unattributed *Use

	Holders    []Holder
	Partitions []Device
}

// DeviceName is the name under which a driver publishes a device.
type DeviceName struct {
	Driver, Pool, Device string
}

// Title is what people call the device: its name, else its model, else its
// UUID. A partition without a name is called after its profile and its whole
// device.
func (d Device) Title() string {
	switch name := d.name().Device; {
	case name != "":
		return name
	case d.ParentName != "" && d.Profile != "":
		return d.Profile + " of " + d.ParentName
	case d.Model != "":
		return d.Model
	default:
		return d.UUID
	}
}

// Free reports whether nobody holds the device or a partition of it.
func (d Device) Free() bool {
	for _, partition := range d.Partitions {
		if len(partition.Holders) > 0 {
			return false
		}
	}
	return len(d.Holders) == 0
}

// Severity is how much is amiss with the device or a partition of it.
func (d Device) Severity() Severity {
	worst := d.Health.Severity()
	for _, partition := range d.Partitions {
		worst = min(worst, partition.Health.Severity())
	}
	return worst
}

// Holder is a claim, or a pod that got the device through a device plugin.
type Holder struct {
	Kind        HolderKind
	Namespace   string // of the claim or the pod
	Claim       string
	Class       string // of a claim: its device class
	Attribution string // of a claim: exclusive, partition, process or shared; empty where no quantity tells
	Use         *Use   // what its own processes do, where that is told apart
	Resource    string // of a device plugin: nvidia.com/gpu
	IdleSince   time.Time
	Pods        []Pod
}

// HolderKind tells claims from device plugins.
type HolderKind string

// The kinds of holders.
const (
	ByClaim        HolderKind = "claim"
	ByDevicePlugin HolderKind = "device_plugin"
)

// Pod is a pod with those of its containers that may use a device.
type Pod struct {
	Namespace, Name string
	Containers      []string
	Use             *Use // where it is told apart from other pods' of the same holder
}

// Claim is a ResourceClaim and what it gets of each device.
type Claim struct {
	Namespace        string        `json:"namespace"`
	Name             string        `json:"name"`
	UID              string        `json:"uid,omitempty"`
	Class            string        `json:"deviceClass,omitempty"`
	Template         string        `json:"template,omitempty"`
	Sharing          string        `json:"sharing,omitempty"`
	AdminAccess      bool          `json:"adminAccess"`
	ExtendedResource bool          `json:"extendedResource"`
	Held             bool          `json:"held"`
	Devices          []ClaimDevice `json:"devices"`
	Consumers        []Consumer    `json:"consumers"`
}

// Severity is how much is amiss with the devices that the claim holds.
func (c Claim) Severity() Severity {
	worst := Unknown
	for _, d := range c.Devices {
		if d.Held && d.Health != nil {
			worst = min(worst, d.Health.Severity())
		}
	}
	return worst
}

// ClaimDevice is what a claim gets of one device. A device that the claim was
// given twice is one ClaimDevice with two allocations.
type ClaimDevice struct {
	UUID        string       `json:"uuid"`
	ParentUUID  string       `json:"parentUuid,omitempty"` // of a partition
	ParentName  string       `json:"parentName,omitempty"` // likewise
	Model       string       `json:"model,omitempty"`
	Profile     string       `json:"profile,omitempty"` // of a partition
	Held        bool         `json:"held"`
	Attribution string       `json:"attribution,omitempty"` // how it is held at present: of all that is not split
	Allocations []Allocation `json:"allocations"`
	Utilization *float64     `json:"utilizationRatio,omitempty"`

	UtilizationAttribution string `json:"utilizationAttribution,omitempty"`

	MemoryUsed *float64 `json:"memoryUsedBytes,omitempty"`

	MemoryAttribution string `json:"memoryAttribution,omitempty"`

	MemoryAllocated *float64  `json:"memoryAllocatedBytes,omitempty"`
	Power           *float64  `json:"powerWatts,omitempty"`
	IdleSince       time.Time `json:"idleSince,omitzero"`
	HeldSeconds     *float64  `json:"heldSeconds,omitempty"`
	DeviceSeconds   *float64  `json:"deviceSeconds,omitempty"`
	Accounts        []Account `json:"accounts"`
	Pods            []PodUse  `json:"pods,omitempty"`         // what each of them does, where several use the device
	Unattributed    *Use      `json:"unattributed,omitempty"` // by processes of no holder; the device's, not the claim's
	Price           *Price    `json:"price,omitempty"`        // of an hour of the whole device
	Health          *Health   `json:"health,omitempty"`
	ParentHealth    *Health   `json:"parentHealth,omitempty"` // of a partition: that of the whole device
}

// Allocation is a device as a request of the claim got it.
type Allocation struct {
	Request string `json:"request,omitempty"`
	Class   string `json:"deviceClass,omitempty"`
	Driver  string `json:"driver"`
	Pool    string `json:"pool"`
	Device  string `json:"device"`
	ShareID string `json:"shareId,omitempty"`
}

// Account is what accrued while the device was held in one way. Totals under
// shared are the device's own and are not added up.
type Account struct {
	Attribution    string   `json:"attribution"`
	Busy           *float64 `json:"busySeconds,omitempty"`
	Energy         *float64 `json:"energyJoules,omitempty"`
	NVLinkTransmit *float64 `json:"nvlinkTransmitBytes,omitempty"`
	NVLinkReceive  *float64 `json:"nvlinkReceiveBytes,omitempty"`
}

// Consumer is a container that may use devices of the claim.
type Consumer struct {
	Pod       string   `json:"pod"`
	PodUID    string   `json:"podUid,omitempty"`
	Container string   `json:"container"`
	OwnerKind string   `json:"ownerKind,omitempty"`
	OwnerName string   `json:"ownerName,omitempty"`
	UUIDs     []string `json:"deviceUuids"`
	Ended     bool     `json:"ended,omitempty"` // it may not use them any more

	// Labels are those of its pod that were asked for and that it has, by
	// the names that Prometheus allows them.
	Labels map[string]string `json:"labels,omitempty"`
}

// since is the time from then to at; false if then is not known.
func since(at, then time.Time) (time.Duration, bool) {
	return max(at.Sub(then), 0), !then.IsZero()
}
