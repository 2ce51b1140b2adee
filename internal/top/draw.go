package top

import (
	"cmp"
	"fmt"
	"strings"
)

// Screen is a frame, and the extent of scrolling.
type Screen struct {
	Lines []string
	Space Space
}

// Draw draws a reading by the user's selection. The frame has at most as many
// lines as the terminal, none wider than it.
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

// nothing returns why there are no rows. That no claim holds a device is only
// known from agents that have answered.
func (d drawing) nothing(reading Reading) string {
	missing := reading.Agents - reading.Answered
	switch {
	case reading.Agents == 0:
		return "There is no agent to read."
	case reading.Answered == 0 && len(reading.Failures) < missing:
		return "No agent has answered yet."
	case reading.Answered == 0:
		return "No agent could be read, so the claims that hold devices are unknown."
	case len(reading.Silent) > 0:
		return "No agent of " + clean(strings.Join(reading.Silent, ", ")) + " has answered, so the claims that hold devices there are unknown."
	case d.state.Filter != "" && len(reading.Rows) > 0:
		return "Nothing matches " + clean(d.state.Filter) + "."
	}
	text := "No claim"
	if of := reading.Wanted.Namespaces; len(of) > 0 {
		text += " of the namespace " + clean(strings.Join(of, ", "))
	}
	text += " holds a device here"
	if missing > 0 {
		text += fmt.Sprintf(", according to %d of %s", reading.Answered, counted(reading.Agents, "agent"))
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

// above returns what precedes the table.
func (d drawing) above(reading Reading, rows []*Row) []string {
	lines := []string{d.line(styleBold, summaryLine(reading, rows))}
	if text := d.pending(reading); text != "" {
		lines = append(lines, d.line("", text))
	}
	return append(lines, "")
}

// pending returns how many claims are pending; empty if no cluster role was
// read.
func (d drawing) pending(reading Reading) string {
	switch of := reading.Pending; {
	case reading.PendingError != "":
		return "pending claims: not known: " + clean(reading.PendingError)
	case of == nil:
		return ""
	case len(of.Unread) > 0:
		return "pending claims: not known: the cluster role cannot read " + clean(strings.Join(of.Unread, ", "))
	case of.Count == 0:
		return "pending claims: none" + gated(of)
	default:
		return d.reasons(reading, of)
	}
}

// gated counts references that are not pending because their pods have scheduling
// gates.
func gated(of *PendingSummary) string {
	if of.Gated == 0 {
		return ""
	}
	return fmt.Sprintf(" (and %d gated)", of.Gated)
}

func (d drawing) reasons(reading Reading, of *PendingSummary) string {
	text := fmt.Sprintf("pending claims: %d", of.Count) + gated(of)
	now := of.At
	if now.IsZero() {
		now = reading.At
	}
	if !of.Oldest.IsZero() {
		text += ", the oldest for " + span(max(now.Sub(of.Oldest), 0))
	}
	var reasons []string
	for _, reason := range of.Reasons {
		reasons = append(reasons, fmt.Sprintf("%s %d", clean(reason.Reason), reason.Count))
	}
	return text + ": " + strings.Join(reasons, ", ")
}

// below returns what follows the table: the meaning of the marks, agents that did not
// answer, and, on a terminal, the keys.
func (d drawing) below(reading Reading) []string {
	var lines []string
	if text := marks(reading.Rows); text != "" {
		lines = append(lines, d.line(styleDim, text))
	}
	lines = append(lines, d.failures(reading)...)
	if len(lines) > 0 {
		lines = append([]string{""}, lines...)
	}
	if d.look.Height > 0 {
		lines = append(lines, d.prompt())
	}
	return lines
}

// marks explains those that are in the table.
func marks(rows []*Row) string {
	var texts []string
	has := func(is func(*Row) bool) bool {
		for _, row := range rows {
			if is(row) {
				return true
			}
		}
		return false
	}
	if has(func(r *Row) bool { return r.WholeUtilization() || r.WholeMemory() || r.wholePower() }) {
		texts = append(texts, "* whole device, shared by several claims")
	}
	if has((*Row).marked) {
		texts = append(texts, "! unhealthy, recovering or degraded")
	}
	return strings.Join(texts, "   ")
}

// named is how many agents a terminal shows by name.
const named = 3

// failures lists agents that did not answer, and those whose readings are old.
func (d drawing) failures(reading Reading) []string {
	all := make([]Failure, 0, len(reading.Failures)+len(reading.Stale)+1)
	if reading.ListError != "" {
		all = append(all, Failure{Agent: "agents", Error: reading.ListError})
	}
	all = append(append(all, reading.Failures...), reading.Stale...)
	var lines []string
	for i, failure := range all {
		if d.look.Height > 0 && i == named && len(all) > named+1 {
			lines = append(lines, d.line(styleWarning, fmt.Sprintf("and %d more", len(all)-named)))
			break
		}
		who := failure.Agent
		if failure.Node != "" && failure.Node != failure.Agent {
			who = failure.Node + " (" + failure.Agent + ")"
		}
		lines = append(lines, d.line(styleWarning, clean(who+": "+failure.Error)))
	}
	return lines
}

// prompt is the last line: the filter while it is written, else the keys.
func (d drawing) prompt() string {
	if d.state.Typing {
		return d.line("", "filter: "+clean(d.state.Filter)+"_")
	}
	sorted := "sorted by " + string(cmp.Or(d.state.Order.Key, ByName))
	if d.state.Order.Reversed {
		sorted += ", reversed"
	}
	if d.state.Filter != "" {
		sorted += " · filter " + clean(d.state.Filter)
	}
	return d.line(styleDim, sorted+" · u m p i a c h n sort · r reverse · / filter · q quit")
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
		text += fmt.Sprintf(" · read %d of %s", reading.Agents-missing, counted(reading.Agents, "agent"))
	}
	return text + " · " + reading.At.Format("15:04:05")
}
