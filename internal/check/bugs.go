package check

import (
	"fmt"
	"strings"

	"github.com/dra-exporter/dra-exporter/internal/words"

	"github.com/dra-exporter/dra-exporter/collector/upstream"
)

// bugs reports the signs of known bugs: one finding for each bug, with some of its signs.
func (c ClusterFacts) bugs() []Finding {
	bugs := area{"known bugs", "docs/compatibility.md#known-bugs"}
	var findings []Finding
	for first := 0; first < len(c.Bugs); {
		end := first
		for end < len(c.Bugs) && c.Bugs[end].Bug.ID == c.Bugs[first].Bug.ID {
			end++
		}
		findings = append(findings, bugFinding(bugs, c.Bugs[first:end]))
		first = end
	}
	switch {
	case len(c.BugsUnread) > 0:
		findings = append(findings, bugs.skipped("signs", "not all signs can be seen: %s not read", strings.Join(c.BugsUnread, ", ")))
	case len(findings) == 0:
		findings = append(findings, bugs.ok("signs", "of %d known bugs there is none", len(upstream.Bugs())))
	}
	return findings
}

// bugFinding describes the signs of one bug. Those of kubelets may differ in their
// version, so that the cause is that of the first sign.
func bugFinding(bugs area, signs []upstream.Finding) Finding {
	const limit = 3
	texts := words.Names(signs[:min(len(signs), limit)], func(sign upstream.Finding) string { return sign.Text })
	text := strings.Join(texts, "; ")
	if more := len(signs) - limit; more > 0 {
		text += fmt.Sprintf("; and %d more", more)
	}
	first := signs[0]
	finding := bugs.warning(first.Bug.Remedy, first.Bug.Name(), "%s. %s", text, first.Explanation())
	finding.Page = first.Bug.Link()
	return finding
}
