package lint

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// These are things over which Grafana stumbles, or about which it is silent. They
// were seen in panels that its own libraries drew.

// overridden: an override that changes nothing is a mistake, and one whose list of
// properties is null breaks the panel.
func overridden(b board, say report) {
	for _, p := range b.all() {
		for _, o := range p.FieldConfig.Overrides {
			if len(o.Properties) == 0 || o.Matcher.ID == "" {
				say(p.Title, "the override of %v has no properties, or no matcher", o.Matcher.Options)
			}
		}
	}
}

// transformations: one that Grafana does not know leaves the panel without data.
func transformations(b board, say report) {
	known := []string{"merge", "organize", "sortBy", "partitionByValues"}
	for _, p := range b.all() {
		for _, t := range p.Transformations {
			if !slices.Contains(known, t.ID) {
				say(p.Title, "transformation %q is none of %s", t.ID, strings.Join(known, ", "))
			}
		}
	}
}

// Of a window of 1,440 px a panel has so many for each of its 24 parts, and loses
// some at its borders.
const (
	pixels  = 58
	borders = 16
)

// titlesFit: what does not fit is cut off, most of all above numbers.
func titlesFit(b board, say report) {
	for _, p := range b.all() {
		if room := (p.GridPos.W*pixels - borders) / 8; utf8.RuneCountInString(p.Title) > room {
			say(p.Title, "the title is cut off after %d letters at 1440 px", room)
		}
	}
}

// tableWidth: a table that is wider than its panel hides its last columns. Each
// column says how wide it must be; Grafana's own measure is 150 px, whatever is in
// it.
func tableWidth(b board, say report) {
	for _, p := range b.all() {
		if p.Type != "table" {
			continue
		}
		widths, total := p.widths(), 0.0
		shown, _ := p.columns(func(string, string, ...any) {})
		for _, name := range shown {
			if widths[name] == 0 {
				say(p.Title, "column %q does not say how wide it must be", name)
			}
			if name != "Cluster" { // a store of one cluster has none
				total += widths[name]
			}
		}
		if room := float64(p.GridPos.W*pixels - borders); total > room {
			say(p.Title, "its columns need %v px, and have %v", total, room)
		}
	}
}

// widths are the least widths of columns.
func (p panel) widths() map[string]float64 {
	widths := map[string]float64{}
	for _, o := range p.FieldConfig.Overrides {
		name, _ := o.Matcher.Options.(string)
		for _, property := range o.Properties {
			if width, ok := property.Value.(float64); ok && property.ID == "custom.minWidth" {
				widths[name] = width
			}
		}
	}
	return widths
}

// milliseconds: Grafana's times are counted in them, Prometheus's in seconds; what
// is not multiplied is 1970.
func milliseconds(b board, say report) {
	for _, p := range b.all() {
		if isTime(p.FieldConfig.Defaults.Unit) {
			for _, t := range p.Targets {
				inMilliseconds(p.Title, t, say)
			}
		}
		fields := p.fieldsByColumn()
		for _, o := range p.FieldConfig.Overrides {
			name, _ := o.Matcher.Options.(string)
			for _, property := range o.Properties {
				if unit, _ := property.Value.(string); property.ID != "unit" || !isTime(unit) {
					continue
				}
				for _, t := range p.Targets {
					if len(p.Targets) == 1 || fields[name] == "Value #"+t.RefID {
						inMilliseconds(p.Title, t, say)
					}
				}
			}
		}
	}
}

func isTime(unit string) bool { return strings.HasPrefix(unit, "dateTime") }

func inMilliseconds(title string, t target, say report) {
	if !regexp.MustCompile(`\b1000\b`).MatchString(t.Expr) {
		say(title, "query %s is shown as a time, which is counted in milliseconds", t.RefID)
	}
}

// fieldsByColumn are the fields of a table by the headings that they are given.
func (p panel) fieldsByColumn() map[string]string {
	fields := map[string]string{}
	for _, t := range p.Transformations {
		var options organized
		if t.ID == "organize" && json.Unmarshal(t.Options, &options) == nil {
			for field, name := range options.RenameByName {
				fields[name] = field
			}
		}
	}
	return fields
}
