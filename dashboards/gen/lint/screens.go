package lint

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
)

// These keep a dashboard one for people on call: its first screen answers its
// question, and what is seldom needed is in rows that are folded.
const (
	maxPanels = 20
	maxRows   = 3
	// screen is how much of the grid a window of 1080 px shows below the variables.
	screen = 22
)

// boardSize counts what is open: panels without the headings of rows, and rows.
func boardSize(b board, say report) {
	panels, rows := 0, 0
	for _, p := range b.Panels {
		switch {
		case p.Type != "row":
			panels++
		case !p.Collapsed:
			rows++
		}
	}
	if panels > maxPanels {
		say(b.Title, "it has %d panels; with more than %d, some belong in folded rows", panels, maxPanels)
	}
	if rows > maxRows {
		say(b.Title, "it has %d open rows, and should have at most %d besides the first", rows, maxRows)
	}
}

// firstScreen: the first row has no heading. That of a board with a question answers
// it with numbers and tables.
func firstScreen(b board, say report) {
	if len(b.Panels) == 0 || b.Panels[0].Type == "row" {
		say(b.Title, "its first row has a heading")
	}
	for _, p := range b.Panels {
		if p.Type == "row" {
			return
		}
		if p.asks() && p.Type != "stat" && p.Type != "table" {
			say(p.Title, "a %s is in the first row: numbers and tables answer", p.Type)
		}
		if end := p.GridPos.Y + p.GridPos.H; end > screen {
			say(p.Title, "it is in the first row and ends at %d: a screen has %d", end, screen)
		}
	}
}

// titleNouns: a title is what the panel shows, or the answer; the reader has the
// question.
func titleNouns(b board, say report) {
	question := regexp.MustCompile(`^(Who|What|Which|Why|Where|When|How|Is|Are|Does|Do)\b|\?`)
	panels := b.all()
	for _, p := range b.Panels {
		if p.Type == "row" {
			panels = append(panels, p)
		}
	}
	for _, p := range panels {
		if question.MatchString(p.Title) {
			say(p.Title, "the title is a question")
		}
	}
}

// titleRange: what is added up over the time range says so, in the title of the panel
// or of the column: else it is taken for the value of now.
func titleRange(b board, say report) {
	overRange := []string{"rate", "increase", "sum_over_time"}
	for _, p := range b.all() {
		names := p.headings()
		for _, t := range p.Targets {
			for _, s := range selectors(t.Expr) {
				if s.window != "$__range" || s.filter || len(s.within) == 0 || !slices.Contains(overRange, s.within[0]) {
					continue
				}
				if heading := names["Value #"+t.RefID] + names["Value"]; !strings.Contains(p.Title+heading, "range") && !names.hidden("Value #"+t.RefID) {
					say(p.Title, "query %s is over the range, and neither the panel nor the column says so", t.RefID)
				}
			}
		}
	}
}

// headings are the titles of columns by the names of their fields; those that are not
// shown are empty.
type headings map[string]string

func (h headings) hidden(field string) bool {
	title, there := h[field]
	return there && title == ""
}

func (p panel) headings() headings {
	all := headings{}
	for _, t := range p.Transformations {
		var options organized
		if t.ID != "organize" || json.Unmarshal(t.Options, &options) != nil {
			continue
		}
		for field, title := range options.RenameByName {
			if options.ExcludeByName[field] {
				title = ""
			}
			all[field] = title
		}
	}
	return all
}
