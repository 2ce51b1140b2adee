package inventory

import (
	resourcev1 "k8s.io/api/resource/v1"

	"github.com/dra-exporter/dra-exporter/collector/dra"
)

// Template takes a template as it is from now on; nil: it is gone.
func (inv *Inventory) Template(namespace, name string, published *resourcev1.ResourceClaimTemplate) {
	ref := dra.ClaimRef{Namespace: namespace, Name: name}
	inv.mu.Lock()
	defer inv.mu.Unlock()
	defer inv.specs.giveBack(inv.templates[ref]) // at the end, so that an equal one is the same
	delete(inv.templates, ref)
	if published == nil {
		return
	}
	key, err := published.Spec.Spec.Marshal()
	if err != nil {
		return // it did not come over the wire
	}
	inv.templates[ref] = inv.specOf(key, &published.Spec.Spec)
}

// ClaimSpec is what a claim asks for that is not allocated. It must not be
// changed.
func (inv *Inventory) ClaimSpec(namespace, name string) (*resourcev1.ResourceClaimSpec, bool) {
	inv.mu.Lock()
	defer inv.mu.Unlock()
	found := inv.claims[dra.ClaimRef{Namespace: namespace, Name: name}]
	if found == nil || found.spec == nil {
		return nil, false
	}
	return found.spec.thing, true
}

// TemplateSpec is what claims of a template ask for. It must not be changed.
func (inv *Inventory) TemplateSpec(namespace, name string) (*resourcev1.ResourceClaimSpec, bool) {
	inv.mu.Lock()
	defer inv.mu.Unlock()
	found := inv.templates[dra.ClaimRef{Namespace: namespace, Name: name}]
	if found == nil {
		return nil, false
	}
	return found.thing, true
}
