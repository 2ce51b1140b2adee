package inventory

import (
	"iter"
	"maps"
	"slices"
	"strings"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/dynamic-resource-allocation/resourceclaim"

	"github.com/dra-exporter/dra-exporter/collector/dra"
)

// rule is a DeviceTaintRule that applies to some device of a pool.
type rule struct {
	name   string
	device *string // nil: to all of them
	taint  resourcev1.DeviceTaint
}

// Rule takes a taint rule as it is from now on; nil: it is gone.
func (inv *Inventory) Rule(name string, published *resourcev1.DeviceTaintRule) {
	inv.mu.Lock()
	defer inv.mu.Unlock()
	old := inv.rules[name]
	if old != nil && published != nil && equality.Semantic.DeepEqual(old.Spec, published.Spec) {
		return // only its status is different
	}
	inv.version++
	if published == nil {
		delete(inv.rules, name)
	} else {
		inv.rules[strings.Clone(name)] = published
	}
	for _, p := range inv.order {
		if applies(old, p) || applies(published, p) {
			inv.touch(p)
		}
	}
}

// applies says whether a rule selects devices of the pool. A rule without a
// selector selects none; what a selector does not name can be anything.
func applies(published *resourcev1.DeviceTaintRule, p *pool) bool {
	if published == nil || published.Spec.DeviceSelector == nil {
		return false
	}
	selector := published.Spec.DeviceSelector
	return (selector.Driver == nil || *selector.Driver == p.driver) && (selector.Pool == nil || *selector.Pool == p.name)
}

func (inv *Inventory) rulesFor(p *pool) []rule {
	var rules []rule
	for _, name := range slices.Sorted(maps.Keys(inv.rules)) {
		if published := inv.rules[name]; applies(published, p) {
			rules = append(rules, rule{name, published.Spec.DeviceSelector.Device, published.Spec.Taint})
		}
	}
	return rules
}

// taintsOf are all taints of a device: those of its slice, then those of rules
// with the rule's name.
func (p *pool) taintsOf(d *device) iter.Seq2[string, *resourcev1.DeviceTaint] {
	return func(yield func(string, *resourcev1.DeviceTaint) bool) {
		if d.more != nil {
			for i := range d.more.taints {
				if !yield("", &d.more.taints[i]) {
					return
				}
			}
		}
		for i := range p.rules {
			r := &p.rules[i]
			if (r.device == nil || *r.device == d.name.Value()) && !yield(r.name, &r.taint) {
				return
			}
		}
	}
}

// repels says whether a taint keeps claims off that do not tolerate it. Effects
// that are not known do not.
func repels(taint *resourcev1.DeviceTaint) bool {
	return taint.Effect == resourcev1.DeviceTaintEffectNoSchedule || taint.Effect == resourcev1.DeviceTaintEffectNoExecute
}

// repelled finds the first taint of the device that is not tolerated.
func (p *pool) repelled(d *device, tolerations []resourcev1.DeviceToleration) (rule string, taint *resourcev1.DeviceTaint) {
	for rule, taint := range p.taintsOf(d) {
		if repels(taint) && !tolerated(taint, tolerations) {
			return rule, taint
		}
	}
	return "", nil
}

func tolerated(taint *resourcev1.DeviceTaint, tolerations []resourcev1.DeviceToleration) bool {
	return slices.ContainsFunc(tolerations, func(t resourcev1.DeviceToleration) bool { return resourceclaim.ToleratesTaint(t, *taint) })
}

func taintOf(published *resourcev1.DeviceTaint) dra.Taint {
	return dra.Taint{Key: clean(published.Key), Value: clean(published.Value), Effect: clean(string(published.Effect))}
}
