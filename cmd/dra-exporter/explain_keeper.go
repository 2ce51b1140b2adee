package main

import (
	"maps"
	"slices"
	"sync"

	resourcev1 "k8s.io/api/resource/v1"

	"github.com/dra-exporter/dra-exporter/collector/apiserver"
	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/internal/explain"
)

// askedKeeper passes everything on to another keeper, and keeps for itself
// what is asked for in one namespace, in words, and the names of the classes.
type askedKeeper struct {
	apiserver.Keeper
	namespace string

	mu        sync.Mutex
	claims    map[dra.ClaimRef]explain.Spec
	templates map[explain.Template]explain.Spec
	classes   map[string]bool
}

func newAskedKeeper(next apiserver.Keeper, namespace string) *askedKeeper {
	return &askedKeeper{
		Keeper: next, namespace: namespace,
		claims: make(map[dra.ClaimRef]explain.Spec), templates: make(map[explain.Template]explain.Spec), classes: make(map[string]bool),
	}
}

// Claim is told of a claim. It reads it before the other keeper owns it.
func (k *askedKeeper) Claim(namespace, name string, claim *resourcev1.ResourceClaim) {
	if namespace == k.namespace {
		ref := dra.ClaimRef{Namespace: namespace, Name: name}
		k.mu.Lock()
		if delete(k.claims, ref); claim != nil {
			k.claims[ref] = explain.SpecOf(&claim.Spec)
		}
		k.mu.Unlock()
	}
	k.Keeper.Claim(namespace, name, claim)
}

// Template is told of a template.
func (k *askedKeeper) Template(namespace, name string, template *resourcev1.ResourceClaimTemplate) {
	if namespace == k.namespace {
		ref := explain.Template{Namespace: namespace, Name: name}
		k.mu.Lock()
		if delete(k.templates, ref); template != nil {
			k.templates[ref] = explain.SpecOf(&template.Spec.Spec)
		}
		k.mu.Unlock()
	}
	k.Keeper.Template(namespace, name, template)
}

// Class is told of a device class.
func (k *askedKeeper) Class(name string, class *resourcev1.DeviceClass) {
	k.mu.Lock()
	if delete(k.classes, name); class != nil {
		k.classes[name] = true
	}
	k.mu.Unlock()
	k.Keeper.Class(name, class)
}

// tell fills in what was kept.
func (k *askedKeeper) tell(facts *explain.Facts) {
	k.mu.Lock()
	defer k.mu.Unlock()
	facts.Claims, facts.Templates = maps.Clone(k.claims), maps.Clone(k.templates)
	facts.Classes = slices.Sorted(maps.Keys(k.classes))
}
