//go:build linux

package prometheus

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"

	"github.com/dra-exporter/dra-exporter/dashboards/gen/queries"
)

// dashboardQueries returns the queries of all panels and variables.
func (f *fleet) dashboardQueries(b *testing.B, engine *promql.Engine) (all []benchQuery) {
	b.Helper()
	window := anHour()
	about := f.choice(b, engine)
	for _, board := range boards(b) {
		chosen := queries.Chosen{}
		for _, v := range board.Variables {
			if v.All == "" { // all values are selected where possible, which is the most work
				chosen[v.Name] = about[v.Name]
			}
		}
		for _, v := range board.Variables {
			selector, err := board.Expr(v.Selector, chosen, window)
			if err != nil {
				b.Fatal(err)
			}
			all = append(all, benchQuery{name: fmt.Sprintf("%s / variable %s", board.UID, v.Name), ask: f.labelValues(b, selector, v.Label)})
		}
		for _, query := range board.Queries {
			expr, err := board.Expr(query.Expr, chosen, window)
			if err != nil {
				b.Fatal(err)
			}
			evaluate := f.over(engine, expr, window)
			if query.Instant {
				evaluate = f.at(engine, expr)
			}
			all = append(all, benchQuery{name: fmt.Sprintf("%s / %s / %s", board.UID, query.Panel, query.Ref), ask: evaluate})
		}
	}
	return all
}

// ruleQueries returns the queries of rules and alerts, without duplicates.
func (f *fleet) ruleQueries(groups []rulefmt.RuleGroup, engine *promql.Engine) (all []benchQuery) {
	for _, group := range groups {
		for _, rule := range group.Rules {
			all = append(all, benchQuery{name: group.Name + " / " + cmp.Or(rule.Record, rule.Alert), ask: f.at(engine, rule.Expr)})
		}
	}
	return all
}

// choice returns the values of the variables without All: the claim with the
// most devices, on a node with faults.
func (f *fleet) choice(b *testing.B, engine *promql.Engine) queries.Chosen {
	b.Helper()
	expr := fmt.Sprintf(`topk(1, count by (node, namespace, resourceclaim, workload_kind, workload) (
  dra_claim_consumer_info{node="gpu-node-%04d"}
  * on (node, namespace, pod) group_left (workload_kind, workload) dra_pod_workload_info
))`, unhealthyEach)
	query, err := engine.NewInstantQuery(b.Context(), f.db, nil, expr, f.end)
	if err != nil {
		b.Fatal(err)
	}
	defer query.Close()
	found, err := query.Exec(b.Context()).Vector()
	if err != nil || len(found) != 1 {
		b.Fatalf("%s: %v %v", expr, found, err)
	}
	chosen := queries.Chosen{"job": {"dra-exporter"}}
	for name, label := range map[string]string{"node": "node", "namespace": "namespace", "resourceclaim": "resourceclaim", "kind": "workload_kind", "workload": "workload"} {
		chosen[name] = []string{found[0].Metric.Get(label)}
	}
	return chosen
}

func (f *fleet) at(engine *promql.Engine, expr string) func(context.Context) (int, error) {
	return func(ctx context.Context) (int, error) {
		query, err := engine.NewInstantQuery(ctx, f.db, nil, expr, f.end)
		if err != nil {
			return 0, err
		}
		return countRows(ctx, query)
	}
}

func (f *fleet) over(engine *promql.Engine, expr string, window queries.Window) func(context.Context) (int, error) {
	return func(ctx context.Context) (int, error) {
		query, err := engine.NewRangeQuery(ctx, f.db, nil, expr, f.end.Add(-window.Range), f.end, window.Step)
		if err != nil {
			return 0, err
		}
		return countRows(ctx, query)
	}
}

// countRows counts the rows of a result.
func countRows(ctx context.Context, query promql.Query) (int, error) {
	defer query.Close()
	result := query.Exec(ctx)
	if result.Err != nil {
		return 0, result.Err
	}
	switch answer := result.Value.(type) {
	case promql.Matrix:
		return len(answer), nil
	case promql.Vector:
		return len(answer), nil
	}
	return 1, nil
}

// labelValues reads the values of a label, as Prometheus' API does.
func (f *fleet) labelValues(b *testing.B, selector, label string) func(context.Context) (int, error) {
	matchers, err := parser.NewParser(parser.Options{}).ParseMetricSelector(selector)
	if err != nil {
		b.Fatalf("%s: %v", selector, err)
	}
	return func(ctx context.Context) (int, error) {
		querier, err := f.db.Querier(f.start.UnixMilli(), f.end.UnixMilli())
		if err != nil {
			return 0, err
		}
		defer querier.Close()
		found, _, err := querier.LabelValues(ctx, label, nil, matchers...)
		return len(found), err
	}
}

// usedNames returns a function that reports whether a panel, a variable, a
// rule or an alert selects a name.
func usedNames(b *testing.B, groups []rulefmt.RuleGroup) func(name string) bool {
	b.Helper()
	var exprs []string
	for _, group := range groups {
		for _, rule := range group.Rules {
			exprs = append(exprs, rule.Expr)
		}
	}
	for _, board := range boards(b) {
		selectors := []string{}
		for _, v := range board.Variables {
			selectors = append(selectors, v.Selector)
		}
		for _, query := range board.Queries {
			selectors = append(selectors, query.Expr)
		}
		for _, expr := range selectors {
			expr, err := board.Expr(expr, anyChoice(board.Board), anHour())
			if err != nil {
				b.Fatal(err)
			}
			exprs = append(exprs, expr)
		}
	}
	var names []*labels.Matcher
	for _, expr := range exprs {
		parsed, err := parser.NewParser(parser.Options{}).ParseExpr(expr)
		if err != nil {
			b.Fatalf("%s: %v", expr, err)
		}
		for _, selectors := range parser.ExtractSelectors(parsed) {
			for _, matcher := range selectors {
				if matcher.Name == "__name__" {
					names = append(names, matcher)
				}
			}
		}
	}
	known := map[string]bool{}
	return func(name string) bool {
		if _, is := known[name]; !is {
			known[name] = slices.ContainsFunc(names, func(m *labels.Matcher) bool { return m.Matches(name) })
		}
		return known[name]
	}
}
