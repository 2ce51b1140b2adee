// Package exported rewrites dashboards and rules for Prometheus servers that
// scrape without honorLabels. There the labels namespace, pod and container of a
// row have to make way for those of the scraped pod, and are called
// exported_namespace, exported_pod and exported_container.
package exported

import (
	"regexp"
	"slices"
	"strings"
)

// labels are those that a scraped pod has too.
func labels() []string { return []string{"namespace", "pod", "container"} }

// Expr asks for the exported labels in the place of the plain ones: as names of
// labels, also where label_replace names them, never as values.
func Expr(expr string) string {
	// A value with its operator, any other string, a name, a variable.
	token := regexp.MustCompile(`(?:=~?|!=|!~)\s*(?:"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')|"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|[a-zA-Z_:][a-zA-Z0-9_:]*|\$\w+|\$\{[^}]*\}`)
	return token.ReplaceAllStringFunc(expr, func(found string) string {
		name := strings.Trim(found, `"'`)
		if !slices.Contains(labels(), name) {
			return found
		}
		return strings.Replace(found, name, "exported_"+name, 1)
	})
}

// Answer is an expression whose answer has the plain labels again, so that
// legends, tables, links and alerts need not change.
func Answer(expr string) string {
	rewritten := Expr(expr)
	for _, label := range labels() {
		if !regexp.MustCompile(`\bexported_` + label + `\b`).MatchString(rewritten) {
			continue
		}
		exported := "exported_" + label
		rewritten = `label_replace(label_replace(` + rewritten +
			`, "` + label + `", "$1", "` + exported + `", "(.+)"), "` + exported + `", "", "` + exported + `", ".*")`
	}
	return rewritten
}

// annotation rewrites what the template of an alert's text asks Prometheus for.
func annotation(text string) string {
	for _, label := range labels() {
		text = regexp.MustCompile(`\b`+label+`(=~?|!=|!~)(%q|\\?"|'|`+"`"+`)`).ReplaceAllString(text, "exported_"+label+"$1$2")
		text = strings.ReplaceAll(text, `label "`+label+`"`, `label "exported_`+label+`"`)
	}
	return text
}
