package top

import (
	"cmp"
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
	items := rowItems(rows)
	sortItems(items, order)
	sorted := make([]*Row, len(items))
	for i := range items {
		sorted[i] = items[i].rows[0]
	}
	return sorted
}

// rowItems returns an item for each row.
func rowItems(rows []*Row) []*item {
	items := make([]*item, len(rows))
	for i, r := range rows {
		list := rows[i : i+1 : i+1]
		items[i] = &item{key: key(r.Device, r.UUID), namespace: r.Namespace, name: r.Claim, node: r.Node, rows: list, usage: sumUsage(list)}
	}
	return items
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
