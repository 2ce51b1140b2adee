package cluster

import (
	"maps"
	"slices"
	"strings"

	"github.com/dra-exporter/dra-exporter/collector/dra"
)

// implicitPrefix begins the name of the extended resource that every device
// class has (k8s.io/api/resource/v1, ResourceDeviceClassPrefix).
const implicitPrefix = "deviceclass.resource.kubernetes.io/"

// extendedResources records which extended resources are backed by device
// classes. The others are of device plugins, and are ignored.
type extendedResources struct {
	supply *dra.Supply // from which the rest was determined
	pairs  []classResource
	byName map[string]string      // class by resource; "multiple" where several classes have it
	pods   map[*podEntry]struct{} // that request extended resources
}

type classResource struct{ class, resource string }

func newExtendedResources() extendedResources {
	return extendedResources{byName: make(map[string]string), pods: make(map[*podEntry]struct{})}
}

// update takes the device classes, and reports whether another class has an
// extended resource now.
func (e *extendedResources) update(supply *dra.Supply) bool {
	if supply == nil || supply == e.supply {
		return false
	}
	e.supply = supply
	var pairs []classResource
	for i := range supply.Classes {
		if class := &supply.Classes[i]; class.ExtendedResource != "" {
			pairs = append(pairs, classResource{class.Class, class.ExtendedResource})
		}
	}
	if slices.Equal(pairs, e.pairs) {
		return false
	}
	e.pairs = pairs
	clear(e.byName)
	for _, pair := range pairs {
		if other, ok := e.byName[pair.resource]; ok && other != pair.class {
			e.byName[pair.resource] = dra.DeviceClassMultiple
			continue
		}
		e.byName[pair.resource] = pair.class
	}
	return true
}

// requesters lists the pods that request extended resources.
func (e *extendedResources) requesters() []*podEntry { return slices.Collect(maps.Keys(e.pods)) }

// applyPod records whether a pod requests extended resources.
func (e *extendedResources) applyPod(p *podEntry) {
	if !p.removed && slices.ContainsFunc(p.refs, func(r reference) bool { return r.extended > 0 }) {
		e.pods[p] = struct{}{}
	} else {
		delete(e.pods, p)
	}
}

// isDevice reports whether the reference requests devices: a claim always does,
// an extended resource if a class has it. While no class is known, it does if
// the scheduler has created a claim for it.
func (e *extendedResources) isDevice(r *reference) bool {
	if r.extended == 0 || e.class(r) != "" {
		return true
	}
	return e.supply == nil && r.exists()
}

// class is the device class behind an extended resource; empty for a claim, and
// where none is known.
func (e *extendedResources) class(r *reference) string {
	if r.extended == 0 {
		return ""
	}
	if class, implicit := strings.CutPrefix(r.name, implicitPrefix); implicit {
		return class
	}
	return e.byName[r.name]
}
