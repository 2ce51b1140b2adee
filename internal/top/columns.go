package top

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/dra-exporter/dra-exporter/internal/words"
)

// Look is how to draw.
type Look struct {
	Width  int  // of the terminal; 0: no limit
	Styled bool // the terminal understands bold and colours
	Bars   bool
	Glyphs Glyphs
}

// column is a column of a table of items. Foreign text in its cells has no control
// characters.
type column struct {
	title string
	sort  Key  // what marks it; empty for none
	right bool // aligned
	rank  int  // where the terminal is too narrow, the highest go first

	least int // columns of the terminal; text is cut to it before others go
	most  int // 0: least is the width of all cells

	place bool // a place; left out if all rows are in one place
	cell  func(g Glyphs, entry *item, bars bool) string
	style func(entry *item) string
}

// textColumn and numberColumn return columns of foreign text and of numbers.
func textColumn(title string, rank, least, most int, text func(*item) string) column {
	return column{title: title, rank: rank, least: least, most: most, cell: func(g Glyphs, entry *item, _ bool) string {
		return cmp.Or(clean(text(entry)), g.Absent)
	}}
}

func numberColumn(title string, key Key, rank, least int, text func(Glyphs, *item) string) column {
	return column{title: title, sort: key, rank: rank, least: least, right: true, cell: func(g Glyphs, entry *item, _ bool) string { return text(g, entry) }}
}

// sortedBy, placed and styledBy return the column with one of its fields set.
func (c column) sortedBy(key Key) column { c.sort = key; return c }

func (c column) placed() column { c.place = true; return c }

func (c column) styledBy(style func(*item) string) column { c.style = style; return c }

// barWidth is how long a utilization's bar is.
const barWidth = 6

// columns returns all columns of devices that claims hold, from left to right.
func columns() []column {
	row := func(text func(*Row) string) func(*item) string {
		return func(i *item) string { return text(i.rows[0]) }
	}
	return []column{
		namespaceColumn(4), nameColumn("CLAIM"), podsColumn(9), nodeColumn(7),
		textColumn("DEVICE", 3, 8, 40, row(deviceCell)).styledBy(healthStyle),
		textColumn("MODEL", 12, 8, 24, itemTitle),
		textColumn("UUID", 14, 13, 13, row(func(r *Row) string { return r.UUID })),
		textColumn("HELD BY", 11, 9, 9, row(func(r *Row) string { return r.Attribution })),
		itemUtilizationColumn(), memoryColumn(2), powerColumn(5), idleColumn(6), heldColumn(8), costColumn(13), healthColumn(10),
	}
}

// mark stands behind what is the whole device's though several share it.
func mark(whole bool) string {
	if whole {
		return "*"
	}
	return " "
}

// podsCell returns one name, and the number of the others.
func podsCell(pods []string) string {
	if len(pods) > 1 {
		return fmt.Sprintf("%s +%d", pods[0], len(pods)-1)
	}
	return strings.Join(pods, "")
}

// deviceCell marks devices that are unhealthy, recovering or degraded, because the
// column of their health is the first to be dropped.
func deviceCell(r *Row) string {
	name := cmp.Or(r.Device, r.UUID)
	if r.marked() {
		return "!" + name
	}
	return name
}

func healthCell(health string, reasons []string) string {
	if len(reasons) == 0 {
		return health
	}
	return health + ": " + strings.Join(reasons, ", ")
}

// utilizationCell marks a utilization that is the whole device's.
func utilizationCell(g Glyphs, ratio *float64, whole, bars bool) string {
	if ratio == nil {
		return g.Absent + " "
	}
	text := g.fit(g.number(ratio, words.Percent), 4, true) + mark(whole)
	if !bars {
		return text
	}
	return g.bar(*ratio, barWidth) + " " + text
}

func memoryCell(g Glyphs, used, total *float64, whole bool) string {
	text := g.number(used, words.ShortBytes)
	if total == nil {
		return text + mark(whole)
	}
	all := g.number(total, words.ShortBytes)
	if digits, unit := text[:len(text)-1], text[len(text)-1:]; used != nil && strings.HasSuffix(all, unit) {
		text = digits // 63/80G
	}
	return text + "/" + all + mark(whole)
}

// idleCell is empty for claims in use: only idle ones are of interest.
func idleCell(g Glyphs, utilization, idle *float64) string {
	if idle == nil && utilization != nil {
		return ""
	}
	return g.number(idle, shortAge)
}

func costCell(g Glyphs, cost *float64, currency string) string {
	return g.number(cost, func(v float64) string { return words.Money(v, clean(currency)) })
}

// The styles in use.
const (
	styleBold      = "\x1b[1m"
	styleDim       = "\x1b[2m"
	styleReverse   = "\x1b[7m"
	styleBusy      = "\x1b[32m"
	styleWarning   = "\x1b[33m"
	styleUnhealthy = "\x1b[1;31m"
	styleEnd       = "\x1b[0m"
)

func healthStyle(i *item) string { return styleOfHealth(i.health) }

func styleOfHealth(health string) string {
	return map[string]string{"unhealthy": styleUnhealthy, "recovering": styleWarning, "degraded": styleWarning}[health]
}

func utilizationStyle(utilization, idle *float64) string {
	switch {
	case utilization == nil:
		return styleDim
	case idle != nil:
		return styleWarning
	default:
		return styleBusy
	}
}

// placed is a column with the width that it has got.
type placed struct {
	column
	width int // that it has
	wish  int // that its cells would fill
}

// arrange chooses the columns that fit a terminal and how wide each is. So many
// go, the least important first, that the rest has its least width; what is
// left over goes where text is cut. A limit of 0 is none: then each column is as
// wide as its widest cell.
func arrange(all []column, rows []*item, look Look) []placed {
	table := make([]placed, len(all))
	for i, c := range all {
		table[i] = placed{column: c, wish: max(c.least, width(c.title))}
		switch {
		case look.Width <= 0:
			table[i].wish = max(widest(c, rows, look, 0), width(c.title))
		case c.most > 0:
			table[i].wish = max(widest(c, rows, look, c.most), width(c.title))
		}
		table[i].width = table[i].wish
		if c.place && uniform(c, rows, look) {
			table[i].rank += len(all)
		}
	}
	if look.Width <= 0 {
		return table
	}
	return widened(dropped(table, look.Width), look.Width)
}

// floor is the width below which a column is not worth having; a column whose
// cells are all shorter needs no more than they do.
func (p placed) floor() int { return min(max(p.least, width(p.title)), p.wish) }

// widest is how wide the widest cell is, up to a limit that is not 0.
func widest(c column, rows []*item, look Look, limit int) int {
	most := 1
	for i := range rows {
		most = max(most, width(c.cell(look.Glyphs, rows[i], look.Bars)))
		if limit > 0 && most >= limit {
			return limit
		}
	}
	return most
}

// uniform reports whether all cells say the same.
func uniform(c column, rows []*item, look Look) bool {
	cell := func(row *item) string { return c.cell(look.Glyphs, row, look.Bars) }
	return !slices.ContainsFunc(rows, func(row *item) bool { return cell(row) != cell(rows[0]) })
}

// dropped leaves out columns until the rest fits.
func dropped(table []placed, limit int) []placed {
	for len(table) > 1 {
		total, last := len(table)-1, 0
		for i, c := range table {
			total += c.floor()
			if c.rank > table[last].rank {
				last = i
			}
		}
		if total <= limit {
			return table
		}
		table = append(table[:last:last], table[last+1:]...)
	}
	return table
}

// widened shares out what the least widths leave, a column of the terminal at a
// time, so that none gets all of it.
func widened(table []placed, limit int) []placed {
	spare := limit - (len(table) - 1)
	for i := range table {
		table[i].width = min(table[i].floor(), limit)
		spare -= table[i].width
	}
	for given := true; given && spare > 0; {
		given = false
		for i := range table {
			if spare > 0 && table[i].width < table[i].wish {
				table[i].width++
				spare--
				given = true
			}
		}
	}
	return table
}
