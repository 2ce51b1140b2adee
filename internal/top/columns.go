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

// column is a column of a table of T. Foreign text in its cells has no control
// characters.
type column[T any] struct {
	title string
	sort  Key  // what marks it; empty for none
	right bool // aligned
	rank  int  // where the terminal is too narrow, the highest go first

	least int // columns of the terminal; text is cut to it before others go
	most  int // 0: least is the width of all cells

	place bool // a place; left out if all rows are in one place
	cell  func(g Glyphs, entry *T, bars bool) string
	style func(entry *T) string
}

// textColumn and numberColumn return columns of foreign text and of numbers.
func textColumn[T any](title string, rank, least, most int, text func(*T) string) column[T] {
	return column[T]{title: title, rank: rank, least: least, most: most, cell: func(g Glyphs, entry *T, _ bool) string {
		return cmp.Or(clean(text(entry)), g.Absent)
	}}
}

func numberColumn[T any](title string, key Key, rank, least int, text func(Glyphs, *T) string) column[T] {
	return column[T]{title: title, sort: key, rank: rank, least: least, right: true, cell: func(g Glyphs, entry *T, _ bool) string { return text(g, entry) }}
}

// sortedBy, placeOf and styledBy return the column with one of its fields set.
func (c column[T]) sortedBy(key Key) column[T] { c.sort = key; return c }

func (c column[T]) placeOf() column[T] { c.place = true; return c }

func (c column[T]) styledBy(style func(*T) string) column[T] { c.style = style; return c }

// barWidth is how long a utilization's bar is.
const barWidth = 6

// columns returns all columns of rows, from left to right.
func columns() []column[Row] {
	return []column[Row]{
		textColumn("NAMESPACE", 4, 9, 30, func(r *Row) string { return r.Namespace }).sortedBy(ByName).placeOf(),
		textColumn("CLAIM", 0, 12, 63, func(r *Row) string { return r.Claim }).sortedBy(ByName),
		textColumn("PODS", 9, 10, 63, func(r *Row) string { return podsCell(r.Pods) }),
		textColumn("NODE", 7, 8, 40, func(r *Row) string { return r.Node }).placeOf(),
		textColumn("DEVICE", 3, 8, 40, deviceCell).styledBy(healthStyle),
		textColumn("MODEL", 12, 8, 24, func(r *Row) string { return r.Title() }),
		textColumn("UUID", 14, 13, 13, func(r *Row) string { return r.UUID }),
		textColumn("HELD BY", 11, 9, 9, func(r *Row) string { return r.Attribution }),
		{title: "UTIL", sort: ByUtilization, rank: 1, least: barWidth + 6, right: true, cell: func(g Glyphs, r *Row, bars bool) string {
			return utilizationCell(g, r.Utilization, r.WholeUtilization(), bars)
		}, style: func(r *Row) string { return utilizationStyle(r.Utilization, r.Idle) }},
		numberColumn("MEMORY", ByMemory, 2, 9, func(g Glyphs, r *Row) string {
			return memoryCell(g, r.MemoryUsed, r.MemoryAllocated, r.WholeMemory())
		}),
		numberColumn("POWER", ByPower, 5, 7, func(g Glyphs, r *Row) string { return g.number(r.Power, words.Watts) + mark(r.wholePower()) }),
		numberColumn("IDLE", ByIdle, 6, 6, func(g Glyphs, r *Row) string { return idleCell(g, r.Utilization, r.Idle) }),
		numberColumn("HELD", ByHeld, 8, 6, func(g Glyphs, r *Row) string { return g.number(r.Held, shortAge) }),
		numberColumn("COST/H", ByCost, 13, 9, func(g Glyphs, r *Row) string { return costCell(g, r.Cost, r.Currency) }),
		textColumn("HEALTH", 10, 10, 40, func(r *Row) string { return healthCell(r.Health, r.Reasons) }).sortedBy(ByHealth).styledBy(healthStyle),
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

func healthStyle(r *Row) string { return styleOfHealth(r.Health) }

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
type placed[T any] struct {
	column[T]
	width int // that it has
	wish  int // that its cells would fill
}

// arrange chooses the columns that fit a terminal and how wide each is. So many
// go, the least important first, that the rest has its least width; what is
// left over goes where text is cut. A limit of 0 is none: then each column is as
// wide as its widest cell.
func arrange[T any](all []column[T], rows []*T, look Look) []placed[T] {
	table := make([]placed[T], len(all))
	for i, c := range all {
		table[i] = placed[T]{column: c, wish: max(c.least, width(c.title))}
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
func (p placed[T]) floor() int { return min(max(p.least, width(p.title)), p.wish) }

// widest is how wide the widest cell is, up to a limit that is not 0.
func widest[T any](c column[T], rows []*T, look Look, limit int) int {
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
func uniform[T any](c column[T], rows []*T, look Look) bool {
	cell := func(row *T) string { return c.cell(look.Glyphs, row, look.Bars) }
	return !slices.ContainsFunc(rows, func(row *T) bool { return cell(row) != cell(rows[0]) })
}

// dropped leaves out columns until the rest fits.
func dropped[T any](table []placed[T], limit int) []placed[T] {
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
func widened[T any](table []placed[T], limit int) []placed[T] {
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
