package node

import (
	"maps"
	"slices"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/collector/model"
)

// holding is what the stages before determine about who holds devices.
type holding struct {
	again     bool // the views were joined again in this step
	views     []claimView
	uncertain []uncertainHold        // claims that may hold devices
	recreated map[dra.PodRef]bool    // see join
	plugins   []model.PluginConsumer // sorted

	unresolved []unresolvedPlugin
}

// uncountedReason is why the device-seconds of a held device are not counted.
type uncountedReason uint8

const (
	uncountedNoAPIServer uncountedReason = iota // several claims, each of which may have admin access
	uncountedPodGroup                           // pods on other nodes may use it, and a pod group names none
	uncountedShare                              // a claim has a share of it, of unknown size
	uncountedReasons
)

// String returns the reason label of dra_exporter_uncounted_devices.
func (r uncountedReason) String() string {
	return [uncountedReasons]string{uncountedNoAPIServer: "no_api_server", uncountedPodGroup: "pod_group", uncountedShare: "unknown_share"}[r]
}

// updateHolders determines the holders of all devices.
func updateHolders(devices *devices, held *holding, now clock.Instant) {
	for _, d := range devices.all() {
		d.holders.reset()
	}
	for i := range held.views {
		view := &held.views[i]
		for _, d := range view.devices {
			if d.admin {
				continue
			}
			h := &devices.get(d.uuid).holders
			h.add(consumption{view.ref, d.consumed, view.listedOnly && d.shareID != ""})
			h.missing = h.missing || view.missing
			h.listedOnly = h.listedOnly || view.listedOnly
			h.inGroup = h.inGroup || view.charge == chargedNowhere
		}
	}
	for i, p := range held.plugins {
		if i > 0 && held.plugins[i-1].UUID == p.UUID && held.plugins[i-1].Pod == p.Pod {
			continue // another container of the pod
		}
		if d := devices.get(p.UUID); d != nil {
			devices.keep(d, now)
			d.holders.plugins++
			d.holders.pods = append(d.holders.pods, p.Pod)
		}
	}
	for _, u := range held.uncertain {
		if d := devices.get(u.uuid); d != nil {
			d.holders.related++
		}
	}
	for i := range held.unresolved {
		for _, uuid := range held.unresolved[i].devices {
			if d := devices.get(uuid); d != nil {
				d.holders.possible++
			}
		}
	}
	relateInstances(devices)
	relatePartitions(devices)
}

// relatePartitions adds the holders of partitions to those of their parent, and
// the other way round: the parent's quantities contain the partitions'.
func relatePartitions(devices *devices) {
	for _, d := range devices.all() {
		if parent := devices.parent(d); d.device.IsPartition() && parent != nil {
			d.holders.possible = max(d.holders.possible, parent.holders.possible)
		}
	}
	for _, d := range devices.all() {
		whole := devices.parent(d)
		if !d.device.IsPartition() || whole == nil {
			continue
		}
		h, parent := &d.holders, &whole.holders
		parent.cut = parent.cut || d.present || h.isHeld()
		parent.related += h.claims + h.plugins
		parent.possible = max(parent.possible, h.possible)
		h.related += parent.claims + parent.plugins
	}
}

// relateInstances counts the holders of the other compute instances of a GPU
// instance: they have its memory in common, and a utilization each. Mostly a
// GPU instance is one compute instance, number 0.
func relateInstances(devices *devices) {
	all := devices.all()
	if !slices.ContainsFunc(all, func(d *deviceState) bool {
		return placed(d.device) && d.device.ComputeInstance > 0 && d.holders.isHeld()
	}) {
		return
	}
	count := make(map[string]int) // by GPU instance
	for _, d := range all {
		if placed(d.device) {
			count[gpuInstance(d.device)] += d.holders.count()
		}
	}
	for _, d := range all {
		if placed(d.device) {
			d.holders.siblings = count[gpuInstance(d.device)] - d.holders.count()
		}
	}
}

// markSharing sets the sharing of claims that hold a device that its driver
// lets several claims hold, and that another one does.
func markSharing(devices *devices, views []claimView) {
	for i := range views {
		view := &views[i]
		if view.info.sharing == sharingNone && slices.ContainsFunc(view.devices, func(d claimDevice) bool {
			hardware := devices.get(d.uuid)
			return hardware != nil && !d.admin && hardware.published.MultipleAllocations && hardware.holders.claims > 1
		}) {
			view.info.sharing = sharingCapacity
		}
	}
}

// countUncounted returns the number of devices whose device-seconds are not counted, by
// reason.
func countUncounted(devices *devices) []model.Counter {
	counts := make([]model.Counter, uncountedReasons)
	for because := range uncountedReasons {
		counts[because].Name = because.String()
	}
	for _, d := range devices.all() {
		if because, ok := d.holders.uncounted(); ok {
			counts[because].Count++
		}
	}
	return counts
}

// model returns how many hold the device.
func (h *deviceHolders) model() model.HolderCounts {
	return model.HolderCounts{Claims: h.claims, Plugins: h.plugins, Possible: h.possible}
}

// reset begins a step.
func (h *deviceHolders) reset() {
	*h = deviceHolders{
		device: h.device,
		shares: h.sharesBefore[:0], sharesBefore: h.shares,
		pods: h.podsBefore[:0], podsBefore: h.pods,
	}
}

// add counts a claim once, however often it holds the device, and adds up what
// it consumes of it.
func (h *deviceHolders) add(share consumption) {
	for i := range h.shares {
		if s := &h.shares[i]; s.claim == share.claim {
			s.consumed, s.hidden = added(s.consumed, share.consumed), s.hidden || share.hidden
			return
		}
	}
	h.claims++
	h.shares = append(h.shares, share)
}

func added(a, b map[string]float64) map[string]float64 {
	sum := maps.Clone(a)
	if sum == nil {
		sum = make(map[string]float64, len(b))
	}
	for name, value := range b {
		sum[name] += value
	}
	return sum
}

func (h *deviceHolders) count() int { return h.claims + h.plugins }

// isHeld reports whether a claim or a pod with a device plugin holds the device.
func (h *deviceHolders) isHeld() bool { return h.count() > 0 }

// changed reports whether the holders are others than those of the step before.
func (h *deviceHolders) changed() bool {
	sameClaim := func(a, b consumption) bool { return a.claim == b.claim }
	return !slices.EqualFunc(h.shares, h.sharesBefore, sameClaim) || !slices.Equal(h.pods, h.podsBefore)
}

// uncounted returns why device-seconds of the device are not known, of some
// claim at least; false if they are.
func (h *deviceHolders) uncounted() (because uncountedReason, ok bool) {
	switch {
	case h.listedOnly && h.claims > 1:
		return uncountedNoAPIServer, true
	case h.inGroup:
		return uncountedPodGroup, true
	case slices.ContainsFunc(h.shares, h.isUnknown):
		return uncountedShare, true
	default:
		return 0, false
	}
}

// isUnknown reports whether a share is of unknown size: it consumes something,
// and nothing is known of how much of it there is. It is not the whole device.
func (h *deviceHolders) isUnknown(share consumption) bool {
	if share.hidden || len(share.consumed) == 0 {
		return share.hidden
	}
	for name := range share.consumed {
		if h.capacity(name) > 0 {
			return false
		}
	}
	return true
}

// capacity is how much there is of a capacity of the device: as its driver
// publishes it, else the memory that the hardware has; 0: unknown.
func (h *deviceHolders) capacity(name string) float64 {
	if published := h.device.published.Capacity[name]; published > 0 || name != "memory" {
		return published
	}
	return h.device.size
}

// attribution is how a holder's numbers relate to the device's own.
func (h *deviceHolders) attribution() model.Attribution {
	switch {
	case h.count() > 1 || h.related > 0:
		return model.Shared
	case h.device.isPartition():
		return model.Partition
	default:
		return model.Exclusive
	}
}

// allocated is the memory of the device that a claim was given, bytes: what it
// consumes, else all of it; 0: unknown.
func (h *deviceHolders) allocated(claim dra.ClaimRef) float64 {
	for _, share := range h.shares {
		if memory, ok := share.consumed["memory"]; share.claim == claim && (ok || share.hidden) {
			return memory
		}
	}
	if h.device.size > 0 {
		return h.device.size
	}
	return h.device.published.Capacity["memory"]
}

// weight is the share of the device's time that a claim is charged for: its
// part of one capacity that all holders consume, else an equal part; false if
// the claim has a share of unknown size.
func (h *deviceHolders) weight(claim dra.ClaimRef) (weight float64, known bool) {
	capacity := h.sharedCapacity()
	sum, all := 0.0, 0.0
	for _, share := range h.shares {
		if share.claim == claim && h.isUnknown(share) {
			return 0, false
		}
		all += share.consumed[capacity]
		if share.claim == claim {
			sum = share.consumed[capacity]
		}
	}
	if capacity == "" {
		return 1 / float64(max(1, h.count())), true
	}
	// After a driver publishes less than before, more may be consumed than there
	// is; the device is still there once.
	return sum / max(all, h.capacity(capacity)), true
}

// sharedCapacity is the one capacity by which the device is divided: memory if
// every holder consumes it, else the alphabetically first that all consume;
// empty if there is none.
func (h *deviceHolders) sharedCapacity() string {
	if h.plugins > 0 {
		return ""
	}
	if h.allConsume("memory") {
		return "memory"
	}
	first := ""
	for name := range h.device.published.Capacity {
		if (first == "" || name < first) && h.allConsume(name) {
			first = name
		}
	}
	return first
}

// allConsume reports whether all holders consume a capacity of known size. Those
// whose share is unknown may.
func (h *deviceHolders) allConsume(capacity string) bool {
	if h.capacity(capacity) <= 0 {
		return false
	}
	consume := false
	for _, share := range h.shares {
		_, ok := share.consumed[capacity]
		if !ok && !h.isUnknown(share) {
			return false
		}
		consume = consume || ok
	}
	return consume
}
