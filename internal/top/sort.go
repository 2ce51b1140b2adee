package top

import (
	"cmp"
	"slices"
)

// Order is what rows are sorted by.
type Order struct {
	Key      Key
	Reversed bool // smallest first, or names from Z to A
}

// Key names a column to sort by.
type Key string

// The keys. Numbers are sorted downwards, names upwards.
const (
	ByUtilization Key = "utilization"
	ByMemory      Key = "memory"
	ByPower       Key = "power"
	ByIdle        Key = "idle"
	ByHeld        Key = "held"
	ByCost        Key = "cost"
	ByHealth      Key = "health"
	ByName        Key = "name"
)

// Keys are all of them, in the order in which people are told of them.
func Keys() []Key {
	return []Key{ByUtilization, ByMemory, ByPower, ByIdle, ByHeld, ByCost, ByHealth, ByName}
}

// Sort orders the rows. Rows whose value is unknown come last either way, and
// rows that are equal are in the order of their names.
func Sort(rows []*Row, order Order) {
	value := order.Key.value()
	slices.SortFunc(rows, func(a, b *Row) int {
		if value == nil {
			return turned(compareNames(a, b), order.Reversed)
		}
		return cmp.Or(compareValues(value(a), value(b), order.Reversed), compareNames(a, b))
	})
}

// value is what a key compares; nil for names.
func (k Key) value() func(*Row) *float64 {
	switch k {
	case ByUtilization:
		return func(r *Row) *float64 { return r.Utilization }
	case ByMemory:
		return func(r *Row) *float64 { return r.MemoryUsed }
	case ByPower:
		return func(r *Row) *float64 { return r.Power }
	case ByIdle:
		return func(r *Row) *float64 { return r.Idle }
	case ByHeld:
		return func(r *Row) *float64 { return r.Held }
	case ByCost:
		return func(r *Row) *float64 { return r.Cost }
	case ByHealth:
		return (*Row).ailment
	default:
		return nil
	}
}

// ailment is how much is amiss; nil where nobody says anything.
func (r *Row) ailment() *float64 {
	grades := map[string]float64{"sick": 3, "recovering": 2, "warned": 1, "well": 0}
	if grade, said := grades[r.Health]; said {
		return &grade
	}
	return nil
}

func compareValues(a, b *float64, reversed bool) int {
	switch {
	case a == nil && b == nil:
		return 0
	case a == nil:
		return 1
	case b == nil:
		return -1
	default:
		return turned(cmp.Compare(*b, *a), reversed)
	}
}

func compareNames(a, b *Row) int {
	return cmp.Or(
		cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Claim, b.Claim), cmp.Compare(a.Node, b.Node),
		cmp.Compare(a.Device, b.Device), cmp.Compare(a.UUID, b.UUID),
	)
}

func turned(order int, reversed bool) int {
	if reversed {
		return -order
	}
	return order
}
