package top

import (
	"cmp"
	"fmt"
	"strings"
)

// Look is how to draw.
type Look struct {
	Width, Height int  // of the terminal; 0: no limit
	Styled        bool // the terminal understands bold and colours
	Bars          bool
	Glyphs        Glyphs
}

// column is a column of the table. Foreign text in its cells has no control
// characters.
type column struct {
	title string
	sort  Key  // what marks it; empty for none
	right bool // aligned
	rank  int  // where the terminal is too narrow, the highest go first

	least int // columns of the terminal; text is cut to it before others go
	most  int // 0: least is the width of all cells

	place bool // a place; left out if all rows are in one place
	cell  func(g Glyphs, row *Row, bars bool) string
	style func(row *Row) string
}

// barWidth is how long a utilization's bar is.
const barWidth = 6

// columns returns all columns, from left to right.
func columns() []column {
	text := func(title string, rank, least, most int, of func(*Row) string) column {
		return column{title: title, rank: rank, least: least, most: most, cell: func(g Glyphs, r *Row, _ bool) string {
			return cmp.Or(clean(of(r)), g.Absent)
		}}
	}
	place := func(c column) column { c.place = true; return c }
	number := func(title string, key Key, rank, least int, of func(Glyphs, *Row) string) column {
		return column{title: title, sort: key, rank: rank, least: least, right: true, cell: func(g Glyphs, r *Row, _ bool) string { return of(g, r) }}
	}
	named := func(c column) column { c.sort = ByName; return c }
	device := text("DEVICE", 3, 8, 40, deviceCell)
	device.style = healthStyle
	health := text("HEALTH", 10, 10, 40, healthCell)
	health.sort, health.style = ByHealth, healthStyle
	return []column{
		place(named(text("NAMESPACE", 4, 9, 30, func(r *Row) string { return r.Namespace }))),
		named(text("CLAIM", 0, 12, 63, func(r *Row) string { return r.Claim })),
		text("PODS", 9, 10, 63, podsCell),
		place(text("NODE", 7, 8, 40, func(r *Row) string { return r.Node })),
		device,
		text("MODEL", 12, 8, 24, func(r *Row) string { return r.Title() }),
		text("UUID", 14, 13, 13, func(r *Row) string { return r.UUID }),
		text("HELD BY", 11, 9, 9, func(r *Row) string { return r.Attribution }),
		{title: "UTIL", sort: ByUtilization, rank: 1, least: barWidth + 6, right: true, cell: utilizationCell, style: utilizationStyle},
		number("MEMORY", ByMemory, 2, 9, memoryCell),
		number("POWER", ByPower, 5, 6, func(g Glyphs, r *Row) string { return g.number(r.Power, power) + mark(r.wholePower()) }),
		number("IDLE", ByIdle, 6, 6, idleCell),
		number("HELD", ByHeld, 8, 6, func(g Glyphs, r *Row) string { return g.number(r.Held, seconds) }),
		number("COST/H", ByCost, 13, 9, costCell),
		health,
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
func podsCell(r *Row) string {
	if len(r.Pods) > 1 {
		return fmt.Sprintf("%s +%d", r.Pods[0], len(r.Pods)-1)
	}
	return strings.Join(r.Pods, "")
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

func healthCell(r *Row) string {
	if len(r.Reasons) == 0 {
		return r.Health
	}
	return r.Health + ": " + strings.Join(r.Reasons, ", ")
}

func utilizationCell(g Glyphs, r *Row, bars bool) string {
	if r.Utilization == nil {
		return g.Absent + " "
	}
	text := g.fit(g.number(r.Utilization, percent), 4, true) + mark(r.WholeUtilization())
	if !bars {
		return text
	}
	return g.bar(*r.Utilization, barWidth) + " " + text
}

func memoryCell(g Glyphs, r *Row) string {
	text := g.number(r.MemoryUsed, size)
	if r.MemoryAllocated == nil {
		return text + mark(r.WholeMemory())
	}
	all := g.number(r.MemoryAllocated, size)
	if used, unit := text[:len(text)-1], text[len(text)-1:]; r.MemoryUsed != nil && strings.HasSuffix(all, unit) {
		text = used // 63/80G
	}
	return text + "/" + all + mark(r.WholeMemory())
}

// idleCell is empty for claims in use: only idle ones are of interest.
func idleCell(g Glyphs, r *Row) string {
	if r.Idle == nil && r.Utilization != nil {
		return ""
	}
	return g.number(r.Idle, seconds)
}

func costCell(g Glyphs, r *Row) string {
	if r.Cost == nil {
		return g.Absent
	}
	return g.number(r.Cost, money) + " " + clean(r.Currency)
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

func healthStyle(r *Row) string {
	switch r.Health {
	case "unhealthy":
		return styleUnhealthy
	case "recovering", "degraded":
		return styleWarning
	default:
		return ""
	}
}

func utilizationStyle(r *Row) string {
	switch {
	case r.Utilization == nil:
		return styleDim
	case r.Idle != nil:
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
func arrange(all []column, rows []*Row, look Look) []placed {
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
func widest(c column, rows []*Row, look Look, limit int) int {
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
func uniform(c column, rows []*Row, look Look) bool {
	for i := range rows {
		if c.cell(look.Glyphs, rows[i], look.Bars) != c.cell(look.Glyphs, rows[0], look.Bars) {
			return false
		}
	}
	return true
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
