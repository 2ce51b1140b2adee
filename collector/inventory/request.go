package inventory

import (
	resourcev1 "k8s.io/api/resource/v1"

	"github.com/dra-exporter/dra-exporter/collector/dra"
)

// Request is one request of a claim, or one alternative of a prioritized list,
// so far as it can be judged for each device alone.
type Request struct {
	Class       string
	Selectors   []resourcev1.DeviceSelector // the request's own; those of its class are asked before
	Tolerations []resourcev1.DeviceToleration
	Capacity    *resourcev1.CapacityRequirements
	AdminAccess bool // what is allocated to others does not matter
}

// Exactly is the Request of an exact device request.
func Exactly(request *resourcev1.ExactDeviceRequest) Request {
	return Request{
		Class:       request.DeviceClassName,
		Selectors:   request.Selectors,
		Tolerations: request.Tolerations,
		Capacity:    request.Capacity,
		AdminAccess: request.AdminAccess != nil && *request.AdminAccess,
	}
}

// Alternative is the Request of an entry of a prioritized list.
func Alternative(request *resourcev1.DeviceSubRequest) Request {
	return Request{
		Class:       request.DeviceClassName,
		Selectors:   request.Selectors,
		Tolerations: request.Tolerations,
		Capacity:    request.Capacity,
	}
}

// Count is what the stages of the funnel leave of all devices for one Request.
type Count struct {
	Version  uint64 // of the inventory that was counted
	Complete bool   // all selectors have been evaluated for all devices; else the counts are too low
	Left     [dra.Stages]int
	Free     Spread // of the devices that are left at StageFree

	// Incomplete counts the devices that pass all stages before StageFree and
	// that nobody else's allocation keeps from the request, but are in pools
	// that are not complete.
	Incomplete int
	// Failed counts the devices for which a selector failed, where all
	// selectors before it matched. Troubles has a few of them, and selectors
	// that do not compile, each once.
	Failed   int
	Troubles []dra.SelectorTrouble
}

// Why says what removed a device at StageFree.
type Why string

// Why a device that passes all stages before StageFree is not free.
const (
	WhyHeld       Why = "held"                // allocated to a claim
	WhyCapacity   Why = "capacity"            // what is left of its capacity does not suffice
	WhyCounters   Why = "counters"            // what it is cut from is spent
	WhyGroups     Why = "compatibility group" // does not go together with what is allocated from its counter set
	WhyIncomplete Why = dra.BecauseIncomplete
	WhyInvalid    Why = "pool invalid" // contradicts itself: the scheduler allocates nothing from it
)

// Cause is why a stage removed devices. A device with several taints counts
// for each of them; whatever else the reason is, for one.
type Cause struct {
	Count    int            // of devices
	Examples []dra.DeviceID // a few of them
	Taint    dra.Taint      // at StageUntainted: one that is not tolerated
	Rule     string         // the DeviceTaintRule that it comes from; empty: slices
	Why      Why            // at StageFree
	Others   int            // it stands for so many taints, which are not told one by one
}
