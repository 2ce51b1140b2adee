package inventory

import (
	"math"
	"slices"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// capacityFits says whether the device's capacities suffice for a request, with
// what is consumed of them already. A capacity that the request does not name
// is consumed by its default, else as a whole (KEP-5075). What cannot be
// computed does not fit; the allocator reports it as an error.
func capacityFits(published capacities, consumed amounts, asked *resourcev1.CapacityRequirements) bool {
	if asked != nil {
		for name := range asked.Requests {
			if _, known := published[name]; !known {
				return false
			}
		}
	}
	for name, capacity := range published {
		var amount *resource.Quantity
		if asked != nil {
			if value, named := asked.Requests[name]; named {
				amount = &value
			}
		}
		takes, ok := portion(&capacity, amount)
		if !ok || takes.Sign() < 0 || !allowed(capacity.RequestPolicy, takes) {
			return false
		}
		if already, some := consumed[name]; some {
			takes.Add(already)
		}
		if takes.Cmp(capacity.Value) > 0 {
			return false
		}
	}
	return true
}

// amounts are what is consumed of capacities.
type amounts map[resourcev1.QualifiedName]resource.Quantity

// portion is what a request for an amount, or for none, consumes: rounded up to
// what the policy allows. It is false for what has no number.
func portion(of *resourcev1.DeviceCapacity, asked *resource.Quantity) (resource.Quantity, bool) {
	policy := of.RequestPolicy
	switch {
	case asked == nil && policy != nil && policy.Default != nil:
		return policy.Default.DeepCopy(), true
	case asked == nil:
		return of.Value.DeepCopy(), true
	case policy == nil:
		return asked.DeepCopy(), true
	case policy.ValidRange != nil && policy.ValidRange.Min != nil:
		return stepUp(policy.ValidRange, asked)
	}
	for _, valid := range policy.ValidValues {
		if asked.Cmp(valid) <= 0 {
			return valid.DeepCopy(), true
		}
	}
	return asked.DeepCopy(), true
}

// stepUp is the smallest amount of the range that is not below what is asked.
func stepUp(within *resourcev1.CapacityRequestPolicyRange, asked *resource.Quantity) (resource.Quantity, bool) {
	if asked.Cmp(*within.Min) < 0 {
		return within.Min.DeepCopy(), true
	}
	if within.Step == nil {
		return asked.DeepCopy(), true
	}
	unit := unitOf(within)
	value, known := unit.of(*asked)
	least, _ := unit.of(*within.Min)
	step, _ := unit.of(*within.Step)
	if !known || step <= 0 || least < 0 {
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

// allowed says whether the policy lets a request consume the amount.
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

func inRange(within *resourcev1.CapacityRequestPolicyRange, amount resource.Quantity) bool {
	if within.Max != nil && amount.Cmp(*within.Max) > 0 {
		return false
	}
	if within.Step == nil || within.Min == nil {
		return true
	}
	unit := unitOf(within)
	value, known := unit.of(amount)
	least, _ := unit.of(*within.Min)
	step, _ := unit.of(*within.Step)
	return known && step > 0 && (value-least)%step == 0
}

// unit is what amounts of a range are counted in: thousandths where all of its
// limits are whole thousandths, else ones.
type unit int64

func unitOf(within *resourcev1.CapacityRequestPolicyRange) unit {
	const thousandths, ones = unit(1000), unit(1)
	for _, limit := range []*resource.Quantity{within.Min, within.Max, within.Step} {
		if limit == nil {
			continue
		}
		if _, whole := thousandths.of(*limit); !whole {
			return ones
		}
	}
	if step, _ := thousandths.of(*within.Step); step < 1 {
		return ones
	}
	return thousandths
}

// of is the amount in the unit, and false where it has no such number. An amount
// in ones is rounded up, as Quantity does.
func (u unit) of(amount resource.Quantity) (int64, bool) {
	if u == 1 {
		return amount.Value(), amount.CmpInt64(math.MaxInt64) <= 0
	}
	milli := amount.MilliValue()
	return milli, amount.Cmp(*resource.NewMilliQuantity(milli, amount.Format)) == 0
}

func (u unit) quantity(value int64) resource.Quantity {
	if u == 1 {
		return *resource.NewQuantity(value, resource.DecimalSI)
	}
	return *resource.NewMilliQuantity(value, resource.DecimalSI)
}
