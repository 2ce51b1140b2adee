package top

import (
	"fmt"
	"strings"
)

// frame is what is drawn, and where what can be clicked on lies.
type frame struct {
	lines    []string
	visible  int // lines for items, or for the detail
	all      int // lines of the detail
	top      int // line of the first item
	tabsLine int
	tabs     []tab
}

// tab is where the name of a view is drawn.
type tab struct{ from, to int }

// named is how many agents a terminal shows by name.
const named = 3

// draw draws a frame: at most as many lines as the terminal has, none wider than
// it.
func (s *screen) draw() {
	if s.width <= 0 || s.height <= 0 {
		return
	}
	d := drawing{look: s.live.Look, most: named}
	d.look.Width = s.width
	frame := frame{tabsLine: -1}
	tabs := s.tabs(d.look, &frame)
	above := d.above(s.reading, s.reading.Rows)
	below := append(d.failures(s.reading), s.prompt(d))
	body, title := s.body(d.look)
	space := max(s.height-1-len(title), 1) // but for the tabs
	const fewest = 3
	below = below[max(len(below)-max(space-fewest, 0), 0):] // the keys go last
	above = above[:min(len(above), max(space-fewest-len(below), 0))]
	frame.visible = max(space-len(above)-len(below), 0)

	frame.lines = append(frame.lines, above...)
	frame.tabsLine = len(frame.lines)
	frame.lines = append(append(frame.lines, tabs), title...)
	frame.top = len(frame.lines)
	s.frame.visible = frame.visible
	lines, all := body(frame.visible)
	frame.all = all
	for len(lines) < frame.visible {
		lines = append(lines, "")
	}
	frame.lines = append(append(frame.lines, lines[:frame.visible]...), below...)
	frame.lines = frame.lines[:min(len(frame.lines), s.height)]
	s.frame = frame
}

// tabs is the names of the views, and what is special about the present one.
func (s *screen) tabs(look Look, frame *frame) string {
	var line strings.Builder
	used := 0
	add := func(style, text string) {
		text = look.Glyphs.cut(text, look.Width-used)
		used += width(text)
		if style == styleReverse && text != "" { // no colour, so that it is seen without
			line.WriteString(style + text + styleEnd)
			return
		}
		line.WriteString(look.styled(style, text))
	}
	for i, v := range s.views {
		style := ""
		if i == s.current {
			style = styleReverse
		}
		start := used
		add(style, fmt.Sprintf(" %d %s ", i+1, v.name))
		frame.tabs = append(frame.tabs, tab{start, used})
	}
	place := s.places[s.current]
	if s.paused {
		add(styleWarning, " paused")
	}
	switch {
	case s.typing:
		add(styleBold, " /"+clean(place.filter)+"_")
	case place.filter != "":
		add(styleBold, " /"+clean(place.filter))
	}
	if place.filter != "" {
		add("", fmt.Sprintf(" %d of %d", len(s.rows().items), s.rows().all))
	}
	return line.String()
}

// body returns how to draw so many lines below the titles, and the titles.
func (s *screen) body(look Look) (draw func(visible int) (lines []string, all int), title []string) {
	switch s.mode {
	case showHelp:
		return func(int) ([]string, int) { return cutLines(look, help()), 0 }, nil
	case showDetail:
		return func(visible int) ([]string, int) {
			lines := s.detail(look)
			s.scroll = max(min(s.scroll, len(lines)-visible), 0)
			return lines[s.scroll:], len(lines)
		}, nil
	case showTable:
	}
	table := s.rows()
	if len(table.items) == 0 {
		return func(int) ([]string, int) { return cutLines(look, []string{s.nothing(look)}), 0 }, nil
	}
	key := s.places[s.current].order.Key
	return func(visible int) ([]string, int) { return s.tableLines(look, visible), 0 }, []string{titleLine(look, table.columns, key)}
}

func cutLines(look Look, lines []string) []string {
	for i := range lines {
		lines[i] = look.Glyphs.cut(lines[i], look.Width)
	}
	return lines
}

// tableLines draws the items around the selected one.
func (s *screen) tableLines(look Look, visible int) []string {
	table, place := s.rows(), &s.places[s.current]
	place.offset = max(min(place.offset, place.selected, len(table.items)-visible), place.selected-visible+1, 0)
	var lines []string
	for i := place.offset; i < min(place.offset+visible, len(table.items)); i++ {
		if i != place.selected {
			lines = append(lines, rowLine(look, table.columns, table.items[i]))
			continue
		}
		plain := look
		plain.Styled = false
		text := look.Glyphs.fit(rowLine(plain, table.columns, table.items[i]), look.Width, false)
		lines = append(lines, styleReverse+text+styleEnd)
	}
	return lines
}

// nothing returns why the view has no items.
func (s *screen) nothing(look Look) string {
	filter := s.places[s.current].filter
	switch reading := &s.reading; {
	case filter != "" && s.table.all > 0:
		return "Nothing matches " + clean(filter) + "."
	case s.views[s.current].name != "pending" || reading.Answered > 0 && reading.Pending == nil && reading.PendingError == "" && s.live.Watch.First.Cluster != nil:
		return drawing{look: look}.nothing(s.reading)
	case reading.Pending != nil && len(reading.Pending.Unread) == 0:
		return "No claim is pending."
	case reading.PendingError == "" && reading.Pending == nil:
		return "No cluster role is read, so pending claims are unknown. With --url, set --cluster-url."
	default:
		return "Pending claims are not known."
	}
}

// prompt is the last line: the order and the keys.
func (s *screen) prompt(d drawing) string {
	if s.typing {
		return d.line(styleDim, "type to filter · Enter keep · Esc clear")
	}
	switch s.mode {
	case showDetail:
		return d.line(styleDim, "Esc back · ↑↓ scroll · p pause · ? help · q quit")
	case showHelp:
		return d.line(styleDim, "any key: back · q quit")
	case showTable:
	}
	order := s.places[s.current].order
	text := "by " + string(order.Key)
	if order.Reversed {
		text += ", reversed"
	}
	return d.line(styleDim, text+" · s S sort · / filter · Enter · Tab · p pause · ? help · q quit")
}

func help() []string {
	return []string{
		"Tab, Shift-Tab, 1-5     switch the view",
		"arrows, j, k            select",
		"PgUp, PgDn, Home, End   select far away; Home stays at the first line",
		"Enter                   detail of the selected line; Esc goes back",
		"/                       filter by what is shown; Enter keeps it, Esc clears it",
		"s, S                    sort by the next column; reverse the order",
		"p                       pause, or go on",
		"mouse                   click selects, a second click opens, the wheel scrolls",
		"Ctrl-L                  draw again",
		"q, Ctrl-C               quit",
		"",
		"* is the whole device's, which several claims share.",
	}
}
