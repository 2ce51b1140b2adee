package clusterread

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/dra-exporter/dra-exporter/internal/words"

	resourcev1 "k8s.io/api/resource/v1"
)

// Spec is what a claim requests, by the names of its specification.
type Spec struct {
	Requests    []Request    `json:"requests,omitempty"`
	Constraints []Constraint `json:"constraints,omitempty"`
}

// Request is one request, or one alternative of a prioritized list.
type Request struct {
	Name           string            `json:"name"`
	DeviceClass    string            `json:"deviceClass,omitempty"` // empty where it has alternatives
	Count          int64             `json:"count,omitempty"`       // left out if all that match are requested
	All            bool              `json:"all,omitempty"`
	AdminAccess    bool              `json:"adminAccess,omitempty"`
	Selectors      []string          `json:"selectors,omitempty"`         // CEL expressions
	Tolerations    []string          `json:"tolerations,omitempty"`       // key=value:Effect, as kubectl writes taints
	Capacity       map[string]string `json:"capacity,omitempty"`          // of each device, at least
	Derived        map[string]string `json:"derivedAttributes,omitempty"` // CEL expressions by the name that constraints refer to
	FirstAvailable []Request         `json:"firstAvailable,omitempty"`
}

// Constraint ties devices of several requests together. One of the two
// attributes is set.
type Constraint struct {
	Requests          []string `json:"requests,omitempty"` // left out: all
	MatchAttribute    string   `json:"matchAttribute,omitempty"`
	DistinctAttribute string   `json:"distinctAttribute,omitempty"`
}

// TooMany reports whether the claim requests more devices than it may have,
// even by the smallest alternatives.
func (s *Spec) TooMany() bool {
	if s == nil {
		return false
	}
	var least int64
	for _, request := range s.Requests {
		fewest := max(request.Count, 1)
		for i, alternative := range request.FirstAvailable {
			if count := max(alternative.Count, 1); i == 0 || count < fewest {
				fewest = count
			}
		}
		least += fewest
	}
	return least > resourcev1.AllocationResultsMaxSize
}

// Flat lists requests, and in place of a prioritized list its alternatives.
func (s *Spec) Flat() []Request {
	var all []Request
	for _, request := range s.Requests {
		if len(request.FirstAvailable) > 0 {
			all = append(all, request.FirstAvailable...)
			continue
		}
		all = append(all, request)
	}
	return all
}

// HasAlternatives reports whether any request is a prioritized list.
func (s *Spec) HasAlternatives() bool {
	return s != nil && slices.ContainsFunc(s.Requests, func(request Request) bool { return len(request.FirstAvailable) > 0 })
}

// NewSpec copies what a claim's specification requests. Bytes that are not UTF-8
// become U+FFFD.
func NewSpec(claim *resourcev1.ResourceClaimSpec) Spec {
	var spec Spec
	for i := range claim.Devices.Requests {
		spec.Requests = append(spec.Requests, newRequest(&claim.Devices.Requests[i]))
	}
	for _, constraint := range claim.Devices.Constraints {
		c := Constraint{Requests: words.Names(constraint.Requests, valid[string])}
		if constraint.MatchAttribute != nil {
			c.MatchAttribute = valid(*constraint.MatchAttribute)
		}
		if constraint.DistinctAttribute != nil {
			c.DistinctAttribute = valid(*constraint.DistinctAttribute)
		}
		spec.Constraints = append(spec.Constraints, c)
	}
	return spec
}

func newRequest(request *resourcev1.DeviceRequest) Request {
	r := Request{Name: valid(request.Name)}
	if exactly := request.Exactly; exactly != nil {
		r.DeviceClass = valid(exactly.DeviceClassName)
		r.AdminAccess = exactly.AdminAccess != nil && *exactly.AdminAccess
		r.amount(exactly.AllocationMode, exactly.Count)
		r.terms(exactly.Selectors, exactly.Tolerations, exactly.Capacity)
		r.derive(exactly.DerivedAttributes)
	}
	for _, sub := range request.FirstAvailable {
		alternative := Request{Name: r.Name + "/" + valid(sub.Name), DeviceClass: valid(sub.DeviceClassName)}
		alternative.amount(sub.AllocationMode, sub.Count)
		alternative.terms(sub.Selectors, sub.Tolerations, sub.Capacity)
		alternative.derive(sub.DerivedAttributes)
		r.FirstAvailable = append(r.FirstAvailable, alternative)
	}
	return r
}

// amount sets the count. An object that has not passed the API server's
// defaulting has no mode and no count: one device is meant.
func (r *Request) amount(mode resourcev1.DeviceAllocationMode, count int64) {
	r.All = mode == resourcev1.DeviceAllocationModeAll
	if !r.All {
		r.Count = max(count, 1)
	}
}

func (r *Request) terms(selectors []resourcev1.DeviceSelector, tolerations []resourcev1.DeviceToleration, capacity *resourcev1.CapacityRequirements) {
	for _, selector := range selectors {
		if selector.CEL != nil {
			r.Selectors = append(r.Selectors, valid(selector.CEL.Expression))
		}
	}
	for _, toleration := range tolerations {
		r.Tolerations = append(r.Tolerations, tolerationText(toleration))
	}
	if capacity == nil {
		return
	}
	r.Capacity = make(map[string]string, len(capacity.Requests))
	for _, name := range slices.Sorted(maps.Keys(capacity.Requests)) {
		quantity := capacity.Requests[name]
		r.Capacity[valid(name)] = quantity.String()
	}
}

func (r *Request) derive(attributes []resourcev1.DeviceDerivedAttribute) {
	for _, attribute := range attributes {
		if r.Derived == nil {
			r.Derived = make(map[string]string, len(attributes))
		}
		r.Derived[valid(attribute.Name)] = valid(attribute.Expression)
	}
}

// tolerationText formats a toleration as kubectl formats taints; a star matches
// anything.
func tolerationText(toleration resourcev1.DeviceToleration) string {
	text := cmp.Or(valid(toleration.Key), "*")
	if toleration.Operator != resourcev1.DeviceTolerationOpExists {
		text += "=" + valid(toleration.Value)
	}
	return text + ":" + cmp.Or(valid(toleration.Effect), "*")
}

func valid[T ~string](text T) string { return strings.ToValidUTF8(string(text), "\uFFFD") }
