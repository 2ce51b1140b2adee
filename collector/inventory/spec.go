package inventory

import (
	"fmt"

	resourcev1 "k8s.io/api/resource/v1"

	"github.com/dra-exporter/dra-exporter/collector/dra"
)

// specification is what a claim or a template asks for.
type specification struct {
	whole   *resourcev1.ResourceClaimSpec // nil: it is not kept
	refused dra.SpecLimit                 // why it is not kept
	bytes   int                           // of memory, or of the selector that is too long

	namespace string // whose budget it takes of; empty: it is small and takes nothing
}

// keepSpec keeps what a claim or template asks for, as far as the limits
// permit. It is to be given to dropSpec once.
func (inv *Inventory) keepSpec(m measured) *book[specification] {
	if m.refused == "" && !inv.specs.has(m.key) {
		if m.refused = inv.budget.refuses(m); m.refused == "" {
			inv.budget.add(m.namespace, m.bytes)
		}
	}
	if m.refused != "" {
		inv.budget.refused[m.refused]++
		return &book[specification]{thing: specification{refused: m.refused, bytes: m.bytes}}
	}
	return inv.specs.lend(m.key, func() specification {
		return specification{whole: m.spec.DeepCopy(), bytes: m.bytes, namespace: m.namespace}
	})
}

// dropSpec forgets what a claim or template asked for; none is fine.
func (inv *Inventory) dropSpec(kept *book[specification]) {
	switch {
	case kept == nil:
	case kept.thing.whole == nil:
		inv.budget.refused[kept.thing.refused]--
	case inv.specs.giveBack(kept):
		inv.budget.add(kept.thing.namespace, -kept.thing.bytes)
	}
}

// Template takes a template as it is from now on; nil: it is gone.
func (inv *Inventory) Template(namespace, name string, published *resourcev1.ResourceClaimTemplate) {
	var asked measured
	if published != nil {
		var err error
		if asked, err = measure(namespace, &published.Spec.Spec); err != nil {
			published = nil
		}
	}
	ref := dra.ClaimRef{Namespace: namespace, Name: name}
	inv.mu.Lock()
	defer inv.mu.Unlock()
	defer inv.dropSpec(inv.templates[ref]) // at the end, so that an equal one is the same
	delete(inv.templates, ref)
	if published != nil {
		inv.templates[ref] = inv.keepSpec(asked)
	}
}

// ClaimSpec is what a claim asks for that is not allocated; false if it is not
// known or not kept. It must not be changed.
func (inv *Inventory) ClaimSpec(namespace, name string) (*resourcev1.ResourceClaimSpec, bool) {
	inv.mu.Lock()
	defer inv.mu.Unlock()
	found := inv.claims[dra.ClaimRef{Namespace: namespace, Name: name}]
	if found == nil || found.spec == nil {
		return nil, false
	}
	return found.spec.thing.whole, found.spec.thing.whole != nil
}

// TemplateSpec is what claims of a template ask for; false if it is not known
// or not kept. It must not be changed.
func (inv *Inventory) TemplateSpec(namespace, name string) (*resourcev1.ResourceClaimSpec, bool) {
	inv.mu.Lock()
	defer inv.mu.Unlock()
	found := inv.templates[dra.ClaimRef{Namespace: namespace, Name: name}]
	if found == nil {
		return nil, false
	}
	return found.thing.whole, found.thing.whole != nil
}

// SpecRefused says in one sentence why the specification of a claim, or of a
// template where the claim is empty, is not kept; empty if it is, or is not
// known.
func (inv *Inventory) SpecRefused(namespace, claim, template string) string {
	inv.mu.Lock()
	defer inv.mu.Unlock()
	var kept *book[specification]
	if claim != "" {
		if found := inv.claims[dra.ClaimRef{Namespace: namespace, Name: claim}]; found != nil {
			kept = found.spec
		}
	} else {
		kept = inv.templates[dra.ClaimRef{Namespace: namespace, Name: template}]
	}
	if kept == nil {
		return ""
	}
	return kept.thing.refusal()
}

// refusal is the sentence that says why the specification is not kept.
func (s *specification) refusal() string {
	switch s.refused {
	case dra.SpecLimitSelector:
		return fmt.Sprintf("one of its selectors has %d bytes, more than the limit of %d bytes", s.bytes, expressionLimit)
	case dra.SpecLimitObject:
		return fmt.Sprintf("its requests take %d bytes of memory, more than the limit of %d bytes", s.bytes, specLimit)
	case dra.SpecLimitNamespace:
		return fmt.Sprintf("large specifications of its namespace take more than the limit of %d bytes", namespaceLimit)
	case dra.SpecLimitTotal:
		return fmt.Sprintf("large specifications of all namespaces take more than the limit of %d bytes", totalLimit)
	default:
		return ""
	}
}

// oversized counts the claims that are not allocated, and the templates,
// whose specifications are not kept, by the limit that they exceed.
func (inv *Inventory) oversized() map[dra.SpecLimit]int {
	counts := make(map[dra.SpecLimit]int)
	for _, limit := range dra.SpecLimits() {
		counts[limit] = inv.budget.refused[limit]
	}
	return counts
}
