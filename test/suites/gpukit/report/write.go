package report

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/dra-exporter/dra-exporter/test/suites/gpukit/compare"
	"github.com/dra-exporter/dra-exporter/test/suites/gpukit/cost"
)

// The names of the files.
const (
	MarkdownFile = "report.md"
	JSONFile     = "report.json"
)

// Summary counts results by their status.
type Summary struct {
	Passed      int `json:"passed"`
	Failed      int `json:"failed"`
	NotReported int `json:"not_reported"`
}

// Summary counts the results of all sections. A status that is not known counts
// as failed.
func (r Report) Summary() Summary {
	var sum Summary
	for _, section := range r.Sections {
		for _, result := range section.Results {
			switch result.Status {
			case compare.Passed:
				sum.Passed++
			case compare.NotReported:
				sum.NotReported++
			default:
				sum.Failed++
			}
		}
	}
	return sum
}

// Write writes both files into a folder, which must exist.
func Write(folder string, r Report) error {
	for _, file := range []struct {
		name  string
		write func(io.Writer, Report) error
	}{
		{MarkdownFile, Markdown},
		{JSONFile, JSON},
	} {
		var text strings.Builder
		if err := file.write(&text, r); err != nil {
			return fmt.Errorf("write %s: %w", file.name, err)
		}
		if err := os.WriteFile(filepath.Join(folder, file.name), []byte(text.String()), 0o644); err != nil {
			return fmt.Errorf("write the report: %w", err)
		}
	}
	return nil
}

// JSON writes the report as one indented JSON object. Lists are never null.
func JSON(to io.Writer, r Report) error {
	sections := make([]Section, 0, len(r.Sections))
	for _, s := range r.Sections {
		s.Results = append([]compare.Result{}, s.Results...)
		sections = append(sections, s)
	}
	r.Sections = sections
	r.Date = r.Date.UTC()
	r.Devices = append([]string{}, r.Devices...)
	if r.Cost != nil {
		c := *r.Cost
		c.Phases, c.Calls, c.Reads = append([]Usage{}, c.Phases...), append([]cost.Calls{}, c.Calls...), append([]cost.Reads{}, c.Reads...)
		r.Cost = &c
	}
	encoder := json.NewEncoder(to)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	return encoder.Encode(struct {
		Version int     `json:"version"`
		Summary Summary `json:"summary"`
		Report
	}{Version, r.Summary(), r})
}

// Markdown writes the report as one page. In each table, failed rows come first,
// and those with nothing to compare last.
func Markdown(to io.Writer, r Report) error {
	var page strings.Builder
	sum := r.Summary()
	outcome := "Passed"
	if sum.Failed > 0 || sum.Passed == 0 {
		outcome = "Failed"
	}
	fmt.Fprintf(&page, "# GPU report: %s\n\n%d passed, %d failed, %d not reported.\n", outcome, sum.Passed, sum.Failed, sum.NotReported)
	if r.Imitated != "" {
		fmt.Fprintf(&page, "\n**Not from real hardware: %s.**\n", escape(strings.TrimSuffix(r.Imitated, ".")))
	}
	page.WriteString("\n| | |\n|---|---|\n")
	for _, line := range [][2]string{
		{"Machine", r.Machine}, {"Devices", strings.Join(r.Devices, ", ")}, {"Driver", r.DriverVersion},
		{"Agent", r.AgentVersion}, {"Date", r.Date.UTC().Format(time.RFC3339)},
	} {
		fmt.Fprintf(&page, "| %s | %s |\n", line[0], escape(line[1]))
	}
	for _, section := range r.Sections {
		writeSection(&page, section)
	}
	if r.Cost != nil {
		writeCost(&page, *r.Cost)
	}
	_, err := io.WriteString(to, page.String())
	return err
}

func writeSection(page *strings.Builder, section Section) {
	fmt.Fprintf(page, "\n## %s\n", escape(section.Title))
	if section.Text != "" {
		fmt.Fprintf(page, "\n%s\n", escape(section.Text))
	}
	if len(section.Results) == 0 {
		page.WriteString("\nNo results.\n")
		return
	}
	page.WriteString("\n| status | row | device | agent | other | against | detail |\n|---|---|---|---|---|---|---|\n")
	results := slices.Clone(section.Results)
	slices.SortStableFunc(results, func(a, b compare.Result) int { return rank(a.Status) - rank(b.Status) })
	for _, r := range results {
		status := string(r.Status)
		if rank(r.Status) == 0 {
			status = "**" + escape(status) + "**"
		} else {
			status = strings.ReplaceAll(status, "_", " ")
		}
		fmt.Fprintf(page, "| %s | %s | %s | %s | %s | %s | %s |\n",
			status, escape(r.Row), escape(r.Device), escape(r.Agent), escape(r.Other), escape(r.Against), escape(r.Detail))
	}
}

// writeCost writes durations in milliseconds.
func writeCost(page *strings.Builder, c Cost) {
	const milliseconds = 1e3
	page.WriteString("\n## Cost of the agent\n")
	if len(c.Phases) > 0 {
		page.WriteString("\nThe agent reads each second.\n\n| phase | seconds | of one processor | resident memory |\n|---|---|---|---|\n")
	}
	for _, u := range c.Phases {
		fmt.Fprintf(page, "| %s | %.0f | %.2f %% | %.1f MiB |\n", escape(u.Phase), u.Seconds, 100*u.Processor, u.Memory/(1<<20))
	}
	if c.Problem != "" {
		fmt.Fprintf(page, "\nNo durations of calls: %s\n", escape(c.Problem))
	}
	if len(c.Reads) > 0 {
		page.WriteString("\nReads of a GPU with its MIG devices, from the first call until the last has returned.\n\n" +
			"| device | tier | reads | calls in a read | p50 ms | p99 ms | longest ms |\n|---|---|---|---|---|---|---|\n")
	}
	for _, r := range c.Reads {
		fmt.Fprintf(page, "| %s | %s | %d | %.1f | %.3f | %.3f | %.3f |\n", escape(r.Device), escape(string(r.Tier)), r.Count, r.Calls,
			milliseconds*r.P50, milliseconds*r.P99, milliseconds*r.Most)
	}
	if len(c.Calls) > 0 {
		page.WriteString("\nCalls of the management library, without waits for events.\n\n| function | calls | p50 ms | p99 ms | longest ms |\n|---|---|---|---|---|\n")
	}
	for _, f := range c.Calls {
		fmt.Fprintf(page, "| %s | %d | %.3f | %.3f | %.3f |\n", escape(f.Function), f.Count, milliseconds*f.P50, milliseconds*f.P99, milliseconds*f.Most)
	}
}

// rank orders statuses: failed and unknown ones first.
func rank(s compare.Status) int {
	switch s {
	case compare.Passed:
		return 1
	case compare.NotReported:
		return 2
	default:
		return 0
	}
}

// longest is how many characters of a text a table has.
const longest = 300

// escape makes a text one line of a table without any markup: names come from
// drivers and clusters.
func escape(text string) string {
	text = strings.Join(strings.Fields(strings.ToValidUTF8(text, "\uFFFD")), " ")
	if runes := []rune(text); len(runes) > longest {
		text = string(runes[:longest]) + "…"
	}
	var safe strings.Builder
	for _, r := range text {
		switch {
		case r < ' ' || r == 0x7f:
			safe.WriteRune('\uFFFD')
		case r == '&':
			safe.WriteString("&amp;")
		case r == '<':
			safe.WriteString("&lt;")
		case r == '>':
			safe.WriteString("&gt;")
		case strings.ContainsRune("\\`*_{}[]#!|~$@", r):
			safe.WriteRune('\\')
			safe.WriteRune(r)
		default:
			safe.WriteRune(r)
		}
	}
	// Some renderers make links of bare addresses.
	return strings.NewReplacer("://", ":&#47;&#47;", "www.", "www&#46;").Replace(safe.String())
}
