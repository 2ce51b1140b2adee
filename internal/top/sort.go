package top

import (
	"cmp"
	"slices"
)

// Order is the sort order of rows.
type Order struct {
	Key      Key
	Reversed bool // smallest first, or names from Z to A
}

// Key names a column to sort by.
type Key string

// The sort keys. Numbers are sorted in descending order, names in ascending
// order.
const (
	ByUtilization Key = "utilization"
	ByMemory      Key = "memory"
	ByPower       Key = "power"
	ByIdle        Key = "idle"
	ByHeld        Key = "held"
	ByCost        Key = "cost"
	ByHealth      Key = "health"
	ByName        Key = "name"

	byDevices Key = "devices"
	byFree    Key = "free"
	byAge     Key = "age"
	byReason  Key = "reason"
)

// Keys returns the keys of claims, in the order of the documentation.
func Keys() []Key {
	return []Key{ByUtilization, ByMemory, ByPower, ByIdle, ByHeld, ByCost, ByHealth, ByName}
}

// Sorted returns the rows in an order. It does not change the given slice.
func Sorted(rows []*Row, order Order) []*Row {
	sorted := make([]*Row, len(rows))
	copy(sorted, rows)
	sortBy(sorted, order, order.Key.value(), compareNames)
	return sorted
}

// sortBy orders what has values and names. What has an unknown value comes last
// either way, and equal values are in the order of their names. Without a
// function for values the names are what is sorted by.
func sortBy[T any](all []*T, order Order, value func(*T) *float64, names func(a, b *T) int) {
	slices.SortFunc(all, func(a, b *T) int {
		if value == nil {
			return turned(names(a, b), order.Reversed)
		}
		return cmp.Or(compareValues(value(a), value(b), order.Reversed), names(a, b))
	})
}

// value returns the value that a key compares; nil for names.
func (k Key) value() func(*Row) *float64 {
	return map[Key]func(*Row) *float64{
		ByUtilization: func(r *Row) *float64 { return r.Utilization },
		ByMemory:      func(r *Row) *float64 { return r.MemoryUsed },
		ByPower:       func(r *Row) *float64 { return r.Power },
		ByIdle:        func(r *Row) *float64 { return r.Idle },
		ByHeld:        func(r *Row) *float64 { return r.Held },
		ByCost:        func(r *Row) *float64 { return r.Cost },
		ByHealth:      func(r *Row) *float64 { return severity(r.Health) },
	}[k]
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
