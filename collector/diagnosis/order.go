package diagnosis

import (
	"fmt"
	"strconv"
	"strings"

	resourcev1 "k8s.io/api/resource/v1"

	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/collector/inventory"
)

// order is all that a pod asks for, as far as it can be known. Orders with the
// same key are the same and share one judgement.
type order struct {
	key    string
	parts  []part                 // one for each reference of the question
	pinned []inventory.Allocation // of those claims of the pod that are allocated
}

// part is what one reference asks for.
type part struct {
	spec      *resourcev1.ResourceClaimSpec // nil: there is nothing to judge
	asks      []ask
	id        string // tells specifications apart
	classless string // an extended resource that no class provides
	refused   string // why the specification is not kept, in a sentence
}

func (p part) wanted() bool { return p.spec != nil }

// resolve looks up what a question asks for. A claim or template that does not
// exist, and a claim that is allocated, ask for nothing.
func resolve(from *inventory.Inventory, q dra.Question) order {
	var o order
	var key strings.Builder
	for _, asked := range q.Asked {
		if allocation, ok := from.Allocation(q.Pod.Namespace, asked.Claim); ok && asked.Claim != "" {
			o.pinned = append(o.pinned, allocation)
			o.parts = append(o.parts, part{})
			writeField(&key, 'a', allocation.Node+" "+allocation.Selector.String())
			continue
		}
		p := resolvePart(from, q.Pod.Namespace, asked)
		o.parts = append(o.parts, p)
		writeField(&key, 's', p.id)
		writeField(&key, 'e', p.classless)
		writeField(&key, 'r', p.refused)
	}
	o.key = key.String()
	return o
}

func resolvePart(from *inventory.Inventory, namespace string, asked dra.Asked) part {
	if asked.Extended > 0 {
		class, ok := from.ClassFor(asked.PodClaim)
		if !ok {
			return part{classless: asked.PodClaim}
		}
		spec := extendedSpec(asked.PodClaim, class.Name, asked.Extended)
		return part{spec: spec, asks: asksOf(spec), id: spec.String()}
	}
	spec, refused := from.Spec(namespace, asked.Claim, asked.Template)
	if spec == nil {
		return part{refused: refused}
	}
	// The inventory has equal specifications once, and ours keeps it in its place.
	return part{spec: spec, asks: asksOf(spec), id: fmt.Sprintf("%p", spec)}
}

// writeField writes so that no two sequences of fields read the same.
func writeField(key *strings.Builder, kind byte, text string) {
	key.WriteByte(kind)
	key.WriteString(strconv.Itoa(len(text)))
	key.WriteByte(':')
	key.WriteString(text)
}

// claims makes those of the given parts for the allocator.
func (o order) claims(parts []int, constrained bool) []*resourcev1.ResourceClaim {
	claims := make([]*resourcev1.ResourceClaim, 0, len(parts))
	for _, index := range parts {
		claims = append(claims, claimOf(index, o.parts[index].spec, constrained))
	}
	return claims
}

// constrained reports whether any of the given parts has constraints.
func (o order) constrained(parts []int) bool {
	for _, index := range parts {
		if len(o.parts[index].spec.Devices.Constraints) > 0 {
			return true
		}
	}
	return false
}
