package prometheus

import (
	"fmt"
	"math"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"

	"github.com/dra-exporter/dra-exporter/test/suites/prometheus/promlabels"
)

// TestRunbooksMatchTheirAlerts: each runbook has the severity, the duration
// and the thresholds of its rule.
func TestRunbooksMatchTheirAlerts(t *testing.T) {
	pages := runbooks(t)
	for name, rules := range alertsByName(t) {
		meaning := section(pages[name], "## Meaning")
		for _, rule := range rules {
			if severity := "**" + rule.Labels["severity"]; !strings.Contains(meaning, severity) {
				t.Errorf("%s does not say that it is %s**", name, severity)
			}
			numbers := thresholds(t, rule.Expr)
			if rule.For > 0 {
				numbers = append(numbers, time.Duration(rule.For).Seconds())
			}
			for _, number := range numbers {
				if words := spellings(number); !slices.ContainsFunc(words, func(w string) bool { return containsPhrase(meaning, w) }) {
					t.Errorf("%s says nothing of %v (%s), which is in its rule:\n%s", name, number, strings.Join(words, ", "), meaning)
				}
			}
		}
	}
}

// thresholds returns the numbers with which an expression compares, except for
// 0 and 1, which are booleans.
func thresholds(t *testing.T, text string) (numbers []float64) {
	t.Helper()
	expr, err := parser.NewParser(parser.Options{}).ParseExpr(text)
	if err != nil {
		t.Fatal(err)
	}
	parser.Inspect(expr, func(node parser.Node, _ []parser.Node) error {
		e, is := node.(*parser.BinaryExpr)
		if !is || !e.Op.IsComparisonOperator() {
			return nil
		}
		for _, side := range []parser.Expr{e.LHS, e.RHS} {
			if number, is := side.(*parser.NumberLiteral); is && number.Val != 0 && number.Val != 1 {
				numbers = append(numbers, number.Val)
			}
		}
		return nil
	})
	return numbers
}

// spellings returns the ways in which a document writes a number of seconds, a
// share, or a count.
func spellings(number float64) []string {
	words := []string{strconv.FormatFloat(number, 'f', -1, 64)}
	if number > 0 && number < 1 {
		words = append(words, strconv.FormatFloat(math.Round(number*1000)/10, 'f', -1, 64)+" %")
	}
	if number == 0.5 {
		words = append(words, "half")
	}
	for unit, seconds := range map[string]float64{"min": 60, "h": 3600, "d": 86400} {
		if number >= seconds && math.Mod(number, seconds) == 0 {
			words = append(words, fmt.Sprintf("%v %s", number/seconds, unit))
		}
	}
	return words
}

// containsPhrase reports whether the text contains the words, not as a part of
// a longer number.
func containsPhrase(text, words string) bool {
	return regexp.MustCompile(`(^|[^0-9.])` + regexp.QuoteMeta(words) + `($|[^0-9.a-z]|\.($|[^0-9]))`).MatchString(text)
}

// TestRunbooksCoverClosedSets: where other documents, or the code, have a
// closed set, the runbook that lists its members has each.
func TestRunbooksCoverClosedSets(t *testing.T) {
	pages := runbooks(t)
	for _, set := range []struct {
		runbook, file string
		member        string // with one group, or with several of which one is there
		least         int
		without       []string
	}{
		{"DRAClaimPendingTooLong", "docs/pending.md", "(?m)^\\| `([a-z_]+)` \\|[^|\n]*\\|[^|\n]*\\|[^|\n]*\\|$", 15, []string{"reason", "scheduling_gated", "queue_quota"}},
		{"DRADeviceUnhealthy", "docs/health.md", "(?m)^\\| `?([a-z_]+)`? \\| (?:critical|warning)", 16, nil},
		{"DRADeviceUnhealthy", "collector/device/nvml/rows.go", `"(gpu_reset)", "(node_reboot)", "(drain_p2p)", "(drain_and_reset)", "(recover_imex_domain)"`, 5, nil},
		{"DRAExporterSourceDown", "collector/source/status.go", `Reason = "([a-z_]+)"`, 12, nil},
	} {
		var members []string
		for _, match := range regexp.MustCompile(set.member).FindAllStringSubmatch(read(t, filepath.Join("../../..", set.file)), -1) {
			members = append(members, match[1:]...)
		}
		if len(members) < set.least {
			t.Errorf("%s has only %q", set.file, members)
		}
		for _, member := range members {
			if there := strings.Contains(pages[set.runbook], "`"+member+"`"); !there && !slices.Contains(set.without, member) {
				t.Errorf("%s does not say what to do about %s of %s", set.runbook, member, set.file)
			}
		}
	}
}

// TestRunbookHasEveryFatalXid: the runbook has the XIDs that docs/health.md
// calls critical, and no others, each below its remedy.
func TestRunbookHasEveryFatalXid(t *testing.T) {
	want := map[string]string{}
	for _, match := range regexp.MustCompile(`(?m)^\| (\d+) \| (\w+) \| critical \|`).FindAllStringSubmatch(read(t, "../../../docs/health.md"), -1) {
		want[match[1]] = match[2]
	}
	if len(want) < 20 {
		t.Fatalf("docs/health.md has %d of them", len(want))
	}
	got := map[string]string{}
	for _, row := range regexp.MustCompile(`(?m)^ *\| (reset|service)[^|]*\|([^|]*)\|`).FindAllStringSubmatch(runbooks(t)["DRADeviceXIDFatal"], -1) {
		for _, code := range regexp.MustCompile(`\d+`).FindAllString(row[2], -1) {
			got[code] = row[1]
		}
	}
	for code, class := range want {
		if got[code] != class {
			t.Errorf("Xid %s is %q in the runbook, and %q in docs/health.md", code, got[code], class)
		}
	}
	for code := range got {
		if want[code] == "" {
			t.Errorf("Xid %s is not critical", code)
		}
	}
}

// alertsByName returns the rules of alerts.yaml. Several may have one name.
func alertsByName(t *testing.T) map[string][]rulefmt.Rule {
	t.Helper()
	groups, err := promlabels.Rules("../../../alerts/alerts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	found := map[string][]rulefmt.Rule{}
	for _, group := range groups {
		for _, rule := range group.Rules {
			if rule.Alert != "" {
				found[rule.Alert] = append(found[rule.Alert], rule)
			}
		}
	}
	return found
}
