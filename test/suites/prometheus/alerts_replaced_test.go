package prometheus

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
)

// TestNoAlertFailsWhileExportersAreReplaced: a rule that fails does so for the
// whole fleet. The test evaluates alerts over the rows of old and new
// exporters together, without thresholds, so that every join is evaluated.
func TestNoAlertFailsWhileExportersAreReplaced(t *testing.T) {
	db := store(t, matching(t))
	engine := promql.NewEngine(promql.EngineOpts{MaxSamples: 1e7, Timeout: time.Minute, LookbackDelta: 5 * time.Minute, Parser: parser.NewParser(parser.Options{})})
	for _, rule := range alerts(t) {
		expr, err := parser.NewParser(parser.Options{}).ParseExpr(rule.Expr)
		if err != nil {
			t.Fatal(err)
		}
		query, err := engine.NewInstantQuery(t.Context(), db, nil, unlimited(expr).String(), time.UnixMilli(0).Add(minutes*time.Minute))
		if err != nil {
			t.Fatal(err)
		}
		result := query.Exec(t.Context())
		if result.Err != nil {
			t.Errorf("%s: %v", rule.Alert, result.Err)
		} else if rows := result.Value.(promql.Vector); len(rows) == 0 && !strings.Contains(rule.Expr, "unless") && !strings.Contains(rule.Expr, "offset") {
			t.Errorf("%s: nothing is there to fail: %s", rule.Alert, unlimited(expr))
		}
		query.Close()
	}
}

// unlimited removes comparisons with numbers from an expression, and keeps the
// rows of both outcomes of others.
func unlimited(expr parser.Expr) parser.Expr {
	switch e := expr.(type) {
	case *parser.BinaryExpr:
		_, number := e.RHS.(*parser.NumberLiteral)
		if number && e.Op.IsComparisonOperator() {
			return unlimited(e.LHS)
		}
		e.LHS, e.RHS = unlimited(e.LHS), unlimited(e.RHS)
		e.ReturnBool = e.ReturnBool || e.Op.IsComparisonOperator()
	case *parser.ParenExpr:
		e.Expr = unlimited(e.Expr)
	case *parser.AggregateExpr:
		e.Expr = unlimited(e.Expr)
	case *parser.Call:
		for i := range e.Args {
			e.Args[i] = unlimited(e.Args[i])
		}
	}
	return expr
}

// matching returns the rows of contradictory exporters, of the families that
// alerts select, with label values that their selectors match.
func matching(t *testing.T) (all []labels.Labels) {
	t.Helper()
	families := recorded(t)
	found := map[string]bool{}
	for _, rule := range alerts(t) {
		expr, err := parser.NewParser(parser.Options{}).ParseExpr(rule.Expr)
		if err != nil {
			t.Fatal(err)
		}
		parser.Inspect(expr, func(node parser.Node, _ []parser.Node) error {
			selector, is := node.(*parser.VectorSelector)
			if !is {
				return nil
			}
			for _, row := range contradictory(map[string][]string{selector.Name: families[selector.Name]}, "") {
				builder := labels.NewBuilder(row)
				if slices.Contains(families[selector.Name], "namespace") {
					builder.Set("namespace", "ml") // of pods and of claims
				}
				for _, m := range selector.LabelMatchers {
					if !m.Matches(row.Get(m.Name)) {
						builder.Set(m.Name, selectable(m))
					}
				}
				if series := builder.Labels(); !found[series.String()] {
					found[series.String()] = true
					all = append(all, series)
				}
			}
			return nil
		})
	}
	if len(all) < 250 {
		t.Fatalf("there are %d series", len(all))
	}
	return all
}

// selectable returns a value that a matcher selects.
func selectable(m *labels.Matcher) string {
	candidates := append(strings.Split(m.Value, "|"), "", "thermal", "recovery", "exclusive")
	for _, value := range candidates {
		if m.Matches(value) {
			return value
		}
	}
	return m.String() // it selects nothing
}
