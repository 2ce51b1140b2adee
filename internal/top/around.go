package top

import (
	"cmp"
	"fmt"
	"strings"
)

// above is what is said before the table.
func (d drawing) above(reading Reading, rows []*Row) []string {
	lines := []string{d.line(styleBold, summaryLine(reading, rows))}
	if text := d.waiting(reading); text != "" {
		lines = append(lines, d.line("", text))
	}
	return append(lines, "")
}

// waiting says how many claims are pending; empty where nobody was asked.
func (d drawing) waiting(reading Reading) string {
	switch of := reading.Waiting; {
	case reading.NoWord != "":
		return "pending claims: not known: " + Clean(reading.NoWord)
	case of == nil:
		return ""
	case len(of.Unread) > 0:
		return "pending claims: not known: the cluster role cannot read " + Clean(strings.Join(of.Unread, ", "))
	case of.Count == 0:
		return "pending claims: none" + gated(of)
	default:
		return d.reasons(reading, of)
	}
}

// gated tells of those that are not pending because their pods have scheduling
// gates.
func gated(of *Waiting) string {
	if of.Gated == 0 {
		return ""
	}
	return fmt.Sprintf(" (and %d gated)", of.Gated)
}

func (d drawing) reasons(reading Reading, of *Waiting) string {
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
		reasons = append(reasons, fmt.Sprintf("%s %d", Clean(reason.Reason), reason.Count))
	}
	return text + ": " + strings.Join(reasons, ", ")
}

// below is what is said after the table: what the marks mean, who did not
// answer, and, where somebody watches, the keys.
func (d drawing) below(reading Reading) []string {
	var lines []string
	if text := marks(reading.Rows); text != "" {
		lines = append(lines, d.line(styleDim, text))
	}
	lines = append(lines, d.amiss(reading)...)
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
	if has(func(r *Row) bool { return r.wholeUtilization() || r.wholeMemory() || r.wholePower() }) {
		texts = append(texts, "* of the whole device, which several share")
	}
	if has((*Row).amiss) {
		texts = append(texts, "! sick, recovering or warned of")
	}
	return strings.Join(texts, "   ")
}

// named is how many agents are told of by name on a terminal.
const named = 3

// amiss names agents that did not answer, and those whose readings are old.
func (d drawing) amiss(reading Reading) []string {
	all := make([]Failure, 0, len(reading.Failures)+len(reading.Stale)+1)
	if reading.Lost != "" {
		all = append(all, Failure{Agent: "agents", Error: reading.Lost})
	}
	all = append(append(all, reading.Failures...), reading.Stale...)
	var lines []string
	for i, failure := range all {
		if d.look.Height > 0 && i == named && len(all) > named+1 {
			lines = append(lines, d.line(styleWarned, fmt.Sprintf("and %d more", len(all)-named)))
			break
		}
		who := failure.Agent
		if failure.Node != "" && failure.Node != failure.Agent {
			who = failure.Node + " (" + failure.Agent + ")"
		}
		lines = append(lines, d.line(styleWarned, Clean(who+": "+failure.Error)))
	}
	return lines
}

// prompt is the last line: the filter while it is written, else the keys.
func (d drawing) prompt() string {
	if d.state.Typing {
		return d.line("", "filter: "+Clean(d.state.Filter)+"_")
	}
	sorted := "sorted by " + string(cmp.Or(d.state.Order.Key, ByName))
	if d.state.Order.Reversed {
		sorted += ", reversed"
	}
	if d.state.Filter != "" {
		sorted += " · filter " + Clean(d.state.Filter)
	}
	return d.line(styleDim, sorted+" · u m p i a c h n sort · r reverse · / filter · q quit")
}
