package promlabels

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"text/template/parse"

	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
)

// The oldest supported Prometheus is 2.42: the first one with keep_firing_for,
// and the one of Debian 12, which is built with Go 1.19. It refuses the whole
// file if it cannot parse one template. Its lists of functions are below:
// template/template.go and promql/parser/functions.go of v0.42.0, without
// experimental and since renamed functions.
const (
	oldTemplateFunctions = "and call html index slice js len not or print printf println urlquery eq ge gt le lt ne " +
		"query first label value strvalue args reReplaceAll safeHtml match title toUpper toLower graphLink tableLink sortByLabel " +
		"stripPort stripDomain humanize humanize1024 humanizeDuration humanizePercentage humanizeTimestamp toTime pathPrefix externalURL parseDuration"
	oldFunctions = "abs absent absent_over_time acos acosh asin asinh atan atanh avg_over_time ceil changes clamp clamp_max clamp_min cos cosh " +
		"count_over_time days_in_month day_of_month day_of_week day_of_year deg delta deriv exp floor histogram_count histogram_sum " +
		"histogram_fraction histogram_quantile hour idelta increase irate label_replace label_join last_over_time ln log10 log2 " +
		"max_over_time min_over_time minute month pi predict_linear present_over_time quantile_over_time rad rate resets round scalar sgn " +
		"sin sinh sort sort_desc sqrt stddev_over_time stdvar_over_time sum_over_time tan tanh time timestamp vector year"
)

// TooNew returns the problems that an old Prometheus has with a rule: with its
// expression, and with the templates of its labels and annotations.
func TooNew(rule rulefmt.Rule) (problems []string) {
	problems = tooNewExpr(rule.Expr)
	for _, texts := range []map[string]string{rule.Labels, rule.Annotations} {
		for _, name := range slices.Sorted(maps.Keys(texts)) {
			for _, problem := range TooNewTemplate(texts[name]) {
				problems = append(problems, name+": "+problem)
			}
		}
	}
	return problems
}

// tooNewExpr returns the functions of an expression that Prometheus 2.42
// lacks.
func tooNewExpr(text string) (problems []string) {
	expr, err := parser.NewParser(parser.Options{}).ParseExpr(text)
	if err != nil {
		return []string{err.Error()}
	}
	known := strings.Fields(oldFunctions)
	parser.Inspect(expr, func(node parser.Node, _ []parser.Node) error {
		if call, is := node.(*parser.Call); is && !slices.Contains(known, call.Func.Name) {
			problems = append(problems, "Prometheus 2.42 has no function "+call.Func.Name)
		}
		return nil
	})
	return problems
}

// TooNewTemplate returns what text/template of Go 1.15 to 1.22 refuses in a
// text that Prometheus expands. It knows the functions of Prometheus 2.42.
func TooNewTemplate(text string) (problems []string) {
	// Search the text, because a parser that supports it decodes it as an else
	// with a with inside.
	if regexp.MustCompile(`\{\{(- )?\s*else\s+with\b`).MatchString(text) {
		problems = append(problems, "else with is of Go 1.23: write {{ else }}{{ with … }} … {{ end }}{{ end }}")
	}
	functions := map[string]any{}
	for _, name := range strings.Fields(oldTemplateFunctions) {
		functions[name] = true
	}
	const before = "{{$labels := .Labels}}{{$externalLabels := .ExternalLabels}}{{$externalURL := .ExternalURL}}{{$value := .Value}}"
	trees, err := parse.Parse("text", before+text, "", "", functions)
	if err != nil {
		return append(problems, err.Error())
	}
	for _, name := range slices.Sorted(maps.Keys(trees)) {
		problems = append(problems, tooNewNode(trees[name].Root)...)
	}
	return problems
}

// tooNewNode checks a node and all below it.
func tooNewNode(node parse.Node) (problems []string) {
	branch := func(one parse.BranchNode) []string {
		return slices.Concat(tooNewNode(one.List), tooNewNode(one.ElseList))
	}
	switch node := node.(type) {
	case *parse.ListNode:
		if node == nil { // there is no else
			return nil
		}
		for _, child := range node.Nodes {
			problems = append(problems, tooNewNode(child)...)
		}
	case *parse.IfNode:
		return branch(node.BranchNode)
	case *parse.WithNode:
		return branch(node.BranchNode)
	case *parse.RangeNode:
		if number(node.Pipe) {
			problems = append(problems, fmt.Sprintf("range over a number is of Go 1.24: {{range %s}}", node.Pipe))
		}
		return append(problems, branch(node.BranchNode)...)
	case *parse.BreakNode, *parse.ContinueNode:
		return []string{fmt.Sprintf("%s is of Go 1.18", node)}
	}
	return problems
}

// number reports whether a pipeline certainly ends in a number.
func number(pipe *parse.PipeNode) bool {
	switch last := pipe.Cmds[len(pipe.Cmds)-1].Args[0].(type) {
	case *parse.NumberNode:
		return true
	case *parse.IdentifierNode:
		return last.Ident == "len" || last.Ident == "value"
	case *parse.VariableNode:
		return last.Ident[0] == "$value"
	}
	return false
}
