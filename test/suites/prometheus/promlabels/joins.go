package promlabels

import (
	"github.com/prometheus/prometheus/promql/parser"
)

// called returns the labels of a function's result: those of its vector,
// except for functions that create labels, or a vector of their own.
func (w *walk) called(e *parser.Call) []string {
	var labels []string
	for _, argument := range e.Args {
		labels = append(labels, w.labelsOf(argument)...)
	}
	switch e.Func.Name {
	case "label_replace":
		w.require([]string{text(e, 3)}, labels, e)
		return with(labels, text(e, 1))
	case "label_join":
		for i := 3; i < len(e.Args); i++ {
			w.require([]string{text(e, i)}, labels, e)
		}
		return with(labels, text(e, 1))
	case "sort_by_label", "sort_by_label_desc":
		for i := 1; i < len(e.Args); i++ {
			w.require([]string{text(e, i)}, labels, e)
		}
	case "histogram_quantile", "histogram_fraction":
		return without(labels, "le")
	case "absent", "absent_over_time":
		return equalityLabels(e.Args[0])
	case "scalar", "vector", "time", "pi":
		return nil
	case "info":
		w.report("info() adds labels that are not listed: %s", e)
	}
	return labels
}

func text(e *parser.Call, argument int) string { return e.Args[argument].(*parser.StringLiteral).Val }

// equalityLabels returns the labels of absent(): those that its selector
// matches by =.
func equalityLabels(argument parser.Expr) (found []string) {
	if matrix, is := argument.(*parser.MatrixSelector); is {
		argument = matrix.VectorSelector
	}
	selector, is := argument.(*parser.VectorSelector)
	if !is {
		return nil
	}
	for _, matcher := range selector.LabelMatchers {
		if matcher.Name != "__name__" && matcher.Type.String() == "=" {
			found = append(found, matcher.Name)
		}
	}
	return found
}

// joined returns the labels of a binary operation. Without named labels, both
// sides must have the same, because no row would match otherwise.
func (w *walk) joined(e *parser.BinaryExpr) []string {
	left, right := w.labelsOf(e.LHS), w.labelsOf(e.RHS)
	on := e.VectorMatching
	if on == nil { // one side is a number
		return with(left, right...)
	}
	if on.On {
		w.require(on.MatchingLabels, left, e.LHS)
		w.require(on.MatchingLabels, right, e.RHS)
	} else if e.Op != parser.LOR && !same(without(left, on.MatchingLabels...), without(right, on.MatchingLabels...)) {
		w.report("%v and %v differ: %s", left, right, e)
	}
	switch {
	case e.Op == parser.LOR:
		return with(left, right...)
	case e.Op == parser.LAND, e.Op == parser.LUNLESS:
		return left
	case on.Card == parser.CardManyToOne:
		w.require(on.Include, right, e.RHS)
		return with(left, on.Include...)
	case on.Card == parser.CardOneToMany:
		w.require(on.Include, left, e.LHS)
		return with(right, on.Include...)
	case on.On:
		return on.MatchingLabels
	default:
		return without(left, on.MatchingLabels...)
	}
}
