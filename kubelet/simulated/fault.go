package simulated

import "slices"

// Fault names one way in which a response of the kubelet is misleading or missing.
// Without faults the simulated kubelet is better than a real one: it lists each
// device that a container may use once, with its own CDI names.
type Fault string

// Faults in the responses of some or all real kubelets. Faults can be combined.
const (
	// CumulativeCDI lists with each device of a claim also the CDI names of
	// the same driver's devices before it.
	CumulativeCDI Fault = "cumulative CDI devices"
	// EveryDevice lists for each container that uses a claim all of the
	// claim's devices, whatever request the container names.
	EveryDevice Fault = "every device of the claim"
	// ClaimBeforeDevices lists a claim at stage Named without devices,
	// instead of not at all.
	ClaimBeforeDevices Fault = "claim named before it is prepared"
	// EmptyWhileUnknown lists no claim for a container with a claim at stage
	// Unknown.
	EmptyWhileUnknown Fault = "whole list empty while one claim is unknown"
	// InitContainersHidden omits regular init containers.
	InitContainersHidden Fault = "init containers never listed"
	// ChangingOrder lists pods, and the drivers of a claim, in another order
	// at every second List.
	ChangingOrder Fault = "changing order"
	// DuplicateDevices lists the devices of each claim twice, as kubelets
	// before 1.37.1 do after a retried prepare and after their own restart.
	DuplicateDevices Fault = "duplicate devices after a retried prepare"
	// TwoShares lists each device that has a share id a second time, under
	// another share id: the claim holds two shares of it.
	TwoShares Fault = "same device under two share ids"
	// EmptyAfterRestart lists no pods for Options.EmptyFor after Restart.
	EmptyAfterRestart Fault = "empty answer after a restart"
)

// Faults without a response, or with one that cannot be decoded.
const (
	// RateLimited refuses calls as the kubelet's rate limiter does.
	RateLimited Fault = "rate limited"
	// Oversized responds with more than 16 MiB.
	Oversized Fault = "oversized answer"
	// Hang accepts calls and never responds.
	Hang Fault = "hang"
	// Silent accepts connections and never sends anything.
	Silent Fault = "silent"
	// Killed leaves a socket without a listener.
	Killed Fault = "killed"
	// SocketMissing leaves no socket.
	SocketMissing Fault = "socket missing"
	// Truncated truncates each response within its last pod.
	Truncated Fault = "truncated message"
	// InvalidUTF8 adds a pod whose name is not UTF-8: protobuf refuses the
	// whole message.
	InvalidUTF8 Fault = "invalid UTF-8"
	// Nameless adds entries without the names that identify them.
	Nameless Fault = "nameless entries"
)

// Always returns the faults that every kubelet of Kubernetes 1.34 to 1.37 has.
func Always() []Fault {
	return []Fault{CumulativeCDI, EveryDevice, ClaimBeforeDevices, EmptyWhileUnknown, InitContainersHidden, ChangingOrder}
}

// faults is an immutable set.
type faults []Fault

func (f faults) has(fault Fault) bool { return slices.Contains(f, fault) }

func (f faults) with(more []Fault) faults {
	set := slices.Clone(f)
	for _, fault := range more {
		if !set.has(fault) {
			set = append(set, fault)
		}
	}
	return set
}

func (f faults) without(less []Fault) faults {
	return slices.DeleteFunc(slices.Clone(f), func(fault Fault) bool { return slices.Contains(less, fault) })
}
