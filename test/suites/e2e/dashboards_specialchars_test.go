package e2e

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/dra-exporter/dra-exporter/dashboards/gen/queries"
)

// specialName is a value with all characters that have a meaning in a regular
// expression or in a string. similarName is a value that a regular expression
// selects if the dot is not escaped.
const (
	specialName = `a.b+c(d)|"e\`
	similarName = `aXb+c(d)|"e\`
)

// plainValues are the values of the demo that this server replaces by
// specialName, by the variable that selects them.
func plainValues() queries.Chosen {
	return queries.Chosen{
		"cluster": {"demo"}, "node": {demoNode},
		"namespace": {"chat"}, "resourceclaim": {"assistant-gpu"}, "class": {"mig.nvidia.com"},
	}
}

// startSpecialDashboards starts a Prometheus on which one object of each kind
// is named specialName, and another one similarName.
func startSpecialDashboards(t *testing.T, d demo, rules []string) *dashboardServer {
	t.Helper()
	rename := func(label, from, to string) object {
		return object{"source_labels": []string{label}, "regex": from, "target_label": label, "replacement": to}
	}
	renames := []object{
		rename("namespace", "research", similarName), rename("deviceclass", "gpu.nvidia.com", similarName),
		rename("deviceclass", plainValues()["class"][0], specialName),
	}
	for _, label := range []string{"node", "namespace", "resourceclaim"} {
		renames = append(renames, rename(label, plainValues()[label][0], specialName))
	}
	jobs := d.jobs(inCluster(specialName), object{
		"metric_relabel_configs": renames,
		"relabel_configs":        []object{rename("instance", demoNode, specialName)},
	})
	return startDashboards(t, "odd", jobs, rules, shippedBoards)
}

// checkSelection fails the test unless, with special values selected, each
// query has data where it has data with plain values, for the selected objects
// only, and no query fails.
func (g *dashboardServer) checkSelection(t *testing.T, onPlain *dashboardServer) {
	t.Helper()
	when, whenPlain := g.waitScraped(t), onPlain.waitScraped(t)
	compared := 0
	for _, board := range g.boards {
		plainly := onPlain.choiceFor(t, board, plainValues(), whenPlain)
		oddly, both := g.choiceFor(t, board, specialValues(specialName), when), g.choiceFor(t, board, specialValues(specialName, similarName), when)
		for _, query := range board.Queries {
			name := fmt.Sprintf("%s / %s / %s", board.UID, query.Panel, query.Ref)
			want := onPlain.rowsFor(t, board, query, plainly, whenPlain)
			got := g.rowsFor(t, board, query, oddly, when)
			g.rowsFor(t, board, query, both, when)
			if len(want) > 0 {
				compared++
			}
			if (len(got) == 0) != (len(want) == 0) {
				t.Errorf("%s: odd values have %d rows, plain ones %d", name, len(got), len(want))
			}
			for _, row := range got {
				if others := notChosen(board, oddly, row); len(others) > 0 {
					t.Errorf("%s: there is %s, which was not chosen: %s", name, row.labels, others)
				}
			}
		}
	}
	t.Logf("%d queries with odd values have answers", compared)
	if compared < 100 {
		t.Error("these are too few to show anything")
	}
}

// specialValues replaces plain values by special ones. If only one can be
// selected, it returns the first.
func specialValues(values ...string) queries.Chosen {
	all := queries.Chosen{}
	for variable := range plainValues() {
		all[variable] = values
	}
	return all
}

// choiceFor returns the values selected on a board: the preferred ones, which
// must be offered, and all values of other variables.
func (g *dashboardServer) choiceFor(t *testing.T, board queries.Board, preferred queries.Chosen, when span) queries.Chosen {
	t.Helper()
	chosen := queries.Chosen{}
	for _, variable := range board.Variables {
		selector, err := board.Expr(variable.Selector, chosen, when.window())
		if err != nil {
			t.Fatalf("%s: variable %s: %v", board.UID, variable.Name, err)
		}
		offered, err := g.labelValues(t.Context(), selector, variable.Label, when)
		if err != nil {
			t.Errorf("%s: variable %s: %v", board.UID, variable.Name, err)
		}
		want, there := preferred[variable.Name]
		switch {
		case !there && variable.All == "":
			want = offered
		case there && !slices.Contains(offered, want[0]):
			t.Errorf("%s: variable %s offers %q and not %q", board.UID, variable.Name, offered, want[0])
		}
		if len(want) > 0 {
			chosen[variable.Name] = want
		}
	}
	return chosen
}

// rowsFor evaluates a query with these values.
func (g *dashboardServer) rowsFor(t *testing.T, board queries.Board, query queries.Query, values queries.Chosen, when span) []line {
	t.Helper()
	expr, err := board.Expr(query.Expr, values, when.window())
	if err != nil {
		t.Fatalf("%s / %s: %v", board.UID, query.Panel, err)
	}
	rows, err := g.queryRange(t.Context(), expr, when)
	if err != nil {
		t.Errorf("%s / %s: %v", board.UID, query.Panel, err)
	}
	return rows
}

// notChosen returns the labels of a row that a variable of the board selects
// and whose values are not selected.
func notChosen(board queries.Board, chosen queries.Chosen, row line) (others []string) {
	for _, variable := range board.Variables {
		value, there := row.labels[variable.Label]
		if there && chosen[variable.Name] != nil && !slices.Contains(chosen[variable.Name], value) {
			others = append(others, variable.Label+"="+value)
		}
	}
	return others
}

// rowsByLabels returns rows by their labels, in any order.
func rowsByLabels(rows []line) map[string]line {
	all := map[string]line{}
	for _, row := range rows {
		var labels []string
		for _, name := range slices.Sorted(maps.Keys(row.labels)) {
			labels = append(labels, name+"="+row.labels[name])
		}
		all[strings.Join(labels, ",")] = row
	}
	return all
}
