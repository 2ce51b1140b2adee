package promlabels

import (
	"strings"
	"testing"

	"github.com/prometheus/prometheus/model/rulefmt"
)

// TestTooNew: what an old Prometheus would refuse is named, in any part of a
// rule.
func TestTooNew(t *testing.T) {
	const old = `{{ with query "x" }}{{ range $i, $one := . | sortByLabel "a" }}{{ if $i }},{{ else if eq $i 2 }}-{{ end }} {{ .Value }}{{ else }}none{{ end }}{{ else }}{{ with $labels.b }}{{ . }}{{ end }}{{ end }}{{- /* else with */ -}}`
	for _, test := range []struct{ expr, text, want string }{
		{"rate(a[5m])", old, ""},
		{"up", `{{ with $labels.a }}a{{ else with $labels.b }}b{{ end }}`, "else with"},
		{"up", "{{ with $labels.a }}a{{- else\twith $labels.b }}b{{ end }}", "else with"},
		{"up", `{{ range query "x" }}{{ if .Value }}{{ break }}{{ end }}{{ end }}`, "break"},
		{"up", `{{ with query "x" }}{{ else }}{{ range . }}{{ continue }}{{ end }}{{ end }}`, "continue"},
		{"up", `{{ range 3 }}x{{ end }}`, "range over a number"},
		{"up", `{{ range $i := query "x" | len }}x{{ end }}`, "range over a number"},
		{"up", `{{ range $value }}x{{ end }}`, "range over a number"},
		{"up", `{{ define "a" }}{{ range 3 }}x{{ end }}{{ end }}`, "range over a number"},
		{"up", `{{ now }}`, `"now" not defined`},
		{"up", `{{ $value | toDuration }}`, `"toDuration" not defined`},
		{"up", `{{ $nothing }}`, "undefined variable"},
		{"max(histogram_avg(a))", "", "no function histogram_avg"},
	} {
		for _, rule := range []rulefmt.Rule{
			{Expr: test.expr, Annotations: map[string]string{"summary": "fine", "description": test.text}},
			{Expr: test.expr, Labels: map[string]string{"severity": test.text}},
		} {
			got := strings.Join(TooNew(rule), "\n")
			if (test.want == "") != (got == "") || !strings.Contains(got, test.want) {
				t.Errorf("of %s, %s: %q, want %q", test.expr, test.text, got, test.want)
			}
		}
	}
}
