// Package page shows the model of a role as HTML pages that refresh themselves, and as
// JSON: for each role, a view is made of the model, and rendered.
package page

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/vendors"
)

// View is a node at one time. What is unknown is nil, empty or the zero time,
// never a number. The JSON names of claims are those of docs/api.md.
type View struct {
	Node      string
	Version   string    // of the exporter
	At        time.Time // time of the view
	SampledAt time.Time // when the newest readings were taken
	Sources   []Source  // by name

	// ProcessAttribution is ok if shared devices are split by process, or why they
	// are not; empty: unknown.
	ProcessAttribution string

	// Released is why the GPUs of the node are released, so that the agent does not read them;
	// empty: they are not.
	Released string

	Devices []Device // whole devices, unhealthy ones first, then by published name; partitions lie within
	Claims  []Claim  // claims with unhealthy devices first, then by namespace and name

	Totals       []Totals  // by namespace, class and model
	CountedSince time.Time // when the oldest of the totals began at zero
}

// Age is how old the newest readings are; false before the first.
func (v View) Age() (time.Duration, bool) { return since(v.At, v.SampledAt) }

// Count is how many devices the node has. A partition without a known whole
// device also counts as a partition.
func (v View) Count() DeviceCount {
	var count DeviceCount
	for _, device := range v.Devices {
		count.Devices += 1 + len(device.Partitions)
		count.Partitions += len(device.Partitions)
		if device.ParentUUID != "" {
			count.Partitions++
		}
	}
	count.Whole = count.Devices - count.Partitions
	held := map[string]bool{}
	for _, claim := range v.Claims {
		for _, device := range claim.Devices {
			if device.Held {
				held[device.UUID] = true
			}
		}
	}
	count.Held = len(held)
	return count
}

// Summary counts and adds up what the view shows. A partition's use is part
// of its parent's and is not added again.
func (v View) Summary() Summary {
	var s Summary
	for _, device := range v.Devices {
		s.Devices++
		if device.Free() {
			s.Free++
		}
		switch device.Severity() {
		case Unhealthy:
			s.Unhealthy++
		case Recovering:
			s.Recovering++
		}
		s.Utilization.add(device.Utilization)
		s.Memory.add(device.MemoryUsed, device.MemorySize)
		s.Power.add(device.Power, device.PowerLimit)
	}
	for _, claim := range v.Claims {
		if claim.Held {
			s.ClaimsHeld++
		}
	}
	return s
}

// Unhealthy returns the unhealthy devices: whole ones with all who hold them or
// a partition of them, and partitions of devices that are not unhealthy
// themselves.
func (v View) Unhealthy() []UnhealthyDevice {
	var unhealthy []UnhealthyDevice
	for _, device := range v.Devices {
		whole := UnhealthyDevice{device, device.Holders}
		for _, partition := range device.Partitions {
			whole.Affected = append(slices.Clip(whole.Affected), partition.Holders...)
			if device.Health.Severity() != Unhealthy && partition.Health.Severity() == Unhealthy {
				unhealthy = append(unhealthy, UnhealthyDevice{partition, partition.Holders})
			}
		}
		if device.Health.Severity() == Unhealthy {
			unhealthy = append(unhealthy, whole)
		}
	}
	return unhealthy
}

// ByNamespace adds up the totals of each namespace.
func (v View) ByNamespace() []NamespaceUse {
	var uses []NamespaceUse
	for _, totals := range v.Totals { // sorted by namespace
		if last := len(uses) - 1; last < 0 || uses[last].Namespace != totals.Namespace {
			uses = append(uses, NamespaceUse{Namespace: totals.Namespace})
		}
		uses[len(uses)-1].add(totals)
	}
	return uses
}

// Total is over all namespaces.
func (v View) Total() NamespaceUse {
	var total NamespaceUse
	for _, totals := range v.Totals {
		total.add(totals)
	}
	return total
}

// Counted returns for how long totals have been counted; false if that is
// unknown.
func (v View) Counted() (time.Duration, bool) { return since(v.At, v.CountedSince) }

// AnyUnsplit reports whether a claim is shown the whole of a device that it
// shares.
func (v View) AnyUnsplit() bool {
	return slices.ContainsFunc(v.Claims, func(claim Claim) bool {
		return slices.ContainsFunc(claim.Devices, func(device ClaimDevice) bool {
			return device.Held && (unsplit(device.UtilizationAttribution) || unsplit(device.MemoryAttribution))
		})
	})
}

// Remedy is why shared devices are not split by process, and what to do.
func (v View) Remedy() string { return remedy(v.ProcessAttribution) }

// nameParents sets the names of whole devices in their partitions, and in what claims
// get of these.
func (v *View) nameParents() {
	names := map[string]string{}
	for i := range v.Devices {
		whole := &v.Devices[i]
		if len(whole.Partitions) == 0 {
			continue
		}
		names[whole.UUID] = whole.Title()
		for j := range whole.Partitions {
			whole.Partitions[j].ParentName = whole.Title()
		}
	}
	for i := range v.Claims {
		for j := range v.Claims[i].Devices {
			device := &v.Claims[i].Devices[j]
			device.ParentName = names[device.ParentUUID]
		}
	}
}

// Source is one source of facts: a device library, the kubelet, a resource of
// the API server.
type Source struct {
	Name        string
	Up          bool
	Reason      string // why not, or what is amiss though it is up
	Message     string // the same for people, with the remedy
	LastSuccess time.Time
	Age         time.Duration // since the last success, if there was one
}

// Device is a whole device or a partition.
type Device struct {
	UUID       string
	ParentUUID string // of a partition
	ParentName string // likewise: the name of its whole device
	Matched    bool   // its hardware is known; otherwise it has no quantities
	Vendor     string
	Model      string
	PCIBusID   string
	PCIeRoot   string // root complex
	NUMANode   string // number
	LinkDomain string // NVLink domain or xGMI hive
	Hardware   Hardware
	Published  DeviceName
	Bundled    int // number of devices of a bundle; 0: it is one device
	Health     Health
	Prices     []Price // of an hour; several where it is held through classes that differ

	Profile                      string // of a partition
	GPUInstance, ComputeInstance string // ids of a MIG partition

	Utilization *float64  // ratio
	Hour        []float64 // utilization in the last hour, as History has it
	MemoryUsed  *float64  // bytes
	MemorySize  *float64  // bytes
	Power       *float64  // watts
	PowerLimit  *float64  // watts
	Temperature *float64  // celsius, of the device itself

	// Unattributed is the use by processes of no holder. Nil: its processes are
	// unknown.
	Unattributed *Use

	Holders    []Holder
	Partitions []Device
}

// Hardware identifies a whole device for repair or replacement. What is not
// known is empty.
type Hardware struct {
	Serial          string `json:"serial,omitempty"` // of the board
	BoardPartNumber string `json:"boardPartNumber,omitempty"`
	VBIOS           string `json:"vbios,omitempty"`
	MinorNumber     string `json:"minorNumber,omitempty"` // N of /dev/nvidiaN
	Index           string `json:"index,omitempty"`       // in the vendor's tool
	ModuleID        string `json:"moduleId,omitempty"`    // place on the baseboard
	ChassisSerial   string `json:"chassisSerial,omitempty"`
	Slot            string `json:"slot,omitempty"` // of the chassis
	Tray            string `json:"tray,omitempty"` // of the chassis
}

// DeviceName is the name under which a driver publishes a device.
type DeviceName struct {
	Driver, Pool, Device string
}

// Title returns the device's title: its name, else its model, else its UUID.
// The title of a partition without a name has its profile and its whole device.
func (d Device) Title() string {
	switch name := d.name().Device; {
	case d.Bundled > 0:
		return bundleTitle(d.Bundled, d.UUID)
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

// bundleTitle returns the title of a bundle, whose uuid is NODE/DRIVER/claim:….
func bundleTitle(count int, uuid string) string {
	_, driver, _ := strings.Cut(uuid, "/")
	driver, _, _ = strings.Cut(driver, "/")
	return fmt.Sprintf("%d devices of %s", count, driver)
}

// name returns the device's published name. NVIDIA's driver publishes no GPU in
// MIG mode, but its MIG devices, whose names begin with the GPU's: gpu-5 of
// gpu-5-mig-1g10gb-19-6. If all of them agree, that is the GPU's name.
func (d Device) name() DeviceName {
	if d.Published.Device != "" || len(d.Partitions) == 0 {
		return d.Published
	}
	var name DeviceName
	for _, partition := range d.Partitions {
		stem, _, isMIG := strings.Cut(partition.Published.Device, "-mig-")
		whole := DeviceName{Driver: partition.Published.Driver, Pool: partition.Published.Pool, Device: stem}
		switch {
		case partition.Published.Device == "": // without a published name
		case !isMIG || whole.Driver != vendors.NVIDIADriver || name.Device != "" && name != whole:
			return d.Published
		default:
			name = whole
		}
	}
	return name
}

// Free reports whether neither the device nor a partition of it is held.
func (d Device) Free() bool {
	return len(d.Holders) == 0 && !slices.ContainsFunc(d.Partitions, func(partition Device) bool { return len(partition.Holders) > 0 })
}

// Severity is the worst of the device and its partitions.
func (d Device) Severity() Severity {
	worst := d.Health.Severity()
	for _, partition := range d.Partitions {
		worst = min(worst, partition.Health.Severity())
	}
	return worst
}

// Use is how processes use a device. What is unknown is nil.
type Use struct {
	Utilization *float64 `json:"utilizationRatio,omitempty"`
	MemoryUsed  *float64 `json:"memoryUsedBytes,omitempty"`
}

// known returns the use, nil if nothing of it is known.
func (u Use) known() *Use {
	if u.Utilization == nil && u.MemoryUsed == nil {
		return nil
	}
	return &u
}

// Something reports whether the device is in use.
func (u *Use) Something() bool {
	some := func(value *float64) bool { return value != nil && *value > 0 }
	return u != nil && (some(u.Utilization) || some(u.MemoryUsed))
}

// Holder is a claim, or a pod that got the device through a device plugin.
type Holder struct {
	Kind        HolderKind
	Namespace   string // of the claim or the pod
	Claim       string
	Class       string // of a claim: its device class
	Attribution string // of a claim: exclusive, partition, process or shared; empty if no quantity has it
	Use         *Use   // use by its own processes, if it is split
	Resource    string // of a device plugin: nvidia.com/gpu
	IdleSince   time.Time
	Pods        []Pod
}

// HolderKind distinguishes claims from device plugins.
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
	Use             *Use // if it is split by the pods of the holder
}

// DeviceCount is how many devices a node has, as docs/glossary.md defines it. A
// device is what can be allocated by itself: a whole device, or a partition of
// one. The page, the JSON and top use these numbers.
type DeviceCount struct {
	Devices    int `json:"devices"` // Whole and Partitions together
	Whole      int `json:"whole"`
	Partitions int `json:"partitions"`
	Held       int `json:"held"` // by claims, each once
}

// Summary is the node in a few numbers, over whole devices. A sum is over the
// devices whose use is known; what it is a part of is known only where it is
// known for each of them.
type Summary struct {
	Devices, Free int // whole ones
	ClaimsHeld    int
	Utilization   Mean
	Memory, Power Sum
	Unhealthy     int // whole devices that are unhealthy, or have an unhealthy partition
	Recovering    int // likewise, of those that are not unhealthy
}

// Mean is a mean over Count devices; nil over none.
type Mean struct {
	Value *float64
	Count int
}

func (m *Mean) add(value *float64) {
	if value == nil {
		return
	}
	if m.Count++; m.Value != nil {
		value = new(*m.Value + (*value-*m.Value)/float64(m.Count))
	}
	m.Value = value
}

// Sum is how much of how much, over Count devices; Used is nil over none.
type Sum struct {
	Used, Whole *float64
	Count       int
}

func (s *Sum) add(used, whole *float64) {
	if used == nil {
		return
	}
	if s.Count == 0 {
		s.Used, s.Whole = plus(used, new(float64)), plus(whole, new(float64))
	} else {
		s.Used, s.Whole = plus(s.Used, used), plus(s.Whole, whole)
	}
	s.Count++
}

// UnhealthyDevice is an unhealthy device with the holders that are affected.
type UnhealthyDevice struct {
	Device
	Affected []Holder
}

// Price is the price of an hour of a device.
type Price struct {
	PerHour  float64 `json:"perHour"`
	Currency string  `json:"currency"`
}

// Totals are the totals of a namespace's claims, deleted ones included, on
// devices of one class and model since the exporter started.
type Totals struct {
	Namespace     string   `json:"namespace"`
	Class         string   `json:"deviceClass,omitempty"`
	Model         string   `json:"model,omitempty"`
	DeviceSeconds *float64 `json:"deviceSeconds,omitempty"`
	SharedSeconds *float64 `json:"sharedDeviceSeconds,omitempty"` // the part whose use is not split
	BusySeconds   *float64 `json:"busySeconds,omitempty"`
	Energy        *float64 `json:"energyJoules,omitempty"`
	Cost          *float64 `json:"cost,omitempty"`
	Currency      string   `json:"currency,omitempty"`
}

// NamespaceUse is a namespace's totals over all classes and models.
type NamespaceUse struct {
	Namespace                    string
	Device, Shared, Busy, Energy *float64 // seconds, joules; of the totals that are known
	Cost                         *float64
	Currency                     string
	Unpriced                     *float64 // device-seconds without a price, nil if all have one
}

func (u *NamespaceUse) add(t Totals) {
	u.Device, u.Shared = orPlus(u.Device, t.DeviceSeconds), orPlus(u.Shared, t.SharedSeconds)
	u.Busy, u.Energy = orPlus(u.Busy, t.BusySeconds), orPlus(u.Energy, t.Energy)
	u.Cost, u.Currency = orPlus(u.Cost, t.Cost), cmp.Or(u.Currency, t.Currency)
	if t.Cost == nil {
		u.Unpriced = orPlus(u.Unpriced, t.DeviceSeconds)
	}
}

// remedy returns why shared devices are not split by process, and what to do
// about it; empty if they are, or if that is unknown.
func remedy(state string) string {
	return map[string]string{
		"disabled":      "--no-device.processes turns it off. Remove that flag to enable it.",
		"pid_namespace": "The exporter cannot see the node's processes, or has not connected to the kubelet yet. Deploy it with the kustomize component process-attribution, which sets hostPID.",
		"no_procfs":     "The exporter cannot read procfs, which it needs to find the pod of a process. Set --path.procfs.",
		"no_pods":       "Processes cannot be assigned until the API server has reported the pods. Remove --kubernetes.disable; check the source pods.",
		"unsupported":   "No device source here lists processes. NVML does: add --device.source=nvml on nodes with NVIDIA's driver.",
	}[state]
}
