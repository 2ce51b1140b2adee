package prometheus

import (
	"testing"

	"github.com/prometheus/prometheus/model/rulefmt"

	"github.com/dra-exporter/dra-exporter/test/suites/prometheus/promlabels"
)

// TestRulesAreForOldPrometheus: a Prometheus that cannot parse one rule
// refuses the file and all its alerts. docs/alerts.md names the oldest
// supported version.
func TestRulesAreForOldPrometheus(t *testing.T) {
	for _, file := range []string{alertsFile, rulesFile} {
		groups, err := promlabels.Rules(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, group := range groups {
			for _, rule := range group.Rules {
				for _, problem := range promlabels.TooNew(rule) {
					t.Errorf("%s%s: %s", rule.Alert, rule.Record, problem)
				}
				for _, query := range templateQueries(t, rule) {
					for _, problem := range promlabels.TooNew(rulefmt.Rule{Expr: query}) {
						t.Errorf("%s asks: %s", rule.Alert, problem)
					}
				}
			}
		}
	}
}

// templateQueries returns the queries of a rule's annotations.
func templateQueries(t *testing.T, rule rulefmt.Rule) (queries []string) {
	t.Helper()
	for _, text := range rule.Annotations {
		queries = append(queries, queriesOf(t, text)...)
	}
	return queries
}
