package inventory

import (
	"slices"
	"strings"
	"unique"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/dra-exporter/dra-exporter/collector/dra"
)

// claim is a ResourceClaim: what it holds if it is allocated, else what it asks
// for.
type claim struct {
	ref       dra.ClaimRef
	allocated bool
	holds     []hold
	pods      []string // that it is reserved for, by name
	spec      *book[specification]
	node      unique.Handle[string] // the only one where the allocation can be used; zero: see selector
	selector  *corev1.NodeSelector  // of the allocation, where it is another; nil: anywhere
}

// Claim takes a claim as it is from now on; nil: it is gone.
func (inv *Inventory) Claim(namespace, name string, published *resourcev1.ResourceClaim) {
	ref := dra.ClaimRef{Namespace: namespace, Name: name}
	var asked measured
	var failed error
	if published != nil && published.Status.Allocation == nil {
		asked, failed = measure(namespace, &published.Spec)
	}
	inv.mu.Lock()
	defer inv.mu.Unlock()
	old := inv.claims[ref]
	if published == nil {
		inv.dropClaim(old)
		return
	}
	if old != nil && old.holdsThe(published.Status.Allocation) {
		old.reserve(published.Status.ReservedFor)
		return
	}
	made := &claim{ref: dra.ClaimRef{Namespace: unique.Make(namespace).Value(), Name: strings.Clone(name)}}
	made.reserve(published.Status.ReservedFor)
	if published.Status.Allocation == nil && failed == nil {
		made.spec = inv.keepSpec(asked) // before the old one is given back, so that an equal one is the same
	}
	inv.dropClaim(old)
	if published.Status.Allocation != nil {
		inv.allocate(made, published.Status.Allocation)
	}
	inv.claims[made.ref] = made
}

// holdsThe says whether the claim is known with the very same allocation.
func (c *claim) holdsThe(allocation *resourcev1.AllocationResult) bool {
	if !c.allocated || allocation == nil || len(c.holds) != len(allocation.Devices.Results) {
		return false
	}
	for i := range c.holds {
		have, result := &c.holds[i], &allocation.Devices.Results[i]
		if have.pool.driver != result.Driver || have.pool.name != result.Pool || have.device.Value() != result.Device ||
			have.share != shareOf(result) || have.admin != isAdmin(result) || !equality.Semantic.DeepEqual(have.consumed, amountsOf(result)) {
			return false
		}
	}
	return true
}

func (c *claim) reserve(consumers []resourcev1.ResourceClaimConsumerReference) {
	c.pods = c.pods[:0]
	for i := range consumers {
		if consumers[i].Resource == "pods" {
			c.pods = append(c.pods, clean(consumers[i].Name))
		}
	}
	c.pods = slices.Clip(c.pods)
}

// allocate notes what the claim holds.
func (inv *Inventory) allocate(c *claim, allocation *resourcev1.AllocationResult) {
	inv.version++
	c.allocated = true
	c.node, c.selector = onlyNode(allocation.NodeSelector)
	c.holds = make([]hold, len(allocation.Devices.Results))
	for i := range allocation.Devices.Results {
		result := &allocation.Devices.Results[i]
		h := &c.holds[i]
		*h = hold{
			claim:    c,
			pool:     inv.placeOf(result),
			device:   unique.Make(clean(result.Device)),
			share:    strings.Clone(shareOf(result)),
			admin:    isAdmin(result),
			consumed: amountsOf(result),
		}
		if !h.admin {
			h.next = h.pool.held[h.device]
			h.pool.held[h.device] = h
			inv.touch(h.pool)
		}
	}
}

// onlyNode is the node of a selector that names one and nothing else, as the
// scheduler writes it for devices of one node.
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

// dropClaim forgets a claim and what it holds; none is fine.
func (inv *Inventory) dropClaim(gone *claim) {
	if gone == nil {
		return
	}
	delete(inv.claims, gone.ref)
	inv.dropSpec(gone.spec)
	if gone.allocated {
		inv.version++
	}
	for i := range gone.holds {
		h := &gone.holds[i]
		if h.admin {
			continue
		}
		h.release()
		inv.touch(h.pool)
		if len(h.pool.held) == 0 && len(h.pool.slices) == 0 {
			inv.removePool(h.pool)
		}
	}
}

// nodeName is the only node where the allocation can be used; empty: there are
// others.
func (c *claim) nodeName() string {
	if c.node == (unique.Handle[string]{}) {
		return ""
	}
	return c.node.Value()
}

// Allocation is what is known of an allocated claim.
type Allocation struct {
	Node     string               // the only one where it can be used
	Selector *corev1.NodeSelector // of nodes, where it is not one; nil: all
	Devices  []dra.DeviceID
}

// Allocation is that of a claim, and false for a claim that is not allocated.
func (inv *Inventory) Allocation(namespace, name string) (Allocation, bool) {
	inv.mu.Lock()
	defer inv.mu.Unlock()
	found := inv.claims[dra.ClaimRef{Namespace: namespace, Name: name}]
	if found == nil || !found.allocated {
		return Allocation{}, false
	}
	made := Allocation{Selector: found.selector}
	if found.selector == nil {
		made.Node = found.nodeName()
	}
	for i := range found.holds {
		h := &found.holds[i]
		made.Devices = append(made.Devices, dra.DeviceID{Driver: h.pool.driver, Pool: h.pool.name, Name: h.device.Value()})
	}
	return made, true
}
