package dra

import "slices"

// ClaimRef names a ResourceClaim. Names are reused: a claim that is deleted
// and made again under its name has the same ClaimRef and another UID.
type ClaimRef struct {
	Namespace, Name string
}

func (c ClaimRef) String() string { return c.Namespace + "/" + c.Name }

// Claim is a ResourceClaim, so far as it concerns who holds which device.
type Claim struct {
	Ref              ClaimRef
	UID              string
	Allocated        bool
	Node             string // the one node on which the allocated devices can be used; empty if there are several
	ExtendedResource bool   // made by the scheduler for an extended resource
	Requests         []Request
	Results          []Result // what was allocated; empty unless Allocated
	ReservedFor      []Consumer
	Sharing          string // strategy in the opaque configuration: time_slicing, mps, or empty
	DeviceStatus     []DeviceStatus
}

// Request is one request of a claim's specification. Subrequests of a
// prioritized list appear as "main/sub", each with its own class.
type Request struct {
	Name, DeviceClass string
}

// Result is one allocated device.
type Result struct {
	Request     string // "main", or "main/sub" where a prioritized list chose
	Device      DeviceID
	ShareID     string
	AdminAccess bool
	Consumed    map[string]float64 // consumed capacity, in the capacity's own unit
}

// Consumer is an entry of status.reservedFor.
type Consumer struct {
	Resource string // "pods", "podgroups"
	Name     string
	UID      string
}

// DeviceStatus is what a driver wrote of an allocated device into
// status.devices, so far as it can identify hardware.
type DeviceStatus struct {
	Device     DeviceID
	ShareID    string
	UUID       string // from the data, where it has one
	PCIAddress string // likewise
}

// ReservedForPod reports whether the claim is reserved for the pod itself.
func (c Claim) ReservedForPod(uid string) bool {
	for _, consumer := range c.ReservedFor {
		if consumer.Resource == "pods" && consumer.UID == uid {
			return true
		}
	}
	return false
}

// HeldBy reports whether a pod that names the claim holds it: it is reserved
// for the pod itself or for a group of pods. A group's members are not listed
// in the claim, but a pod that names the claim and is bound can only be one.
func (c Claim) HeldBy(podUID string) bool {
	for _, consumer := range c.ReservedFor {
		if consumer.Resource == "podgroups" {
			return true
		}
	}
	return c.ReservedForPod(podUID)
}

// HasFirstPodElsewhere reports whether the first pod that the claim is reserved for is none
// of these, by their UIDs, and may run on another node.
func (c Claim) HasFirstPodElsewhere(here []string) bool {
	if c.Node != "" || len(c.ReservedFor) == 0 {
		return false
	}
	first := c.ReservedFor[0]
	return first.Resource == "pods" && !slices.Contains(here, first.UID)
}

// ClassOf returns the device class of the request that a result names; empty
// if the claim has no such request.
func (c Claim) ClassOf(request string) string {
	for _, r := range c.Requests {
		if r.Name == request {
			return r.DeviceClass
		}
	}
	return ""
}

// SpecLimit is a limit that keeps the specification of a claim or a template
// from being kept, so that claims with it cannot be diagnosed.
type SpecLimit string

// The limits: of one CEL expression, of one specification, and of all large
// specifications of one namespace and of all namespaces.
const (
	SpecLimitSelector  SpecLimit = "selector"
	SpecLimitObject    SpecLimit = "object"
	SpecLimitNamespace SpecLimit = "namespace"
	SpecLimitTotal     SpecLimit = "total"
)

// SpecLimits returns all limits.
func SpecLimits() []SpecLimit {
	return []SpecLimit{SpecLimitSelector, SpecLimitObject, SpecLimitNamespace, SpecLimitTotal}
}
