package node

import (
	"time"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/device"
	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/collector/model"
	"github.com/dra-exporter/dra-exporter/collector/price"
	"github.com/dra-exporter/dra-exporter/collector/vendors"
)

// deviceState is one device: hardware, a partition of it, or a held device whose
// hardware is not known.
type deviceState struct {
	uuid     string
	hardware bool // false: only its published name is known
	device   device.Device
	source   string
	sample   device.Sample // of this step, if it is present

	published   dra.PublishedDevice // last known; its ID is empty while unmatched
	isPublished bool
	inSlice     bool // the driver publishes it now

	at       clock.Instant              // of the newest readings; zero: never read
	newer    bool                       // they came in this step
	fresh    bool                       // at is recent enough for gauges
	released bool                       // its source is closed on purpose
	linked   bool                       // some of its NVLinks are up
	readings []device.Reading           // sorted by quantity
	offsets  [device.Quantities + 1]int // where each quantity begins in readings
	size     float64                    // last known memory size, bytes; 0: unknown

	processes []device.Process // as listed last
	listedAt  clock.Instant    // zero: never
	xids      []device.XID     // by code; nil: not watched now
	xidSource string           // of xids; need not be the source of the readings

	seen       clock.Instant // last step in which it was sampled or held
	present    bool          // it is in the samples of this step
	wasPresent bool          // and of the step before

	known         deviceDriver    // see driver
	shownIdentity *model.Identity // as in the model before
	shownDetails  *model.Details

	// What each stage keeps of the device.
	holders   deviceHolders
	growth    deviceGrowth
	split     *deviceSplit // nil: its processes have not been listed
	prices    devicePrices
	health    deviceHealth
	incidents deviceIncidents
}

// deviceHolders is who holds a device in the present step.
type deviceHolders struct {
	device   *deviceState
	claims   int  // distinct claims, admin access not counted
	plugins  int  // distinct pods with device plugins
	possible int  // further pods whose device plugin may have given it, or a partition of it: it is not free
	related  int  // holders of the parent, or of any partition; claims that may be holders
	siblings int  // holders of other compute instances of its GPU instance
	cut      bool // it is divided into partitions, or will be: one is held
	missing  bool // the pods of a claim that holds it may have ended, see claimView

	shares       []consumption // of each claim
	sharesBefore []consumption // in the step before
	listedOnly   bool          // a claim that only the kubelet's List reports: it may have admin access
	inGroup      bool          // a claim whose device-seconds no node counts, see charging
	pods         []dra.PodRef  // with device plugins, sorted
	podsBefore   []dra.PodRef
}

// consumption is what one claim consumes of a device that several may share.
type consumption struct {
	claim    dra.ClaimRef
	consumed map[string]float64
	hidden   bool // only the kubelet's List has the share: what it consumes is not known
}

// deviceGrowth is the growth of the quantities of one device.
type deviceGrowth struct {
	device    *deviceState
	source    string // of the last measurements
	unread    bool   // counters have not been observed since the newest readings came
	meters    [meters]growth
	throttled []reasonGrowth // throttled time
	busy      tally
	idle      idlePower
}

type reasonGrowth struct {
	reason string
	growth
}

// growth is how much a quantity that accrues has grown between two of its
// measurements.
type growth struct {
	known  bool          // the quantity has been read on this device
	based  bool          // value is where the next growth begins
	origin uint16        // of value, see device.Reading
	value  float64       // of a counter: the highest since its last reset
	at     device.Window // when value was measured
	grew   bool          // there is a newer measurement in this step
	reset  bool          // the counter began again at zero between the two
	gap    time.Duration // when the device was read last before it was released; 0: it has not been since it was measured
	across bool          // it was released between the two
	amount float64
	from   device.Window // the measurement before
	rate   float64       // per second, when it grew last
}

// idlePower is the power of a device while nothing held it and it was not used: the
// lowest of the medians of idleReadings readings in a row, because a single reading of
// a sensor may be far too low. Of fewer readings it is the highest.
type idlePower struct {
	recent []float64 // readings, watts, the oldest first
	lowest float64   // watts; 0: not known
}

// deviceSplit is the use of a whole device by the processes of each holder. It is
// computed from the last complete list of processes and the device's holders.
type deviceSplit struct {
	list processList
	users

	reported     [usages]bool // every process reports it, and the user of each process is known
	known        [usages]bool // and so is the device's own value, which limits the sum
	unattributed amounts      // of processes that belong to no holder
	listed       bool         // the processes are known
	foreign      int          // those of pods that hold nothing of the device
	orphans      int          // and have no admin access to it either

	// What lists have shown so far. A device at rest must not look as if its use
	// could be split if it cannot be as soon as processes work: then its idle time
	// alone would be known.
	unreported [usages]bool // by some process of the last list that had any
	server     int          // pid of the MPS server that is reported to do its clients' work; 0: none is
	servers    map[int]bool // pids of processes that were listed beside clients of MPS: they may be their server
}

// processList is the processes of a device and their owners.
type processList struct {
	at        clock.Instant // when they were listed; zero: never
	processes []device.Process
	owners    []dra.Owner // of each process
	next      []dra.Owner // of the list that is being applied
}

// users are the pods that may use a device because they hold it.
type users struct {
	pods    []user    // sorted by name
	parts   []portion // one for each claim that holds the device
	unnamed bool      // pods that are not known may hold it

	monitors []string      // UIDs of pods with admin access
	since    clock.Instant // when its holders became these

	byUID       map[string]int // positions in pods
	byContainer map[string]int
}

// user is a pod that holds a device.
type user struct {
	pod        dra.PodRef
	uid        string         // empty: not known
	holds      []int          // through which claims, as positions in parts; throughPlugin for device plugins
	containers []containerUse // which of them each of its containers uses
	amounts    amounts
}

// containerUse is the holds that a container may use.
type containerUse struct {
	name, id string
	holds    []int
}

// portion is the use of a device by a claim's processes.
type portion struct {
	claim     dra.ClaimRef
	ambiguous bool // its pods do not show which processes are the claim's
	uncertain bool // nor do the processes of the last list
	amounts   amounts
}

// devicePrices is what a device costs, and what that was looked up by.
type devicePrices struct {
	classes []string // of the claims that hold the device; one empty class if none does
	asked   struct {
		list    *price.Prices
		classes []string
		device  price.PricedDevice
	}
	facts factList[model.Price] // past ones for the grace, as released holds are priced by them; all by the list in use
}

// deviceHealth is the health of one device. docs/health.md describes how it is
// determined.
type deviceHealth struct {
	device   *deviceState
	source   string // of the samples that watches have observed
	watches  watches
	xids     xidCounts
	raised   []raised // the signals that are present, in the order of their ids
	violated uint8    // constraints of the signals that were present before, a bit each
	examined uint64   // quantities that have been examined before, a bit each
	reports  [reporters]report

	shownSignals []model.Signal // of those that are raised; nil: outdated
	shownTaints  []dra.Taint    // each once
	taints       []dra.Taint    // that shownTaints was made from
}

// raised is a signal that is present: from its onset until it has not been raised
// for the hold.
type raised struct {
	signal    signalID
	critical  bool
	inherited bool          // it was there when its quantity was first read: the onset was not observed
	since     clock.Instant // its onset
	last      clock.Instant // when it was last raised, or could not be examined
}

// reporter is a source of a device's health.
type reporter int

const (
	byDriver reporter = iota
	byHardware
	byKubelet
	reporters
)

func (r reporter) String() string {
	return [reporters]string{byDriver: "driver", byHardware: "hardware", byKubelet: "kubelet"}[r]
}

// report is what a reporter reports.
type report = model.Report

const (
	unreported = model.Unreported
	unhealthy  = model.Unhealthy
	healthy    = model.Healthy
)

// deviceIncidents is what is present on one device. Of a partition, only driver is used:
// the rest is part of the device that it is cut from.
type deviceIncidents struct {
	driver   report  // by its taints, when they were last known
	present  kindSet // of this step, those of its partitions included
	begun    kindSet // of those, the ones whose beginning is known
	before   kindSet // present in the step before
	watched  kindSet // for what the device or a partition of it is watched
	earlier  kindSet // watched in the step before
	failures tally   // while it was held
}

// deviceDriver is the DRA driver of a device, and what it was looked up by: that is too
// slow to be done for every device in every step.
type deviceDriver struct {
	named, published, vendor string

	name     string // empty: it is not known
	kind     vendors.DeviceKind
	measured bool // a source reads its devices
}

// kindSet is a set of kinds of incidents, a bit each.
type kindSet uint16
