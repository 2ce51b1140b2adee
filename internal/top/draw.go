package top

import (
	"fmt"
	"slices"
	"strings"

	"github.com/dra-exporter/dra-exporter/internal/page"
	"github.com/dra-exporter/dra-exporter/internal/words"
)

// Draw returns the lines of a reading that is printed once, none wider than the
// terminal.
func Draw(reading FleetState, order Order, look Look) []string {
	d := drawing{look: look}
	rows := Sorted(reading.Rows, order)
	lines := append(d.above(reading, rows), "")
	if len(rows) == 0 {
		lines = append(lines, d.line("", d.nothing(reading)))
	} else {
		lines = append(lines, rowTable(look, rows, order.Key)...)
	}
	var below []string
	if text := marks(reading.Rows); text != "" {
		below = append(below, d.line(styleDim, text))
	}
	if below = append(below, d.failures(reading)...); len(below) > 0 {
		lines = append(append(lines, ""), below...)
	}
	return lines
}

// drawing draws a reading.
type drawing struct {
	look Look
	most int // failures that are shown by name; 0: all
}

// line is text in a style, cut to the terminal. The text is clean.
func (d drawing) line(style, text string) string {
	if d.look.Width > 0 {
		text = d.look.Glyphs.cut(text, d.look.Width)
	}
	return d.look.styled(style, text)
}

func (l Look) styled(style, text string) string {
	if !l.Styled || style == "" || text == "" {
		return text
	}
	return style + text + styleEnd
}

// rowTable returns the lines of a table of rows.
func rowTable(look Look, rows []*Row, key Key) []string {
	items := rowItems(rows)
	columns := arrange(columns(), items, look)
	lines := []string{titleLine(look, columns, key)}
	for _, i := range items {
		lines = append(lines, rowLine(look, columns, i))
	}
	return lines
}

// titleLine is the titles of the columns; those that are sorted by are marked.
func titleLine(look Look, columns []placed, key Key) string {
	var line strings.Builder
	for i, c := range columns {
		style := styleBold
		if c.sort != "" && c.sort == key {
			style = styleReverse
		}
		addCell(&line, i == len(columns)-1, look.styled(style, look.Glyphs.fit(c.title, c.width, c.right)))
	}
	return strings.TrimRight(line.String(), " ")
}

func rowLine(look Look, columns []placed, row *item) string {
	var line strings.Builder
	for i, c := range columns {
		style := ""
		if c.style != nil {
			style = c.style(row)
		}
		addCell(&line, i == len(columns)-1, look.styled(style, look.Glyphs.fit(c.cell(look.Glyphs, row, look.Bars), c.width, c.right)))
	}
	return strings.TrimRight(line.String(), " ")
}

func addCell(line *strings.Builder, last bool, text string) {
	line.WriteString(text)
	if !last {
		line.WriteByte(' ')
	}
}

// nothing returns why there are no rows. That no claim holds a device is only
// known from agents that have answered.
func (d drawing) nothing(reading FleetState) string {
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
	}
	text := "No claim"
	if namespaces := reading.Wanted.Namespaces; len(namespaces) > 0 {
		text += " of the namespace " + clean(strings.Join(namespaces, ", "))
	}
	text += " holds a device here"
	if missing > 0 {
		text += fmt.Sprintf(", according to %d of %s", reading.Answered, words.Count(reading.Agents, "agent", "agents"))
	}
	return text + "."
}

// above returns what precedes the table.
func (d drawing) above(reading FleetState, rows []*Row) []string {
	lines := []string{d.line(styleBold, summaryLine(reading, rows))}
	if text := d.pending(reading); text != "" {
		lines = append(lines, d.line("", text))
	}
	return lines
}

// pending returns how many claims are pending; empty if no cluster role was
// read.
func (d drawing) pending(reading FleetState) string {
	switch summary := reading.Pending; {
	case reading.PendingError != "":
		return "pending claims: not known: " + clean(reading.PendingError)
	case summary == nil:
		return ""
	case len(summary.Unread) > 0:
		return "pending claims: not known: the cluster role cannot read " + clean(strings.Join(summary.Unread, ", "))
	case summary.Count == 0:
		return "pending claims: none" + gated(summary)
	default:
		return d.reasons(reading, summary)
	}
}

// gated counts references that are not pending because their pods have scheduling
// gates.
func gated(summary *PendingSummary) string {
	if summary.Gated == 0 {
		return ""
	}
	return fmt.Sprintf(" (and %d gated)", summary.Gated)
}

func (d drawing) reasons(reading FleetState, summary *PendingSummary) string {
	text := fmt.Sprintf("pending claims: %d", summary.Count) + gated(summary)
	now := summary.moment(reading.At)
	if !summary.Oldest.IsZero() {
		text += ", the oldest for " + words.Age(max(now.Sub(summary.Oldest), 0))
	}
	reasons := words.Names(summary.Reasons, func(reason page.ReasonCount) string { return fmt.Sprintf("%s %d", clean(reason.Reason), reason.Count) })
	return text + ": " + strings.Join(reasons, ", ")
}

// marks explains those that are in the table.
func marks(rows []*Row) string {
	var texts []string
	if slices.ContainsFunc(rows, func(r *Row) bool { return r.WholeUtilization() || r.WholeMemory() || r.wholePower() }) {
		texts = append(texts, "* whole device, shared by several claims")
	}
	if slices.ContainsFunc(rows, (*Row).marked) {
		texts = append(texts, "! unhealthy, recovering or degraded")
	}
	return strings.Join(texts, "   ")
}

// failures lists agents that did not answer, and those whose readings are old.
func (d drawing) failures(reading FleetState) []string {
	all := make([]AgentFailure, 0, len(reading.Failures)+len(reading.Stale)+1)
	if reading.ListError != "" {
		all = append(all, AgentFailure{Agent: "agents", Error: reading.ListError})
	}
	all = append(append(all, reading.Failures...), reading.Stale...)
	var lines []string
	for i, failure := range all {
		if d.most > 0 && i == d.most && len(all) > d.most+1 {
			lines = append(lines, d.line(styleWarning, fmt.Sprintf("and %d more", len(all)-d.most)))
			break
		}
		name := failure.Agent
		if failure.Node != "" && failure.Node != failure.Agent {
			name = failure.Node + " (" + failure.Agent + ")"
		}
		lines = append(lines, d.line(styleWarning, clean(name+": "+failure.Error)))
	}
	return lines
}

// summaryLine counts what the rows are about.
func summaryLine(reading FleetState, rows []*Row) string {
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
	held := words.Count(len(devices), "device", "devices")
	if counts := reading.Devices; counts != nil && counts.Devices >= len(devices) {
		held = fmt.Sprintf("%d of %s", len(devices), words.Count(counts.Devices, "device", "devices"))
	}
	hold := words.Plural(len(claims), "holds", "hold")
	text := fmt.Sprintf("%s %s %s, on %s", words.Count(len(claims), "claim", "claims"), hold, held, words.Count(len(nodes), "node", "nodes"))
	if reading.Answered == 0 {
		text = fmt.Sprintf("0 of %s answered", words.Count(reading.Agents, "agent", "agents"))
	}
	if measured {
		text += ", " + words.Watts(watts)
	}
	if missing := reading.Agents - reading.Answered - len(reading.Failures); missing > 0 {
		text += fmt.Sprintf(" · read %d of %s", reading.Agents-missing, words.Count(reading.Agents, "agent", "agents"))
	}
	return text + " · " + reading.At.Format("15:04:05")
}
