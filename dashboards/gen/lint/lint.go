// Package lint holds dashboards to rules, on the JSON that Grafana gets.
//
// It implements the rules of github.com/grafana/dashboard-linter under their names,
// except for these:
//   - template-job, template-instance, target-job and target-instance want every
//     query to select a job and an instance. Ours select by cluster, node and
//     namespace, and never by instance, which is another for each replica of an
//     exporter: target-hard-coded and target-cluster say so;
//   - target-promql is not here, since Prometheus's parser is in module
//     test/suites/prometheus, where every query is sent to a real Prometheus, too;
//   - the rules for Loki have nothing to check.
package lint

import "fmt"

// Problem is what breaks a rule.
type Problem struct {
	Rule  string
	Panel string // its title, or what else it is about: a variable, the dashboard
	Text  string
}

// String is the problem in one line.
func (p Problem) String() string { return fmt.Sprintf("%s: %s: %s", p.Rule, p.Panel, p.Text) }

// Check says what is wrong with a dashboard: nothing, if all is well. An error is
// a text that is no dashboard.
func Check(text []byte) ([]Problem, error) {
	d, err := decode(text)
	if err != nil {
		return nil, err
	}
	var all []Problem
	for _, r := range rules() {
		r.find(d, func(panel, format string, args ...any) {
			all = append(all, Problem{Rule: r.name, Panel: panel, Text: fmt.Sprintf(format, args...)})
		})
	}
	return all, nil
}

// report takes a problem of a panel, or of what else has a name.
type report func(panel, format string, args ...any)

type rule struct {
	name string
	find func(board, report)
}

// rules are all rules of one dashboard. Those that hold between dashboards are in
// CheckLinks.
func rules() []rule {
	return []rule{
		{"dashboard-schema", classicSchema},
		{"dashboard-identity", identity},
		{"uneditable-dashboard", uneditable},

		{"board-size", boardSize},
		{"board-first-screen", firstScreen},
		{"board-annotations", annotations},

		{"template-datasource", templateDatasource},
		{"template-cluster", templateCluster},
		{"template-on-time-change-reload", reloadOnTimeChange},
		{"template-label-promql", labelValues},
		{"template-unused", unusedVariables},
		{"template-undefined", undefinedVariables},

		{"panel-type", panelType},
		{"panel-datasource", panelDatasource},
		{"panel-title-description", titleDescription},
		{"panel-units", panelUnits},
		{"panel-no-targets", noTargets},
		{"panel-no-value", noValue},
		{"panel-follows-variables", followsVariables},
		{"panel-overrides", overridden},
		{"panel-transformations", transformations},
		{"panel-title-fits", titlesFit},
		{"panel-title-nouns", titleNouns},
		{"panel-title-range", titleRange},
		{"panel-steps", steps},
		{"panel-milliseconds", milliseconds},
		{"panel-ids", panelIDs},
		{"panel-layout", layout},
		{"row-empty", emptyRows},
		{"table-columns", tableColumns},
		{"table-width", tableWidth},

		{"target-refs", targetRefs},
		{"target-kind", targetKind},
		{"target-legend", targetLegend},
		{"target-cluster", targetCluster},
		{"target-hard-coded", hardCoded},
		{"target-variable-matchers", variableMatchers},
		{"target-rate-interval", rateInterval},
		{"target-counter-agg", counterAgg},
		{"target-additive", additive},
		{"target-join", joins},
		{"target-filter", filters},
	}
}
