package cluster

import (
	"slices"
	"strings"

	"github.com/dra-exporter/dra-exporter/collector/dra"
)

// implicitPrefix begins the name of the extended resource that every device
// class has (k8s.io/api/resource/v1, ResourceDeviceClassPrefix).
const implicitPrefix = "deviceclass.resource.kubernetes.io/"

// backing says which extended resources are backed by device classes: others
// are those of device plugins, and no concern of ours.
type backing struct {
	from  *dra.Supply // of which the rest was made
	pairs []backingPair
	class map[string]string // of a resource's name; "multiple" where several classes have it
	pods  map[*podEntry]struct{}
}

type backingPair struct{ class, resource string }

func newBacking() backing {
	return backing{class: make(map[string]string), pods: make(map[*podEntry]struct{})}
}

// reviewBacking looks at the device classes, and touches the pods that ask for
// extended resources where another class has one now.
func (s *State) reviewBacking(facts Facts) {
	b := &s.waits.backing
	if facts.Supply == nil || facts.Supply == b.from {
		return
	}
	b.from = facts.Supply
	var pairs []backingPair
	for i := range facts.Supply.Classes {
		if class := &facts.Supply.Classes[i]; class.ExtendedResource != "" {
			pairs = append(pairs, backingPair{class.Class, class.ExtendedResource})
		}
	}
	if slices.Equal(pairs, b.pairs) {
		return
	}
	b.pairs = pairs
	clear(b.class)
	for _, pair := range pairs {
		if other, taken := b.class[pair.resource]; taken && other != pair.class {
			b.class[pair.resource] = dra.DeviceClassMultiple
			continue
		}
		b.class[pair.resource] = pair.class
	}
	for p := range b.pods {
		s.touched.pods[p] = struct{}{}
	}
}

// follow keeps the list of the pods that ask for extended resources.
func (b *backing) follow(p *podEntry) {
	delete(b.pods, p)
	for i := range p.refs {
		if p.refs[i].extended > 0 {
			b.pods[p] = struct{}{}
			return
		}
	}
}

// asks reports whether the reference is one for devices: a claim always, an
// extended resource if a class has it. As long as no class is known at all, the
// claim that the scheduler makes tells.
func (b *backing) asks(r *reference) bool {
	if r.extended == 0 || b.classOf(r) != "" {
		return true
	}
	return b.from == nil && r.claim != nil && r.claim.life != nil
}

// classOf is the class behind an extended resource; empty for a claim, and
// where none is known.
func (b *backing) classOf(r *reference) string {
	if r.extended == 0 {
		return ""
	}
	if class, implicit := strings.CutPrefix(r.name, implicitPrefix); implicit {
		return class
	}
	return b.class[r.name]
}
