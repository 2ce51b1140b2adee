package lint

import (
	"regexp"
	"slices"
)

// filters: and and unless take labels from their right side, never values. A number
// by which that is multiplied was meant for the left: a set of seconds / 3600 and
// on (…) … is not one of hours if the division stands at the end.
func filters(b board, say report) {
	for _, p := range b.all() {
		for _, t := range p.Targets {
			if scalesFilter(tokenize(t.Expr)) {
				say(p.Title, "query %s multiplies or divides what stands behind and or unless, of which no value is taken: put parentheses", t.RefID)
			}
		}
	}
}

// operand is what stands between two set operators of one level of parentheses.
type operand struct{ filter, scaled, compared bool }

func (o operand) inVain() bool { return o.filter && o.scaled && !o.compared }

func scalesFilter(tokens []string) bool {
	number := regexp.MustCompile(`^[0-9]`)
	isNumber := func(i int) bool { return i >= 0 && i < len(tokens) && number.MatchString(tokens[i]) }
	level := []operand{{}}
	found := false
	for i, token := range tokens {
		top := &level[len(level)-1]
		switch {
		case token == "(":
			level = append(level, operand{})
		case token == ")":
			found = found || top.inVain()
			level = level[:max(1, len(level)-1)]
		case slices.Contains([]string{"and", "unless", "or", ","}, token):
			found = found || top.inVain()
			*top = operand{filter: token == "and" || token == "unless"}
		case token == "*" || token == "/":
			top.scaled = top.scaled || isNumber(i-1) || isNumber(i+1)
		case slices.Contains([]string{">", "<", ">=", "<=", "==", "!="}, token):
			top.compared = true
		}
	}
	return found || slices.ContainsFunc(level, operand.inVain)
}
