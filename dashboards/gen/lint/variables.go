package lint

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"

	"github.com/dra-exporter/dra-exporter/dashboards/gen/queries"
)

// templateDatasource: a dashboard asks the data source that its reader chooses.
func templateDatasource(b board, say report) {
	if len(b.Templating.List) == 0 || b.Templating.List[0].Name != "datasource" {
		say(b.Title, "the first variable is not datasource")
		return
	}
	v := b.Templating.List[0]
	if v.Type != "datasource" || v.Query != "prometheus" || v.Label != "Data source" {
		say(b.Title, "variable datasource is of type %q, query %q, label %q", v.Type, v.Query, v.Label)
	}
}

// templateCluster: several clusters may be in one store.
func templateCluster(b board, say report) {
	if len(b.Templating.List) < 2 || b.Templating.List[1].Name != "cluster" {
		say(b.Title, "the second variable is not cluster")
		return
	}
	if v := b.Templating.List[1]; !v.Multi || !v.IncludeAll || v.AllValue != ".*" {
		say(b.Title, "variable cluster cannot have several values, or all; where no series has the label, .* selects them")
	}
}

// reloadOnTimeChange: what was there last week is not there now.
func reloadOnTimeChange(b board, say report) {
	for _, v := range b.Templating.List {
		if v.Type == "query" && v.Refresh != 2 {
			say("variable "+v.Name, "its values are not refreshed with the time range")
		}
	}
}

// labelValues: variables ask for the values of a label, of the chosen data source,
// and no value of theirs stands in the file.
func labelValues(b board, say report) {
	if b.undecoded != nil {
		say(b.Title, "%v", b.undecoded)
	}
	for _, v := range b.Templating.List {
		if v.Label == "" {
			say("variable "+v.Name, "it has no label")
		}
		if v.Type != "query" {
			continue
		}
		checkSource(v.Datasource, "variable "+v.Name, say)
		if values := slices.IndexFunc(b.variables, func(read queries.Variable) bool { return read.Name == v.Name }); values >= 0 && b.variables[values].Selector == "" {
			say("variable "+v.Name, "it has the values of whatever is in the store: name the series")
		}
		if query, _ := v.Query.(map[string]any); query["query"] != v.Definition {
			say("variable "+v.Name, "it shows %q and asks %q", v.Definition, query["query"])
		}
		if v.IncludeAll && v.AllValue == "" {
			say("variable "+v.Name, "All is a list of all its values, which grows with the cluster")
		}
	}
}

// unusedVariables: a choice that changes nothing misleads.
func unusedVariables(b board, say report) {
	var used []string
	for _, p := range b.all() {
		for _, t := range p.Targets {
			used = append(used, variablesOf(t.Expr)...)
		}
		used = append(used, variablesOf(p.Datasource.UID)...)
	}
	for _, v := range b.Templating.List {
		if !slices.Contains(used, v.Name) {
			say("variable "+v.Name, "no panel asks for it")
		}
	}
}

// undefinedVariables looks at everything: queries, links, titles.
func undefinedVariables(b board, say report) {
	defined := b.names()
	var text any
	if json.Unmarshal([]byte(b.text), &text) != nil {
		return
	}
	strs(text, func(s string) {
		for _, name := range variablesOf(s) {
			if !strings.HasPrefix(name, "__") && !slices.Contains(defined, name) {
				say(b.Title, "there is no variable %s: %s", name, s)
			}
		}
	})
}

// strs calls f with each string in decoded JSON.
func strs(value any, f func(string)) {
	switch value := value.(type) {
	case string:
		f(value)
	case []any:
		for _, inner := range value {
			strs(inner, f)
		}
	case map[string]any:
		for _, inner := range value {
			strs(inner, f)
		}
	}
}

func (b board) names() (names []string) {
	for _, v := range b.Templating.List {
		names = append(names, v.Name)
	}
	return names
}

// repeats says whether there is a panel or a row for each value of a variable:
// then the others have nothing to do with it.
func (b board) repeats(name string) bool {
	is := func(p panel) bool { return p.Repeat == name }
	return slices.ContainsFunc(b.Panels, is) || slices.ContainsFunc(b.all(), is)
}

// disowns says whether the panel says of a variable that it does not follow it. The
// reason for having no data does not count: it names nodes and namespaces often.
func (p panel) disowns(v variable) bool {
	reads, _, _ := strings.Cut(strings.ToLower(p.Description), "\n\nno data: ")
	disowning := regexp.MustCompile(`not filtered|neither|whatever`)
	for sentence := range strings.SplitSeq(reads, ". ") {
		if disowning.MatchString(sentence) && (strings.Contains(sentence, strings.ToLower(v.Label)) || strings.Contains(sentence, v.Name)) {
			return true
		}
	}
	return false
}

// followsVariables: whoever chooses a namespace takes each number on the page for
// that namespace's, unless the panel says that it is not.
func followsVariables(b board, say report) {
	for _, p := range b.all() {
		for _, v := range b.Templating.List {
			if v.Type != "query" || b.repeats(v.Name) || p.disowns(v) {
				continue
			}
			for _, t := range p.Targets {
				if !slices.Contains(variablesOf(t.Expr), v.Name) {
					say(p.Title, "query %s does not ask for $%s, and the description does not say so: not filtered by %s", t.RefID, v.Name, strings.ToLower(v.Label))
				}
			}
		}
	}
}
