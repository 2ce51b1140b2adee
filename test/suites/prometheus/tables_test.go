package prometheus

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestRuleTablesHaveLabels: docs/rules.md names the labels of each rule's
// rows: those of its table's column, nothing if they are those of the row above, or
// "…" and more than the last full list.
func TestRuleTablesHaveLabels(t *testing.T) {
	families := documented(t)
	families.Record(groups(t))
	row := regexp.MustCompile("(?m)^\\| `([a-z_]+:dra_[a-z0-9_:]+)` \\|([^|]*)\\|")
	label := regexp.MustCompile("[a-z_]+")
	var base, last []string
	for _, match := range row.FindAllStringSubmatch(read(t, root+"/docs/rules.md"), -1) {
		cell := strings.TrimSpace(match[2])
		documented := label.FindAllString(regexp.MustCompile(`="[^"]*"`).ReplaceAllString(cell, ""), -1)
		switch {
		case cell == "":
			documented = last
		case strings.HasPrefix(cell, "… and "):
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
