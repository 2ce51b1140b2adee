package prometheus

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"

	"github.com/dra-exporter/dra-exporter/test/suites/prometheus/promlabels"
)

const alertsFile = root + "/alerts/alerts.yaml"

// TestAlertQueriesAreDocumented: each family and each label in an alert's
// expression or annotations is documented or recorded.
func TestAlertQueriesAreDocumented(t *testing.T) {
	checker := promlabels.Checker{Families: recorded(t)}
	label := regexp.MustCompile(`\$labels\.(\w+)`)
	for _, rule := range alerts(t) {
		labels, problems := checker.Expr(rule.Expr)
		problems = append(problems, promlabels.Mixed(rule.Expr)...)
		for name, text := range rule.Annotations {
			for _, found := range label.FindAllStringSubmatch(text, -1) {
				if !slices.Contains(labels, found[1]) {
					problems = append(problems, name+" says "+found[0]+", which no row has")
				}
			}
			problems = append(problems, checkTemplate(t, checker, text)...)
		}
		for _, problem := range problems {
			t.Errorf("%s: %s", rule.Alert, problem)
		}
	}
}

// checkTemplate returns the problems of the queries of an annotation, and of
// the labels that it uses of their results.
func checkTemplate(t *testing.T, checker promlabels.Checker, text string) (problems []string) {
	var results []string
	for _, query := range queriesOf(t, text) {
		labels, wrong := checker.Expr(query)
		results, problems = append(results, labels...), append(problems, wrong...)
		if !strings.Contains(query, `cluster="x"`) {
			problems = append(problems, "it asks all clusters: "+query)
		}
	}
	usedLabels := regexp.MustCompile(`\.Labels\.(\w+)|(?:label|sortByLabel) "(\w+)"`)
	for _, match := range usedLabels.FindAllStringSubmatch(text, -1) {
		if name := match[1] + match[2]; !slices.Contains(results, name) {
			problems = append(problems, "no query has the label "+name)
		}
	}
	return problems
}

// queriesOf returns the queries of a template, with x for each inserted value.
func queriesOf(t *testing.T, text string) (queries []string) {
	t.Helper()
	literal := regexp.MustCompile("query \\(printf (\"(?:[^\"\\\\]|\\\\.)*\"|`[^`]*`)")
	verb := regexp.MustCompile(`%(\[\d\])?q`)
	for _, match := range literal.FindAllStringSubmatch(text, -1) {
		format, err := strconv.Unquote(match[1])
		if err != nil {
			t.Fatal(err)
		}
		queries = append(queries, verb.ReplaceAllString(format, `"x"`))
	}
	if calls := strings.Count(text, "query ("); calls != len(queries) {
		t.Errorf("%d of %d queries are found in %s", len(queries), calls, text)
	}
	return queries
}

// TestOnlyExporterDownFiresOnAbsence: absent data is unknown and not a fault.
func TestOnlyExporterDownFiresOnAbsence(t *testing.T) {
	for _, rule := range alerts(t) {
		expr, err := parser.NewParser(parser.Options{}).ParseExpr(rule.Expr)
		if err != nil {
			t.Fatal(err)
		}
		parser.Inspect(expr, func(node parser.Node, _ []parser.Node) error {
			call, is := node.(*parser.Call)
			if is && slices.Contains([]string{"absent", "absent_over_time", "vector"}, call.Func.Name) && rule.Alert != "DRAExporterDown" {
				t.Errorf("%s fires on absence: %s", rule.Alert, call)
			}
			return nil
		})
	}
}

// TestAlertsTolerateAFailedScrape: an alert with a duration evaluates more
// than one scrape, and one without keeps firing for a while, or has a range of
// its own.
func TestAlertsTolerateAFailedScrape(t *testing.T) {
	window := regexp.MustCompile(`\[(5m|10m|15m|30m|1h)\]`)
	for _, rule := range alerts(t) {
		if rule.KeepFiringFor == 0 && !window.MatchString(rule.Expr) && !strings.HasPrefix(rule.Expr, "avg by (cluster) (up{") {
			t.Errorf("%s ends with a scrape that fails:\n%s", rule.Alert, rule.Expr)
		}
	}
}

// TestFatalXIDs: the alert has the XIDs that docs/health.md calls critical,
// and their requirements.
func TestFatalXIDs(t *testing.T) {
	row := regexp.MustCompile(`(?m)^\| (\d+) \| (\w+) \| critical \|`)
	var fatal, service []string
	for _, match := range row.FindAllStringSubmatch(read(t, root+"/docs/health.md"), -1) {
		fatal = append(fatal, match[1])
		if match[2] == "service" {
			service = append(service, match[1])
		}
	}
	rule := named(t, "DRADeviceXIDFatal")
	if want := `xid=~"` + strings.Join(fatal, "|") + `"`; len(fatal) < 20 || !strings.Contains(rule.Expr, want) {
		t.Errorf("docs/health.md has %s, and the alert asks for\n%s", want, rule.Expr)
	}
	if want := `match "^(` + strings.Join(service, "|") + `)$"`; !strings.Contains(rule.Annotations["summary"], want) {
		t.Errorf("docs/health.md has %s for service, and the alert says\n%s", want, rule.Annotations["summary"])
	}
}

// TestEachReasonHasASummary: each reason of docs/pending.md has a text in the
// alert's summary.
func TestEachReasonHasASummary(t *testing.T) {
	row := regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\|[^|\n]*\\|[^|\n]*\\|[^|\n]*\\|$")
	reasons := row.FindAllStringSubmatch(read(t, root+"/docs/pending.md"), -1)
	if len(reasons) < 15 {
		t.Fatalf("docs/pending.md has %d reasons", len(reasons))
	}
	summary := named(t, "DRAClaimPendingTooLong").Annotations["summary"]
	for _, match := range reasons {
		if others := []string{"reason", "unknown", "scheduling_gated", "queue_quota"}; !strings.Contains(summary, `eq . "`+match[1]+`"`) && !slices.Contains(others, match[1]) {
			t.Errorf("the summary has no words for %s", match[1])
		}
	}
}

// alerts returns the alerts of the shipped file.
func alerts(t *testing.T) (all []rulefmt.Rule) {
	t.Helper()
	groups, err := promlabels.Rules(alertsFile)
	if err != nil {
		t.Fatal(err)
	}
	for _, group := range groups {
		all = append(all, group.Rules...)
	}
	return all
}

func named(t *testing.T, name string) rulefmt.Rule {
	t.Helper()
	all := alerts(t)
	i := slices.IndexFunc(all, func(r rulefmt.Rule) bool { return r.Alert == name })
	if i < 0 {
		t.Fatalf("there is no %s", name)
	}
	return all[i]
}

// recorded returns the documented families and those that rules record.
func recorded(t *testing.T) promlabels.Families {
	t.Helper()
	families := documented(t)
	families.Record(groups(t))
	return families
}
