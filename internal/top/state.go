package top

import (
	"cmp"
	"slices"
	"strings"
	"unicode/utf8"
)

// State is the user's selection. Only keys change it.
type State struct {
	Order  Order
	Filter string // words, each of which must be in a row
	Typing bool   // the filter is being written
	Offset int    // rows scrolled past
	Done   bool   // the person has had enough
}

// Space is the extent of scrolling.
type Space struct{ Rows, Visible int }

// maxFilter bounds the length of a filter.
const maxFilter = 100

// Press is the state after a key.
func (s State) Press(key Keystroke, space Space) State {
	switch {
	case key.Name == KeyInterrupt:
		s.Done = true
	case s.Typing:
		s = s.typed(key)
	case key.Name == KeyRune:
		s = s.command(key.Rune, space)
	case key.Name == KeyEscape:
		s.Filter, s.Offset = "", 0
	default:
		s = s.scrolled(key, space)
	}
	return s.Within(space)
}

// Within limits scrolling to the table.
func (s State) Within(space Space) State {
	s.Offset = max(min(s.Offset, space.Rows-space.Visible), 0)
	return s
}

func (s State) command(r rune, space Space) State {
	if key, is := sortKeys()[r]; is {
		s.Order, s.Offset = Order{Key: key, Reversed: s.Order.Key == key && s.Order.Reversed}, 0
		return s
	}
	switch r {
	case 'q':
		s.Done = true
	case 'r':
		s.Order.Reversed = !s.Order.Reversed
	case '/':
		s.Typing = true
	case 'j':
		return s.scrolled(Keystroke{Name: KeyDown}, space)
	case 'k':
		return s.scrolled(Keystroke{Name: KeyUp}, space)
	case ' ':
		return s.scrolled(Keystroke{Name: KeyPageDown}, space)
	case 'g':
		return s.scrolled(Keystroke{Name: KeyHome}, space)
	case 'G':
		return s.scrolled(Keystroke{Name: KeyEnd}, space)
	}
	return s
}

// sortKeys are the letters that sort.
func sortKeys() map[rune]Key {
	return map[rune]Key{
		'u': ByUtilization, 'm': ByMemory, 'p': ByPower, 'i': ByIdle, 'a': ByHeld, 'c': ByCost, 'h': ByHealth, 'n': ByName,
	}
}

// typed writes the filter; rows are filtered as it grows.
func (s State) typed(key Keystroke) State {
	s.Offset = 0
	switch key.Name {
	case KeyRune:
		if utf8.RuneCountInString(s.Filter) < maxFilter {
			s.Filter += string(key.Rune)
		}
	case KeyBackspace:
		_, size := utf8.DecodeLastRuneInString(s.Filter)
		s.Filter = s.Filter[:len(s.Filter)-size]
	case KeyEnter:
		s.Typing = false
	case KeyEscape:
		s.Typing, s.Filter = false, ""
	}
	return s
}

func (s State) scrolled(key Keystroke, space Space) State {
	page := max(space.Visible-1, 1)
	switch key.Name {
	case KeyUp:
		s.Offset--
	case KeyDown:
		s.Offset++
	case KeyPageUp:
		s.Offset -= page
	case KeyPageDown:
		s.Offset += page
	case KeyHome:
		s.Offset = 0
	case KeyEnd:
		s.Offset = space.Rows
	}
	return s
}

// Chosen returns the rows that match the filter, in the selected order. It does
// not change the given slice.
func (s State) Chosen(rows []*Row) []*Row {
	words := strings.Fields(strings.ToLower(s.Filter))
	chosen := make([]*Row, 0, len(rows))
	for _, row := range rows {
		if row.has(words) {
			chosen = append(chosen, row)
		}
	}
	sortRows(chosen, s.Order)
	return chosen
}

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
)

// Keys returns all keys, in the order of the documentation.
func Keys() []Key {
	return []Key{ByUtilization, ByMemory, ByPower, ByIdle, ByHeld, ByCost, ByHealth, ByName}
}

// sortRows orders the rows. Rows whose value is unknown come last either way, and
// rows that are equal are in the order of their names.
func sortRows(rows []*Row, order Order) {
	value := order.Key.value()
	slices.SortFunc(rows, func(a, b *Row) int {
		if value == nil {
			return turned(compareNames(a, b), order.Reversed)
		}
		return cmp.Or(compareValues(value(a), value(b), order.Reversed), compareNames(a, b))
	})
}

// value returns the value that a key compares; nil for names.
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
		return (*Row).severity
	default:
		return nil
	}
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
