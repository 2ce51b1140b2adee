package lint

import (
	"regexp"
	"slices"
	"strings"

	"github.com/grafana/grafana-foundation-sdk/go/units"
)

// panelType: angles are compared badly (piechart), and what Grafana has replaced
// is gone in a later one (graph, singlestat).
func panelType(b board, say report) {
	known := []string{"stat", "timeseries", "table", "bargauge", "gauge", "barchart", "heatmap", "histogram", "state-timeline", "status-history", "text"}
	for _, p := range b.all() {
		if !slices.Contains(known, p.Type) {
			say(p.Title, "a %s is none of %s", p.Type, strings.Join(known, ", "))
		}
	}
}

// asks says whether a panel shows data.
func (p panel) asks() bool { return p.Type != "text" }

func panelDatasource(b board, say report) {
	for _, p := range b.all() {
		if !p.asks() {
			continue
		}
		checkSource(p.Datasource, p.Title, say)
		for _, t := range p.Targets {
			checkSource(t.Datasource, p.Title, say)
		}
	}
}

func checkSource(d datasource, about string, say report) {
	if d.Type != "prometheus" || d.UID != "${datasource}" {
		say(about, "data source %q of type %q is not the chosen one", d.UID, d.Type)
	}
}

// titleDescription: a description says how to read the panel, and why there may
// be nothing to read.
func titleDescription(b board, say report) {
	titles := map[string]bool{}
	for _, p := range b.all() {
		if p.Title == "" || titles[p.Title] {
			say(p.Title, "the title is empty, or another panel's too")
		}
		titles[p.Title] = true
		reads, empty, explained := strings.Cut(p.Description, "\n\nNo data: ")
		if !regexp.MustCompile(`(?s)^\S.{19,}[.?]$`).MatchString(reads) {
			say(p.Title, "the description does not say, in a sentence, how to read it: %q", reads)
		}
		if p.asks() && (!explained || len(strings.TrimRight(empty, ".")) < 5) {
			say(p.Title, "the description does not say why there may be no data")
		}
	}
}

// panelUnits: of the panel, and of each column that has another.
func panelUnits(b board, say report) {
	for _, p := range b.all() {
		unit := p.FieldConfig.Defaults.Unit
		if p.Type == "heatmap" {
			unit = p.Options.YAxis.Unit
		}
		if p.asks() && !slices.Contains(knownUnits(), unit) {
			say(p.Title, "unit %q is none that this project's dashboards use", unit)
		}
		for _, o := range p.FieldConfig.Overrides {
			for _, property := range o.Properties {
				if unit, _ := property.Value.(string); property.ID == "unit" && !slices.Contains(knownUnits(), unit) {
					say(p.Title, "unit %q of %v is none that this project's dashboards use", unit, o.Matcher.Options)
				}
			}
		}
	}
}

// knownUnits are those of Grafana's in which there is something to show here. Not
// all constants of the SDK can be trusted: its MicroFarad is a watt, and what
// Grafana does not know is shown after the number as a word.
func knownUnits() []string {
	return []string{
		units.NoUnit, units.Short, units.SiShort, units.String, units.LocaleFormat,
		units.Bool, units.BoolYesNo, units.BoolOnOff,
		units.PercentUnit,
		units.BytesIEC, units.BytesSI, units.BytesPerSecondIEC, units.BytesPerSecondSI,
		units.Seconds, units.Minutes, units.Hours, units.Days,
		units.DurationSeconds, units.DurationInHoursMinutesSeconds, units.DurationInDaysHoursMinutesSeconds,
		units.DateTimeFromNow, units.DatetimeISO, units.DatetimeISONotToday, units.DatetimeLocal, units.DatetimeDefault,
		units.Watt, units.WattHour, units.KiloWattHour, units.Joule,
		units.Celsius, units.Hertz,
		units.CountsPerSecond, units.CountsPerMinute, units.EventsPerSecond, units.OpsPerSecond, units.OpsPerMinute, units.RequestsPerSecond,
	}
}

func noTargets(b board, say report) {
	for _, p := range b.all() {
		if p.asks() && len(p.Targets) == 0 {
			say(p.Title, "it asks for nothing")
		}
		for _, t := range p.Targets {
			if strings.TrimSpace(t.Expr) == "" {
				say(p.Title, "query %s is empty", t.RefID)
			}
		}
	}
}

// noValue: a panel without data says so.
func noValue(b board, say report) {
	for _, p := range b.all() {
		if p.asks() && p.FieldConfig.Defaults.NoValue == "" {
			say(p.Title, "nothing is said where there is no data")
		}
	}
}

// panelIDs: links and renderings name panels by them.
func panelIDs(b board, say report) {
	seen := map[int]bool{}
	check := func(p panel) {
		if p.ID == 0 || seen[p.ID] {
			say(p.Title, "id %d is not given, or given twice", p.ID)
		}
		seen[p.ID] = true
	}
	for _, p := range b.Panels {
		check(p)
		for _, inner := range p.Panels {
			check(inner)
		}
	}
}

// layout: the grid is 24 wide, and every place in it is one panel's. Those in
// folded rows have their places, too.
func layout(b board, say report) {
	var placed []panel
	for _, p := range b.Panels {
		placed = append(append(placed, p), p.Panels...)
	}
	for i, p := range placed {
		if p.GridPos.W < 1 || p.GridPos.H < 1 || p.GridPos.X < 0 || p.GridPos.X+p.GridPos.W > 24 {
			say(p.Title, "it is %d wide and %d high, from %d: the grid is 24 wide", p.GridPos.W, p.GridPos.H, p.GridPos.X)
		}
		for _, other := range placed[:i] {
			if overlap(p, other) {
				say(p.Title, "it covers %q", other.Title)
			}
		}
	}
}

func overlap(a, b panel) bool {
	return a.GridPos.X < b.GridPos.X+b.GridPos.W && b.GridPos.X < a.GridPos.X+a.GridPos.W &&
		a.GridPos.Y < b.GridPos.Y+b.GridPos.H && b.GridPos.Y < a.GridPos.Y+a.GridPos.H
}

func emptyRows(b board, say report) {
	for i, p := range b.Panels {
		if p.Type != "row" {
			continue
		}
		if p.Title == "" {
			say("row", "it has no title")
		}
		followed := i+1 < len(b.Panels) && b.Panels[i+1].Type != "row"
		if p.Collapsed && len(p.Panels) == 0 || !p.Collapsed && (!followed || len(p.Panels) > 0) {
			say(p.Title, "the row has no panels, or has them in the wrong place")
		}
	}
}
