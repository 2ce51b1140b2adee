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
	// Momentary marks a rule that may be broken once without a bug, because it
	// compares readings that the hardware gave one after the other. Report such
	// a violation where two pages in a row have it.
	Momentary bool

	page func(*view, *findings)                 // looks at one page
	pair func(before, after *view, f *findings) // at two pages of one process
	all  func([]pair, *findings)                // at two pages of each node
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
	FleetTime          = "fleet_time"
)

// Rules returns every rule, in the order in which violations are reported.
func Rules() []Rule {
	return []Rule{
		{Name: UniqueSeries, Text: "No two series have the same name and labels", page: uniqueSeries},
		{Name: UniqueInfo, Text: "A join on an info series has one partner: a device has one identity and one published name, a claim one info row", page: uniqueInfo},
		{Name: ValueRange, Text: "Ratios are from 0 to 1, counters are not negative, and every value is a number", page: valueRange},
		{Name: HardwareKnown, Text: "A device without known hardware has no quantities", page: hardwareKnown},
		{Name: HoldersAgree, Text: "`dra_device_holders` counts the claims of `dra_claim_held`", page: holdersAgree},
		{Name: GaugesHeld, Text: "A claim has gauges of a device only while it holds the device", page: gaugesHeld},
		{Name: AloneOnDevice, Text: "No gauge is `exclusive` or `partition` on a device with another holder, or with a holder of its parent or partition; `exclusive` is for whole devices, `partition` for partitions", page: aloneOnDevice},
		{Name: ProcessSplit, Text: "Only utilization, memory, busy and idle time of whole devices are attributed by `process`, together with the unattributed part", page: processSplit},
		{Name: DeviceValue, Text: "A claim's gauge is exported together with the device's own value, and equals it unless it is attributed by `process`", page: deviceValue},
		{Name: ClaimsWithinDevice, Text: "The sum of a device's claims and the unattributed part is at most the device's own value; claims with `shared` are not added", page: claimsWithinDevice},
		{Name: PodsWithinDevice, Text: "The sum of a device's pods and the unattributed part is at most the device's own value", page: podsWithinDevice},
		{Name: PartsWithinParent, Text: "The sum of bytes or watts of a device's partitions, or of their claims, is at most the device's own value", Momentary: true, page: partitionsWithinParent},
		{Name: ShareOfHold, Text: "The device-seconds of a claim are at most the time for which it held the device", page: shareOfHold},
		{Name: CountersRise, Text: "A counter of the exporter does not decrease while the process runs", pair: countersRise},
		{Name: GrowthWithinDevice, Text: "Between two pages, the counters of a device's claims grow together by at most the growth of the device's counter; claims with `shared` are not added", pair: growthWithinDevice},
		{Name: DeviceTime, Text: "The device-seconds of a device grow no faster than time", pair: deviceTime},
		{Name: FleetTime, Text: "The device-seconds of a device grow no faster than time over all nodes: each second counts once in a fleet", all: fleetTime},
	}
}

// Violation is one violation of a rule by a page or a pair of pages.
type Violation struct {
	Rule   string   // its name
	Node   string   // that shows it; empty where several do together
	Device string   // uuid; empty where it is about none
	Claims []string // namespace/name, sorted; not all of very many
	Text   string   // what contradicts what, with the numbers, in one sentence
	More   int      // violations of the rule that were left out, on the last one

	Momentary bool // as its rule is
}

// String is the violation for a person.
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

// Check returns what is wrong with each of the pages: of every page a few
// violations of each rule, in the order of Rules.
func Check(pages ...Page) []Violation {
	var all []Violation
	for _, page := range pages {
		all = append(all, checkView(newView(page))...)
	}
	return all
}

func checkView(v *view) []Violation {
	var all []Violation
	for _, rule := range Rules() {
		if rule.page != nil {
			f := findings{rule: rule, node: v.node}
			rule.page(v, &f)
			all = append(all, f.bounded()...)
		}
	}
	return all
}

// Pair is two pages of one exporter. A pair with pages of two processes is not
// checked.
type Pair struct{ Before, After Page }

// Compare returns the violations between the pages of each pair, and over all
// pairs together, which are of one fleet, see Fleet.
func Compare(pairs ...Pair) []Violation {
	var all []Violation
	views := viewsOf(pairs)
	for _, p := range views {
		all = append(all, p.compare()...)
	}
	return append(all, fleet(views)...)
}

// Fleet returns only the violations over all pairs together. Pages may be
// Reduced. Of several pairs of one node the first counts.
func Fleet(pairs ...Pair) []Violation { return fleet(viewsOf(pairs)) }

// Watch checks one page of an exporter after the other. The zero Watch has no
// page.
type Watch struct{ last *view }

// Next returns the violations that Check finds in the page, and that Compare
// finds in it and the page before.
func (w *Watch) Next(page Page) []Violation {
	p := pair{w.last, newView(page)}
	w.last = p.after
	all := checkView(p.after)
	if p.before != nil && p.sameProcess() {
		all = append(all, p.compare()...)
	}
	return all
}

// pair is two pages of one process.
type pair struct{ before, after *view }

func (p pair) sameProcess() bool { return p.before.process == p.after.process }

func viewsOf(pairs []Pair) []pair {
	var views []pair
	for _, given := range pairs {
		if p := (pair{newView(given.Before), newView(given.After)}); p.sameProcess() {
			views = append(views, p)
		}
	}
	return views
}

func (p pair) compare() []Violation {
	var all []Violation
	for _, rule := range Rules() {
		if rule.pair != nil {
			f := findings{rule: rule, node: p.after.node}
			rule.pair(p.before, p.after, &f)
			all = append(all, f.bounded()...)
		}
	}
	return all
}

func fleet(pairs []pair) []Violation {
	seen := map[string]bool{}
	var nodes []pair
	for _, p := range pairs {
		if !seen[p.after.node] {
			nodes = append(nodes, p)
		}
		seen[p.after.node] = true
	}
	var all []Violation
	for _, rule := range Rules() {
		if rule.all != nil {
			f := findings{rule: rule}
			rule.all(nodes, &f)
			all = append(all, f.bounded()...)
		}
	}
	return all
}

const (
	// mostShown is how many violations of a rule are returned.
	mostShown = 5
	// mostKept is how many are sorted before.
	mostKept = 1000
	// mostNamed is how many claims a violation lists, and longestName how many
	// bytes a text of the page may take in it.
	mostNamed   = 4
	longestName = 160
)

// findings are the violations of one rule.
type findings struct {
	rule Rule
	node string
	list []Violation
	more int
}

// add adds a violation. What of the page goes into its text is bounded by the
// caller, see short.
func (f *findings) add(device string, claims []string, format string, args ...any) {
	if len(f.list) == mostKept {
		f.more++
		return
	}
	claims = slices.Compact(slices.Sorted(slices.Values(claims)))
	for i := range claims[:min(len(claims), mostNamed)] {
		claims[i] = short(claims[i])
	}
	f.list = append(f.list, Violation{
		Rule: f.rule.Name, Momentary: f.rule.Momentary, Node: short(f.node), Device: short(device),
		Claims: claims[:min(len(claims), mostNamed)], Text: fmt.Sprintf(format, args...),
	})
}

// bounded returns the first few violations, in an order that does not depend
// on that of the page.
func (f *findings) bounded() []Violation {
	slices.SortStableFunc(f.list, func(a, b Violation) int {
		return cmp.Or(strings.Compare(a.Device, b.Device), strings.Compare(a.Text, b.Text))
	})
	if left := len(f.list) - mostShown; left > 0 {
		f.list, f.more = f.list[:mostShown], f.more+left
	}
	if len(f.list) > 0 {
		f.list[len(f.list)-1].More = f.more
	}
	return f.list
}

// short bounds a text of the page.
func short(text string) string {
	if len(text) <= longestName {
		return text
	}
	return strings.ToValidUTF8(text[:longestName], "") + "…"
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
	if n.last, n.count = name, n.count+1; n.count <= mostNamed {
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
	for _, c := range claims[:min(len(claims), mostNamed)] {
		n.first = append(n.first, short(c.String()))
	}
	return n
}
