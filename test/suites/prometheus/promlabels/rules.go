package promlabels

import (
	"errors"
	"log/slog"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
)

// Rules returns the groups of a rule file, decoded by Prometheus.
func Rules(file string) ([]rulefmt.RuleGroup, error) {
	groups, problems := rulefmt.ParseFile(file, false, model.UTF8Validation, parser.NewParser(parser.Options{}), slog.New(slog.DiscardHandler))
	if len(problems) > 0 {
		return nil, errors.Join(problems...)
	}
	return groups.Groups, nil
}

// Record adds the recorded names of a rule file. It returns the problems of
// each rule, by its name. A rule may use the results of earlier rules.
func (f Families) Record(groups []rulefmt.RuleGroup) map[string][]string {
	wrong := map[string][]string{}
	for _, group := range groups {
		for _, rule := range group.Rules {
			if rule.Record == "" {
				continue
			}
			labels, problems := Checker{Families: f}.Expr(rule.Expr)
			if len(problems) > 0 {
				wrong[rule.Record] = append(wrong[rule.Record], problems...)
			}
			for name := range rule.Labels {
				labels = with(labels, name)
			}
			f[rule.Record] = with(f[rule.Record], labels...)
		}
	}
	return wrong
}
