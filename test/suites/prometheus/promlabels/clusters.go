package promlabels

import (
	"fmt"
	"slices"

	"github.com/prometheus/prometheus/promql/parser"
)

// Mixed reports where an expression would mix clusters that are in one store:
// in an aggregation or a match whose labels do not begin with cluster. Matches
// on all labels, or on all except some, do not mix clusters.
func Mixed(text string) (problems []string) {
	expr, err := parser.NewParser(parser.Options{}).ParseExpr(text)
	if err != nil {
		return []string{err.Error()}
	}
	parser.Inspect(expr, func(node parser.Node, _ []parser.Node) error {
		switch e := node.(type) {
		case *parser.AggregateExpr:
			if first(e.Grouping) != "cluster" && !e.Without {
				problems = append(problems, fmt.Sprintf("by (%v) does not begin with cluster: %s", e.Grouping, e))
			}
		case *parser.BinaryExpr:
			if e.VectorMatching == nil {
				return nil
			}
			if e.VectorMatching.On != (first(e.VectorMatching.MatchingLabels) == "cluster") {
				problems = append(problems, fmt.Sprintf("%v does not keep clusters apart: %s", e.VectorMatching.MatchingLabels, e))
			}
		}
		return nil
	})
	return slices.Compact(problems)
}

func first(labels []string) string {
	if len(labels) == 0 {
		return ""
	}
	return labels[0]
}
