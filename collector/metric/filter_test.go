package metric_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/dra-exporter/dra-exporter/collector/metric"
)

// stateRows are rows of a state set, of families without zero rows to leave out, and
// of one that is exported at the level full only.
func stateRows() []metric.Row {
	action := &metric.Family{Name: "dra_device_recovery_action", Zeros: &metric.ZeroRows{Label: "action", Values: []string{"none"}}, LeanZeros: &metric.ZeroRows{}}
	held := &metric.Family{Name: metric.ClaimHeld}
	engine := &metric.Family{Name: metric.DeviceEngineActiveRatio}
	power := &metric.Family{Name: metric.DevicePowerWatts}
	row := func(family *metric.Family, action string, value float64) metric.Row {
		return metric.Row{Family: family, Labels: metric.NewLabels([]string{"action"}, action), Value: value}
	}
	return []metric.Row{
		row(action, "gpu_reset", 1), row(action, "none", 0), row(action, "drain", 0),
		row(held, "a", 0),
		row(engine, "b", 1), row(engine, "c", 0),
		row(power, "d", 1),
	}
}

func shown(rows []metric.Row) string {
	var texts []string
	for _, row := range rows {
		texts = append(texts, fmt.Sprintf("%s=%v", row.Labels.Get("action"), row.Value))
	}
	return strings.Join(texts, " ")
}

func mustPatterns(t *testing.T, texts ...string) []metric.Pattern {
	t.Helper()
	var patterns []metric.Pattern
	for _, text := range texts {
		pattern, err := metric.NewPattern(text, []string{"dra_device_recovery_action", metric.ClaimHeld, metric.DeviceEngineActiveRatio, metric.DevicePowerWatts})
		if err != nil {
			t.Fatal(err)
		}
		patterns = append(patterns, pattern)
	}
	return patterns
}

func TestFilterRows(t *testing.T) {
	const all = "gpu_reset=1 none=0 drain=0 a=0 b=1 c=0 d=1"
	for _, test := range []struct {
		name             string
		level            metric.Level
		include, exclude []string
		want             string
	}{
		{name: "full", level: metric.LevelFull, want: all},
		{name: "default", level: metric.LevelDefault, want: "gpu_reset=1 none=0 a=0 d=1"},
		{name: "lean", level: metric.LevelLean, want: "gpu_reset=1 a=0 d=1"},
		{name: "all rows of a family beside lean", level: metric.LevelLean, include: []string{".*recovery_action"}, want: "gpu_reset=1 none=0 drain=0 a=0 d=1"},
		{name: "a family and its zeros", level: metric.LevelDefault, include: []string{".*recovery_action"}, want: "gpu_reset=1 none=0 drain=0 a=0 d=1"},
		{name: "a group", level: metric.LevelDefault, include: []string{"devices"}, want: all},
		{name: "without a family", level: metric.LevelFull, exclude: []string{"dra_device_power_watts"}, want: "gpu_reset=1 none=0 drain=0 a=0 b=1 c=0"},
		{name: "without a group", level: metric.LevelDefault, exclude: []string{"devices"}, want: "a=0"},
		{name: "exclude wins", level: metric.LevelDefault, include: []string{"devices"}, exclude: []string{"dra_device_engine_.*", "claims"}, want: "gpu_reset=1 none=0 drain=0 d=1"},
		{name: "alternatives are anchored as a whole", level: metric.LevelFull, exclude: []string{"dra_claim_held|dra_device_power_watts"}, want: "gpu_reset=1 none=0 drain=0 b=1 c=0"},
		{name: "nothing", level: metric.LevelLean, exclude: []string{".*"}, want: ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			filter := metric.NewFilter(test.level, mustPatterns(t, test.include...), mustPatterns(t, test.exclude...))
			rows := stateRows()
			for range 2 { // decisions are kept
				if got := shown(filter.Rows(rows)); got != test.want {
					t.Errorf("got  %s\nwant %s", got, test.want)
				}
			}
			if got := shown(rows); got != all {
				t.Errorf("the rows were changed: %s", got)
			}
		})
	}
}

// What has nothing to leave out is not copied: the rows of a large cluster are many.
func TestFilterCopiesOnlyWhatItMust(t *testing.T) {
	rows := stateRows()[3:4]
	for name, filter := range map[string]*metric.Filter{"nil": nil, "default": metric.NewFilter(metric.LevelDefault, nil, nil)} {
		if got := filter.Rows(rows); len(got) != 1 || &got[0] != &rows[0] {
			t.Errorf("%s: the rows were copied", name)
		}
	}
}

func TestFilterGatherer(t *testing.T) {
	page := pageOf("dra_device_info", "dra_exporter_steps_total", "go_goroutines", "process_resident_memory_bytes")
	for level, want := range map[metric.Level]string{
		metric.LevelFull:    "dra_device_info dra_exporter_steps_total go_goroutines process_resident_memory_bytes",
		metric.LevelDefault: "dra_device_info dra_exporter_steps_total process_resident_memory_bytes",
		metric.LevelLean:    "dra_device_info",
	} {
		families, err := metric.NewFilter(level, nil, nil).Gatherer(page).Gather()
		if got := namesOf(families); got != want || err != nil {
			t.Errorf("%s: %s, %v\nwant %s", level, got, err, want)
		}
	}
	if families, _ := page.Gather(); len(families) != 4 {
		t.Errorf("the gatherer's own families are now %s", namesOf(families))
	}
}

func TestPatternErrors(t *testing.T) {
	known := []string{"dra_claim_held", "dra_device_power_watts", "dra_claim_energy_joules_total"}
	for text, want := range map[string]string{
		"dra_claim_.*":           "",
		"claims":                 "",
		"pods":                   "no family has such a name, and no group; is it pods?",
		"power":                  "no family has such a name, and no group; an expression must match the whole name: .*power.* matches dra_device_power_watts",
		"claim":                  "no family has such a name, and no group; an expression must match the whole name: .*claim.* matches dra_claim_held",
		"clams":                  "no family has such a name, and no group; is it claims?",
		"dra_device_powr_wats":   "no family has such a name, and no group; is it dra_device_power_watts?",
		"dra_claim_energy_total": "no family has such a name, and no group; is it dra_claim_energy_joules_total?",
		"dra_claim_(held":        "error parsing regexp: missing closing ): `dra_claim_(held`",
		"held)|(x":               "error parsing regexp: unexpected ): `held)|(x`",
	} {
		_, err := metric.NewPattern(text, known)
		if got := fmt.Sprint(err); got != want && (err != nil || want != "") {
			t.Errorf("%s: %s\nwant %s", text, got, want)
		}
	}
}

func TestGroups(t *testing.T) {
	for name, want := range map[string]string{
		metric.ClaimHeld: "claims", metric.PodUtilizationRatio: "pods", metric.WorkloadStartDurationSeconds: "workloads",
		"dra_namespace_cost_total": "namespaces", metric.DeviceInfo: "devices", metric.ExporterBuildInfo: "exporter",
		metric.Claims: "allocation", metric.Devices: "allocation", metric.Capacity: "allocation", metric.PoolSlices: "allocation",
		"DCGM_FI_DEV_GPU_UTIL": "dcgm", "go_goroutines": "process",
	} {
		if got := metric.GroupOf(name); got != want {
			t.Errorf("%s is in the group %s", name, got)
		}
	}
}

// What is exported at the level full only is asked for by nothing but runbooks, and what
// lean leaves out by no alert of the set core.
func TestLevels(t *testing.T) {
	asked := metric.Asked()
	if len(asked) < 100 {
		t.Fatalf("asked.txt has %d families", len(asked))
	}
	for name := range metric.OnlyFull() {
		if by := slices.DeleteFunc(slices.Clone(asked[name]), func(by string) bool { return by == "runbooks" }); len(by) > 0 {
			t.Errorf("%s is exported at the level full only, and %v ask for it", name, by)
		}
	}
	for name := range metric.NotLean() {
		if slices.Contains(asked[name], "alerts") || len(asked[name]) == 0 {
			t.Errorf("%s, which lean leaves out, is asked for by %v", name, asked[name])
		}
	}
	for _, name := range metric.Levels() {
		if level, err := metric.ParseLevel(name); err != nil || level.String() != name {
			t.Errorf("level %s: %v, %v", name, level, err)
		}
	}
	if _, err := metric.ParseLevel("all"); fmt.Sprint(err) != `"all" is not one of lean, default, full` {
		t.Error(err)
	}
}

// TestFilterMinorRows: rows that a family calls minor are exported at the level full, and
// where the family is asked for by name.
func TestFilterMinorRows(t *testing.T) {
	info := &metric.Family{Name: metric.ClaimHeld, Minor: &metric.LabelRows{Label: "action", Value: "pod", Empty: "queue"}}
	row := func(action, queue string) metric.Row {
		return metric.Row{Family: info, Labels: metric.NewLabels([]string{"action", "queue"}, action, queue), Value: 1}
	}
	rows := []metric.Row{row("job", ""), row("pod", ""), row("pod", "night")}
	const all = "job=1 pod=1 pod=1"
	for name, test := range map[string]struct {
		filter *metric.Filter
		want   string
	}{
		"lean":     {metric.NewFilter(metric.LevelLean, nil, nil), "job=1 pod=1"},
		"default":  {metric.NewFilter(metric.LevelDefault, nil, nil), "job=1 pod=1"},
		"included": {metric.NewFilter(metric.LevelDefault, mustPatterns(t, "dra_claim_held"), nil), all},
		"full":     {metric.NewFilter(metric.LevelFull, nil, nil), all},
	} {
		got := test.filter.Rows(rows)
		if shown(got) != test.want || got[len(got)-1].Labels.Get("queue") != "night" {
			t.Errorf("%s: %s, want %s", name, shown(got), test.want)
		}
	}
}
