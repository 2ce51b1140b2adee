package dra

import "time"

// ClaimLifecycle has the fields of a ResourceClaim that the cluster role follows
// from its creation to its deletion. Times are the API server's, cut to whole
// seconds; the zero time is "not yet".
type ClaimLifecycle struct {
	Ref     ClaimRef
	UID     string
	Created time.Time
	Deleted time.Time // since when it is being deleted

	// Made for: the pod, or group of pods, that a claim of a template or of
	// an extended resource was made for. Empty for a claim that stands alone.
	MadeFor          Consumer
	PodClaim         string // the claim's name within that pod or group, where it comes from a template
	ExtendedResource bool

	Classes     []string // of its requests and their alternatives, each once, sorted; the first few of many
	AllDevices  bool     // a request or an alternative asks for all devices
	Allocated   bool
	AllocatedAt time.Time // as the scheduler wrote it, where it did
	Node        string    // the only node where the allocation can be used; empty where there is none or are several
	Results     []AllocatedDevice
	// NoPreparation means that the claim is allocated and nothing of it is
	// prepared on the node: all its devices skip NodePrepareResources (KEP-5945).
	NoPreparation bool
	Binding       Binding
	// BindingSince is when the last of the conditions became true that make it
	// done, or the one that makes it failed, by the writer's clock.
	BindingSince time.Time
	ReservedFor  []Consumer
	Finalizers   []string // the first few of many; that of Kubernetes always
}

// AllocatedDevice is one device of an allocation.
type AllocatedDevice struct {
	Request     string // "main", or "main/sub" where a prioritized list chose
	Class       string // of the request, or of the alternative that was chosen
	Device      DeviceID
	AdminAccess bool
	Shared      bool // a share of the device; other claims may have others
}

// Binding is the state of the conditions that a pod waits for between the
// allocation of its claim and being bound to a node (KEP-5007).
type Binding uint8

// BindingNone is that of a claim no device of which has such conditions.
const (
	BindingNone Binding = iota
	BindingWaiting
	BindingDone   // all of all devices are true
	BindingFailed // a failure condition of some device is true
)

// DeviceClassMultiple is the class of a claim that has several.
const DeviceClassMultiple = "multiple"

// Class is the device class of the claim: of what was allocated once it is,
// before that of all that it asks for, and "multiple" where that is more than
// one. It is empty where there is none.
func (c *ClaimLifecycle) Class() string {
	classes := c.Classes
	if c.Allocated {
		classes = nil
		for _, result := range c.Results {
			classes = append(classes, result.Class)
		}
	}
	return OneClass(classes)
}

// OneClass is the class that all are, "multiple" where they differ, and empty
// where there are none.
func OneClass(classes []string) string {
	text := ""
	for i, class := range classes {
		switch {
		case i == 0:
			text = class
		case class != text:
			return DeviceClassMultiple
		}
	}
	return text
}

// PodLifecycle has the fields of a pod with claims or extended resources that the
// cluster role follows from its creation to its deletion. Times are as in
// ClaimLifecycle.
type PodLifecycle struct {
	Ref     PodRef
	UID     string
	Created time.Time
	Deleted time.Time     // when its deletion was requested
	Grace   time.Duration // that it then has to end; 0: it is not deleted, or has none
	Node    string        // empty until bound

	Terminal bool      // Succeeded or Failed
	Ended    time.Time // of a terminal pod: the last of its containers ended, if one has started
	Gated    bool      // has scheduling gates
	Group    string    // name of its PodGroup; empty without one
	Member   Member    // its workload

	// HeldBy is the name of the Workload of Kueue that holds the pod by a scheduling
	// gate, empty if the pod does not have the name; nil: Kueue does not hold it.
	HeldBy *string

	Claims   []PodClaim       // those of its spec, then the one for extended resources
	Extended map[string]int64 // requested extended resources, by name; only those with a domain

	Scheduled time.Time // PodScheduled became true
	Sandbox   time.Time // PodReadyToStartContainers became true, if it is
	Started   time.Time // the first container of any kind started

	Unschedulable string // the scheduler's message while PodScheduled is false
	Evicted       bool   // by a taint of a device (condition DisruptionTarget)
	Health        []ResourceHealth

	// Allocatable is what the pod's claims take of the node's allocatable
	// resources, such as CPU and memory (KEP-5517).
	Allocatable []ClaimAllocatable
}

// ClaimAllocatable is what one claim of a pod takes of the node's allocatable
// resources.
type ClaimAllocatable struct {
	Claim     string // name of the ResourceClaim
	Resources []AllocatableAmount
}

// AllocatableAmount is an amount of a resource, as Kubernetes writes it: of the
// devices themselves, and what they need besides for each pod and container.
// What is empty does not apply.
type AllocatableAmount struct {
	Resource                      string
	Devices, PerPod, PerContainer string
}

// Node has the fields of a node that the phases of its pods and the topology of
// workloads depend on.
type Node struct {
	Name string

	// SandboxPrompt means that the kubelet reports immediately when a pod's
	// sandbox is ready, as it does from Kubernetes 1.36 on: only then preparation
	// and start can be distinguished.
	SandboxPrompt bool

	Kubelet string  // version of the kubelet, as it writes it: v1.37.1
	Domains Domains // by its labels

	Release ReleaseLabel // the zero value: it has none
}

// ReleaseLabel is a label of a node that asks whoever keeps the node's GPUs open to
// release them.
type ReleaseLabel struct{ Key, Value string }

// ReleaseLabels returns the keys of such labels, which NVIDIA's GPU Operator sets to
// paused-for-driver-upgrade or paused-for-mig-change and others to false. The second is
// for clusters of its GPUCluster, which have no label for clients.
func ReleaseLabels() []string {
	return []string{"nvidia.com/gpu.deploy.client", "nvidia.com/gpu.deploy.dcgm-exporter-dra"}
}

// FindRelease returns the first of the labels with these keys that asks for a release:
// any value but true does.
func FindRelease(labels map[string]string, keys []string) (found ReleaseLabel, ok bool) {
	for _, key := range keys {
		if value, ok := labels[key]; ok && value != "true" {
			return ReleaseLabel{key, value}, true
		}
	}
	return ReleaseLabel{}, false
}

// Group has the fields of a PodGroup that its pods' claims depend on.
type Group struct {
	Ref    PodRef // namespace and name of the group
	UID    string
	Claims []PodClaim

	// MinPods is how many of its pods the scheduler places at once; 0: it may place
	// each by itself.
	MinPods int32

	// Unschedulable is the message of the scheduler while the group has not been
	// scheduled (condition PodGroupInitiallyScheduled).
	Unschedulable string
}

// Warning is a Kubernetes event about a problem of a claim: that a claim could
// not be created from its template (FailedResourceClaimCreation, by the
// controller manager) or that devices could not be prepared
// (FailedPrepareDynamicResources, by the kubelet).
type Warning struct {
	Name    string // namespace/name of the Event object, whose count increases
	Kind    WarningKind
	Pod     PodRef
	PodUID  string
	Message string
	Count   int64     // occurrences so far
	Last    time.Time // of the last occurrence
}

// WarningKind is the reason of a Warning.
type WarningKind uint8

// The two kinds of events about claims.
const (
	WarningCreation WarningKind = iota
	WarningPreparation
)
