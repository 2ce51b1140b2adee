package inventory

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"unique"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/dra-exporter/dra-exporter/collector/dra"
)

// claim is a ResourceClaim: its allocation and its specification. The specification of
// an allocated claim is not kept if it is large.
type claim struct {
	ref       dra.ClaimRef
	allocated bool
	devices   []deviceAllocation
	pods      []string // that it is reserved for, by name
	spec      *interned[claimSpec]
	node      unique.Handle[string] // the only node on which the allocation can be used; zero: see selector
	selector  *corev1.NodeSelector  // of the allocation, if it is another; nil: anywhere
}

// deviceAllocation is one device of an allocation.
type deviceAllocation struct {
	claim    *claim
	pool     *poolID
	device   unique.Handle[string]
	shareID  string // of a device that may be shared; empty: the whole device
	admin    bool   // admin access: consumes nothing
	consumed consumedCapacities
	next     *deviceAllocation // of the same device
}

func newClaim(ref dra.ClaimRef, status *resourcev1.ResourceClaimStatus) *claim {
	made := &claim{ref: dra.ClaimRef{Namespace: unique.Make(ref.Namespace).Value(), Name: ref.Name}}
	made.reserve(status.ReservedFor)
	if status.Allocation == nil {
		return made
	}
	made.allocated = true
	made.node, made.selector = onlyNode(status.Allocation.NodeSelector)
	results := status.Allocation.Devices.Results
	made.devices = make([]deviceAllocation, len(results))
	for i := range results {
		result := &results[i]
		made.devices[i] = deviceAllocation{
			claim:    made,
			pool:     &poolID{strings.Clone(validUTF8(result.Driver)), strings.Clone(validUTF8(result.Pool))},
			device:   unique.Make(validUTF8(result.Device)),
			shareID:  strings.Clone(resultShareID(result)),
			admin:    isAdmin(result),
			consumed: consumedBy(result),
		}
	}
	return made
}

// hasAllocation reports whether the claim is known with the same allocation.
func (c *claim) hasAllocation(allocation *resourcev1.AllocationResult) bool {
	if !c.allocated || allocation == nil || len(c.devices) != len(allocation.Devices.Results) {
		return false
	}
	for i := range c.devices {
		have, result := &c.devices[i], &allocation.Devices.Results[i]
		if have.pool.driver != result.Driver || have.pool.name != result.Pool || have.device.Value() != result.Device ||
			have.shareID != resultShareID(result) || have.admin != isAdmin(result) || !equality.Semantic.DeepEqual(have.consumed, consumedBy(result)) {
			return false
		}
	}
	return true
}

func (c *claim) reserve(consumers []resourcev1.ResourceClaimConsumerReference) {
	c.pods = c.pods[:0]
	for i := range consumers {
		if consumers[i].Resource == "pods" {
			c.pods = append(c.pods, validUTF8(consumers[i].Name))
		}
	}
	c.pods = slices.Clip(c.pods)
}

// nodeName returns the only node where the allocation can be used; empty: there
// are others.
func (c *claim) nodeName() string {
	if c.node == (unique.Handle[string]{}) {
		return ""
	}
	return c.node.Value()
}

// onlyNode returns the node of a selector that names one and nothing else, as
// the scheduler writes it for devices of one node.
func onlyNode(selector *corev1.NodeSelector) (unique.Handle[string], *corev1.NodeSelector) {
	if selector == nil || len(selector.NodeSelectorTerms) != 1 {
		return unique.Handle[string]{}, selector
	}
	term := &selector.NodeSelectorTerms[0]
	if len(term.MatchExpressions) != 0 || len(term.MatchFields) != 1 {
		return unique.Handle[string]{}, selector
	}
	field := &term.MatchFields[0]
	if field.Key != "metadata.name" || field.Operator != corev1.NodeSelectorOpIn || len(field.Values) != 1 {
		return unique.Handle[string]{}, selector
	}
	return unique.Make(field.Values[0]), nil
}

func resultShareID(result *resourcev1.DeviceRequestAllocationResult) string {
	if result.ShareID == nil {
		return ""
	}
	return string(*result.ShareID)
}

func isAdmin(result *resourcev1.DeviceRequestAllocationResult) bool {
	return result.AdminAccess != nil && *result.AdminAccess
}

// consumedBy returns the capacity that a share consumes. It is nil for a device
// that is allocated as a whole: nothing is left of it.
func consumedBy(result *resourcev1.DeviceRequestAllocationResult) consumedCapacities {
	if result.ShareID == nil || len(result.ConsumedCapacity) == 0 {
		return nil
	}
	return maps.Clone(result.ConsumedCapacity)
}

// total reports whether the device is allocated as a whole, and how much all of
// its shares consume. The receiver is the first allocation of the device.
func (a *deviceAllocation) total() (exclusive bool, consumed consumedCapacities) {
	for allocation := a; allocation != nil; allocation = allocation.next {
		exclusive = exclusive || allocation.shareID == ""
		for name, amount := range allocation.consumed {
			if consumed == nil {
				consumed = consumedCapacities{}
			}
			total := consumed[name].DeepCopy()
			total.Add(amount)
			consumed[name] = total
		}
	}
	return exclusive, consumed
}

// AllocatedClaim describes an allocated claim.
type AllocatedClaim struct {
	Node     string               // the only one where it can be used
	Selector *corev1.NodeSelector // of nodes, if it is not one; nil: all
	Reserved int                  // for so many pods
}

// claimStore keeps claims, and what claims and templates request.
type claimStore struct {
	claims    map[dra.ClaimRef]*claim
	templates map[dra.ClaimRef]*interned[claimSpec]
	specs     *specStore
}

func newClaimStore(specs *specStore) *claimStore {
	return &claimStore{claims: map[dra.ClaimRef]*claim{}, templates: map[dra.ClaimRef]*interned[claimSpec]{}, specs: specs}
}

// set applies the present state of a claim; nil: it is gone. It returns the
// state whose allocation ends and the state whose allocation begins; nil: there
// is none.
func (s *claimStore) set(ref dra.ClaimRef, published *resourcev1.ResourceClaim, requested *measuredSpec) (ended, begun *claim) {
	old := s.claims[ref]
	switch {
	case published == nil:
		delete(s.claims, ref)
	case old != nil && old.hasAllocation(published.Status.Allocation):
		old.reserve(published.Status.ReservedFor)
		return nil, nil
	default:
		begun = newClaim(ref, &published.Status)
		if requested != nil {
			begun.spec = s.specs.acquire(*requested) // before the old one is released, so that an equal one is the same
		}
		delete(s.claims, ref) // with the old key
		s.claims[begun.ref] = begun
	}
	if old != nil {
		s.specs.release(old.spec)
	}
	return old, begun
}

// setTemplate applies the present state of a template; nil: it is gone.
func (s *claimStore) setTemplate(ref dra.ClaimRef, requested *measuredSpec) {
	old := s.templates[ref]
	delete(s.templates, ref)
	if requested != nil {
		s.templates[ref] = s.specs.acquire(*requested)
	}
	s.specs.release(old) // at the end, so that an equal one is the same
}

// requested returns the specification of a claim, or that of a template if the claim
// is ""; nil: it is not known.
func (s *claimStore) requested(namespace, claim, template string) *claimSpec {
	if claim == "" {
		if found := s.templates[dra.ClaimRef{Namespace: namespace, Name: template}]; found != nil {
			return &found.value
		}
	} else if found := s.claims[dra.ClaimRef{Namespace: namespace, Name: claim}]; found != nil && found.spec != nil {
		return &found.spec.value
	}
	return nil
}

// allocation returns false for a claim that is not allocated.
func (s *claimStore) allocation(ref dra.ClaimRef) (AllocatedClaim, bool) {
	found := s.claims[ref]
	if found == nil || !found.allocated {
		return AllocatedClaim{}, false
	}
	return AllocatedClaim{Node: found.nodeName(), Selector: found.selector, Reserved: len(found.pods)}, true
}

func compareClaims(a, b dra.ClaimRef) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}
