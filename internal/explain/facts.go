package explain

import (
	"time"

	"github.com/dra-exporter/dra-exporter/collector/dra"
)

// Facts is all that is known at one moment.
type Facts struct {
	Now       time.Time
	World     *World
	Waiting   []Reference // with their reasons and verdicts
	Phases    []Phase
	Supply    *dra.Supply // nil: not counted
	Claims    map[dra.ClaimRef]Spec
	Templates map[Template]Spec
	Classes   []string // names of all device classes
	Gaps      Gaps
}

// Reference is a pod's claim reference, or its request of an extended
// resource, that is not satisfied: what the cluster role's reducer says of it.
type Reference struct {
	Pod         dra.PodRef
	PodUID      string
	Node        string // where the pod is bound, or its allocation is for; empty before
	PodClaim    string // within the pod; of an extended resource, its name
	Claim       string // name of the ResourceClaim; empty until it exists
	DeviceClass string
	Since       time.Time
	Reason      dra.PendingReason
	Message     string // the scheduler's on the pod, the controller's on the claim, or the verdict's
	Verdict     *dra.Verdict
}

// Template names a ResourceClaimTemplate.
type Template struct {
	Namespace, Name string
}

// Phase is a phase under way.
type Phase struct {
	Pod   dra.PodRef
	Claim string // empty: of the pod as a whole
	Phase string
	Since time.Time
}
