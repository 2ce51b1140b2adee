package page

import "slices"

// because says in a sentence why the reference waits. Of what is judged by the
// devices nothing can be said without the sources that tell of them.
func (w Waiting) because(unjudged []Source) string {
	switch {
	case w.Reason == "unknown" && len(unjudged) > 0:
		return "Not judged: " + namesOnly(unjudged) + " could not be read."
	case w.Claim != "" && slices.Contains([]string{"claim_missing", "claim_not_created"}, w.Reason):
		return "Its claim is being deleted, or was made for another pod."
	default:
		return reasonText(w.Reason)
	}
}

// claimText says which claim it waits for.
func (w Waiting) claimText() string {
	switch {
	case w.Claim != "":
		return "claim " + w.Claim
	case w.Reason == "claim_missing":
		return "its claim does not exist"
	default:
		return "no claim yet"
	}
}

// reasonText says in a sentence why a reference waits; the word itself where
// it is none of the closed set.
func reasonText(reason string) string {
	switch reason {
	case "claim_missing":
		return "The pod names a ResourceClaim that nobody has made."
	case "claim_not_created":
		return "Its claim has not been made from the template."
	case "quota":
		return "A quota forbids making its claim."
	case "no_device_class":
		return "Its device class does not exist."
	case "no_matching_device":
		return "No published device matches."
	case "tainted":
		return "Devices that match are tainted."
	case "insufficient_devices":
		return "Too few devices that match are left."
	case "fragmented":
		return "Enough devices are free, but on no single node."
	case "constraints_unsatisfiable":
		return "No node meets the claim's constraints."
	case "pool_incomplete":
		return "Devices that match are in pools that are not published completely."
	case "binding_conditions":
		return "Allocated; a device is not ready to be bound yet."
	case "other_constraints":
		return "Devices are not the reason: processor, memory, affinity or the like."
	case gatedReason:
		return "Scheduling gates hold the pod back."
	case "undetermined":
		return "Finding the reason would take more work than is allowed."
	case "pending_diagnosis":
		return "Not diagnosed yet."
	case "unknown":
		return "Nothing that is known speaks against it."
	case "":
		return "Not judged yet."
	default:
		return reason
	}
}
