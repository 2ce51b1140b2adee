package metric

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/dra-exporter/dra-exporter/collector/spelling"
)

// Filter selects the families and rows that a role exports: those of its level,
// and those that patterns include, without those that patterns exclude. Pages and
// commands that read the rows of a snapshot do not use it. A nil Filter selects
// everything. It is safe for concurrent use.
type Filter struct {
	level            Level
	include, exclude []Pattern
	decided          sync.Map // of names: selected
}

// selected is what a Filter exports of a family.
type selected uint8

const (
	nothing selected = iota
	significant
	everything
)

// NewFilter returns a Filter. Exclude takes precedence over include, and include
// over the level: an included family is exported with all of its rows.
func NewFilter(level Level, include, exclude []Pattern) *Filter {
	return &Filter{level: level, include: include, exclude: exclude}
}

// Rows returns the selected rows, in their order. If these are all, it returns the
// same slice.
func (f *Filter) Rows(rows []Row) []Row {
	if f == nil {
		return rows
	}
	kept, first := []Row(nil), 0 // rows[:first] are in kept unless it is nil: then all of them are kept
	leaveOut := func(start, end int) {
		if kept == nil {
			kept = make([]Row, 0, len(rows))
		}
		kept = append(kept, rows[first:start]...)
		first = end
	}
	at := 0
	for family, run := range Runs(rows) {
		switch f.of(family.Name) {
		case nothing:
			leaveOut(at, at+len(run))
		case significant:
			zeros := f.zeros(family)
			for i := range run {
				if zeros != nil && !zeros.shows(&run[i]) || family.Minor.has(&run[i]) {
					leaveOut(at+i, at+i+1)
				}
			}
		}
		at += len(run)
	}
	if kept == nil {
		return rows
	}
	return append(kept, rows[first:]...)
}

// Gatherer returns a gatherer of the selected families of another one, whose rows
// all are selected.
func (f *Filter) Gatherer(gatherer prometheus.Gatherer) prometheus.Gatherer {
	if f == nil {
		return gatherer
	}
	return prometheus.GathererFunc(func() ([]*dto.MetricFamily, error) {
		families, err := gatherer.Gather()
		return slices.DeleteFunc(slices.Clone(families), func(family *dto.MetricFamily) bool { return f.of(family.GetName()) == nothing }), err
	})
}

// Has reports whether any row of a family is selected.
func (f *Filter) Has(name string) bool { return f == nil || f.of(name) != nothing }

func (f *Filter) zeros(family *Family) *ZeroRows {
	if f.level == LevelLean && family.LeanZeros != nil {
		return family.LeanZeros
	}
	return family.Zeros
}

func (f *Filter) of(name string) selected {
	if known, ok := f.decided.Load(name); ok {
		return known.(selected)
	}
	decision := f.decide(name)
	f.decided.Store(name, decision)
	return decision
}

func (f *Filter) decide(name string) selected {
	matches := func(p Pattern) bool { return p.matches(name) }
	switch {
	case slices.ContainsFunc(f.exclude, matches):
		return nothing
	case slices.ContainsFunc(f.include, matches), f.level == LevelFull:
		return everything
	case !f.level.has(name):
		return nothing
	default:
		return significant
	}
}

// ZeroRows limits which rows of value 0 of a family are exported below the level
// full: those whose label has one of the values, none without values. The others say
// no more than that another state is the present one, or that nothing has been
// counted yet.
type ZeroRows struct {
	Label  string
	Values []string
}

func (z *ZeroRows) shows(row *Row) bool {
	return row.Value != 0 || slices.Contains(z.Values, row.Labels.Get(z.Label))
}

// LabelRows are the rows of a family whose label has a value, and another label none.
type LabelRows struct {
	Label, Value string
	Empty        string
}

func (l *LabelRows) has(row *Row) bool {
	return l != nil && row.Labels.Get(l.Label) == l.Value && row.Labels.Get(l.Empty) == ""
}

// Pattern selects families by name: all of a group, or those whose whole name
// matches a regular expression.
type Pattern struct {
	group  string
	regexp *regexp.Regexp
}

// NewPattern returns the pattern of a group's name or of a regular expression. A
// pattern that selects none of the known names is an error, which has a hint.
func NewPattern(text string, known []string) (Pattern, error) {
	p := Pattern{}
	if slices.Contains(Groups(), text) {
		p.group = text
	} else {
		if _, err := regexp.Compile(text); err != nil {
			return Pattern{}, err
		}
		p.regexp = regexp.MustCompile("^(?:" + text + ")$")
	}
	if !slices.ContainsFunc(known, p.matches) {
		return Pattern{}, fmt.Errorf("no family has such a name, and no group; %s", hint(text, known))
	}
	return p, nil
}

func (p Pattern) matches(name string) bool {
	if p.regexp == nil {
		return GroupOf(name) == p.group
	}
	return p.regexp.MatchString(name)
}

// hint names what may be meant: families that match without being matched as a
// whole, or else the name that differs least.
func hint(text string, known []string) string {
	if part, err := regexp.Compile(text); err == nil {
		if at := slices.IndexFunc(known, part.MatchString); at >= 0 {
			return fmt.Sprintf("an expression must match the whole name: .*%s.* matches %s", text, known[at])
		}
	}
	return "is it " + spelling.Nearest(text, slices.Concat(Groups(), known)) + "?"
}

// Groups returns the names of the groups of families.
func Groups() []string {
	return []string{"claims", "pods", "workloads", "namespaces", "devices", "exporter", "allocation", "dcgm", "process"}
}

// GroupOf returns the group of a family, by its name.
func GroupOf(name string) string {
	rest, ours := strings.CutPrefix(name, "dra_")
	if !ours {
		if strings.HasPrefix(name, "DCGM_") {
			return "dcgm"
		}
		return "process"
	}
	switch subject, _, _ := strings.Cut(rest, "_"); subject {
	case "claim", "pod", "namespace", "device", "workload":
		return subject + "s"
	case "exporter":
		return subject
	default:
		return "allocation"
	}
}
