package dra

import "time"

// Question is a request to diagnose why the claims of one pod cannot be
// allocated.
type Question struct {
	Pod    PodRef
	PodUID string
	Refs   []PendingRef
}

// PendingRef is one pending reference of a pod and what it requests: a claim that exists,
// else the template from which it will be made, else amounts of an extended
// resource.
type PendingRef struct {
	PodClaim string // the reference's name within the pod; of an extended resource, its name
	Claim    string // name of the ResourceClaim; empty until it exists
	Template string // name of the ResourceClaimTemplate
	Extended int64  // how many of the extended resource PodClaim; 0: it is none
}

// Diagnosis is the diagnosis of one pending reference.
type Diagnosis struct {
	Pod      PodRef
	PodUID   string
	PodClaim string
	Version  uint64 // of the inventory that was looked at

	// Reason is why devices prevent the allocation, ReasonNone if they do not.
	Reason   PendingReason
	Message  string // one sentence: which request, which stage, how many of how many
	Requests []RequestStages
	Detail   *Detail // only if requested
}

// DiagnosisCost is how much work diagnoses have taken for one namespace since
// the exporter started. The empty namespace is for device classes, and for all
// namespaces without an entry.
type DiagnosisCost struct {
	Namespace string
	Took      time.Duration
}

// DiagnosisWork is what diagnoses have taken, and how many are queued. Pods whose
// claims ask for the same share one diagnosis.
type DiagnosisWork struct {
	Costs        []DiagnosisCost // by namespace
	First, Again int             // queued: of what was never diagnosed; of what changes may have affected
}

// RequestStages counts, for one request, what each stage leaves of the devices
// that are published. It is never negative, and falls from stage to stage.
type RequestStages struct {
	Request string // "main", or "main/sub" for an alternative of a prioritized list
	Class   string
	Count   int64 // how many devices; 0: all that match
	Left    [Stages]int
}

// Stage is a stage of the selection of devices.
type Stage uint8

// The stages, in their order. BestNode is the most free devices that any one
// node can reach.
const (
	StagePublished Stage = iota // devices of the newest generation of all pools
	StageClass                  // that the class selects
	StageSelectors              // that the request's own selectors select
	StageUntainted              // that have no taint which is not tolerated
	StageFree                   // that can still be allocated, in pools that are complete
	StageBestNode               // on the node that has most of them
	Stages         = iota
)

func (s Stage) String() string {
	return [Stages]string{"published", "class", "selectors", "untainted", "free", "best_node"}[s]
}

// PendingReason is why a reference is pending, out of a closed set.
type PendingReason string

// The closed set, and the reason of what does not wait or is not known to.
const (
	ReasonNone             PendingReason = ""
	ReasonQueueQuota       PendingReason = "queue_quota"
	ReasonGated            PendingReason = "scheduling_gated"
	ReasonClaimMissing     PendingReason = "claim_missing"
	ReasonComputeDomain    PendingReason = "compute_domain"
	ReasonClaimNotCreated  PendingReason = "claim_not_created"
	ReasonClaimUnusable    PendingReason = "claim_unusable"
	ReasonQuota            PendingReason = "quota"
	ReasonNoDeviceClass    PendingReason = "no_device_class"
	ReasonNoMatchingDevice PendingReason = "no_matching_device"
	ReasonTainted          PendingReason = "tainted"
	ReasonInsufficient     PendingReason = "insufficient_devices"
	ReasonPoolIncomplete   PendingReason = "pool_incomplete"
	ReasonFragmented       PendingReason = "fragmented"
	ReasonConstraints      PendingReason = "constraints_unsatisfiable"
	ReasonBinding          PendingReason = "binding_conditions"
	ReasonGangQuorum       PendingReason = "gang_quorum"
	ReasonOther            PendingReason = "other_constraints"
	ReasonUndetermined     PendingReason = "undetermined"
	ReasonPendingDiagnosis PendingReason = "pending_diagnosis"
	ReasonUnknown          PendingReason = "unknown"
)

// ReasonInfo describes a reason of the closed set. Pages, explain and
// docs/pending.md show its texts.
type ReasonInfo struct {
	Reason  PendingReason
	Meaning string  // a clause: no capital, no full stop
	Remedy  string  // what to do about it, in general; likewise
	Stages  []Stage // at which devices are missing, the likeliest first; none: the reason is not about counts
}

// ReasonInfos returns the closed set in the order of precedence.
func ReasonInfos() []ReasonInfo {
	return []ReasonInfo{
		{ReasonQueueQuota, "the pod's queue has not admitted its workload", "wait for quota, or raise that of the queue; `kubectl describe workloads.kueue.x-k8s.io` shows what Kueue reports", nil},
		{ReasonGated, "the pod has scheduling gates", "none, or ask the owner of the gate", nil},
		{ReasonClaimMissing, "the pod names a claim that does not exist", "create the claim, or correct its name", nil},
		{ReasonComputeDomain, "the pod's ComputeDomain is not ready for it", "check that the controller of the ComputeDomain runs", nil},
		{ReasonClaimNotCreated, "the claim has not been created from its template", "check that the template exists and the controller manager runs", nil},
		{ReasonClaimUnusable, "the claim is being deleted, or was created for another pod", "wait until the claim is deleted (`explain` shows what prevents it), then create it again", nil},
		{ReasonQuota, "the namespace may have no more claims or devices", "raise the quota, or delete unused claims", nil},
		{ReasonNoDeviceClass, "a request names a device class that does not exist", "install the driver's device class, or correct its name",
			[]Stage{StageSelectors, StageClass}},
		{ReasonNoMatchingDevice, "the class or the selectors select no device, or a selector fails", "compare the selectors with the devices' attributes; `explain` shows where they fail",
			[]Stage{StageSelectors, StageClass}},
		{ReasonTainted, "enough devices match, but too many have taints", "find the taints (`dra_device_taints`); repair the device, delete the rule, or tolerate the taint",
			[]Stage{StageUntainted}},
		{ReasonInsufficient, "fewer devices match than requested, or too few of them are free", "wait for the holders (`explain` lists them), add devices, or request less",
			[]Stage{StageFree, StageSelectors, StageClass}},
		{ReasonPoolIncomplete, "matching devices are in pools that are not completely published", "`dra_pool_complete` names the pools; while a driver starts, wait; otherwise check the driver",
			[]Stage{StageFree}},
		{ReasonFragmented, "enough devices are free, but not on one node", "free devices on one node, or request less per pod", []Stage{StageBestNode}},
		{ReasonConstraints, "no node has free devices that satisfy the claim's constraints", "loosen the constraint, or free devices that satisfy it together", nil},
		{ReasonBinding, "the claim is allocated, and its devices are not ready for binding", "check the driver that sets the condition", nil},
		{ReasonGangQuorum, "the pod's gang is placed as a whole, and other pods of it cannot be placed", "find the pods of the gang that wait for another reason, or free devices for all of them at once", nil},
		{ReasonOther, "devices are available; something else prevents scheduling", "read the scheduler's message on the pod", nil},
		{ReasonUndetermined, "the diagnosis exceeds a limit", "use cheaper selectors, fewer devices in one claim, or fewer constraints", nil},
		{ReasonPendingDiagnosis, "the claim is not diagnosed yet", "wait some seconds", nil},
		{ReasonUnknown, "no reason is evident", "if it persists: `explain`, and the scheduler's log", nil},
	}
}

// Gated reports whether the pod has scheduling gates, Kueue's or others: its claims
// are not pending in the sense of docs/glossary.md.
func (r PendingReason) Gated() bool { return r == ReasonGated || r == ReasonQueueQuota }

// PendingReasons returns the closed set in the order of precedence.
func PendingReasons() []PendingReason {
	infos := ReasonInfos()
	reasons := make([]PendingReason, len(infos))
	for i, info := range infos {
		reasons[i] = info.Reason
	}
	return reasons
}

// Info describes the reason. It is the zero value for what is not in the closed
// set.
func (r PendingReason) Info() ReasonInfo {
	for _, info := range ReasonInfos() {
		if info.Reason == r {
			return info
		}
	}
	return ReasonInfo{}
}

// Detail is what a person wants to know beyond the numbers.
type Detail struct {
	Selectors []SelectorError
	Removed   []Removal
	Holders   []Holder // at most a few of each request, those with most devices first

	// HoldersInAll is how many there are. OnOneNode is, by request, how many
	// devices the node with most of them could give if nothing were held and
	// all pools were complete: those that are left at StageUntainted.
	HoldersInAll int
	OnOneNode    map[string]int

	Nodes []NodeDiagnosis // at most a few, the best first
	Fits  string          // a node on which the claims of the pod can be allocated as far as devices go; empty: none found
}

// SelectorError is a CEL selector that does not compile, or fails for a device.
type SelectorError struct {
	Where      string // "class gpu.example.com" or "request main"
	Expression string
	Device     string // for which it failed; empty: it does not compile
	Message    string
}

// Removal is what one stage took from a request for one cause, with examples.
// A device with several taints counts for each of them.
type Removal struct {
	Request  string
	Stage    Stage
	Count    int
	Because  string // the expression, the taint, "held", BecauseIncomplete
	Taint    *Taint // at StageUntainted; nil: several taints that are not listed
	Rule     string // the DeviceTaintRule that the taint comes from; empty: slices
	Examples []DeviceID
}

// BecauseIncomplete removes, at StageFree, what is in a pool that may yet grow.
const BecauseIncomplete = "pool incomplete"

// Holder is a claim that holds devices which would fit.
type Holder struct {
	Request string
	Claim   ClaimRef
	Pods    []string
	Devices []DeviceID
}

// NodeDiagnosis is why the claims do not fit on one node.
type NodeDiagnosis struct {
	Node    string
	Free    map[string]int // by request
	Message string
}
