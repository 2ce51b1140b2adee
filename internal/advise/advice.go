package advise

import (
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/vendors"
	"github.com/dra-exporter/dra-exporter/internal/words"
)

// The limits of an advice, as docs/rightsizing.md explains them.
const (
	// memoryHeadroom is the share of a smaller device's memory that stays free at the
	// peak.
	memoryHeadroom = 0.1
	// largestActivity is the share of a smaller device's compute, and of its memory
	// bandwidth, that the work may need.
	largestActivity = 0.8
	// smallestShare is the smallest share of a device that is advised: one of so many.
	smallestShare = 8
	// confident is the length of a history that is no reason for doubt.
	confident = 5 * 24 * time.Hour
	// growth is how much more memory than before the last hours may need, as a factor,
	// and activityGrowth how much more activity, as a factor and at least.
	growth, activityGrowth, leastActivity = 1.05, 1.25, 0.1
	// constant is the share of the peak that memory never falls below if it does not
	// change, and pool that of the device which is then a pool of a framework.
	constant, pool = 0.98, 0.5
	// sharedAtMost is the share of the time for which a device may have been shared
	// with others whose use is not known.
	sharedAtMost = 0.05
	// unmeasuredAtMost is the share of the time for which the use of some device may be
	// unknown, and unmeasuredIfUnused the same where devices seem to be unused.
	unmeasuredAtMost, unmeasuredIfUnused = 0.1, 0.01
)

// Kinds of advice.
const (
	KindPartition = "partition" // a smaller partition
	KindShare     = "share"     // a share of a device
	KindDevices   = "devices"   // fewer devices
	KindRelease   = "release"   // none
)

// Confidence is how certain it is that the advised devices are enough.
type Confidence string

// The levels of confidence.
const (
	ConfidenceHigh   Confidence = "high"
	ConfidenceMedium Confidence = "medium"
	ConfidenceLow    Confidence = "low"
)

// Reason is why there is no advice.
type Reason string

// The reasons, in the order in which they are looked for.
const (
	ReasonHistory         Reason = "history"
	ReasonShared          Reason = "shared"
	ReasonMemoryUnknown   Reason = "memory_unknown"
	ReasonActivityUnknown Reason = "activity_unknown"
	ReasonSeveralDevices  Reason = "several_devices"
	ReasonLinked          Reason = "linked"
	ReasonGrowing         Reason = "growing"
	ReasonProfileUnknown  Reason = "profile_unknown"
	ReasonSmallest        Reason = "smallest"
	ReasonMemoryPool      Reason = "memory_pool"
	ReasonMemory          Reason = "memory"
	ReasonActivity        Reason = "activity"
	ReasonBandwidth       Reason = "bandwidth"
)

// meaning is what a reason means, as a sentence without its end.
type meaning struct {
	Reason  Reason
	Meaning string
}

// meanings returns what each reason means.
func meanings() []meaning {
	return []meaning{
		{ReasonHistory, "devices were held for less than a day in the range"},
		{ReasonShared, "devices are shared with other claims, or were for more than 5% of the time"},
		{ReasonMemoryUnknown, "the memory that it uses is not known for all of the time"},
		{ReasonActivityUnknown, "neither SM activity nor utilization is known for all devices and all of the time"},
		{ReasonSeveralDevices, "a claim uses several devices, and partitions of them cannot exchange data over NVLink"},
		{ReasonLinked, "devices exchange data over NVLink, which partitions cannot"},
		{ReasonGrowing, "the last 12 hours needed more than all before, so the need may still grow"},
		{ReasonProfileUnknown, "no smaller devices are known of this model, or its partition profile is not known"},
		{ReasonSmallest, "there is no smaller partition, or smaller share that is advised"},
		{ReasonMemoryPool, "used memory is constant and large, as of a framework that reserves memory when it starts: what is needed is not known"},
		{ReasonMemory, "no smaller device has the memory, with 10% to spare"},
		{ReasonActivity, "a smaller device would be busy for more than 80% of the time"},
		{ReasonBandwidth, "a smaller device would need more than 80% of its memory bandwidth"},
	}
}

// candidate is a smaller device.
type candidate struct {
	profile   string  // empty: a share
	memory    float64 // bytes
	compute   float64 // share of what is held
	bandwidth float64
	size      float64 // share of what is held that it occupies
}

// Advice is what would be enough.
type Advice struct {
	Kind    string  `json:"kind"`
	Profile string  `json:"partitionProfile,omitempty"`
	Share   float64 `json:"share,omitempty"`   // of a device
	Devices int     `json:"devices,omitempty"` // of a claim

	SavedDeviceHours float64            `json:"savedDeviceHours"` // in the range
	SavedCost        map[string]float64 `json:"savedCost,omitempty"`
	Confidence       Confidence         `json:"confidence"`
	Cautions         []string           `json:"cautions,omitempty"`

	doubts int
}

// adviceFor returns an advice, or the reason why there is none.
func adviceFor(h *history) (*Advice, Reason) {
	if reason := unknown(h); reason != "" {
		return nil, reason
	}
	compute := h.compute()
	if math.IsNaN(h.used) || h.used == 0 {
		advice := &Advice{Kind: KindRelease}
		advice.doubtHistory(h, compute)
		return h.saved(advice, 0), ""
	}
	if h.devices > 1 {
		if h.used >= h.devices {
			return nil, ReasonSeveralDevices
		}
		advice := &Advice{Kind: KindDevices, Devices: int(h.used)}
		advice.doubtHistory(h, compute)
		return h.saved(advice, h.used/h.devices), ""
	}
	switch {
	case h.nvlink > 0:
		return nil, ReasonLinked
	case h.memory.after > growth*h.memory.before, compute.after > max(activityGrowth*compute.before, compute.before+leastActivity):
		return nil, ReasonGrowing
	}
	candidates, reason := h.candidates()
	if reason != "" {
		return nil, reason
	}
	for _, c := range candidates {
		if reason = h.lacks(c, compute); reason == "" {
			advice := &Advice{Kind: KindPartition, Profile: c.profile}
			if c.profile == "" {
				advice.Kind, advice.Share = KindShare, c.size
			}
			advice.doubtHistory(h, compute)
			advice.doubtNeed(h, compute, c)
			return h.saved(advice, c.size), ""
		}
	}
	if h.memory.isKnown(h.held) && h.isConstant() && h.memory.peak >= pool*h.allocated {
		return nil, ReasonMemoryPool
	}
	return nil, reason // why the largest of them is too small
}

// unknown returns what is not known.
func unknown(h *history) Reason {
	switch {
	case h.held < Enough:
		return ReasonHistory
	case float64(h.shared) > sharedAtMost*float64(h.held), h.deviceSeconds < (1-2*sharedAtMost)*h.heldSeconds:
		return ReasonShared
	case !h.memory.isKnown(h.held) || math.IsNaN(h.allocated) || h.allocated <= 0:
		return ReasonMemoryUnknown
	case h.compute() == nil, float64(h.unmeasured) > unmeasuredAtMost*float64(h.held):
		return ReasonActivityUnknown
	case !(h.used >= max(h.devices, 1)) && float64(h.unmeasured) > unmeasuredIfUnused*float64(h.held):
		return ReasonActivityUnknown // what seems unused may be what is not measured
	}
	return ""
}

// compute returns the activity of the multiprocessors: SM activity, else the
// utilization, which is never less.
func (h *history) compute() *usage {
	return h.firstKnown(engineSM, utilization)
}

// bandwidth returns the use of the memory's bandwidth, or what is never less.
func (h *history) bandwidth() *usage {
	return h.firstKnown(engineDRAM, utilization)
}

func (h *history) firstKnown(quantities ...string) *usage {
	for _, quantity := range quantities {
		if u := h.activity[quantity]; u.isKnown(h.held) {
			return u
		}
	}
	return nil
}

// need is the share of what is held that the work needs: for most of the time the
// peaks of five minutes, and always their means.
func (u *usage) need() float64 { return larger(u.p99, u.sustained) }

func (h *history) isConstant() bool { return h.lowest >= constant*h.memory.peak }

// candidates returns the devices that are smaller than what is held, smallest first.
func (h *history) candidates() (all []candidate, reason Reason) {
	held := vendors.Partition{Memory: int64(h.allocated), SMs: 1, Size: 1}
	profiles := vendors.Partitions(h.requester.Model, int64(h.allocated))
	if h.requester.Profile != "" {
		ok := false
		if held, ok = vendors.PartitionOf(h.requester.Model, h.requester.Profile); !ok {
			return nil, ReasonProfileUnknown
		}
		profiles = vendors.Partitions(h.requester.Model, 0)
	}
	whole := float64(held.Memory)
	for _, p := range profiles {
		if p.Size >= held.Size || p.SMs >= held.SMs && p.Memory >= held.Memory {
			continue
		}
		all = append(all, candidate{p.Profile, float64(p.Memory), p.SMs / held.SMs, float64(p.Memory) / whole, p.Size / held.Size})
	}
	if len(profiles) == 0 && !vendors.Shareable(h.requester.Model) {
		return nil, ReasonProfileUnknown
	}
	if len(profiles) == 0 {
		for n := smallestShare; n >= 2; n-- {
			share := 1 / float64(n)
			all = append(all, candidate{memory: h.allocated * share, compute: share, bandwidth: share, size: share})
		}
	}
	if len(all) == 0 {
		return nil, ReasonSmallest
	}
	return all, ""
}

// lacks returns what the candidate has too little of.
func (h *history) lacks(c candidate, compute *usage) Reason {
	switch bandwidth := h.bandwidth(); {
	case h.memory.peak > (1-memoryHeadroom)*c.memory:
		return ReasonMemory
	case compute.need() > largestActivity*c.compute:
		return ReasonActivity
	case bandwidth != nil && bandwidth.need() > largestActivity*c.bandwidth:
		return ReasonBandwidth
	}
	return ""
}

func (a *Advice) doubt(weight int, format string, values ...any) {
	a.doubts += weight
	a.Cautions = append(a.Cautions, fmt.Sprintf(format, values...))
}

// doubtHistory adds what makes a history less certain.
func (a *Advice) doubtHistory(h *history, compute *usage) {
	if h.held < confident {
		a.doubt(1, "devices were held for %s only", duration(h.held))
	}
	if h.byProcesses > 0 {
		a.doubt(1, "use of shared devices is split by process")
	}
	if least := min(h.memory.time(), compute.time(), h.held-h.unmeasured); float64(least) < 0.99*float64(h.held) {
		a.doubt(1, "use is not known for %s", duration(h.held-least))
	}
}

// doubtNeed adds what makes it less certain that the candidate is enough.
func (a *Advice) doubtNeed(h *history, compute *usage, c candidate) {
	switch bandwidth := h.bandwidth(); {
	case compute == h.activity[utilization]:
		a.doubt(1, "SM activity is not known (--device.profiling); utilization is at least as high")
	case bandwidth == nil:
		a.doubt(1, "memory bandwidth is not known (--device.profiling); the advised device has %s of it", words.Percent(c.bandwidth))
	}
	if compute.peak > c.compute {
		a.doubt(0, "in less than 1%% of the time, short peaks of %s activity would take longer", words.Percent(compute.peak))
	}
	if h.isConstant() && h.memory.peak > 0.1*h.allocated {
		a.doubt(2, "used memory is constant: if a framework reserves a share of the device's memory, set its size")
	}
	for _, engine := range []string{decoder, encoder} {
		if u := h.activity[engine]; c.profile != "" && u != nil && u.peak > 0 {
			a.doubt(1, "the %s was in use: not all partition profiles have one", engine)
		}
	}
}

// saved completes an advice, of which a device costs the share of what is held.
func (h *history) saved(a *Advice, share float64) *Advice {
	a.SavedDeviceHours = h.deviceSeconds / 3600 * (1 - share)
	for currency, cost := range h.cost {
		if a.SavedCost == nil {
			a.SavedCost = map[string]float64{}
		}
		a.SavedCost[currency] = cost * (1 - share)
	}
	switch a.doubts {
	case 0:
		a.Confidence = ConfidenceHigh
	case 1:
		a.Confidence = ConfidenceMedium
	default:
		a.Confidence = ConfidenceLow
	}
	return a
}

// duration returns days or hours.
func duration(d time.Duration) string {
	if days := d.Hours() / 24; days >= 2 {
		return strconv.FormatFloat(math.Round(10*days)/10, 'f', -1, 64) + " days"
	}
	return strconv.FormatFloat(math.Round(10*d.Hours())/10, 'f', -1, 64) + " hours"
}
