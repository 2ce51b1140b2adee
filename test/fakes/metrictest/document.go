package metrictest

import (
	"bufio"
	"fmt"
	"io"
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
// The same chapters give the same text.
func Document(w io.Writer, chapters []Chapter, column Column) error {
	out := bufio.NewWriter(w)
	for i, chapter := range chapters {
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

func writeTable(out io.Writer, title string, families []*metric.Family, column Column) {
	fmt.Fprintf(out, "\n### %s\n\n", title)
	fmt.Fprintf(out, "| name | type | %s | labels | meaning |\n|---|---|---|---|---|\n", column.Title)
	for _, family := range families {
		fmt.Fprintf(out, "| `%s` | %s | %s | %s | %s |\n",
			family.Name, family.Type, column.Cell(family), quoteAll(family.Labels), strings.ReplaceAll(family.Help, "|", `\|`))
	}
}

func quoteAll(labels []string) string {
	quoted := make([]string, len(labels))
	for i, label := range labels {
		quoted[i] = "`" + label + "`"
	}
	return strings.Join(quoted, ", ")
}
