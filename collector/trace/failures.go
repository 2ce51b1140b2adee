package trace

// Why a phase did not come to its end: the closed set of Span.Failed. The root
// has one of the first four, and then the phase that was under way has it too.
const (
	FailedPodDeleted   = "pod_deleted"   // the pod was deleted
	FailedEvicted      = "evicted"       // the taint of a device evicted the pod
	FailedPodFailed    = "pod_failed"    // the pod ended, and no container of it had started
	FailedClaimDeleted = "claim_deleted" // the claim was deleted

	// Of a phase only: the pod is pending for the claim again.
	FailedBinding         = "binding_failed"   // a failure condition of a device became true
	FailedReservationLost = "reservation_lost" // the reservation was removed for another reason
)

// Names of events that no Kubernetes event gives its name.
const (
	EventPending = "pending"        // the reference began to wait for another reason
	EventBinding = "binding_failed" // a failure condition of a device became true
)
