package invariant

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Rule is one invariant. Exactly one of its functions is set.
type Rule struct {
	Name string // does not change
	Text string // one sentence, without full stop; Markdown
	// Momentary marks a rule that may be violated once without a bug, because it
	// compares readings of different times. Report such a violation only if two
	// pages in a row have it.
	Momentary bool

	page func(*view, *findings)                 // checks one page
	pair func(before, after *view, f *findings) // checks two pages of one process
}

// Violation is one violation of a rule by a page or a pair of pages.
type Violation struct {
	Rule   string   // its name
	Node   string   // that shows it; empty where several do together
	Device string   // uuid; empty where it is about none
	Claims []string // namespace/name, sorted; not all of very many
	Text   string   // one sentence with the contradicting numbers
	More   int      // violations of the rule that were left out, on the last one

	Momentary bool // as its rule is
}

// String renders the violation for users.
func (v Violation) String() string {
	text := v.Rule + ": " + v.Text
	if v.Node != "" {
		text += " (node " + v.Node + ")"
	}
	if v.More > 0 {
		text += fmt.Sprintf("; and %d more of this rule", v.More)
	}
	return text
}

// The names of the rules.
const (
	UniqueSeries       = "unique_series"
	UniqueInfo         = "unique_info"
	ValueRange         = "value_range"
	HardwareKnown      = "hardware_known"
	HoldersAgree       = "holders_agree"
	GaugesHeld         = "gauges_held"
	AloneOnDevice      = "alone_on_device"
	ProcessSplit       = "process_split"
	DeviceValue        = "device_value"
	ClaimsWithinDevice = "claims_within_device"
	PodsWithinDevice   = "pods_within_device"
	PartsWithinParent  = "partitions_within_parent"
	ShareOfHold        = "share_of_hold"
	CountersRise       = "counters_rise"
	GrowthWithinDevice = "growth_within_device"
	DeviceTime         = "device_time"
)

const (
	// maxReturned is the number of violations of a rule that are returned.
	maxReturned = 5
	// maxSorted is how many are sorted before.
	maxSorted = 1000
	// maxNames is how many claims a violation lists, and longestName how many
	// bytes a text of the page may take in it.
	maxNames     = 4
	maxNameBytes = 160
)

// findings are the violations of one rule.
type findings struct {
	rule Rule
	node string
	list []Violation
	more int
}

// add adds a violation. The caller bounds texts of the page, see short.
func (f *findings) add(device string, claims []string, format string, args ...any) {
	if len(f.list) == maxSorted {
		f.more++
		return
	}
	claims = slices.Compact(slices.Sorted(slices.Values(claims)))
	for i := range claims[:min(len(claims), maxNames)] {
		claims[i] = short(claims[i])
	}
	f.list = append(f.list, Violation{
		Rule: f.rule.Name, Momentary: f.rule.Momentary, Node: short(f.node), Device: short(device),
		Claims: claims[:min(len(claims), maxNames)], Text: fmt.Sprintf(format, args...),
	})
}

// bounded returns the first few violations, in an order that does not depend
// on that of the page.
func (f *findings) bounded() []Violation {
	slices.SortStableFunc(f.list, func(a, b Violation) int {
		return cmp.Or(strings.Compare(a.Device, b.Device), strings.Compare(a.Text, b.Text))
	})
	if left := len(f.list) - maxReturned; left > 0 {
		f.list, f.more = f.list[:maxReturned], f.more+left
	}
	if len(f.list) > 0 {
		f.list[len(f.list)-1].More = f.more
	}
	return f.list
}

// short bounds a text of the page.
func short(text string) string {
	if len(text) <= maxNameBytes {
		return text
	}
	return strings.ToValidUTF8(text[:maxNameBytes], "") + "…"
}

// names are the first few names that were added, and the number of all.
type names struct {
	first []string
	last  string
	count int
}

// add adds a name, unless it is the one that was added last.
func (n *names) add(name string) {
	if n.count > 0 && n.last == name {
		return
	}
	if n.last, n.count = name, n.count+1; n.count <= maxNames {
		n.first = append(n.first, short(name))
	}
}

func (n *names) String() string {
	text := strings.Join(n.first, ", ")
	if more := n.count - len(n.first); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

func namesOf(claims []claim) *names {
	n := &names{count: len(claims)}
	for _, c := range claims[:min(len(claims), maxNames)] {
		n.first = append(n.first, short(c.String()))
	}
	return n
}

// pair is two pages of one process.
type pair struct{ before, after *view }

func (p pair) sameProcess() bool { return p.before.process == p.after.process }
