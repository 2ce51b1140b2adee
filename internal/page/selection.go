package page

import (
	"cmp"
	"net/url"
	"slices"
	"strings"
)

// selection is what a reader wants to see of an overview, and in which order: the query of
// its address. Values that no overview knows have no effect.
type selection struct {
	Filter string // words that an entry must contain, all of them
	Group  string // by what entries are grouped; empty: not at all
	order  map[string]string
}

// tables are those whose order the address may have, each in a parameter of its own name:
// the column, and a minus before it for the largest values first.
func tables() []string { return []string{"claims", "devices"} }

func parseSelection(query url.Values) selection {
	s := selection{Filter: strings.TrimSpace(query.Get("q")), Group: query.Get("group"), order: map[string]string{}}
	for _, table := range tables() {
		if key := query.Get(table); key != "" {
			s.order[table] = key
		}
	}
	return s
}

// matcher returns the function that reports whether an entry with these texts is selected.
func (s selection) matcher() func(texts ...string) bool {
	words := strings.Fields(strings.ToLower(s.Filter))
	return func(texts ...string) bool {
		if len(words) == 0 {
			return true
		}
		all := strings.ToLower(strings.Join(texts, "\n"))
		return !slices.ContainsFunc(words, func(word string) bool { return !strings.Contains(all, word) })
	}
}

// column is a column of a table as its header shows it.
type column struct {
	Key, Title string
	Class      string // of the cells
	Sorted     string // aria-sort: ascending or descending; empty: not by this column
	Address    string // of the view that is sorted by it, in the other direction if it is already
}

// columns returns those of a table with the order that is selected.
func (s selection) columns(table string, all []column) []column {
	columns := slices.Clone(all)
	for i := range columns {
		c := &columns[i]
		if c.Key == "" {
			continue
		}
		next := "-" + c.Key
		if c.Key == "name" {
			next = c.Key
		}
		switch s.order[table] {
		case c.Key:
			c.Sorted, next = "ascending", "-"+c.Key
		case "-" + c.Key:
			c.Sorted, next = "descending", c.Key
		}
		c.Address = s.address(table, next)
	}
	return columns
}

// address is that of the same selection with another order of a table.
func (s selection) address(table, key string) string {
	query := url.Values{}
	for key, value := range map[string]string{"q": s.Filter, "group": s.Group} {
		if value != "" {
			query.Set(key, value)
		}
	}
	for name, order := range s.order {
		query.Set(name, order)
	}
	query.Set(table, key)
	return "?" + query.Encode()
}

// Orders are the parameters that a form must keep.
func (s selection) Orders() map[string]string { return s.order }

// sorted returns the entries in the order that is selected for the table: by their name or
// by a number. Unknown numbers are last in both directions, and entries that are equal keep
// their order.
func sorted[T any](s selection, table string, all []T, name func(T) string, numbers map[string]func(T) *float64) []T {
	key, descending := strings.CutPrefix(s.order[table], "-")
	sign := 1
	if descending {
		sign = -1
	}
	number := numbers[key]
	switch {
	case key == "name":
		all = slices.Clone(all)
		slices.SortStableFunc(all, func(a, b T) int { return sign * natural(name(a), name(b)) })
	case number != nil:
		all = slices.Clone(all)
		slices.SortStableFunc(all, func(a, b T) int {
			x, y := number(a), number(b)
			if x == nil || y == nil {
				return first(x != nil, y != nil)
			}
			return sign * cmp.Compare(*x, *y)
		})
	}
	return all
}

// group is entries that have something in common.
type group[T any] struct {
	Key   string // by what, and its value
	Title string
	Items []T
}

// grouped returns the entries by the titles of their groups, in the order of the titles; one
// group without a title if key is nil.
func grouped[T any](kind string, all []T, key func(T) string) []group[T] {
	if key == nil {
		if len(all) == 0 {
			return nil
		}
		return []group[T]{{Key: "all", Items: all}}
	}
	var groups []group[T]
	for _, item := range all {
		title := key(item)
		i := slices.IndexFunc(groups, func(g group[T]) bool { return g.Title == title })
		if i < 0 {
			i = len(groups)
			groups = append(groups, group[T]{Key: kind + ":" + title, Title: title})
		}
		groups[i].Items = append(groups[i].Items, item)
	}
	slices.SortStableFunc(groups, func(a, b group[T]) int { return natural(a.Title, b.Title) })
	return groups
}
