package lint

import (
	"regexp"
	"slices"
	"strings"
)

// selector is one selector of an expression.
type selector struct {
	metric   string
	matchers []matcher
	window   string   // what stands in its brackets, without them
	within   []string // functions and aggregations around it, the innermost first
	filter   bool     // right of and or unless, which take no values from there
}

type matcher struct{ label, op, value string }

// grouping is a list of labels: of by, on …
type grouping struct {
	word   string
	labels []string
}

// selectors are those of an expression in Grafana's PromQL, with variables. What
// Prometheus would refuse yields anything.
func selectors(expr string) []selector {
	all, _ := scan(expr)
	return all
}

func groupings(expr string) []grouping {
	_, all := scan(expr)
	return all
}

// scanner walks over the tokens of an expression.
type scanner struct {
	tokens    []string
	at        int
	called    string   // the function or aggregation whose parenthesis comes next
	open      []string // of each open parenthesis, whose it is
	filters   []bool   // of each, and of what is in none, whether the present operand is a filter
	selectors []selector
	groupings []grouping
}

func scan(expr string) ([]selector, []grouping) {
	s := &scanner{tokens: tokenize(expr), filters: []bool{false}}
	for s.at < len(s.tokens) {
		s.step()
	}
	return s.selectors, s.groupings
}

// tokenize cuts an expression: comments, strings, ranges in brackets with what is
// in them, words (of which variables may be a part), numbers, operators.
func tokenize(expr string) []string {
	all := regexp.MustCompile(strings.Join([]string{
		`#[^\n]*`,
		`"(?:[^"\\]|\\.)*"`, `'(?:[^'\\]|\\.)*'`, "`[^`]*`",
		`\[[^\]]*\]`,
		`(?:[A-Za-z_:]|\$\w|\$\{[^}]*\})(?:[A-Za-z0-9_:]|\$\w|\$\{[^}]*\})*`,
		`[0-9][0-9A-Za-z_.]*`,
		`=~|!~|!=|==|>=|<=`,
		`[^\s]`,
	}, "|")).FindAllString(expr, -1)
	return slices.DeleteFunc(all, func(token string) bool { return token[0] == '#' })
}

func (s *scanner) next() string {
	if s.at+1 < len(s.tokens) {
		return s.tokens[s.at+1]
	}
	return ""
}

// step takes the token that is next, and what belongs to it.
func (s *scanner) step() {
	token := s.tokens[s.at]
	switch {
	case token == "(":
		s.open, s.called = append(s.open, s.called), ""
		s.filters = append(s.filters, s.filters[len(s.filters)-1])
	case token == ")":
		s.open = s.open[:max(0, len(s.open)-1)]
		s.filters = s.filters[:max(1, len(s.filters)-1)]
	case token == "and" || token == "unless":
		s.filters[len(s.filters)-1] = true
	case token == "or" || token == ",":
		s.filters[len(s.filters)-1] = len(s.filters) > 1 && s.filters[len(s.filters)-2]
	case token == "{":
		s.selector("")
		return
	case isGrouping(token):
		s.grouping(token)
		return
	case isOperator(token) || !isWord(token) || s.at > 0 && s.tokens[s.at-1] == "offset":
	case s.next() == "(" || s.next() == "by" || s.next() == "without":
		s.called = token
	case s.next() == "{":
		s.at++
		s.selector(token)
		return
	default:
		s.found(selector{metric: token})
		return
	}
	s.at++
}

// grouping takes a list of labels, which may be missing after group_left.
func (s *scanner) grouping(word string) {
	g := grouping{word: word}
	if s.next() == "(" {
		for s.at += 2; s.at < len(s.tokens) && s.tokens[s.at] != ")"; s.at++ {
			if s.tokens[s.at] != "," {
				g.labels = append(g.labels, s.tokens[s.at])
			}
		}
	}
	s.at++
	s.groupings = append(s.groupings, g)
}

// selector takes matchers, from their brace on.
func (s *scanner) selector(metric string) {
	found := selector{metric: metric}
	for s.at++; s.at < len(s.tokens) && s.tokens[s.at] != "}"; s.at++ {
		if s.at+2 >= len(s.tokens) || s.tokens[s.at] == "," {
			continue
		}
		m := matcher{label: s.tokens[s.at], op: s.tokens[s.at+1], value: unquoted(s.tokens[s.at+2])}
		if m.label == "__name__" && found.metric == "" {
			found.metric = m.value
		}
		found.matchers = append(found.matchers, m)
		s.at += 2
	}
	s.found(found)
}

// found notes a selector whose last token is the present one, and its window.
func (s *scanner) found(found selector) {
	if window := s.next(); strings.HasPrefix(window, "[") {
		found.window = strings.Trim(window, "[]")
		s.at++
	}
	for _, name := range slices.Backward(s.open) {
		if name != "" {
			found.within = append(found.within, name)
		}
	}
	found.filter = s.filters[len(s.filters)-1]
	s.selectors = append(s.selectors, found)
	s.at++
}

// unquoted is what stands in a string, escapes and all.
func unquoted(token string) string {
	if len(token) < 2 {
		return token
	}
	return token[1 : len(token)-1]
}

func isWord(token string) bool {
	first := token[0]
	return 'a' <= first && first <= 'z' || 'A' <= first && first <= 'Z' || first == '_' || first == ':' || first == '$' && len(token) > 1
}

func isGrouping(token string) bool {
	return slices.Contains([]string{"by", "without", "on", "ignoring", "group_left", "group_right"}, token)
}

func isOperator(token string) bool {
	return slices.Contains([]string{"and", "or", "unless", "bool", "offset", "atan2", "start", "end", "inf", "Inf", "nan", "NaN"}, token)
}

// variablesOf are the names of Grafana's variables in a text, of its own ones too.
// What a regular expression has matched ($1) is none.
func variablesOf(text string) (names []string) {
	for _, found := range regexp.MustCompile(`\$(?:([A-Za-z_]\w*)|\{([A-Za-z_]\w*)[^}]*\})`).FindAllStringSubmatch(text, -1) {
		names = append(names, found[1]+found[2])
	}
	return names
}
