package main

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/device"
	"github.com/dra-exporter/dra-exporter/collector/metric"
	"github.com/dra-exporter/dra-exporter/test/fakes/metrictest"
	"github.com/dra-exporter/dra-exporter/test/tools/invariant"
)

const levelsHead = `
## Levels

` + "`--metrics.level`" + ` selects how much is exported, on the page and in a push. The pages of the exporter, ` + "`check`" + ` of a node and the names of dcgm-exporter (` + "`--metrics.dcgm`" + `) have everything at each level.

- ` + "`lean`" + ` has the families that the rules, alerts and dashboards of the [set](dashboards.md#sets) core query, but for those of a few panels. They have the same results as at the other levels, except for engine activity and deviations of clocks. For your own queries, use families whose level is lean: their series mean the same at each level.
- ` + "`default`" + ` adds all families but those below. Of ` + "`go_*`, `process_*` and `promhttp_*`" + ` it has what is queried. ` + "`--device.profiling`" + ` adds the ratios that it reads.
- ` + "`full`" + ` has everything.

`

const levelsRest = `
Below ` + "`full`" + `, many devices of a claim that no source reads, such as CPUs, are [one device with their number](decisions/0018-bundle-unread-devices.md), a family of states has a row for the present state and a row for the normal state only, and rows that are 0 because nothing has happened yet are not exported. Families that leave out rows of value 0, by those that they keep:

`

const filtersHead = `
` + "`--metrics.include`" + ` adds families with all of their rows to the level, and ` + "`--metrics.exclude`" + ` removes families, even if they are included. Both take a regular expression that must match the whole name of a family, or one of the groups `

const seriesHead = `
### Series

The tables have each family's level, lean if none is named, and its rows on three typical nodes; *full→default* are two numbers if zero rows are left out. [asked.txt](../collector/metric/asked.txt) has the rules, alerts, dashboards and runbooks that query each. Not counted are 16 series for each source of ` + "`dra_exporter_source_read_duration_seconds`" + `, about 45 of the process at the level full (3 below), and ` + "`_created`" + ` lines.

`

// levelsDocument is the chapter of docs/metrics.md about levels.
func levelsDocument(series seriesCounts) string {
	var text strings.Builder
	text.WriteString(levelsHead)
	text.WriteString("Only `full` has:\n\n")
	writeReasons(&text, metric.OnlyFull())
	text.WriteString("\nOf what the dashboards of core query, `lean` leaves out:\n\n")
	writeReasons(&text, metric.NotLean())
	text.WriteString(levelsRest)
	writeZeros(&text)
	text.WriteString("\nThe counters of other Xids appear with their first error, and then with a value above 0, which `increase()` does not see. `device:dra_device_xid_errors:increase5m` of the [recording rules](rules.md) counts the first error too, and `dra_device_xid_last_timestamp_seconds` has its time: `time() - dra_device_xid_last_timestamp_seconds < 300` selects the Xids of the last five minutes.\n")
	text.WriteString(filtersHead)
	text.WriteString("`" + strings.Join(metric.Groups(), "`, `") + "`.\n")
	text.WriteString(seriesHead)
	series.writeTotals(&text)
	return text.String()
}

// writeReasons writes families by the reason that they have.
func writeReasons(text *strings.Builder, reasons map[string]string) {
	order, names := groupNames(slices.Sorted(maps.Keys(reasons)), func(name string) string { return reasons[name] })
	for _, reason := range order {
		fmt.Fprintf(text, "- %s: %s\n", names[reason], reason)
	}
}

// writeZeros writes the families that leave out rows, by the rows that they keep.
func writeZeros(text *strings.Builder) {
	var leaving []string
	kept := map[string]string{}
	for _, family := range allFamilies() {
		if family.Zeros == nil {
			continue
		}
		leaving, kept[family.Name] = append(leaving, family.Name), zeroRows(family.Zeros)
		if family.LeanZeros != nil {
			kept[family.Name] += "; at lean " + zeroRows(family.LeanZeros)
		}
	}
	order, names := groupNames(leaving, func(name string) string { return kept[name] })
	for _, rows := range order {
		fmt.Fprintf(text, "- %s: %s\n", rows, names[rows])
	}
}

// groupNames returns what is said of names, in the order of the names, and for
// each the list of its names.
func groupNames(names []string, said func(string) string) (order []string, lists map[string]string) {
	lists = map[string]string{}
	for _, name := range names {
		key, quoted := said(name), "`"+name+"`"
		if list, ok := lists[key]; ok {
			lists[key] = list + ", " + quoted
			continue
		}
		order, lists[key] = append(order, key), quoted
	}
	return order, lists
}

func zeroRows(zeros *metric.ZeroRows) string {
	if len(zeros.Values) == 0 {
		return "none"
	}
	var selectors []string
	for _, value := range zeros.Values {
		selectors = append(selectors, fmt.Sprintf("`%s=%q`", zeros.Label, value))
	}
	return strings.Join(selectors, ", ")
}

// allFamilies returns the families of both roles, each once, in the order of the
// document.
func allFamilies() []*metric.Family {
	var all []*metric.Family
	for _, chapter := range documentChapters() {
		all = append(all, chapter.Families...)
	}
	return all
}

// seriesCounts has the rows of typical nodes.
type seriesCounts struct {
	nodes []typicalNode
	rows  map[string][]metric.Row // by the node's name
}

func countTypicalSeries(t *testing.T) seriesCounts {
	t.Helper()
	counts := seriesCounts{nodes: typicalNodes(t), rows: map[string][]metric.Row{}}
	for _, n := range counts.nodes {
		counts.rows[n.name] = n.rows(t, nil)
	}
	return counts
}

// cell returns the level of a family, unless it is lean, and its rows on each
// node, if it has some.
func (s seriesCounts) cell(family *metric.Family) string {
	var parts, counts []string
	if level := levelOf(family.Name); level != metric.LevelLean.String() {
		parts = append(parts, level)
	}
	for _, n := range s.nodes {
		counts = append(counts, countsText(countLevels(s.rows[n.name], family.Name)))
	}
	if all := strings.Join(counts, ", "); strings.Trim(all, "0, ") != "" {
		parts = append(parts, all)
	}
	return strings.Join(parts, ": ")
}

// writeTotals writes the rows of all families on each node, by level.
func (s seriesCounts) writeTotals(text *strings.Builder) {
	fmt.Fprint(text, "| node | full | default | lean |\n|---|---|---|---|\n")
	for _, n := range s.nodes {
		var totals [3]int
		for _, family := range allFamilies() {
			for level, count := range countLevels(s.rows[n.name], family.Name) {
				totals[level] += count
			}
		}
		fmt.Fprintf(text, "| *%s:* %s | %d | %d | %d |\n", n.name, n.title, totals[metric.LevelFull], totals[metric.LevelDefault], totals[metric.LevelLean])
	}
}

// countLevels counts the rows of a family at each level.
func countLevels(rows []metric.Row, name string) (counts [3]int) {
	of := slices.DeleteFunc(slices.Clone(rows), func(r metric.Row) bool { return r.Family.Name != name })
	for level := range counts {
		counts[level] = len(metric.NewFilter(metric.Level(level), nil, nil).Rows(of))
	}
	return counts
}

func countsText(counts [3]int) string {
	full, standard := counts[metric.LevelFull], counts[metric.LevelDefault]
	if standard == full || standard == 0 {
		return strconv.Itoa(full)
	}
	return fmt.Sprintf("%d→%d", full, standard)
}

// levelOf returns the first level that has the family.
func levelOf(name string) string {
	row := []metric.Row{{Family: &metric.Family{Name: name}, Labels: metric.NewLabels(nil), Value: 1}}
	for _, level := range []metric.Level{metric.LevelLean, metric.LevelDefault} {
		if len(metric.NewFilter(level, nil, nil).Rows(row)) > 0 {
			return level.String()
		}
	}
	return metric.LevelFull.String()
}

// unhealthy makes the first GPUs of the demo's node unhealthy in the last steps, in
// each way that has rows of its own.
func unhealthy(step int, samples []device.Sample) {
	if step < 2 {
		return
	}
	present := map[device.Quantity]string{device.RecoveryAction: "gpu_reset", device.FabricState: "failure", device.HealthCheck: "fail", device.NetworkLinks: "down"}
	for i := range samples {
		if i > 1 && samples[i].Device.Vendor == "nvidia" {
			continue
		}
		for r := range samples[i].Readings {
			reading := &samples[i].Readings[r]
			switch reading.Quantity {
			case device.RecoveryAction, device.FabricState, device.HealthCheck, device.NetworkLinks:
				state := reading.Details[0]
				if reading.Quantity == device.HealthCheck || reading.Quantity == device.NetworkLinks {
					state = reading.Details[1]
				}
				reading.Value = 0
				if state == present[reading.Quantity] {
					reading.Value = 1
				}
			case device.NVLinks:
				reading.Value = map[string]float64{"active": 16, "inactive": 2}[reading.Details[0]]
			case device.RowRemapPending, device.Lost:
				reading.Value = 1
			case device.RemappedRows:
				reading.Value = 3
			}
		}
		if samples[i].XIDSource != "" {
			last := time.Date(2026, 11, 20, 10, 0, 2, 0, time.UTC)
			samples[i].XIDs = []device.XID{{Code: 31, Count: 2, Last: last}, {Code: 48, Count: 1, Last: last}, {Code: 79, Count: 1, Last: last}, {Code: 9999, Count: 1, Last: last}}
		}
	}
}

// Each level has all families of the one before, and lean has those that alerts of the set
// core ask for, and the number of series that were left out. The families are in all groups
// but those of other programs.
func TestLevelsOfFamilies(t *testing.T) {
	grouped := map[string]bool{}
	for _, family := range allFamilies() {
		has := func(level metric.Level) bool {
			row := metric.Row{Family: family, Labels: metric.NewLabels(nil), Value: 1}
			return len(metric.NewFilter(level, nil, nil).Rows([]metric.Row{row})) > 0
		}
		lean, standard := has(metric.LevelLean), has(metric.LevelDefault)
		if lean && !standard || !has(metric.LevelFull) {
			t.Errorf("%s: lean %v, default %v", family.Name, lean, standard)
		}
		if (slices.Contains(metric.Asked()[family.Name], "alerts") || family.Name == metric.ExporterSeriesDropped) && !lean {
			t.Errorf("an alert of core asks for %s, and lean leaves it out", family.Name)
		}
		grouped[metric.GroupOf(family.Name)] = true
	}
	ours := slices.DeleteFunc(metric.Groups(), func(group string) bool { return group == "dcgm" || group == "process" })
	if groups := slices.Sorted(maps.Keys(grouped)); !slices.Equal(groups, slices.Sorted(slices.Values(ours))) {
		t.Errorf("the families are in the groups %v", groups)
	}
}

// The pages of an unhealthy node at each level. test/suites/prometheus evaluates rules,
// alerts and dashboards over them.
func TestLevelPages(t *testing.T) {
	rows := typicalNodes(t)[0].rows(t, unhealthy)
	for _, level := range []metric.Level{metric.LevelLean, metric.LevelDefault, metric.LevelFull} {
		page := metric.NewPage(metric.NewFilter(level, nil, nil).Rows(rows))
		metrictest.CompareGolden(t, fmt.Sprintf("testdata/levels/%s.txt", level), metrictest.Text(t, page))
	}
}

// Rules that a page must keep find no contradiction in a page because a filter left
// something out.
func TestFiltersContradictNothing(t *testing.T) {
	at := time.Date(2026, 11, 20, 10, 0, 4, 0, time.UTC)
	for _, n := range typicalNodes(t) {
		rows := n.rows(t, unhealthy)
		filters := map[string]*metric.Filter{}
		for _, level := range metric.Levels() {
			parsed, _ := metric.ParseLevel(level)
			filters["level "+level] = metric.NewFilter(parsed, nil, nil)
		}
		for family := range metric.Runs(rows) {
			pattern, err := metric.NewPattern(family.Name, []string{family.Name})
			if err != nil {
				t.Fatal(err)
			}
			filters["without "+family.Name] = metric.NewFilter(metric.LevelFull, nil, []metric.Pattern{pattern})
		}
		for name, filter := range filters {
			for _, violation := range invariant.Check(invariant.FromRows(filter.Rows(rows), at)) {
				t.Errorf("%s, %s: %s: %s", n.name, name, violation.Rule, violation.Text)
			}
		}
	}
}
