package prometheus

import (
	"fmt"
	"slices"
	"strings"

	"github.com/prometheus/prometheus/promql/parser"
)

// labelChecker finds the labels that an expression's result may have, and notes
// where it asks for families or labels that do not exist. It knows as much of
// PromQL as the rules use.
type labelChecker struct {
	families map[string][]string // labels by the name of what can be selected
	problems []string
}

// anything stands for the labels of what is not known: one complaint is enough.
const anything = "*"

func (c *labelChecker) of(expr parser.Expr) []string {
	switch e := expr.(type) {
	case *parser.VectorSelector:
		return c.selected(e)
	case *parser.MatrixSelector:
		return c.of(e.VectorSelector)
	case *parser.ParenExpr:
		return c.of(e.Expr)
	case *parser.NumberLiteral, *parser.StringLiteral:
		return nil
	case *parser.AggregateExpr:
		inner := c.of(e.Expr)
		if e.Without {
			c.note("without() keeps what nobody has listed: %s", e)
		}
		c.need(e.Grouping, inner, e)
		if e.Op == parser.TOPK || e.Op == parser.BOTTOMK {
			return inner // of the samples that it takes
		}
		return e.Grouping
	case *parser.Call:
		return c.called(e)
	case *parser.BinaryExpr:
		return c.joined(e)
	default:
		c.note("%T is not understood: %s", expr, expr)
		return nil
	}
}

func (c *labelChecker) selected(e *parser.VectorSelector) []string {
	labels, known := c.families[e.Name]
	if !known {
		c.note("there is no %q", e.Name)
		return []string{anything}
	}
	for _, matcher := range e.LabelMatchers {
		if matcher.Name != "__name__" {
			c.need([]string{matcher.Name}, labels, e)
		}
	}
	return labels
}

// called: all functions keep the labels of their one vector, but label_replace,
// which sets another. Labels of pods have names of their own.
func (c *labelChecker) called(e *parser.Call) []string {
	var labels []string
	for _, argument := range e.Args {
		labels = append(labels, c.of(argument)...)
	}
	if e.Func.Name != "label_replace" {
		return labels
	}
	target, source := e.Args[1].(*parser.StringLiteral).Val, e.Args[3].(*parser.StringLiteral).Val
	if !strings.HasPrefix(source, "label_") {
		c.need([]string{source}, labels, e)
	}
	return with(labels, target)
}

func (c *labelChecker) joined(e *parser.BinaryExpr) []string {
	left, right := c.of(e.LHS), c.of(e.RHS)
	if e.VectorMatching == nil { // with a number
		return with(left, right...)
	}
	on := e.VectorMatching
	if on.On {
		c.need(on.MatchingLabels, left, e.LHS)
		c.need(on.MatchingLabels, right, e.RHS)
	} else if !same(left, right) && e.Op != parser.LOR {
		c.note("%v and %v differ: %s", left, right, e)
	}
	switch {
	case e.Op == parser.LOR:
		return with(left, right...)
	case e.Op == parser.LAND, e.Op == parser.LUNLESS:
		return left
	case on.Card == parser.CardManyToOne:
		c.need(on.Include, right, e.RHS)
		return with(left, on.Include...)
	case on.Card == parser.CardOneToMany:
		c.need(on.Include, left, e.LHS)
		return with(right, on.Include...)
	case on.On:
		return on.MatchingLabels
	default:
		return left
	}
}

func (c *labelChecker) need(wanted, there []string, where fmt.Stringer) {
	for _, label := range wanted {
		if !slices.Contains(there, label) && !slices.Contains(there, anything) {
			c.note("there is no label %q in %s", label, where)
		}
	}
}

func (c *labelChecker) note(format string, args ...any) {
	problem := fmt.Sprintf(format, args...)
	if !slices.Contains(c.problems, problem) {
		c.problems = append(c.problems, problem)
	}
}

func with(labels []string, more ...string) []string {
	all := slices.Concat(labels, more)
	slices.Sort(all)
	return slices.Compact(all)
}

func same(a, b []string) bool { return slices.Equal(with(a), with(b)) }
