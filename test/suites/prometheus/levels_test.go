package prometheus

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/model/textparse"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/tsdb"

	"github.com/dra-exporter/dra-exporter/dashboards/gen/queries"
	"github.com/dra-exporter/dra-exporter/dashboards/gen/sets"
)

const (
	levelPages        = root + "/cmd/dra-exporter/testdata/levels/"
	clusterLevelPages = root + "/collector/cluster/testdata/levels/"

	levelMinutes = 15 // of scrapes, one a minute
	levelErrors  = 8  // minute of the first Xids
)

// notLean returns the panels and rules of the set core that answer differently at the level
// lean, and why.
func notLean() map[string]string {
	return map[string]string{
		"rules / workload_role:dra_device_signal:median": "dra_device_clock_hertz is not exported",
		"workload / Devices by rank":                     "dra_device_clock_hertz is not exported",
		"claim / Engine activity":                        "dra_claim_engine_active_ratio is not exported",
		"claim / Throttling by reason":                   "dra_claim_throttled_seconds_total is not exported",
		"node / PCIe":                                    "dra_device_pcie_*_bytes_total are not exported",
		"node / Network":                                 "dra_device_network_*_bytes_total are not exported",
		"node / NVLink":                                  "dra_device_nvlink_*_bytes_total are not exported",
		"node / Sent over each NVLink":                   "dra_device_nvlink_link_*_bytes_total are not exported",
		"node / Received over each NVLink":               "dra_device_nvlink_link_*_bytes_total are not exported",
		"node / Clock":                                   "dra_device_clock_hertz is not exported",
		"node / Power of all devices":                    "dra_device_power_limit_watts is not exported",
	}
}

// TestLevelsAnswerTheSame: the rules, the alerts and the dashboards, at lean those of the
// set core, have the same results over the page of an unhealthy node at the levels default
// and lean as at full, also of Xids that happen for the first time. Of several rows those
// of value 0 may be missing. The pages are written by TestLevelPages of cmd/dra-exporter.
func TestLevelsAnswerTheSame(t *testing.T) {
	want, belongs := levelAnswers(t, levelPages, "full"), members(t)
	checkAnswered(t, want, 150)
	for _, level := range []string{"default", "lean"} {
		got, differ := levelAnswers(t, levelPages, level), map[string]bool{}
		for _, query := range slices.Sorted(maps.Keys(want)) {
			if level == "lean" && !isCore(belongs, query) || sameAnswer(want[query], got[query]) {
				continue
			}
			panel := query[:cmp.Or(strings.LastIndex(query, " / "), len(query))]
			if panel == "rules" {
				panel = query
			}
			if differ[panel] = true; level == "default" || notLean()[panel] == "" {
				t.Errorf("%s: %s has %v, and at full %v", level, query, got[query], want[query])
			}
		}
		for panel, why := range notLean() {
			if level == "lean" && !differ[panel] {
				t.Errorf("%s answers at lean, although %s", panel, why)
			}
		}
	}
}

// isCore reports whether a query of levelAnswers is one of the set core.
func isCore(belongs sets.Belongs, query string) bool {
	by, name, _ := strings.Cut(query, " / ")
	switch by {
	case "rules":
		return belongs.Records[name] == sets.Core
	case "alerts":
		return belongs.Alerts[name] == sets.Core
	default:
		return belongs.Dashboards[by] == sets.Core
	}
}

// TestPanelsSayWhatLeanLeavesOut: a panel of the set core that answers differently at the
// level lean says so.
func TestPanelsSayWhatLeanLeavesOut(t *testing.T) {
	said := map[string]bool{}
	for _, board := range boards(t) {
		for _, panel := range board.panels {
			name := strings.TrimPrefix(board.UID, "dra-") + " / " + panel.Title
			said[name] = said[name] || strings.Contains(panel.text, "the level is lean") || strings.Contains(panel.text, "the level lean")
		}
	}
	for panel := range notLean() {
		if !strings.HasPrefix(panel, "rules / ") && !said[panel] {
			t.Errorf("%s does not say that the level lean leaves something out", panel)
		}
	}
}

// sameAnswer reports whether an answer has all rows that are not 0, and any.
func sameAnswer(want, got map[string]float64) bool {
	missing := maps.Clone(want)
	for labels, value := range got {
		if wanted, ok := want[labels]; !ok || wanted != value {
			return false
		}
		delete(missing, labels)
	}
	for _, value := range missing {
		if value != 0 || len(got) == 0 {
			return false
		}
	}
	return true
}

// TestClusterLevelsAnswerTheSame: over the page of the cluster role, all results are
// the same at each level, at lean those of the set core. The pages are written by TestPage of collector/cluster. Its
// histograms, which a page of rows does not have, are exported at each level.
func TestClusterLevelsAnswerTheSame(t *testing.T) {
	want, belongs := levelAnswers(t, clusterLevelPages, "full"), members(t)
	checkAnswered(t, want, 70)
	for _, level := range []string{"default", "lean"} {
		got := levelAnswers(t, clusterLevelPages, level)
		for _, query := range slices.Sorted(maps.Keys(want)) {
			if (level != "lean" || isCore(belongs, query)) && !maps.Equal(want[query], got[query]) {
				t.Errorf("%s: %s has %v, and at full %v", level, query, got[query], want[query])
			}
		}
	}
}

// checkAnswered checks that the queries find what they ask for on a page.
func checkAnswered(t *testing.T, answers map[string]map[string]float64, least int) {
	t.Helper()
	answered := 0
	for _, rows := range answers {
		if len(rows) > 0 {
			answered++
		}
	}
	t.Logf("of %d queries, %d have a result", len(answers), answered)
	if answered < least {
		t.Errorf("of %d queries, %d have a result", len(answers), answered)
	}
}

// TestFirstXidsAreSeen: an Xid that a page has only since it happened is recorded
// once, and its alert fires.
func TestFirstXidsAreSeen(t *testing.T) {
	for _, level := range []string{"full", "default", "lean"} {
		answers := levelAnswers(t, levelPages, level)
		seen := map[string]float64{}
		for series, value := range answers["rules / device:dra_device_xid_errors:increase5m"] {
			seen[regexp.MustCompile(`xid="(\w+)"`).FindStringSubmatch(series)[1]] += value
		}
		if want := map[string]float64{"31": 4, "48": 2, "79": 2, "other": 2}; !maps.Equal(seen, want) { // of two GPUs
			t.Errorf("%s: recorded %v, want %v", level, seen, want)
		}
		if len(answers["alerts / DRADeviceXIDFatal"]) == 0 {
			t.Errorf("%s: DRADeviceXIDFatal does not fire", level)
		}
	}
}

// levelAnswers returns the results of all queries over the page of a level, each by
// its series. Those of rules and alerts are the ones of ten minutes, in which the
// first Xids are; those of dashboards are the last ones.
func levelAnswers(t *testing.T, pages, level string) map[string]map[string]float64 {
	t.Helper()
	db, start := levelStore(t, pages, level)
	engine := promql.NewEngine(promql.EngineOpts{
		MaxSamples: 1e7, Timeout: time.Minute, LookbackDelta: 5 * time.Minute,
		EnableAtModifier: true, EnableNegativeOffset: true, Parser: parser.NewParser(parser.Options{}),
	})
	evaluate := func(expr string, minute int) map[string]float64 {
		query, err := engine.NewInstantQuery(t.Context(), db, nil, expr, start.Add(time.Duration(minute)*time.Minute))
		if err != nil {
			t.Fatalf("%s: %v", expr, err)
		}
		defer query.Close()
		return vectorOf(t, expr, query.Exec(t.Context()))
	}
	answers := map[string]map[string]float64{}
	for minute := 5; minute <= levelMinutes; minute += 5 {
		for _, rule := range rules(t) {
			rows := evaluate(rule.Expr, minute)
			recordRows(t, db, rule, rows, start.Add(time.Duration(minute)*time.Minute))
			if minute == 10 {
				answers["rules / "+rule.Record] = withRows(answers["rules / "+rule.Record], rows)
			}
		}
		if minute != 10 {
			continue
		}
		for name, alerts := range alertsByName(t) {
			for _, rule := range alerts {
				answers["alerts / "+name] = withRows(answers["alerts / "+name], evaluate(rule.Expr, minute))
			}
		}
	}
	chosen := queries.Chosen{"job": {"dra-exporter"}, "node": {"gpu-node-1"}, "namespace": {"team-0"}, "resourceclaim": {"claim-00"}, "kind": {"Job"}, "workload": {"claim-00"}}
	if pages == clusterLevelPages {
		chosen = queries.Chosen{"job": {"dra-exporter"}, "node": {"node-a"}, "namespace": {"team"}, "resourceclaim": {"wanted"}, "kind": {"JobSet"}, "workload": {"train"}}
	}
	for _, board := range boards(t) {
		for _, query := range board.Queries {
			expr, err := board.Expr(query.Expr, chosenOf(board, chosen), anHour())
			if err != nil {
				t.Fatal(err)
			}
			name := fmt.Sprintf("%s / %s / %s", strings.TrimPrefix(board.UID, "dra-"), query.Panel, query.Ref)
			answers[name] = withRows(answers[name], evaluate(expr, levelMinutes))
		}
	}
	return answers
}

// chosenOf returns the values of a board's variables without All.
func chosenOf(board readBoard, all queries.Chosen) queries.Chosen {
	chosen := queries.Chosen{}
	for _, v := range board.Variables {
		if v.All == "" {
			chosen[v.Name] = all[v.Name]
		}
	}
	return chosen
}

func withRows(rows, more map[string]float64) map[string]float64 {
	if rows == nil {
		return more
	}
	maps.Copy(rows, more)
	return rows
}

// vectorOf returns a result by its series; a value that is none is NaN's text.
func vectorOf(t *testing.T, expr string, result *promql.Result) map[string]float64 {
	t.Helper()
	if result.Err != nil {
		t.Fatalf("%s: %v", expr, result.Err)
	}
	rows := map[string]float64{}
	switch answer := result.Value.(type) {
	case promql.Vector:
		for _, sample := range answer {
			rows[sample.Metric.String()] = rounded(sample.F)
		}
	case promql.Scalar:
		rows["scalar"] = rounded(answer.V)
	}
	return rows
}

// rounded makes values comparable: NaN is equal to nothing.
func rounded(value float64) float64 {
	if value != value {
		return -12345
	}
	return value
}

func recordRows(t *testing.T, db *tsdb.DB, rule rulefmt.Rule, rows map[string]float64, at time.Time) {
	t.Helper()
	appender := db.Appender(t.Context())
	for series, value := range rows {
		of, err := parser.NewParser(parser.Options{}).ParseMetric(series)
		if err != nil {
			t.Fatalf("%s: %v", series, err)
		}
		builder := labels.NewBuilder(of).Set("__name__", rule.Record)
		for name, text := range rule.Labels {
			builder.Set(name, text)
		}
		if _, err := appender.Append(0, builder.Labels(), at.UnixMilli(), value); err != nil {
			t.Fatalf("%s: %v", rule.Record, err)
		}
	}
	if err := appender.Commit(); err != nil {
		t.Fatal(err)
	}
}

// levelStore returns a store with a quarter of an hour of scrapes of a page, and
// when they began. Gauges do not change, counters rise, and Xids happen in one
// minute: before, their rows are those that the level has of 0.
func levelStore(t *testing.T, pages, level string) (*tsdb.DB, time.Time) {
	t.Helper()
	db, err := tsdb.Open(t.TempDir(), slog.New(slog.DiscardHandler), nil, tsdb.DefaultOptions(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	start := time.Date(2026, 11, 20, 9, 52, 0, 0, time.UTC)
	rows := levelRows(t, pages+level+".txt")
	for minute := range levelMinutes + 1 {
		appender := db.Appender(t.Context())
		for _, row := range rows {
			value, there := row.at(level, minute)
			if !there {
				continue
			}
			if _, err := appender.Append(0, row.labels, start.Add(time.Duration(minute)*time.Minute).UnixMilli(), value); err != nil {
				t.Fatal(err)
			}
		}
		if err := appender.Commit(); err != nil {
			t.Fatal(err)
		}
	}
	return db, start
}

// levelRow is a series of a page.
type levelRow struct {
	labels  labels.Labels
	counter bool
	value   float64
}

func (r levelRow) at(level string, minute int) (value float64, there bool) {
	name := r.labels.Get("__name__")
	switch {
	case name == "dra_device_xid_last_timestamp_seconds":
		return r.value, minute >= levelErrors
	case name == "dra_device_xid_errors_total" && minute < levelErrors:
		fromZero := map[string][]string{"default": {"54", "79", "151"}, "lean": {"79"}}[level]
		return 0, level == "full" || slices.Contains(fromZero, r.labels.Get("xid"))
	case name == "dra_device_xid_errors_total":
		return r.value, true
	case r.counter:
		return r.value * float64(minute+60) / (levelMinutes + 60), true
	default:
		return r.value, true
	}
}

// levelRows reads a page, and adds what every scrape has.
func levelRows(t *testing.T, file string) (rows []levelRow) {
	t.Helper()
	target := func(of labels.Labels) labels.Labels {
		return labels.NewBuilder(of).Set("job", "dra-exporter").Set("instance", "gpu-node-1").Labels()
	}
	rows = append(rows, levelRow{labels: target(labels.FromStrings("__name__", "up")), value: 1},
		levelRow{labels: target(labels.FromStrings("__name__", "process_start_time_seconds")), value: 1})
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	page := textparse.NewPromParser(text, labels.NewSymbolTable(), false)
	counter := false
	for {
		entry, err := page.Next()
		if errors.Is(err, io.EOF) {
			return rows
		}
		if err != nil {
			t.Fatal(err)
		}
		switch entry {
		case textparse.EntryType:
			_, kind := page.Type()
			counter = kind == model.MetricTypeCounter
		case textparse.EntrySeries:
			row := levelRow{counter: counter}
			var of labels.Labels
			page.Labels(&of)
			row.labels = target(of)
			_, _, row.value = page.Series()
			rows = append(rows, row)
		}
	}
}
