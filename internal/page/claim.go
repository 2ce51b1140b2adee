package page

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

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
	Topology         []Alignment   `json:"topology,omitempty"` // of its devices on this node
}

// Alignment is how near devices are to each other, and how near they could be on the
// node at best.
type Alignment struct {
	Between string `json:"between"`   // devices: with each other; network: each with its nearest network adapter
	Is      string `json:"alignment"` // link, pcie_root, numa_node, unknown or crossing
	Best    string `json:"best"`      // likewise
}

// Title says what the alignment is of.
func (a Alignment) Title() string {
	if a.Between == "network" {
		return "Devices and network"
	}
	return "Devices"
}

// Text says how near they are, in words, and what would be nearer.
func (a Alignment) Text() string {
	text := alignmentText(a.Is)
	if a.Best != a.Is {
		text += "; at best on this node: " + alignmentText(a.Best)
	}
	return text
}

func alignmentText(name string) string {
	return cmp.Or(map[string]string{
		"link": "connected by NVLink or xGMI", "pcie_root": "same PCIe root complex", "numa_node": "same NUMA node", "crossing": "different NUMA nodes",
	}[name], name)
}

// Severity returns the worst severity of the devices that the claim holds.
func (c Claim) Severity() Severity {
	worst := Unknown
	for _, d := range c.Devices {
		if d.Held && d.Health != nil {
			worst = min(worst, d.Health.Severity())
		}
	}
	return worst
}

// Labels are those of the pods that use the claim now, each once.
func (c Claim) Labels() []Label {
	var labels []Label
	for _, consumer := range c.Consumers {
		for name, value := range consumer.Labels {
			if label := (Label{name, value}); !consumer.Ended && !slices.Contains(labels, label) {
				labels = append(labels, label)
			}
		}
	}
	slices.SortFunc(labels, func(a, b Label) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Value, b.Value))
	})
	return labels
}

// ClaimDevice is a claim's use of one device. A device that the claim was
// allocated twice is one ClaimDevice with two allocations.
type ClaimDevice struct {
	UUID        string       `json:"uuid"`
	ParentUUID  string       `json:"parentUuid,omitempty"` // of a partition
	ParentName  string       `json:"parentName,omitempty"` // likewise
	Model       string       `json:"model,omitempty"`
	Profile     string       `json:"profile,omitempty"`        // of a partition
	Bundled     int          `json:"bundledDevices,omitempty"` // number of devices of a bundle; 0: it is one device
	Held        bool         `json:"held"`
	Attribution string       `json:"attribution,omitempty"` // present attribution of all quantities that are not split
	Allocations []Allocation `json:"allocations"`
	ClaimGauges
	HeldSeconds   *float64  `json:"heldSeconds,omitempty"`
	DeviceSeconds *float64  `json:"deviceSeconds,omitempty"`
	Accounts      []Account `json:"accounts"`
	Pods          []PodUse  `json:"pods,omitempty"`         // what each of them does, where several use the device
	Unattributed  *Use      `json:"unattributed,omitempty"` // by processes of no holder; the device's, not the claim's
	Price         *Price    `json:"price,omitempty"`        // of an hour of the whole device
	Health        *Health   `json:"health,omitempty"`
	ParentHealth  *Health   `json:"parentHealth,omitempty"` // of a partition: that of the whole device

	Hour []float64 `json:"-"` // utilization by the claim in the last hour, as History has it
}

func (c ClaimDevice) name() string {
	switch {
	case c.Bundled > 0:
		return bundleTitle(c.Bundled, c.UUID)
	case len(c.Allocations) == 0:
		return ""
	default:
		return c.Allocations[0].Device
	}
}

// setAttribution sets the attribution of a device without gauges that have it:
// a device that is split by processes has several holders; while the readings
// are stale, it is that of the accounts, if all of them have the same.
func (c *ClaimDevice) setAttribution() {
	if c.Attribution != "" || !c.Held {
		return
	}
	if c.UtilizationAttribution == ByProcess || c.MemoryAttribution == ByProcess {
		c.Attribution = NotSplit
		return
	}
	for i, account := range c.Accounts {
		held := account.Attribution
		if held == ByProcess {
			held = NotSplit
		}
		if i > 0 && held != c.Attribution {
			c.Attribution = ""
			return
		}
		c.Attribution = held
	}
}

// UseAttribution returns process if the claim's use is split by processes, or
// else how it holds the device.
func (c ClaimDevice) UseAttribution() string {
	if c.UtilizationAttribution == ByProcess || c.MemoryAttribution == ByProcess {
		return ByProcess
	}
	return c.Attribution
}

// use returns the use by the claim's processes, as far as it is split; nil if
// nothing is.
func (c ClaimDevice) use() *Use {
	var use Use
	if c.UtilizationAttribution == ByProcess {
		use.Utilization = c.Utilization
	}
	if c.MemoryAttribution == ByProcess {
		use.MemoryUsed = c.MemoryUsed
	}
	return use.known()
}

// BusyAccounts are those that count busy time.
func (c ClaimDevice) BusyAccounts() []NamedAccount {
	return c.accounts(0.05, func(a Account) *float64 { return a.Busy })
}

// EnergyAccounts are those that count energy.
func (c ClaimDevice) EnergyAccounts() []NamedAccount {
	return c.accounts(180, func(a Account) *float64 { return a.Energy })
}

// accounts returns the accounts without those that would be shown as 0, unless
// all are. A claim has accounts from its start on a device.
func (c ClaimDevice) accounts(least float64, total func(Account) *float64) []NamedAccount {
	var named []NamedAccount
	for _, account := range c.Accounts {
		if total(account) != nil {
			named = append(named, NamedAccount{account, unsplit(account.Attribution)})
		}
	}
	little := func(a NamedAccount) bool { return *total(a.Account) < least }
	if slices.ContainsFunc(named, func(a NamedAccount) bool { return !little(a) }) {
		named = slices.DeleteFunc(named, little)
	}
	for i := range named {
		named[i].Named = named[i].Named || len(named) > 1
	}
	return named
}

// ClaimGauges is how a claim uses a device at present, in this package's documents
// and in those of top. What is unknown is nil, empty or the zero time.
type ClaimGauges struct {
	Utilization            *float64  `json:"utilizationRatio,omitempty"`
	UtilizationAttribution string    `json:"utilizationAttribution,omitempty"`
	MemoryUsed             *float64  `json:"memoryUsedBytes,omitempty"`
	MemoryAttribution      string    `json:"memoryAttribution,omitempty"`
	MemoryAllocated        *float64  `json:"memoryAllocatedBytes,omitempty"`
	Power                  *float64  `json:"powerWatts,omitempty"`
	IdleSince              time.Time `json:"idleSince,omitzero"`
}

// WholeUtilization and WholeMemory report whether the value is the whole device's,
// which several claims share.
func (g ClaimGauges) WholeUtilization() bool {
	return g.Utilization != nil && unsplit(g.UtilizationAttribution)
}

// WholeMemory is like WholeUtilization.
func (g ClaimGauges) WholeMemory() bool { return g.MemoryUsed != nil && unsplit(g.MemoryAttribution) }

// Allocation is a device as a request of the claim got it.
type Allocation struct {
	Request string `json:"request,omitempty"`
	Class   string `json:"deviceClass,omitempty"`
	Driver  string `json:"driver"`
	Pool    string `json:"pool"`
	Device  string `json:"device"`
	ShareID string `json:"shareId,omitempty"`
}

// Account is the totals while the device was held with one attribution. Totals
// under shared are the device's own and are not added up.
type Account struct {
	Attribution    string   `json:"attribution"`
	Busy           *float64 `json:"busySeconds,omitempty"`
	Energy         *float64 `json:"energyJoules,omitempty"`
	NVLinkTransmit *float64 `json:"nvlinkTransmitBytes,omitempty"`
	NVLinkReceive  *float64 `json:"nvlinkReceiveBytes,omitempty"`
}

// NamedAccount is an account as the page shows it: by name where there are
// several, or where its total is the device's own.
type NamedAccount struct {
	Account
	Named bool
}

// Consumer is a container that may use devices of the claim.
type Consumer struct {
	Pod       string   `json:"pod"`
	PodUID    string   `json:"podUid,omitempty"`
	Container string   `json:"container"`
	OwnerKind string   `json:"ownerKind,omitempty"`
	OwnerName string   `json:"ownerName,omitempty"`
	UUIDs     []string `json:"deviceUuids"`
	Ended     bool     `json:"ended,omitempty"` // it may no longer use them

	Workload *PodWorkload `json:"workload,omitempty"` // of the pod; nil: it is unknown
	Topology []Alignment  `json:"topology,omitempty"` // of the devices of all of the pod's claims

	// Labels are the configured labels of its pod, if set, by their Prometheus
	// names.
	Labels map[string]string `json:"labels,omitempty"`
}

// PodWorkload is what a pod runs for, and the pod's place in it.
type PodWorkload struct {
	Kind    string `json:"kind"`
	Name    string `json:"name"`
	Role    string `json:"role,omitempty"`
	Replica string `json:"replica,omitempty"` // index
	Rank    string `json:"rank,omitempty"`    // index within the role, or within the replica
	Queue   string `json:"queue,omitempty"`
}

// Owner returns the kind and the name of the pod's workload, else of its
// controller; empty without both.
func (c Consumer) Owner() (kind, name string) {
	if c.Workload != nil {
		return c.Workload.Kind, c.Workload.Name
	}
	return c.OwnerKind, c.OwnerName
}

// Place is the pod's place in its workload, in words: role, replica and rank, as
// far as they are known.
func (w *PodWorkload) Place() string {
	if w == nil {
		return ""
	}
	var parts []string
	for _, part := range []struct{ title, value string }{{"", w.Role}, {"replica ", w.Replica}, {"rank ", w.Rank}} {
		if part.value != "" {
			parts = append(parts, part.title+part.value)
		}
	}
	return strings.Join(parts, " · ")
}

// PodUse is the use of a device by one pod, through any claim or device plugin.
type PodUse struct {
	Pod string `json:"pod"`
	Use
}

// Label is a label of a pod, by its Prometheus name.
type Label struct{ Name, Value string }

// The attributions that this package interprets; others are shown as they are.
const (
	ByProcess = "process" // what the claim's processes do
	NotSplit  = "shared"  // the device's own
)

// unsplit reports whether values with an attribution are those of the whole
// device.
func unsplit(attribution string) bool { return attribution == NotSplit }
