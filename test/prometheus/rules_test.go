// Package prometheus holds the recording rules to what the exporter documents,
// with Prometheus' own parser.
package prometheus

import (
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
)

const rulesFile = "../../alerts/recording.yaml"

// TestRulesUseWhatIsDocumented: each family and each label that a rule asks for
// is in docs/metrics.md, or made by a rule before it.
func TestRulesUseWhatIsDocumented(t *testing.T) {
	known := documented(t)
	for _, rule := range rules(t) {
		expr, err := parser.NewParser(parser.Options{}).ParseExpr(rule.Expr)
		if err != nil {
			t.Fatalf("%s: %v", rule.Record, err)
		}
		checker := labelChecker{families: known}
		labels := checker.of(expr)
		for _, problem := range checker.problems {
			t.Errorf("%s: %s", rule.Record, problem)
		}
		for name := range rule.Labels {
			labels = append(labels, name)
		}
		known[rule.Record] = labels
	}
}

// TestRuleNames: level:metric:operation, and the labels that a level names are
// there.
func TestRuleNames(t *testing.T) {
	name := regexp.MustCompile(`^[a-z_]+:dra_[a-z_]+:[a-z_]+(5m|10m)?$`)
	for _, rule := range rules(t) {
		if !name.MatchString(rule.Record) {
			t.Errorf("%s is not level:metric:operation", rule.Record)
		}
	}
}

// TestCounterRulesAreOne: all counters are asked in the same way.
func TestCounterRulesAreOne(t *testing.T) {
	counter := regexp.MustCompile(`dra_[a-z_]+_total`)
	by := regexp.MustCompile(`^max by \([a-z, ]+\)`)
	first, count := "", 0
	for _, rule := range rules(t) {
		name := counter.FindString(rule.Expr)
		if !strings.HasSuffix(rule.Record, ":increase5m") || name == "" {
			continue
		}
		if want := strings.TrimSuffix(name, "_total"); strings.Split(rule.Record, ":")[1] != want {
			t.Errorf("%s is about %s", rule.Record, name)
		}
		text := by.ReplaceAllString(strings.ReplaceAll(rule.Expr, name, "x"), "")
		if count++; count == 1 {
			first = text
		} else if text != first {
			t.Errorf("%s differs from the others:\n%s", rule.Record, rule.Expr)
		}
	}
	if count < 11 {
		t.Errorf("there are %d of them", count)
	}
}

// TestEachRuleIsTestedAndDocumented: by promtool, and in docs/rules.md.
func TestEachRuleIsTestedAndDocumented(t *testing.T) {
	files, err := filepath.Glob("../../alerts/tests/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var tests strings.Builder
	for _, file := range files {
		tests.WriteString(read(t, file))
	}
	document := read(t, "../../docs/rules.md")
	for _, rule := range rules(t) {
		if !strings.Contains(tests.String(), rule.Record) && !strings.HasSuffix(rule.Record, ":count10m") && !isHelper(t, rule.Record) {
			t.Errorf("nothing in alerts/tests asks for %s", rule.Record)
		}
		if !strings.Contains(document, "`"+rule.Record+"`") {
			t.Errorf("docs/rules.md does not describe %s", rule.Record)
		}
	}
}

// isHelper: other rules are made from it, so that their tests are its tests.
func isHelper(t *testing.T, record string) bool {
	return slices.ContainsFunc(rules(t), func(r rulefmt.Rule) bool { return strings.Contains(r.Expr, record) })
}

// rules are those of the shipped file, in the order in which they are evaluated.
func rules(t *testing.T) (all []rulefmt.Rule) {
	t.Helper()
	groups, problems := rulefmt.ParseFile(rulesFile, false, model.UTF8Validation, parser.NewParser(parser.Options{}), slog.New(slog.DiscardHandler))
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	for _, group := range groups.Groups {
		all = append(all, group.Rules...)
	}
	return all
}

// documented are the labels of each family of docs/metrics.md. Every family has
// those of the target too.
func documented(t *testing.T) map[string][]string {
	t.Helper()
	row := regexp.MustCompile("(?m)^\\| `(dra_[a-z_]+)` \\|[^|]*\\|[^|]*\\|([^|]*)\\|")
	label := regexp.MustCompile("`([a-z_]+)`")
	families := map[string][]string{}
	for _, match := range row.FindAllStringSubmatch(read(t, "../../docs/metrics.md"), -1) {
		labels := []string{"job", "instance"}
		for _, name := range label.FindAllStringSubmatch(match[2], -1) {
			labels = append(labels, name[1])
		}
		families[match[1]] = labels
	}
	if len(families) < 50 {
		t.Fatalf("docs/metrics.md has %d families", len(families))
	}
	return families
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
