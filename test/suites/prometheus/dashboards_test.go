package prometheus

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/dra-exporter/dra-exporter/dashboards/gen/queries"
	"github.com/dra-exporter/dra-exporter/test/suites/prometheus/promlabels"
)

// TestDashboardQueriesAndLabelsExist: families and labels in the queries of
// panels are documented or recorded. The labels that Grafana uses in legends,
// columns and links are in the results.
func TestDashboardQueriesAndLabelsExist(t *testing.T) {
	checker := promlabels.Checker{Families: recordedFamilies(t)}
	for _, board := range boards(t) {
		if len(board.panels) < 5 {
			t.Errorf("%s has %d panels", board.UID, len(board.panels))
		}
		for _, p := range board.panels {
			for _, problem := range p.problems(board.Board, checker) {
				t.Errorf("%s: %s: %s", board.UID, p.Title, problem)
			}
		}
	}
}

// TestVariableQueriesExist checks the queries of variables likewise.
func TestVariableQueriesExist(t *testing.T) {
	checker := promlabels.Checker{Families: recordedFamilies(t)}
	for _, board := range boards(t) {
		for _, v := range board.Variables {
			expr, err := board.Expr(v.Selector, anyChoice(board.Board), anHour())
			if err != nil {
				t.Errorf("%s: variable %s: %v", board.UID, v.Name, err)
				continue
			}
			labels, problems := checker.Expr(expr)
			if problems = append(problems, missing(labels, v.Label)...); len(problems) > 0 {
				t.Errorf("%s: variable %s: %s", board.UID, v.Name, strings.Join(problems, "\n"))
			}
		}
	}
}

// TestDashboardFaultsAreFound: each problem that the checks above report is
// found in a board without other problems.
func TestDashboardFaultsAreFound(t *testing.T) {
	table := func(a, b string) string {
		return fmt.Sprintf(`{"type": "table", "targets": [{"refId": "A", "expr": %q}, {"refId": "B", "expr": %q}], "transformations": [{"id": "organize", "options": `+
			`{"renameByName": {"uuid": "Device", "node": "Node", "Value #A": "Age", "Value #B": "Size"}, "excludeByName": {"Time": true}}}]}`, a, b)
	}
	families := promlabels.Families{"x": {"cluster", "node", "uuid", "pod"}}
	for _, test := range []struct{ panel, want string }{
		{`{"targets": [{"expr": "sum by (node) (x{node=~\"$node\"})", "legendFormat": "{{node}} {{ node }}"}]}`, ""},
		{`{"targets": [{"expr": "sum by (node) (x", "legendFormat": "a"}]}`, "unclosed"},
		{`{"targets": [{"expr": "y", "legendFormat": "a"}]}`, `there is no "y"`},
		{`{"targets": [{"expr": "x{model=\"$node\"}", "legendFormat": "a"}]}`, `no label "model"`},
		{`{"targets": [{"expr": "x{node=\"$nodes\"}", "legendFormat": "a"}]}`, `no variable "nodes"`},
		{`{"targets": [{"expr": "sum by (node) (x)", "legendFormat": "{{uuid}}"}]}`, `"uuid" is not in`},
		{`{"targets": [{"expr": "sum by (node) (x)", "legendFormat": "a"}], "links": [{"url": "${__field.labels.uuid}"}]}`, `"uuid" is not in`},
		{`{"targets": [{"expr": "sum by (node) (x)"}], "transformations": [{"id": "partitionByValues", "options": {"fields": ["uuid"]}}]}`, `"uuid" is not in`},
		{table("sum by (cluster, uuid) (x)", "sum by (cluster, uuid, node) (x)"), ""},
		{table("sum by (cluster, node) (x)", "sum by (cluster, node) (x)"), `"uuid" is not in`},
		{table("sum by (node) (x)", "sum by (uuid) (x)"), "merged by"},
		{table("sum by (node, uuid) (x)", "x"), `query B: there is no column of "pod"`},
	} {
		var p boardPanel
		if err := json.Unmarshal([]byte(test.panel), &p); err != nil {
			t.Fatal(err)
		}
		board := queries.Board{UID: "b", Variables: []queries.Variable{{Name: "node", Several: true, All: ".*"}}}
		got := strings.Join(p.problems(board, promlabels.Checker{Families: families}), "; ")
		if !strings.Contains(got, test.want) || (test.want == "") != (got == "") {
			t.Errorf("%s: %q, want %q", test.panel, got, test.want)
		}
	}
}
