package inventory

import (
	"iter"
	"maps"
	"slices"
	"strings"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/dynamic-resource-allocation/resourceclaim"

	"github.com/dra-exporter/dra-exporter/collector/dra"
)

// taintRules keeps the DeviceTaintRules.
type taintRules map[string]*resourcev1.DeviceTaintRule

// set applies the present state of a rule; nil: it is gone. It returns the
// state before, and whether the rule has changed in more than its status.
func (t taintRules) set(name string, published *resourcev1.DeviceTaintRule) (old *resourcev1.DeviceTaintRule, changed bool) {
	old = t[name]
	if published == nil {
		delete(t, name)
	} else {
		t[strings.Clone(name)] = published
	}
	onlyStatus := old != nil && published != nil && equality.Semantic.DeepEqual(old.Spec, published.Spec)
	return old, !onlyStatus
}

// evictions returns the progress of the evictions of the rules that report it,
// sorted by rule.
func (t taintRules) evictions() []dra.RuleEviction {
	var all []dra.RuleEviction
	for _, name := range slices.Sorted(maps.Keys(t)) {
		condition := meta.FindStatusCondition(t[name].Status.Conditions, resourcev1.DeviceTaintConditionEvictionInProgress)
		if condition == nil || condition.Status == metav1.ConditionUnknown {
			continue
		}
		all = append(all, dra.RuleEviction{
			Rule: validUTF8(name), InProgress: condition.Status == metav1.ConditionTrue,
			Reason: validUTF8(condition.Reason), Message: validUTF8(condition.Message),
		})
	}
	return all
}

// taintRule is a DeviceTaintRule that selects devices of a pool.
type taintRule struct {
	name   string
	device *string // nil: all devices of the pool
	taint  resourcev1.DeviceTaint
}

// broad returns the rules that select all devices, sorted.
func (t taintRules) broad() []dra.BroadRule {
	var all []dra.BroadRule
	for _, name := range slices.Sorted(maps.Keys(t)) {
		selector := t[name].Spec.DeviceSelector
		if selector != nil && selector.Driver == nil && selector.Pool == nil && selector.Device == nil {
			all = append(all, dra.BroadRule{Rule: validUTF8(name), Taint: newTaint(&t[name].Spec.Taint)})
		}
	}
	return all
}

// forPool returns the rules that select devices of the pool, sorted by name.
func (t taintRules) forPool(driver, pool string) []taintRule {
	var rules []taintRule
	for _, name := range slices.Sorted(maps.Keys(t)) {
		if published := t[name]; selectsPool(published, driver, pool) {
			rules = append(rules, taintRule{name, published.Spec.DeviceSelector.Device, published.Spec.Taint})
		}
	}
	return rules
}

// selectsPool reports whether a rule selects devices of the pool. A rule without
// a selector selects none; a field that is not set selects everything.
func selectsPool(published *resourcev1.DeviceTaintRule, driver, pool string) bool {
	if published == nil || published.Spec.DeviceSelector == nil {
		return false
	}
	selector := published.Spec.DeviceSelector
	return (selector.Driver == nil || *selector.Driver == driver) && (selector.Pool == nil || *selector.Pool == pool)
}

// eachTaint returns all taints of a device: those of its slice, then those of
// rules with the rule's name.
func eachTaint(d *device, rules []taintRule) iter.Seq2[string, *resourcev1.DeviceTaint] {
	return func(yield func(string, *resourcev1.DeviceTaint) bool) {
		if d.extras != nil {
			for i := range d.extras.taints {
				if !yield("", &d.extras.taints[i]) {
					return
				}
			}
		}
		for i := range rules {
			r := &rules[i]
			if (r.device == nil || *r.device == d.name.Value()) && !yield(r.name, &r.taint) {
				return
			}
		}
	}
}

// addTaints returns the slice with the taints of rules after its own, as the
// scheduler's tracker makes it.
func addTaints(published *resourcev1.ResourceSlice, rules []taintRule) *resourcev1.ResourceSlice {
	if len(rules) == 0 {
		return published
	}
	changed := *published
	changed.Spec.Devices = slices.Clone(published.Spec.Devices)
	for i := range changed.Spec.Devices {
		device := &changed.Spec.Devices[i]
		taints := slices.Clip(device.Taints)
		for _, r := range rules {
			if r.device == nil || *r.device == device.Name {
				taints = append(taints, r.taint)
			}
		}
		device.Taints = taints
	}
	return &changed
}

// repels reports whether a taint keeps claims away that do not tolerate it.
// Unknown effects do not.
func repels(taint *resourcev1.DeviceTaint, tolerations []resourcev1.DeviceToleration) bool {
	if taint.Effect != resourcev1.DeviceTaintEffectNoSchedule && taint.Effect != resourcev1.DeviceTaintEffectNoExecute {
		return false
	}
	return !slices.ContainsFunc(tolerations, func(t resourcev1.DeviceToleration) bool { return resourceclaim.ToleratesTaint(t, *taint) })
}

// repelled reports whether the device has a taint that is not tolerated.
func repelled(d *device, rules []taintRule, tolerations []resourcev1.DeviceToleration) bool {
	for _, taint := range eachTaint(d, rules) {
		if repels(taint, tolerations) {
			return true
		}
	}
	return false
}

func newTaint(published *resourcev1.DeviceTaint) dra.Taint {
	return dra.Taint{Key: validUTF8(published.Key), Value: validUTF8(published.Value), Effect: validUTF8(string(published.Effect))}
}
