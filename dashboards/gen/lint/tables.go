package lint

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
)

// organized are the options of the transformation that names a table's columns.
type organized struct {
	RenameByName  map[string]string
	ExcludeByName map[string]bool
	IndexByName   map[string]int
}

// tableColumns: what is said of a column by its name must name one that is there.
// Grafana is silent about a name that is not.
func tableColumns(b board, say report) {
	for _, p := range b.all() {
		if p.Type != "table" {
			continue
		}
		shown, hidden := p.columns(say)
		for _, o := range p.FieldConfig.Overrides {
			name, _ := o.Matcher.Options.(string)
			if o.Matcher.ID == "byName" && !slices.Contains(shown, name) && !slices.Contains(hidden, name) {
				say(p.Title, "properties of column %q, which is not there", name)
			}
			for _, property := range o.Properties {
				strs(property.Value, func(s string) { p.fieldsOf(s, slices.Concat(shown, hidden), say) })
			}
		}
		for _, s := range p.Options.SortBy {
			if !slices.Contains(shown, s.DisplayName) {
				say(p.Title, "it is ordered by column %q, which is not shown", s.DisplayName)
			}
		}
	}
}

// fieldsOf looks at the cells that a link takes values from.
func (p panel) fieldsOf(link string, columns []string, say report) {
	for _, found := range regexp.MustCompile(`\$\{__data\.fields\[?\.?"?([^"\]}:]*)"?\]?`).FindAllStringSubmatch(link, -1) {
		if !slices.Contains(columns, found[1]) {
			say(p.Title, "a link takes its value from column %q, which is not there", found[1])
		}
	}
}

// columns are the names of a table's columns, as its transformation gives them.
func (p panel) columns(say report) (shown, hidden []string) {
	var options organized
	for _, t := range p.Transformations {
		if t.ID == "organize" && json.Unmarshal(t.Options, &options) != nil {
			say(p.Title, "the options of organize cannot be read")
		}
	}
	if len(options.RenameByName) == 0 {
		say(p.Title, "no transformation names its columns: labels' names and Value are no headings")
	}
	values := p.valueFields()
	for field, name := range options.RenameByName {
		if regexp.MustCompile(`^Value( #|$)`).MatchString(field) && !slices.Contains(values, field) {
			say(p.Title, "column %q is %q, and no query is called so", name, field)
		}
		if name == "" || slices.Contains(shown, name) || slices.Contains(hidden, name) {
			say(p.Title, "two columns are called %q, or one has no name", name)
		}
		if options.ExcludeByName[field] {
			hidden = append(hidden, name)
			continue
		}
		shown = append(shown, name)
	}
	for _, field := range values {
		if options.RenameByName[field] == "" && !options.ExcludeByName[field] {
			say(p.Title, "%q has no heading", field)
		}
	}
	// A store of one cluster has no column of that.
	if wide := slices.DeleteFunc(slices.Clone(shown), func(name string) bool { return name == "Cluster" }); len(wide) > 10 {
		say(p.Title, "%d columns do not fit: %s", len(wide), strings.Join(wide, ", "))
	}
	return shown, hidden
}

// valueFields are what Grafana calls the values of queries in a table.
func (p panel) valueFields() (names []string) {
	if len(p.Targets) == 1 {
		return []string{"Value"}
	}
	for _, t := range p.Targets {
		names = append(names, "Value #"+t.RefID)
	}
	return names
}
