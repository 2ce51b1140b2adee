package prometheus

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestRuleTablesHaveLabels: docs/rules.md names the labels of each rule's
// rows: those of its table's column, "the same" as before, or "…" and more.
func TestRuleTablesHaveLabels(t *testing.T) {
	families := documented(t)
	families.Record(groups(t))
	row := regexp.MustCompile("(?m)^\\| `([a-z_]+:dra_[a-z0-9_:]+)` \\| ([^|]*) \\|")
	label := regexp.MustCompile("[a-z_]+")
	var base, last []string
	for _, match := range row.FindAllStringSubmatch(read(t, root+"/docs/rules.md"), -1) {
		documented := label.FindAllString(regexp.MustCompile(`="[^"]*"`).ReplaceAllString(match[2], ""), -1)
		switch {
		case match[2] == "the same":
			documented = last
		case strings.HasPrefix(match[2], "… and "):
			documented = slices.Concat(base, documented[1:])
		default:
			base = documented
		}
		last = documented
		got := slices.Clone(families[match[1]])
		slices.Sort(got)
		want := slices.Sorted(slices.Values(documented))
		if !slices.Equal(got, want) {
			t.Errorf("%s has the labels %v, docs/rules.md has %v", match[1], got, want)
		}
	}
}
