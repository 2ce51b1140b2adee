package check

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/exposition"
	"github.com/dra-exporter/dra-exporter/internal/invariant"
)

// Answer is a page of an exporter, and when it was read.
type Answer struct {
	Page  Page
	At    time.Time     // when the page was requested
	Took  time.Duration // until all of it was read
	Error error         // it is not there, or is no exporter's
}

const (
	contradictionsPage = "docs/check.md#contradictions"
	// mostNumbers bounds the series of a page that are checked for
	// contradictions, in bytes of text.
	mostNumbers = 16 << 20
	// oldSnapshot is how old the values of a page may be when it is requested:
	// exporters step each second, unless --device.interval says otherwise.
	oldSnapshot = 2 * time.Second

	reportBug = "This is a bug of the exporter. Report it at https://github.com/dra-exporter/dra-exporter/issues with this line, `dra-exporter version` and the exporter's page. Until it is fixed, do not add up the values of this line."
)

var errTooLarge = errors.New("the page is too large, or those of all exporters together are")

// numbers collects the lines of a page that rules look at.
type numbers struct {
	text     bytes.Buffer
	tooLarge bool
}

func (n *numbers) add(name, line string) {
	switch {
	case n.tooLarge, !invariant.Concerns(name), strings.HasSuffix(name, "_bucket"):
	case n.text.Len()+len(line) >= mostNumbers:
		n.tooLarge, n.text = true, bytes.Buffer{}
	default:
		n.text.WriteString(line)
		n.text.WriteByte('\n')
	}
}

// dropNumbers drops the lines that rules look at, to bound the memory for pages.
func (p *Page) dropNumbers() { p.numbers, p.tooLarge = nil, true }

// series are the numbers of the answer's page.
func (a Answer) series() (invariant.Page, error) {
	if a.Page.tooLarge {
		return invariant.Page{}, errTooLarge
	}
	page := invariant.Page{At: a.At.Add(a.Took)}
	for line := range bytes.Lines(a.Page.numbers) {
		series, err := exposition.Parse(string(line)) // a text of its own: a reduced page does not keep the others
		if err != nil {
			return invariant.Page{}, fmt.Errorf("the page is not in Prometheus' text format: %s: %w", exposition.Name(string(line)), err)
		}
		page.Series = append(page.Series, invariant.Series{Name: series.Name, Labels: series.Labels, Value: series.Value})
	}
	page.Slack = a.Took + oldSnapshot
	return page, nil
}

// contradictions checks the two pages of an agent by all rules, and returns
// them reduced, for those rules that are about a fleet; nil where there are no
// two.
func (a Agent) contradictions(in area) ([]Finding, *invariant.Pair) {
	in.page = contradictionsPage
	first, err := Answer{Page: a.Page, At: a.At, Took: a.Took}.series()
	if err != nil {
		return []Finding{in.skipped(a.name(), "its values are not compared: %v", err)}, nil
	}
	violations := invariant.Check(first)
	second, err := a.second()
	if err != nil {
		findings := violated(in, a.name(), violations)
		return append(findings, in.skipped(a.name(), "its counters are not compared with a second page: %v", err)), nil
	}
	if shown, read := a.Again.Page.SampledAt.Sub(a.Page.SampledAt), a.Again.At.Sub(a.At); shown > read {
		first.Slack += shown - read // the exporter steps less often than the pages were read
	}
	pair := invariant.Pair{Before: first, After: second}
	violations = slices.Concat(lasting(violations, invariant.Check(second)), invariant.Compare(pair))
	return violated(in, a.name(), violations), &invariant.Pair{Before: first.Reduced(), After: second.Reduced()}
}

func (a Agent) second() (invariant.Page, error) {
	if a.Again.Error != nil {
		return invariant.Page{}, a.Again.Error
	}
	return a.Again.series()
}

// lasting removes violations of momentary rules that only one of the two pages
// has.
func lasting(first, second []invariant.Violation) []invariant.Violation {
	return slices.DeleteFunc(first, func(v invariant.Violation) bool {
		return v.Momentary && !slices.ContainsFunc(second, func(again invariant.Violation) bool {
			return again.Rule == v.Rule && again.Device == v.Device
		})
	})
}

func violated(in area, subject string, violations []invariant.Violation) []Finding {
	findings := make([]Finding, 0, len(violations))
	for _, v := range violations {
		findings = append(findings, in.failure(reportBug, subject+": "+v.Rule, "%s", sentence(v)))
	}
	return findings
}

// sentence returns the violation's text, without the finding's subject.
func sentence(v invariant.Violation) string {
	if v.More > 0 {
		return fmt.Sprintf("%s; and %d more of this rule", v.Text, v.More)
	}
	return v.Text
}

// fleet compares the pages of all agents.
func fleet(pairs []invariant.Pair) []Finding {
	return violated(area{"fleet", contradictionsPage}, "nodes together", invariant.Fleet(pairs...))
}
