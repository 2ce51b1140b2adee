package simulated

import "slices"

// Trap names one way in which an answer of the kubelet misleads, or fails to
// come. Without any trap the simulated kubelet is better than a real one: it
// lists each device that a container may use once, with its own CDI names.
type Trap string

// What real kubelets answer, all of them or some. Traps combine.
const (
	// CumulativeCDI lists with each device of a claim also the CDI names of
	// the same driver's devices before it.
	CumulativeCDI Trap = "cumulative CDI devices"
	// EveryDevice lists for each container that uses a claim all of the
	// claim's devices, whatever request the container names.
	EveryDevice Trap = "every device of the claim"
	// ClaimBeforeDevices lists a claim at stage Named without devices,
	// instead of not at all.
	ClaimBeforeDevices Trap = "claim named before it is prepared"
	// EmptyWhileUnknown lists no claim at all for a container of whose
	// claims one is at stage Unknown.
	EmptyWhileUnknown Trap = "whole list empty while one claim is unknown"
	// InitContainersHidden leaves regular init containers out.
	InitContainersHidden Trap = "init containers never listed"
	// ChangingOrder lists pods, and the drivers of a claim, in another order
	// at every second List.
	ChangingOrder Trap = "changing order"
	// DuplicateDevices lists the devices of each claim twice, as kubelets
	// before 1.37.1 do after a retried prepare and after their own restart.
	DuplicateDevices Trap = "duplicate devices after a retried prepare"
	// TwoShares lists each device that has a share id a second time, under
	// another share id: the claim holds two shares of it.
	TwoShares Trap = "same device under two share ids"
	// EmptyAfterRestart answers with no pods for a while after Restart.
	EmptyAfterRestart Trap = "empty answer after a restart"
)

// What keeps answers from coming, or from being read.
const (
	// RateLimited refuses calls as the kubelet's rate limiter does.
	RateLimited Trap = "rate limited"
	// Oversized answers with more than 16 MiB.
	Oversized Trap = "oversized answer"
	// Hang takes calls and never answers them.
	Hang Trap = "hang"
	// Deaf accepts connections and never says a word on them.
	Deaf Trap = "deaf"
	// Killed leaves a socket to which nobody listens.
	Killed Trap = "killed"
	// SocketMissing leaves no socket.
	SocketMissing Trap = "socket missing"
	// Truncated breaks each answer off within its last pod.
	Truncated Trap = "truncated message"
	// InvalidUTF8 adds a pod whose name is not UTF-8: protobuf refuses the
	// whole message.
	InvalidUTF8 Trap = "invalid UTF-8"
	// Nameless adds entries without the names that identify them.
	Nameless Trap = "nameless entries"
)

// Always returns the traps that every kubelet of Kubernetes 1.34 to 1.37 has.
func Always() []Trap {
	return []Trap{CumulativeCDI, EveryDevice, ClaimBeforeDevices, EmptyWhileUnknown, InitContainersHidden, ChangingOrder}
}

// traps is a set that is replaced and never written.
type traps []Trap

func (t traps) has(trap Trap) bool { return slices.Contains(t, trap) }

func (t traps) with(more []Trap) traps {
	set := slices.Clone(t)
	for _, trap := range more {
		if !set.has(trap) {
			set = append(set, trap)
		}
	}
	return set
}

func (t traps) without(less []Trap) traps {
	return slices.DeleteFunc(slices.Clone(t), func(trap Trap) bool { return slices.Contains(less, trap) })
}
