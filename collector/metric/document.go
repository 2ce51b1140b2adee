package metric

import (
	"bufio"
	"fmt"
	"io"
	"strings"
)

// section is one table of the document: the families whose names begin with
// the prefix, and did not fit a section before.
type section struct {
	prefix, title string
}

func sections() []section {
	return []section{
		{"dra_device_", "What the hardware does"},
		{"dra_claim_", "What a claim gets of a device"},
		{"dra_namespace_", "Totals that outlive claims"},
		{"dra_constraint_", "Constraints of device classes"},
		{"dra_exporter_", "About the exporter itself"},
		{"", "Others"},
	}
}

// Document writes a Markdown table of the families for each prefix, in the
// order in which they are given: the same families give the same text.
func Document(w io.Writer, families []*Family) error {
	out := bufio.NewWriter(w)
	sections := sections()
	grouped := make([][]*Family, len(sections))
	for _, family := range families {
		for i, section := range sections {
			if strings.HasPrefix(family.Name, section.prefix) {
				grouped[i] = append(grouped[i], family)
				break
			}
		}
	}
	separator := ""
	for i, group := range grouped {
		if len(group) == 0 {
			continue
		}
		fmt.Fprintf(out, "%s## %s\n\n", separator, sections[i].title)
		fmt.Fprint(out, "| name | type | unit | labels | meaning |\n|---|---|---|---|---|\n")
		for _, family := range group {
			fmt.Fprintf(out, "| `%s` | %s | %s | %s | %s |\n",
				family.Name, family.Type, family.Unit, quoteAll(family.Labels), strings.ReplaceAll(family.Help, "|", `\|`))
		}
		separator = "\n"
	}
	return out.Flush()
}

func quoteAll(labels []string) string {
	quoted := make([]string, len(labels))
	for i, label := range labels {
		quoted[i] = "`" + label + "`"
	}
	return strings.Join(quoted, ", ")
}
