package explain

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/dra-exporter/dra-exporter/internal/clusterread"

	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/internal/words"
)

// Report is the answer. Times are the API server's, cut to whole seconds; a
// field of which nothing is known, or for which there is nothing to say, is
// left out.
type Report struct {
	APIVersion string           `json:"apiVersion"` // v1
	Kind       clusterread.Kind `json:"kind"`
	Namespace  string           `json:"namespace"`
	Name       string           `json:"name"`
	At         time.Time        `json:"at"` // when the cluster was looked at
	State      string           `json:"state"`
	Summary    string           `json:"summary"`

	Workload *Workload       `json:"workload,omitempty"`       // of a workload
	Domains  []ComputeDomain `json:"computeDomains,omitempty"` // that the pods use

	Pending []PendingRef      `json:"pending"` // the references that are not satisfied, with the reasons
	Claims  []Claim           `json:"claims"`  // the claim, or those of the pod that exist; of a workload none
	Pods    []Pod             `json:"pods"`    // the pod, those that use the claim, or those of the workload
	NotRead []clusterread.Gap `json:"notRead"` // what could not be read, and what is not known because of it

	Bugs []KnownBug `json:"knownBugs,omitempty"` // of which the claims or pods have a sign

	short  string         // Summary with short times, without the phase
	events []failureEvent // about the pods, the newest first
}

// failureEvent is an event of the API server that reports a failure.
type failureEvent struct {
	from    string // the component that reports it
	count   int64
	last    time.Time
	message string
}

// The version of the document, and the states of pods. The states of claims
// are those of the metric dra_claims.
const (
	apiVersion = "v1"

	StateStarting    = "starting"  // all are, and no container has started
	StateRunning     = "running"   // a container has started
	StateUnknown     = "unknown"   // no container has started; whether all are satisfied is not known
	StateFinished    = "finished"  // succeeded or failed
	StateUnused      = "unused"    // no pod that stays refers to the claim
	StatePending     = "pending"   // of a pod: a claim reference is not satisfied; of a claim: such a pod refers to it, and it is not allocated
	StateAllocated   = "allocated" // without a reservation
	StateReserved    = "reserved"  // with a reservation
	StateTerminating = "terminating"
)

// KnownBug is a sign of a known bug of Kubernetes or of a driver.
type KnownBug struct {
	Bug     string `json:"bug"` // repository#number
	Link    string `json:"link"`
	Certain bool   `json:"certain"` // the version has the bug, and the sign has no other cause
	Text    string `json:"text"`    // what is seen, and which version has the bug; sentences
	Remedy  string `json:"remedy"`
}

// PendingRef is a claim reference that is not satisfied: of one pod, or of several
// pods that are pending for the same claim and the same reason.
type PendingRef struct {
	Pods             []string     `json:"pods"`
	PodClaim         string       `json:"podClaim,omitempty"` // name of the reference within the pod
	Claim            string       `json:"claim,omitempty"`    // name of the ResourceClaim; left out until it exists
	Template         string       `json:"template,omitempty"` // of which it is, or will be, made
	ExtendedResource string       `json:"extendedResource,omitempty"`
	DeviceClass      string       `json:"deviceClass,omitempty"`
	Since            time.Time    `json:"since"`
	Reason           string       `json:"reason"`
	Meaning          string       `json:"meaning"`              // sentence of the reason
	Autoscaler       *Autoscaling `json:"autoscaler,omitempty"` // what a node autoscaler has reported of the pod last

	Message string `json:"message,omitempty"` // the evidence: which request, how many of how many, or which component reports it

	Asked       *clusterread.Spec `json:"asked,omitempty"`
	Counts      []RequestCounts   `json:"requests,omitempty"`
	Broken      []BrokenSelector  `json:"brokenSelectors,omitempty"`
	Removed     []Removal         `json:"removed,omitempty"`
	Holders     []Holder          `json:"holders,omitempty"` // a few of each request, those with most devices first
	HolderCount int               `json:"holdersInAll,omitempty"`
	Nodes       []Node            `json:"nodes,omitempty"`
	Fits        string            `json:"fits,omitempty"` // a node whose devices suffice
	Help        []string          `json:"help"`           // what would help, most useful first

	cause     string         // why it is pending, in plain words
	onOneNode map[string]int // by request: how many devices one node could give, if nothing were held
}

// gated reports whether the reference's pod has scheduling gates.
func (r *PendingRef) gated() bool { return dra.PendingReason(r.Reason).Gated() }

// rank orders references by how much they say about why a pod does not run: one
// that waits for its gang waits for another pod, and a gated one is not pending.
func (r *PendingRef) rank() int {
	switch {
	case r.gated():
		return 2
	case r.Reason == string(dra.ReasonGangQuorum):
		return 1
	default:
		return 0
	}
}

// status returns the term of docs/glossary.md for a reference that is not
// satisfied. One of a gated pod is not pending.
func (r *PendingRef) status() string {
	if r.gated() {
		return "gated"
	}
	return "pending"
}

// where names a reference in a sentence.
func (r *PendingRef) where() string {
	switch {
	case r.ExtendedResource != "":
		return fmt.Sprintf("extended resource %s", r.ExtendedResource)
	case r.Claim != "":
		return fmt.Sprintf("reference %q, ResourceClaim %s", r.PodClaim, r.Claim)
	case r.Template != "":
		return fmt.Sprintf("reference %q, from template %s", r.PodClaim, r.Template)
	default:
		return fmt.Sprintf("reference %q", r.PodClaim)
	}
}

// lacksDevices reports whether devices held by others would help.
func (r *PendingRef) lacksDevices() bool {
	reasons := []dra.PendingReason{dra.ReasonInsufficient, dra.ReasonPoolIncomplete, dra.ReasonFragmented, dra.ReasonConstraints}
	return slices.Contains(reasons, dra.PendingReason(r.Reason))
}

// RequestCounts has how many devices each stage leaves for one request.
type RequestCounts struct {
	Request     string         `json:"request"`
	DeviceClass string         `json:"deviceClass,omitempty"`
	Asked       int64          `json:"asked,omitempty"` // left out: all that match
	Left        map[string]int `json:"left"`            // by stage; a stage that cannot be known is left out
}

// BrokenSelector is a CEL expression that cannot be evaluated.
type BrokenSelector struct {
	Where      string `json:"where"`
	Expression string `json:"expression"`
	Device     string `json:"device,omitempty"` // for which it fails; left out: it does not compile
	Message    string `json:"message"`
}

// Removal is the devices that one stage removed from a request for one cause.
type Removal struct {
	Request  string   `json:"request"`
	Stage    string   `json:"stage"`
	Count    int      `json:"count"`
	Of       int      `json:"of,omitempty"` // how many the stage before had left
	Because  string   `json:"because,omitempty"`
	Taint    string   `json:"taint,omitempty"`           // key=value:Effect
	Rule     string   `json:"deviceTaintRule,omitempty"` // that the taint comes from
	Eviction string   `json:"eviction,omitempty"`        // what the controller manager reports of the eviction by the rule
	Examples []string `json:"examples,omitempty"`        // driver/pool/device

	taint *dra.Taint
}

// Holder is a claim that holds matching devices.
type Holder struct {
	Request   string     `json:"request,omitempty"`
	Namespace string     `json:"namespace"`
	Claim     string     `json:"claim"`
	Pods      []string   `json:"pods,omitempty"`     // that use it
	Others    []string   `json:"others,omitempty"`   // what else uses it, such as a PodGroup
	PodsGone  bool       `json:"podsGone,omitempty"` // no pod that it is reserved for exists
	Since     *time.Time `json:"since,omitempty"`    // allocated
	Devices   []string   `json:"devices"`

	used usage
}

// Node describes why the claims cannot be allocated on one node.
type Node struct {
	Name    string         `json:"name"`
	Free    map[string]int `json:"free,omitempty"` // by request
	Message string         `json:"message,omitempty"`
}

// Claim is a ResourceClaim that exists.
type Claim struct {
	Name             string            `json:"name"`
	UID              string            `json:"uid"`
	State            string            `json:"state"`
	DeviceClass      string            `json:"deviceClass,omitempty"`
	MadeFor          string            `json:"madeFor,omitempty"` // the pod or group of pods that it was generated for
	ExtendedResource bool              `json:"extendedResource,omitempty"`
	Created          time.Time         `json:"created"`
	AllocatedAt      *time.Time        `json:"allocatedAt,omitempty"`
	Node             string            `json:"node,omitempty"` // the only one where the allocation can be used
	Asked            *clusterread.Spec `json:"asked,omitempty"`
	Devices          []Device          `json:"devices,omitempty"`
	ReservedFor      []string          `json:"reservedFor,omitempty"`
	DeletedSince     *time.Time        `json:"deletedSince,omitempty"`
	Finalizers       []string          `json:"finalizers,omitempty"` // what keeps it while it is being deleted
	Remarks          []string          `json:"remarks,omitempty"`
	Help             []string          `json:"help,omitempty"`
}

// Device is a device of an allocation.
type Device struct {
	Request     string `json:"request"`
	DeviceClass string `json:"deviceClass,omitempty"`
	Driver      string `json:"driver"`
	Pool        string `json:"pool"`
	Name        string `json:"device"`
	AdminAccess bool   `json:"adminAccess,omitempty"`
}

// Pod is a pod and where it is on its way.
type Pod struct {
	Name    string     `json:"name"`
	UID     string     `json:"uid"`
	Node    string     `json:"node,omitempty"`
	State   string     `json:"state"`
	Phases  []PodPhase `json:"phases,omitempty"` // under way
	Message string     `json:"message,omitempty"`
	Help    []string   `json:"help,omitempty"`

	Allocatable []Allocatable `json:"nodeAllocatable,omitempty"`

	progress string // Message without what events report
}

// Allocatable is an amount of one of the node's allocatable resources that a
// claim takes for the pod: for the devices themselves, and besides for the pod
// and each of its containers that uses the claim.
type Allocatable struct {
	Claim        string `json:"claim"`
	Resource     string `json:"resource"`
	Devices      string `json:"devices,omitempty"`
	PerPod       string `json:"perPod,omitempty"`
	PerContainer string `json:"perContainer,omitempty"`
}

// text describes the amount.
func (a Allocatable) text() string {
	var parts []string
	for _, part := range []struct{ amount, of string }{{a.Devices, ""}, {a.PerPod, " for the pod"}, {a.PerContainer, " for each container"}} {
		if part.amount != "" {
			parts = append(parts, part.amount+part.of)
		}
	}
	return a.Resource + " " + words.Join(parts, "and")
}

// PodPhase is a phase that is under way, of one claim of the pod or of the pod.
type PodPhase struct {
	Claim string    `json:"claim,omitempty"`
	Phase string    `json:"phase"`
	Since time.Time `json:"since"`
}

// Workload is the workload of a report about it, and how its pods are.
type Workload struct {
	Kind    string         `json:"kind"`
	Queue   string         `json:"queue,omitempty"`
	MinPods int            `json:"minPods,omitempty"` // that its gangs need; left out without a gang
	Counts  map[string]int `json:"podsByState"`
	Queued  *Queued        `json:"queued,omitempty"` // left out if it is admitted, or has no queue
}

// stateGated is the state of a pod in a report about a workload, instead of StatePending.
const stateGated = "gated"

// podStates are the states of a workload's pods, those that need attention first.
func podStates() []string {
	return []string{stateGated, StatePending, StateUnknown, StateStarting, StateRunning, StateTerminating, StateFinished}
}

// text says how many pods are in which state.
func (w *Workload) text() string {
	var parts []string
	total := 0
	for _, state := range podStates() {
		if count := w.Counts[state]; count > 0 {
			parts, total = append(parts, fmt.Sprintf("%d %s", count, state)), total+count
		}
	}
	if total == 0 {
		return "has no pods"
	}
	text := "has " + words.Count(total, "pod", "pods") + ": " + strings.Join(parts, ", ")
	if w.MinPods > 0 {
		text += fmt.Sprintf("; its gang needs %d", w.MinPods)
	}
	return text
}
