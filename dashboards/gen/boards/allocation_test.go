package boards

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/dra-exporter/dra-exporter/dashboards/gen/queries"
)

// asked are the queries of a board by the titles of their panels.
func asked(t *testing.T, b Board) map[string][]string {
	t.Helper()
	text, err := b.JSON()
	if err != nil {
		t.Fatal(err)
	}
	decoded, err := queries.Decode(text)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string][]string{}
	for _, q := range decoded.Queries {
		all[q.Panel] = append(all[q.Panel], q.Expr)
	}
	return all
}

// document is a file of the project's.
func document(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile("../../../" + path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestRequestsHaveAllStages: the columns are the stages of docs/pending.md, in their
// order, after what orders the rows and what is asked for.
func TestRequestsHaveAllStages(t *testing.T) {
	_, table, _ := strings.Cut(document(t, "docs/pending.md"), "| `stage` |")
	table, _, _ = strings.Cut(table, "\n\n")
	var stages []string
	for _, row := range regexp.MustCompile("(?m)^\\| `([a-z_]+)`").FindAllStringSubmatch(table, -1) {
		stages = append(stages, row[1])
	}
	if len(stages) < 6 {
		t.Fatalf("docs/pending.md has the stages %q", stages)
	}
	columns := asked(t, allocation())["Devices after each stage, by request"][2:]
	if len(columns) != len(stages) {
		t.Fatalf("%d columns for the stages %q", len(columns), stages)
	}
	for i, stage := range stages {
		if !strings.Contains(columns[i], fmt.Sprintf("stage=%q", stage)) {
			t.Errorf("column %d is not the stage %s: %s", i, stage, columns[i])
		}
	}
}

// TestAgesAreCountedOnce: whatever a reference's age, one column of the table has
// it besides the first, which has all.
func TestAgesAreCountedOnce(t *testing.T) {
	columns := asked(t, allocation())["Pending claims by reason and time"]
	bound := regexp.MustCompile(` (>=|<) (\d+)`)
	for _, age := range []int{0, 59, 60, 299, 300, 899, 900, 3599, 3600, 1e6} {
		var in []int
		for i, column := range columns[1:] {
			_, conditions, _ := strings.Cut(column, waitsEnd)
			holds := true
			for _, b := range bound.FindAllStringSubmatch(conditions, -1) {
				var limit int
				if _, err := fmt.Sscan(b[2], &limit); err != nil {
					t.Fatal(err)
				}
				holds = holds && (b[1] == ">=") == (age >= limit)
			}
			if holds {
				in = append(in, i)
			}
		}
		if len(in) != 1 {
			t.Errorf("an age of %d s is in the columns %v", age, in)
		}
	}
}

// waitsEnd is where the selection of an age begins.
const waitsEnd = ")))"

// TestStuckKnowsAllPhases: each phase of the documented family has one limit.
func TestStuckKnowsAllPhases(t *testing.T) {
	row := regexp.MustCompile("(?m)^\\| `dra_claim_phase_since_timestamp_seconds`.*: ([a-z_, ]+) \\|$").FindStringSubmatch(document(t, "docs/metrics.md"))
	if row == nil {
		t.Fatal("docs/metrics.md does not list the phases under way")
	}
	limits := map[string]int{}
	for _, selected := range regexp.MustCompile(`phase=~?"([a-z_|]+)"`).FindAllStringSubmatch(stuck, -1) {
		for phase := range strings.SplitSeq(selected[1], "|") {
			limits[phase]++
		}
	}
	phases := strings.Split(row[1], ", ")
	for _, phase := range phases {
		if limits[phase] != 1 {
			t.Errorf("phase %s has %d limits", phase, limits[phase])
		}
	}
	if len(phases) != len(limits) {
		t.Errorf("limits %v, phases %q", limits, phases)
	}
}

// TestBothSpellings: what 1.37 has renamed is asked by either name.
func TestBothSpellings(t *testing.T) {
	for panel, names := range map[string][]string{
		"Claims: counts of the controller and the exporter": {
			"resourceclaim_controller_resource_claims", "dynamic_resource_allocation_resource_claims",
		},
		"Claims created by controller and scheduler": {
			"resourceclaim_controller_creates_total", "scheduler_resourceclaim_creates_total", "dynamic_resource_allocation_resourceclaim_creates_total",
		},
	} {
		exprs := strings.Join(asked(t, allocationKubernetes())[panel], "\n")
		for _, name := range names {
			if !regexp.MustCompile(`\b` + name + `\b`).MatchString(exprs) {
				t.Errorf("%s does not ask for %s", panel, name)
			}
		}
	}
	unseen := document(t, "test/fakes/fixtures/upstream-metrics/unseen-metrics.txt")
	for _, renamed := range regexp.MustCompile(`(?m)^# TYPE ((?:resourceclaim_controller|scheduler)_\w+)`).FindAllStringSubmatch(unseen, -1) {
		if text, _ := json.Marshal(asked(t, allocationKubernetes())); !strings.Contains(string(text), renamed[1]) {
			t.Errorf("no panel queries %s", renamed[1])
		}
	}
}

// TestExporterShowsAllOfItself: each family of the exporter about itself is in
// its board.
func TestExporterShowsAllOfItself(t *testing.T) {
	var exprs []string
	for _, of := range asked(t, exporter()) {
		exprs = append(exprs, of...)
	}
	families := regexp.MustCompile("(?m)^\\| `(dra_exporter_[a-z_]+)`").FindAllStringSubmatch(document(t, "docs/metrics.md"), -1)
	if len(families) < 10 {
		t.Fatalf("docs/metrics.md has %d families of the exporter about itself", len(families))
	}
	for _, family := range families {
		if !slices.ContainsFunc(exprs, func(expr string) bool { return strings.Contains(expr, family[1]) }) {
			t.Errorf("no panel asks for %s", family[1])
		}
	}
}
