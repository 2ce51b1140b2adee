package clusterread

import (
	"context"
	"fmt"
	"slices"

	resourcev1 "k8s.io/api/resource/v1"

	"github.com/dra-exporter/dra-exporter/collector/cluster"
	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/collector/inventory"
	"github.com/dra-exporter/dra-exporter/internal/words"
)

// Trial is a cluster as it was read once. It belongs to one goroutine.
type Trial struct {
	Inventory *inventory.Inventory // what was read of devices, claims and nodes; it may be changed
	Gaps      Gaps

	reader   Reader
	read     *objectsRead
	supposed int
	added    map[dra.ClaimRef]bool
}

// Trial reads the cluster. If this identity may not list all namespaces, it reads the
// given one alone.
func (r Reader) Trial(ctx context.Context, namespace string) (*Trial, error) {
	read, gaps, err := r.readAllowed(ctx, Subject{Namespace: namespace})
	if err != nil {
		return nil, err
	}
	return &Trial{Inventory: read.inventory, Gaps: gaps, reader: r, read: read}, nil
}

// Allocate adds a claim with an allocation that does not exist.
func (r *Trial) Allocate(ref dra.ClaimRef, spec *resourcev1.ResourceClaimSpec, allocation *resourcev1.AllocationResult) {
	if r.added == nil {
		r.added = make(map[dra.ClaimRef]bool)
	}
	r.added[ref] = true
	claim := &resourcev1.ResourceClaim{Spec: *spec}
	claim.Status.Allocation = allocation
	r.Inventory.ApplyClaim(ref.Namespace, ref.Name, claim)
}

// Known is which collections were read as a whole.
type Known struct {
	Devices bool // slices and classes
	Claims  bool // of all namespaces
	Nodes   bool
	Pods    bool // of all namespaces
}

// Known returns which collections were read as a whole.
func (r *Trial) Known() Known {
	known := func(names ...string) bool {
		return !slices.ContainsFunc(r.Gaps, func(gap Gap) bool { return slices.Contains(names, gap.Source) })
	}
	return Known{Devices: known(SourceSlices, SourceClasses), Claims: known(SourceClaims), Nodes: known(SourceNodes), Pods: known(SourcePods)}
}

// SupposedClaim is a claim of a pod that does not exist.
type SupposedClaim struct {
	PodClaim string // name within the pod
	Template string // empty: it has none
	Spec     *resourcev1.ResourceClaimSpec
}

// Shortage is why a pod that does not exist would be pending, and what would help.
type Shortage struct {
	Reason   string       `json:"reason"`
	Meaning  string       `json:"meaning"`
	Message  string       `json:"message,omitempty"`
	Evidence []words.Fact `json:"evidence,omitempty"`
	Remedies []string     `json:"remedies"`
}

// Suppose diagnoses a pod that does not exist, with claims of its own, as if it were
// created now. The inventory may have been changed after it was read.
func (r *Trial) Suppose(ctx context.Context, pod dra.PodRef, claims []SupposedClaim) (Facts, Subject) {
	r.supposed++
	now := r.reader.Clock().Wall
	uid := fmt.Sprintf("supposed-%d", r.supposed)
	lifecycle := &dra.PodLifecycle{Ref: pod, UID: uid, Created: now}
	read := *r.read
	read.changes = append(read.changes[:len(read.changes):len(read.changes)], r.supposedChanges(lifecycle, claims)...)
	facts := &Facts{Objects: NewObjects(read.changes...), Supply: read.inventory.Supply(), Gaps: r.Gaps}
	read.specs.addTo(facts)
	for i, c := range lifecycle.Claims {
		facts.Claims[dra.ClaimRef{Namespace: pod.Namespace, Name: c.Claim}] = NewSpec(claims[i].Spec)
	}
	subject := Subject{Kind: KindPod, Namespace: pod.Namespace, Name: pod.Name}
	r.reader.diagnose(ctx, &read, facts, subject)
	for i := range facts.Pending {
		facts.Pending[i].Diagnosis = r.withoutAdded(facts.Pending[i].Diagnosis)
	}
	for _, c := range lifecycle.Claims {
		read.inventory.ApplyClaim(pod.Namespace, c.Claim, nil)
	}
	return *facts, subject
}

// withoutAdded returns the diagnosis without the claims that do not exist: they hold
// devices, and cannot be ended.
func (r *Trial) withoutAdded(d *dra.Diagnosis) *dra.Diagnosis {
	if d == nil || d.Detail == nil {
		return d
	}
	changed, detail := *d, *d.Detail
	changed.Detail = &detail
	detail.Holders = slices.DeleteFunc(slices.Clone(detail.Holders), func(h dra.Holder) bool { return r.added[h.Claim] })
	detail.HoldersInAll -= len(d.Detail.Holders) - len(detail.Holders)
	return &changed
}

// supposedChanges returns the pod and its claims, and adds these to the inventory.
func (r *Trial) supposedChanges(pod *dra.PodLifecycle, claims []SupposedClaim) []cluster.Change {
	changes := []cluster.Change{{Pod: pod, At: r.reader.Clock()}}
	for i := range claims {
		c := &claims[i]
		name := fmt.Sprintf("%s-%s-%d", pod.Ref.Name, c.PodClaim, i)
		pod.Claims = append(pod.Claims, dra.PodClaim{Name: c.PodClaim, Template: c.Template, Claim: name})
		made := &dra.ClaimLifecycle{
			Ref: dra.ClaimRef{Namespace: pod.Ref.Namespace, Name: name}, UID: pod.UID + "-" + name, Created: pod.Created,
			MadeFor: dra.Consumer{Resource: "pods", Name: pod.Ref.Name, UID: pod.UID}, PodClaim: c.PodClaim,
		}
		spec := NewSpec(c.Spec)
		for _, request := range spec.Flat() {
			made.Classes = append(made.Classes, request.DeviceClass)
		}
		changes = append(changes, cluster.Change{Claim: made, At: r.reader.Clock()})
		object := &resourcev1.ResourceClaim{Spec: *c.Spec}
		object.Namespace, object.Name = pod.Ref.Namespace, name
		r.Inventory.ApplyClaim(pod.Ref.Namespace, name, object)
	}
	return changes
}
