package top

import (
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

// Screen is a frame to show, and how much there is to scroll through.
type Screen struct {
	Lines []string
	Space Space
}

// Draw shows a reading as a person has chosen to see it. There are at most as
// many lines as the terminal has, none wider than it.
func Draw(reading Reading, state State, look Look) Screen {
	d := drawing{look: look, state: state}
	rows := state.Chosen(reading.Rows)
	above, below := d.above(reading, rows), d.below(reading)
	space := Space{Rows: len(rows), Visible: len(rows)}
	if look.Height > 0 {
		above, below, space.Visible = share(look.Height-1, above, below)
	}
	state = state.Within(space)
	lines := append(above, d.table(reading, rows, state.Offset, space.Visible)...)
	if look.Height > 0 {
		for len(lines) < look.Height-len(below) {
			lines = append(lines, "")
		}
		lines = append(lines[:min(len(lines), look.Height)], below...)
		lines = lines[:min(len(lines), look.Height)]
	} else {
		lines = append(lines, below...)
	}
	return Screen{Lines: lines, Space: space}
}

// share divides the lines of a terminal, but for the table's title: rows come
// first, then what is below, then what is above.
func share(height int, above, below []string) ([]string, []string, int) {
	const fewest = 3
	if len(above)+len(below)+fewest > height {
		above = above[:min(len(above), max(height-fewest-len(below), 0))]
	}
	if len(below)+fewest > height {
		below = below[max(len(below)-1, 0):]
		if fewest > height {
			below = nil
		}
	}
	return above, below, max(height-len(above)-len(below), 0)
}

// drawing draws one screen.
type drawing struct {
	look  Look
	state State
}

// line is text in a style, cut to the terminal. The text is clean.
func (d drawing) line(style, text string) string {
	if d.look.Width > 0 {
		text = d.look.Glyphs.cut(text, d.look.Width)
	}
	return d.styled(style, text)
}

func (d drawing) styled(style, text string) string {
	if !d.look.Styled || style == "" || text == "" {
		return text
	}
	return style + text + styleEnd
}

// table is the title and the visible rows.
func (d drawing) table(reading Reading, rows []*Row, offset, visible int) []string {
	if len(rows) == 0 {
		return []string{d.line("", d.nothing(reading))}
	}
	columns := arrange(columns(), rows, d.look)
	lines := []string{d.title(columns)}
	for i := offset; i < min(offset+visible, len(rows)); i++ {
		lines = append(lines, d.row(columns, rows[i]))
	}
	return lines
}

// nothing says why there are no rows. Only agents that have answered can say that
// no claim holds a device.
func (d drawing) nothing(reading Reading) string {
	missing := reading.Agents - reading.Answered
	switch {
	case reading.Agents == 0:
		return "There is no agent to read."
	case reading.Answered == 0 && len(reading.Failures) < missing:
		return "No agent has answered yet."
	case reading.Answered == 0:
		return "No agent could be read, so it is not known which claims hold devices."
	case len(reading.Silent) > 0:
		return "No agent of " + Clean(strings.Join(reading.Silent, ", ")) + " has answered, so it is not known which claims hold devices there."
	case d.state.Filter != "" && len(reading.Rows) > 0:
		return "Nothing matches " + Clean(d.state.Filter) + "."
	}
	text := "No claim"
	if of := reading.Wanted.Namespaces; len(of) > 0 {
		text += " of the namespace " + Clean(strings.Join(of, ", "))
	}
	text += " holds a device here"
	if missing > 0 {
		text += fmt.Sprintf(", as far as %d of %s have answered", reading.Answered, counted(reading.Agents, "agent"))
	}
	return text + "."
}

func (d drawing) title(columns []placed) string {
	var line strings.Builder
	for i, c := range columns {
		style := styleBold
		if c.sort != "" && c.sort == d.state.Order.Key {
			style = styleReverse
		}
		d.cell(&line, i == len(columns)-1, d.look.Glyphs.fit(c.title, c.width, c.right), style)
	}
	return strings.TrimRight(line.String(), " ")
}

func (d drawing) row(columns []placed, row *Row) string {
	var line strings.Builder
	for i, c := range columns {
		style := ""
		if c.style != nil {
			style = c.style(row)
		}
		d.cell(&line, i == len(columns)-1, d.look.Glyphs.fit(c.cell(d.look.Glyphs, row, d.look.Bars), c.width, c.right), style)
	}
	return strings.TrimRight(line.String(), " ")
}

func (d drawing) cell(line *strings.Builder, last bool, text, style string) {
	line.WriteString(d.styled(style, text))
	if !last {
		line.WriteByte(' ')
	}
}

// summaryLine counts what the rows are about.
func summaryLine(reading Reading, rows []*Row) string {
	claims, devices, nodes := map[[2]string]bool{}, map[[2]string]bool{}, map[string]bool{}
	watts, measured := 0.0, false
	for _, r := range rows {
		claims[[2]string{r.Namespace, r.Claim}], nodes[r.Node] = true, true
		device := [2]string{r.Node, r.UUID}
		if r.Power != nil && !devices[device] {
			watts, measured = watts+*r.Power, true
		}
		devices[device] = true
	}
	held := counted(len(devices), "device")
	if of := reading.Devices; of != nil && of.Devices >= len(devices) {
		held = fmt.Sprintf("%d of %s", len(devices), counted(of.Devices, "device"))
	}
	hold := "hold"
	if len(claims) == 1 {
		hold = "holds"
	}
	text := fmt.Sprintf("%s %s %s, on %s", counted(len(claims), "claim"), hold, held, counted(len(nodes), "node"))
	if reading.Answered == 0 {
		text = fmt.Sprintf("0 of %s answered", counted(reading.Agents, "agent"))
	}
	if measured {
		text += ", " + power(watts)
	}
	if missing := reading.Agents - reading.Answered - len(reading.Failures); missing > 0 {
		text += fmt.Sprintf(" · asked %d of %s", reading.Agents-missing, counted(reading.Agents, "agent"))
	}
	return text + " · " + reading.At.Format("15:04:05")
}

func counted(count int, thing string) string {
	if count == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", count, thing)
}
