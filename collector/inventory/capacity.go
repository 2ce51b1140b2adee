package inventory

import (
	"math"
	"slices"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// capacities are the capacities of a device, by name.
type capacities map[resourcev1.QualifiedName]resourcev1.DeviceCapacity

// consumedCapacities are the consumed amounts of capacities, by name.
type consumedCapacities map[resourcev1.QualifiedName]resource.Quantity

// capacityFits reports whether the device's capacities suffice for a request
// beside what is consumed of them. If the request does not name a capacity, it
// consumes the default amount, or everything if there is no default (KEP-5075).
// An amount that cannot be computed does not fit; the allocator reports it as an
// error.
func capacityFits(published capacities, consumed consumedCapacities, requested *resourcev1.CapacityRequirements) bool {
	if requested != nil {
		for name := range requested.Requests {
			if _, ok := published[name]; !ok {
				return false
			}
		}
	}
	for name, capacity := range published {
		var amount *resource.Quantity
		if requested != nil {
			if value, ok := requested.Requests[name]; ok {
				amount = &value
			}
		}
		total, ok := consumption(&capacity, amount)
		if !ok || total.Sign() < 0 || !allowed(capacity.RequestPolicy, total) {
			return false
		}
		if already, ok := consumed[name]; ok {
			total.Add(already)
		}
		if total.Cmp(capacity.Value) > 0 {
			return false
		}
	}
	return true
}

// consumption returns the amount that a request consumes: the requested amount
// (nil: the default, or else all), rounded up to one that the policy allows. It
// returns false if there is no such number.
func consumption(capacity *resourcev1.DeviceCapacity, requested *resource.Quantity) (resource.Quantity, bool) {
	policy := capacity.RequestPolicy
	switch {
	case requested == nil && policy != nil && policy.Default != nil:
		return policy.Default.DeepCopy(), true
	case requested == nil:
		return capacity.Value.DeepCopy(), true
	case policy == nil:
		return requested.DeepCopy(), true
	case policy.ValidRange != nil && policy.ValidRange.Min != nil:
		return roundUp(policy.ValidRange, requested)
	}
	for _, valid := range policy.ValidValues {
		if requested.Cmp(valid) <= 0 {
			return valid.DeepCopy(), true
		}
	}
	return requested.DeepCopy(), true
}

// roundUp returns the smallest amount of the range that is not below the
// requested one.
func roundUp(bounds *resourcev1.CapacityRequestPolicyRange, requested *resource.Quantity) (resource.Quantity, bool) {
	if requested.Cmp(*bounds.Min) < 0 {
		return bounds.Min.DeepCopy(), true
	}
	if bounds.Step == nil {
		return requested.DeepCopy(), true
	}
	unit := newAmountUnit(bounds)
	value, ok := unit.convert(*requested)
	least, _ := unit.convert(*bounds.Min)
	step, _ := unit.convert(*bounds.Step)
	if !ok || step <= 0 || least < 0 {
		return resource.Quantity{}, false
	}
	steps := (value - least) / step
	if (value-least)%step != 0 {
		steps++
	}
	if steps > (math.MaxInt64-least)/step {
		return resource.Quantity{}, false
	}
	return unit.quantity(least + steps*step), true
}

// allowed reports whether the policy lets a request consume the amount.
func allowed(policy *resourcev1.CapacityRequestPolicy, amount resource.Quantity) bool {
	switch {
	case policy == nil, policy.Default != nil && amount.Cmp(*policy.Default) == 0:
		return true
	case policy.ValidRange != nil:
		return inRange(policy.ValidRange, amount)
	case len(policy.ValidValues) > 0:
		return slices.ContainsFunc(policy.ValidValues, func(valid resource.Quantity) bool { return amount.Cmp(valid) == 0 })
	}
	return true
}

func inRange(bounds *resourcev1.CapacityRequestPolicyRange, amount resource.Quantity) bool {
	if bounds.Max != nil && amount.Cmp(*bounds.Max) > 0 {
		return false
	}
	if bounds.Step == nil || bounds.Min == nil {
		return true
	}
	unit := newAmountUnit(bounds)
	value, ok := unit.convert(amount)
	least, _ := unit.convert(*bounds.Min)
	step, _ := unit.convert(*bounds.Step)
	return ok && step > 0 && (value-least)%step == 0
}

// amountUnit is the unit in which the amounts of a range are computed: thousandths if
// all limits of the range are whole thousandths, else ones.
type amountUnit int64

func newAmountUnit(bounds *resourcev1.CapacityRequestPolicyRange) amountUnit {
	const thousandths, ones = amountUnit(1000), amountUnit(1)
	for _, limit := range []*resource.Quantity{bounds.Min, bounds.Max, bounds.Step} {
		if limit == nil {
			continue
		}
		if _, whole := thousandths.convert(*limit); !whole {
			return ones
		}
	}
	if step, _ := thousandths.convert(*bounds.Step); step < 1 {
		return ones
	}
	return thousandths
}

// convert returns the amount in the unit, and false if the amount cannot be
// expressed in it. An amount in ones is rounded up, as Quantity does.
func (u amountUnit) convert(amount resource.Quantity) (int64, bool) {
	if u == 1 {
		return amount.Value(), amount.CmpInt64(math.MaxInt64) <= 0
	}
	milli := amount.MilliValue()
	return milli, amount.Cmp(*resource.NewMilliQuantity(milli, amount.Format)) == 0
}

func (u amountUnit) quantity(value int64) resource.Quantity {
	if u == 1 {
		return *resource.NewQuantity(value, resource.DecimalSI)
	}
	return *resource.NewMilliQuantity(value, resource.DecimalSI)
}
