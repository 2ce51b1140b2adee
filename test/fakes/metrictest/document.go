package metrictest

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/dra-exporter/dra-exporter/collector/metric"
)

// Chapter is the part of a document that has the families of one role.
type Chapter struct {
	Title    string
	Families []*metric.Family
	Sections []Section
}

// Section is one table of a chapter: the families whose names begin with one
// of the prefixes and that fitted no section before. Those that fit none come
// last, under "Others".
type Section struct {
	Title    string
	Prefixes []string
}

// Column is a column of the tables.
type Column struct {
	Title string
	Cell  func(*metric.Family) string
}

// Document writes Markdown: a table for each section of each chapter, its
// families in the order in which they are given, with a column of the caller's.
// The same chapters give the same text. A family's type is not in the tables,
// because its name says it: one whose name says another type is an error.
func Document(w io.Writer, chapters []Chapter, column Column) error {
	out := bufio.NewWriter(w)
	for i, chapter := range chapters {
		for _, family := range chapter.Families {
			if said := typeByName(family.Name); said != family.Type {
				return fmt.Errorf("%s is a %s, and its name says %s", family.Name, family.Type, said)
			}
		}
		if i > 0 {
			fmt.Fprintln(out)
		}
		fmt.Fprintf(out, "## %s\n", chapter.Title)
		sections := append(chapter.Sections[:len(chapter.Sections):len(chapter.Sections)], Section{"Others", []string{""}})
		for i, group := range chapter.grouped(sections) {
			if len(group) > 0 {
				writeTable(out, sections[i].Title, group, column)
			}
		}
	}
	return out.Flush()
}

// typeByName returns the type of the families that have such a name.
func typeByName(name string) metric.Type {
	switch {
	case strings.HasSuffix(name, "_total"):
		return metric.Counter
	case strings.HasSuffix(name, "_duration_seconds"):
		return metric.Histogram
	}
	return metric.Gauge
}

func (c Chapter) grouped(sections []Section) [][]*metric.Family {
	groups := make([][]*metric.Family, len(sections))
	for _, family := range c.Families {
		for i, section := range sections {
			if section.has(family) {
				groups[i] = append(groups[i], family)
				break
			}
		}
	}
	return groups
}

func (s Section) has(family *metric.Family) bool {
	for _, prefix := range s.Prefixes {
		if strings.HasPrefix(family.Name, prefix) {
			return true
		}
	}
	return false
}

// writeTable writes a section. The labels of nearly all families are in a
// sentence above the table, whose rows have the others. A family without one of
// them has all of its own in its row, after the word only.
func writeTable(out io.Writer, title string, families []*metric.Family, column Column) {
	fmt.Fprintf(out, "\n### %s\n\n", title)
	common := commonLabels(families)
	hasCommon := func(f *metric.Family) bool { return len(without(common, f.Labels)) == 0 }
	switch {
	case len(common) == 0:
	case slices.ContainsFunc(families, func(f *metric.Family) bool { return !hasCommon(f) }):
		fmt.Fprintf(out, "All but those with *only* have %s.\n\n", quoteAll(common))
	default:
		fmt.Fprintf(out, "All have %s.\n\n", quoteAll(common))
	}
	fmt.Fprintf(out, "| name | %s | labels | meaning |\n|---|---|---|---|\n", column.Title)
	for _, family := range families {
		labels := "*only* " + quoteAll(family.Labels)
		if hasCommon(family) {
			labels = quoteAll(without(family.Labels, common))
		}
		fmt.Fprintf(out, "| `%s` | %s | %s | %s |\n", family.Name, column.Cell(family), labels, strings.ReplaceAll(family.Help, "|", `\|`))
	}
}

// commonLabels returns the labels that at least nine tenths of the families
// have. Of one or two families there are none: a sentence would be longer.
func commonLabels(families []*metric.Family) []string {
	if len(families) < 3 {
		return nil
	}
	var labels []string
	number := map[string]int{}
	for _, family := range families {
		for _, label := range family.Labels {
			if number[label]++; number[label] == 1 {
				labels = append(labels, label)
			}
		}
	}
	return slices.DeleteFunc(labels, func(label string) bool { return 10*number[label] < 9*len(families) })
}

// without returns the labels that are not among others.
func without(labels, others []string) []string {
	return slices.DeleteFunc(slices.Clone(labels), func(label string) bool { return slices.Contains(others, label) })
}

func quoteAll(labels []string) string {
	quoted := make([]string, len(labels))
	for i, label := range labels {
		quoted[i] = "`" + label + "`"
	}
	return strings.Join(quoted, ", ")
}
