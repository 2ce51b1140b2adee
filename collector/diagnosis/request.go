package diagnosis

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/dynamic-resource-allocation/resourceclaim"

	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/collector/inventory"
)

// claimName is the format of the claim names that the allocator gets, and has
// in its errors.
const (
	claimNamePrefix = "\x00claim-"
	claimName       = claimNamePrefix + "%d\x00"
)

// podClaims is what a pod requests, as far as it is known. Pods whose claims
// have the same key share one diagnosis.
type podClaims struct {
	key       string
	claims    []podClaim                 // one for each claim of the question
	allocated []inventory.AllocatedClaim // of those that are allocated
}

// podClaim is what one claim of a pod requests.
type podClaim struct {
	spec     *resourcev1.ResourceClaimSpec // nil: there is nothing to diagnose
	requests []Request
	id       string // the same for equal specifications
	noClass  string // an extended resource that no class provides
	refused  string // why the specification is not kept, in a sentence
}

// Request is what is counted by itself: a request of a claim, or one alternative
// of a request that is a prioritized list.
type Request struct {
	inventory.Request
	Parent string // the name in the claim: all alternatives of a list have the same
	Name   string // "main", or "main/sub"
	Count  int64  // 0: all matching devices of the node
}

// Devices is how many devices there must be at least.
func (r Request) Devices() int { return int(min(max(r.Count, 1), math.MaxInt32)) }

// resolve looks up what a question is about. A claim or template that does not
// exist, and a claim that is allocated, request nothing.
func resolve(inv *inventory.Inventory, q dra.Question) podClaims {
	var o podClaims
	var key strings.Builder
	for _, asked := range q.Refs {
		if allocation, ok := inv.Allocation(q.Pod.Namespace, asked.Claim); ok && asked.Claim != "" {
			o.allocated = append(o.allocated, allocation)
			o.claims = append(o.claims, podClaim{})
			writeField(&key, 'a', allocation.Node+" "+allocation.Selector.String())
			continue
		}
		c := resolveClaim(inv, q.Pod.Namespace, asked)
		o.claims = append(o.claims, c)
		writeField(&key, 's', c.id)
		writeField(&key, 'e', c.noClass)
		writeField(&key, 'r', c.refused)
	}
	o.key = key.String()
	return o
}

func resolveClaim(inv *inventory.Inventory, namespace string, asked dra.PendingRef) podClaim {
	if asked.Extended > 0 {
		class, ok := inv.ClassFor(asked.PodClaim)
		if !ok {
			return podClaim{noClass: asked.PodClaim}
		}
		spec := extendedSpec(asked.PodClaim, class.Name, asked.Extended)
		return podClaim{spec: spec, requests: Requests(spec), id: spec.String()}
	}
	spec, refused := inv.Spec(namespace, asked.Claim, asked.Template)
	if spec == nil {
		return podClaim{refused: refused}
	}
	// The inventory keeps equal specifications once, and this one while the item
	// refers to it.
	return podClaim{spec: spec, requests: Requests(spec), id: fmt.Sprintf("%p", spec)}
}

// writeField writes so that no two sequences of fields are the same text.
func writeField(key *strings.Builder, kind byte, text string) {
	key.WriteByte(kind)
	key.WriteString(strconv.Itoa(len(text)))
	key.WriteByte(':')
	key.WriteString(text)
}

// extendedSpec is the claim that the scheduler makes for an amount of an
// extended resource. It makes a request for each container; for what can be
// allocated only their sum matters, because such requests differ in nothing.
func extendedSpec(resource, class string, amount int64) *resourcev1.ResourceClaimSpec {
	return &resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{
		Requests: []resourcev1.DeviceRequest{{
			Name: resource,
			Exactly: &resourcev1.ExactDeviceRequest{
				DeviceClassName: class,
				AllocationMode:  resourcev1.DeviceAllocationModeExactCount,
				Count:           amount,
			},
		}},
	}}
}

// Requests lists the requests of a claim in their order.
func Requests(spec *resourcev1.ResourceClaimSpec) []Request {
	var all []Request
	for i := range spec.Devices.Requests {
		request := &spec.Devices.Requests[i]
		if exactly := request.Exactly; exactly != nil {
			all = append(all, Request{inventory.Exactly(exactly), request.Name, request.Name, requestedCount(exactly.AllocationMode, exactly.Count)})
		}
		for j := range request.FirstAvailable {
			sub := &request.FirstAvailable[j]
			name := resourceclaim.CreateSubRequestRef(request.Name, sub.Name)
			all = append(all, Request{inventory.Alternative(sub), request.Name, name, requestedCount(sub.AllocationMode, sub.Count)})
		}
	}
	return all
}

// requestedCount returns how many devices are requested, 0 for all. The API server
// defaults both fields; a manifest that it has not seen may have them empty.
func requestedCount(mode resourcev1.DeviceAllocationMode, count int64) int64 {
	if mode == resourcev1.DeviceAllocationModeAll {
		return 0
	}
	return max(count, 1)
}

// LeastDevices returns how many devices a claim takes at least, as far as that
// is known without counting. A prioritized list takes those of its smallest
// alternative, a request for all devices takes one.
func LeastDevices(requests []Request) int64 {
	least := make(map[string]int64)
	for _, r := range requests {
		if n, ok := least[r.Parent]; !ok || int64(r.Devices()) < n {
			least[r.Parent] = int64(r.Devices())
		}
	}
	var total int64
	for _, n := range least {
		total += n
	}
	return total
}

// forAllocator returns the claims with the given indices, with or without their
// constraints. Specifications are shared and not changed.
func (o podClaims) forAllocator(indices []int, constrained bool) []*resourcev1.ResourceClaim {
	claims := make([]*resourcev1.ResourceClaim, 0, len(indices))
	for _, index := range indices {
		claim := &resourcev1.ResourceClaim{Spec: *o.claims[index].spec}
		claim.Name = fmt.Sprintf(claimName, index)
		if !constrained {
			claim.Spec.Devices.Constraints = nil
		}
		claims = append(claims, claim)
	}
	return claims
}

// constrained reports whether any of the claims has constraints.
func (o podClaims) constrained(indices []int) bool {
	for _, index := range indices {
		if len(o.claims[index].spec.Devices.Constraints) > 0 {
			return true
		}
	}
	return false
}

// selectors returns those of allocated claims that can be used on several nodes.
// A selector that cannot be parsed selects none.
func (o podClaims) selectors() []*nodeaffinity.NodeSelector {
	var all []*nodeaffinity.NodeSelector
	for _, allocation := range o.allocated {
		if allocation.Selector == nil {
			continue
		}
		selector, err := nodeaffinity.NewNodeSelector(allocation.Selector)
		if err != nil {
			selector, _ = nodeaffinity.NewNodeSelector(&corev1.NodeSelector{})
		}
		all = append(all, selector)
	}
	return all
}

// withNames replaces the allocator's names of claims in a text by the pod's own. Most
// texts have none.
func (o podClaims) withNames(q dra.Question, text string) string {
	if !strings.Contains(text, claimNamePrefix) {
		return text
	}
	var pairs []string
	for i := range o.claims {
		pairs = append(pairs, fmt.Sprintf(claimName, i), clean(q.Refs[i].PodClaim))
	}
	return strings.NewReplacer(pairs...).Replace(text)
}

// clean makes text from the API server valid UTF-8.
func clean(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }
