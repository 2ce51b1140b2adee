package promlabels

import (
	"fmt"
	"slices"
	"strings"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
)

// Checker compares expressions with Families. It has no state between
// expressions, and is safe for concurrent use.
type Checker struct {
	Families Families
}

// Expr returns the labels that the result of a PromQL expression may have, and
// its problems: that it cannot be parsed, that a family or a label does not
// exist, or that its two sides cannot match. Variables of dashboards must be
// replaced before.
func (c Checker) Expr(text string) (labels, problems []string) {
	expr, err := parser.NewParser(parser.Options{}).ParseExpr(text)
	if err != nil {
		return nil, []string{err.Error()}
	}
	w := walk{families: c.Families}
	return w.labelsOf(expr), w.problems
}

// walk is the check of one expression.
type walk struct {
	families Families
	problems []string
}

// labelsOf returns the labels of an expression's result.
func (w *walk) labelsOf(expr parser.Expr) []string {
	switch e := expr.(type) {
	case *parser.VectorSelector:
		return w.selected(e)
	case *parser.MatrixSelector:
		return w.labelsOf(e.VectorSelector)
	case *parser.SubqueryExpr:
		return w.labelsOf(e.Expr)
	case *parser.ParenExpr:
		return w.labelsOf(e.Expr)
	case *parser.UnaryExpr:
		return w.labelsOf(e.Expr)
	case *parser.NumberLiteral, *parser.StringLiteral:
		return nil
	case *parser.AggregateExpr:
		return w.aggregated(e)
	case *parser.Call:
		return w.called(e)
	case *parser.BinaryExpr:
		return w.joined(e)
	default:
		w.report("%T is not understood: %s", expr, expr)
		return nil
	}
}

// selected returns the labels of a selector, which may select several names by
// a matcher, and must select at least one.
func (w *walk) selected(e *parser.VectorSelector) (found []string) {
	var names []*labels.Matcher
	for _, matcher := range e.LabelMatchers {
		if matcher.Name == model.MetricNameLabel {
			names = append(names, matcher)
		}
	}
	known := false
	for name, of := range w.families {
		if !slices.ContainsFunc(names, func(m *labels.Matcher) bool { return !m.Matches(name) }) {
			found, known = with(found, of...), true
		}
	}
	if !known {
		w.report("there is no %q", e)
		return []string{anything}
	}
	for _, matcher := range e.LabelMatchers {
		if matcher.Name != model.MetricNameLabel {
			w.require([]string{matcher.Name}, found, e)
		}
	}
	return found
}

func (w *walk) aggregated(e *parser.AggregateExpr) []string {
	inner := w.labelsOf(e.Expr)
	if e.Param != nil {
		w.labelsOf(e.Param)
	}
	if e.Without {
		w.report("without() keeps labels that are not listed: %s", e)
	}
	w.require(e.Grouping, inner, e)
	switch e.Op {
	case parser.TOPK, parser.BOTTOMK, parser.LIMITK, parser.LIMIT_RATIO:
		return inner // labels of the selected samples
	case parser.COUNT_VALUES:
		return with(e.Grouping, e.Param.(*parser.StringLiteral).Val)
	}
	return e.Grouping
}

// require reports each of the wanted labels that does not exist.
func (w *walk) require(wanted, there []string, where fmt.Stringer) {
	for _, label := range wanted {
		pods := slices.Contains(there, podLabels) && strings.HasPrefix(label, "label_")
		if !pods && !slices.Contains(there, label) && !slices.Contains(there, anything) {
			w.report("there is no label %q in %s", label, where)
		}
	}
}

func (w *walk) report(format string, args ...any) {
	problem := fmt.Sprintf(format, args...)
	if !slices.Contains(w.problems, problem) {
		w.problems = append(w.problems, problem)
	}
}
