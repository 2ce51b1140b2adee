package inventory

import (
	"crypto/sha256"
	"fmt"

	resourcev1 "k8s.io/api/resource/v1"

	"github.com/dra-exporter/dra-exporter/collector/dra"
)

// The limits of what is kept of the specifications of claims that are not
// allocated, and of templates. The API server lets a claim have 1.5 MiB. A
// specification within all limits is kept whole. Otherwise only its size is
// kept, and the claim cannot be diagnosed.
const (
	// expressionLimit is the length of one CEL expression. The API server's
	// limit is 10 KiB.
	expressionLimit = 4 << 10
	// specLimit is the memory of one specification.
	specLimit = 32 << 10
	// specSmall is the memory up to which a specification is always kept, so
	// that large specifications do not displace those of ordinary size.
	specSmall = 4 << 10
	// namespaceLimit is the memory of all distinct specifications of one
	// namespace that are not small.
	namespaceLimit = 2 << 20
	// totalLimit is the same for all namespaces together.
	totalLimit = 64 << 20
)

// claimSpec is what a claim or a template requests.
type claimSpec struct {
	spec    *resourcev1.ResourceClaimSpec // nil: it is not kept
	refused dra.SpecLimit                 // why it is not kept
	bytes   int                           // of memory, or of the selector that is too long; 0: of one that is not evaluated

	namespace string // whose budget it is charged to; empty: it is small and not charged
}

// refusal returns the sentence that says why the specification is not kept, or
// "".
func (s *claimSpec) refusal() string {
	switch s.refused {
	case dra.SpecLimitSelector:
		if s.bytes == 0 {
			return "one of its selectors " + notEvaluated
		}
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

// specStore keeps each distinct specification once, and counts the memory of
// those that are not small, and the claims and templates that are refused.
type specStore struct {
	specs        *internPool[claimSpec]
	total        int            // bytes
	byNamespace  map[string]int // bytes
	refusedCount map[dra.SpecLimit]int
}

func newSpecStore() *specStore {
	return &specStore{specs: newInternPool[claimSpec](), byNamespace: map[string]int{}, refusedCount: map[dra.SpecLimit]int{}}
}

// acquire keeps a specification within the limits. Each call needs one release.
func (s *specStore) acquire(m measuredSpec) *interned[claimSpec] {
	if m.refused == "" && !s.specs.has(m.key) {
		if m.refused = s.exceeded(m); m.refused == "" {
			s.charge(m.namespace, m.bytes)
		}
	}
	if m.refused != "" {
		s.refusedCount[m.refused]++
		m.spec = nil
		return &interned[claimSpec]{value: m.claimSpec}
	}
	return s.specs.acquire(m.key, func() claimSpec {
		m.spec = m.spec.DeepCopy()
		return m.claimSpec
	})
}

// release ends one use of a specification, which may be nil.
func (s *specStore) release(used *interned[claimSpec]) {
	switch {
	case used == nil:
	case used.value.spec == nil:
		s.refusedCount[used.value.refused]--
	case s.specs.release(used):
		s.charge(used.value.namespace, -used.value.bytes)
	}
}

// exceeded returns the limit that another specification would exceed; empty:
// none.
func (s *specStore) exceeded(m measuredSpec) dra.SpecLimit {
	switch {
	case m.namespace == "":
		return ""
	case s.byNamespace[m.namespace]+m.bytes > namespaceLimit:
		return dra.SpecLimitNamespace
	case s.total+m.bytes > totalLimit:
		return dra.SpecLimitTotal
	default:
		return ""
	}
}

// charge charges memory to a namespace, or gives it back. Small specifications
// have no namespace.
func (s *specStore) charge(namespace string, bytes int) {
	if namespace == "" {
		return
	}
	s.total += bytes
	if s.byNamespace[namespace] += bytes; s.byNamespace[namespace] == 0 {
		delete(s.byNamespace, namespace)
	}
}

// oversized counts the claims that are not allocated, and the templates, whose
// specifications are not kept, by the limit that they exceed.
func (s *specStore) oversized() map[dra.SpecLimit]int {
	counts := make(map[dra.SpecLimit]int)
	for _, limit := range dra.SpecLimits() {
		counts[limit] = s.refusedCount[limit]
	}
	return counts
}

// measuredSpec is a specification whose size has been measured, and which may
// or may not be kept. It belongs to the caller.
type measuredSpec struct {
	claimSpec
	key []byte // the same for equal specifications: small ones in all namespaces, others in one
}

// measure needs no lock. It encodes nothing that is too large to be kept.
func measure(namespace string, spec *resourcev1.ResourceClaimSpec) (measuredSpec, error) {
	m := measuredSpec{claimSpec: claimSpec{spec: spec, bytes: specMemory(spec)}}
	if longest := longestSelector(spec); longest > expressionLimit {
		m.refused, m.bytes = dra.SpecLimitSelector, longest
		return m, nil
	}
	if m.bytes > specLimit {
		m.refused = dra.SpecLimitObject
		return m, nil
	}
	if mayNotEnd(spec) {
		m.refused, m.bytes = dra.SpecLimitSelector, 0
		return m, nil
	}
	encoded, err := spec.Marshal()
	if err != nil {
		return measuredSpec{}, fmt.Errorf("encode a specification: %w", err) // it did not come from the API server
	}
	digest := sha256.Sum256(encoded)
	m.key = digest[:]
	if m.bytes > specSmall {
		m.namespace, m.key = namespace, append(m.key, namespace...)
	}
	return m, nil
}

// The memory of the structures of a specification without their texts, in bytes.
const (
	requestBytes    = 320 // DeviceRequest and ExactDeviceRequest, or DeviceSubRequest
	selectorBytes   = 48
	tolerationBytes = 96
	constraintBytes = 64
	derivedBytes    = 48
	amountBytes     = 128
	textBytes       = 16
)

// specMemory returns what a specification takes at most, in bytes.
func specMemory(spec *resourcev1.ResourceClaimSpec) int {
	sum := spec.Size() + requestBytes*len(spec.Devices.Requests)
	for request := range eachRequest(spec) {
		sum += requestBytes + len(request.Selectors)*selectorBytes + len(request.Tolerations)*tolerationBytes + len(request.Derived)*derivedBytes
		if request.Capacity != nil {
			sum += amountBytes * (1 + len(request.Capacity.Requests))
		}
	}
	for i := range spec.Devices.Constraints {
		sum += constraintBytes + textBytes*len(spec.Devices.Constraints[i].Requests)
	}
	return sum
}

// mayNotEnd reports whether the evaluation of a selector may not end.
func mayNotEnd(spec *resourcev1.ResourceClaimSpec) bool {
	for request := range eachRequest(spec) {
		for i := range request.Selectors {
			if !hasPlainQuantities(celExpression(&request.Selectors[i])) {
				return true
			}
		}
		for i := range request.Derived {
			if !hasPlainQuantities(request.Derived[i].Expression) {
				return true
			}
		}
	}
	return false
}

// longestSelector returns the length of the longest CEL expression, also of
// those of derived attributes.
func longestSelector(spec *resourcev1.ResourceClaimSpec) int {
	longest := 0
	for request := range eachRequest(spec) {
		for i := range request.Selectors {
			longest = max(longest, len(celExpression(&request.Selectors[i])))
		}
		for i := range request.Derived {
			longest = max(longest, len(request.Derived[i].Expression))
		}
	}
	return longest
}
