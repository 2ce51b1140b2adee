package inventory

import (
	"crypto/sha256"
	"fmt"

	resourcev1 "k8s.io/api/resource/v1"

	"github.com/dra-exporter/dra-exporter/collector/dra"
)

// Limits of what is kept of the specifications of claims that are not
// allocated, and of templates. The API server lets a claim have 1.5 MiB. A
// specification that none of the limits refuses is kept whole; of others their
// size alone is kept, and claims with them cannot be diagnosed.
const (
	// expressionLimit is the length of one CEL expression. The API server's
	// limit is 10 KiB.
	expressionLimit = 4 << 10
	// specLimit is the memory of one specification.
	specLimit = 32 << 10
	// specSmall is the memory of a specification that is kept however many
	// others there are, so that large ones displace none of ordinary size.
	specSmall = 4 << 10
	// namespaceLimit is the memory of all distinct specifications of one
	// namespace that are not small.
	namespaceLimit = 2 << 20
	// totalLimit is the same for all namespaces together.
	totalLimit = 64 << 20
)

// specBudget is the memory of the specifications that are kept and are not
// small, and how many are not kept.
type specBudget struct {
	total      int
	namespaces map[string]int
	refused    map[dra.SpecLimit]int // claims and templates
}

func newSpecBudget() specBudget {
	return specBudget{namespaces: map[string]int{}, refused: map[dra.SpecLimit]int{}}
}

// refuses returns the limit that a specification would exceed; empty: none.
func (b *specBudget) refuses(m measured) dra.SpecLimit {
	switch {
	case m.namespace == "":
		return ""
	case b.namespaces[m.namespace]+m.bytes > namespaceLimit:
		return dra.SpecLimitNamespace
	case b.total+m.bytes > totalLimit:
		return dra.SpecLimitTotal
	default:
		return ""
	}
}

// add takes memory from the budget of a namespace, or gives it back. Small
// specifications have no namespace.
func (b *specBudget) add(namespace string, bytes int) {
	if namespace == "" {
		return
	}
	b.total += bytes
	if b.namespaces[namespace] += bytes; b.namespaces[namespace] == 0 {
		delete(b.namespaces, namespace)
	}
}

// measured is a specification of which the size is known, and not yet whether
// it is kept.
type measured struct {
	spec      *resourcev1.ResourceClaimSpec
	bytes     int           // of memory, or of the selector that is too long
	refused   dra.SpecLimit // by the specification's own size
	namespace string        // empty: it is small
	key       []byte        // equal specifications have the same: small ones everywhere, others within a namespace
}

// measure needs no lock. It encodes nothing that is too large to be kept.
func measure(namespace string, spec *resourcev1.ResourceClaimSpec) (measured, error) {
	m := measured{spec: spec, bytes: specMemory(spec)}
	if longest := longestSelector(spec); longest > expressionLimit {
		m.refused, m.bytes = dra.SpecLimitSelector, longest
		return m, nil
	}
	if m.bytes > specLimit {
		m.refused = dra.SpecLimitObject
		return m, nil
	}
	encoded, err := spec.Marshal()
	if err != nil {
		return measured{}, fmt.Errorf("encode a specification: %w", err) // it did not come over the wire
	}
	digest := sha256.Sum256(encoded)
	m.key = digest[:]
	if m.bytes > specSmall {
		m.namespace, m.key = namespace, append(m.key, namespace...)
	}
	return m, nil
}

// What the structures of a specification take besides their texts.
const (
	requestBytes    = 320 // DeviceRequest and ExactDeviceRequest, or DeviceSubRequest
	selectorBytes   = 48
	tolerationBytes = 96
	constraintBytes = 64
	amountBytes     = 128
	textBytes       = 16
)

// specMemory is what a specification takes at most, in bytes.
func specMemory(spec *resourcev1.ResourceClaimSpec) int {
	sum := spec.Size()
	eachRequest(spec, func(request Request) {
		sum += requestBytes + len(request.Selectors)*selectorBytes + len(request.Tolerations)*tolerationBytes
		if request.Capacity != nil {
			sum += amountBytes * (1 + len(request.Capacity.Requests))
		}
	})
	sum += requestBytes * len(spec.Devices.Requests)
	for i := range spec.Devices.Constraints {
		sum += constraintBytes + textBytes*len(spec.Devices.Constraints[i].Requests)
	}
	return sum
}

// longestSelector is the length of the longest CEL expression.
func longestSelector(spec *resourcev1.ResourceClaimSpec) int {
	longest := 0
	eachRequest(spec, func(request Request) {
		for i := range request.Selectors {
			if request.Selectors[i].CEL != nil {
				longest = max(longest, len(request.Selectors[i].CEL.Expression))
			}
		}
	})
	return longest
}

// eachRequest calls a function with each request, and each alternative of a
// prioritized list.
func eachRequest(spec *resourcev1.ResourceClaimSpec, do func(Request)) {
	for i := range spec.Devices.Requests {
		request := &spec.Devices.Requests[i]
		if request.Exactly != nil {
			do(Exactly(request.Exactly))
		}
		for j := range request.FirstAvailable {
			do(Alternative(&request.FirstAvailable[j]))
		}
	}
}
