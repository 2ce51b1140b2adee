package prometheus

import (
	"flag"
	"fmt"
	"log/slog"
	"maps"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/tsdb"

	"github.com/dra-exporter/dra-exporter/test/suites/prometheus/promlabels"
)

var benchNodes = flag.Int("nodes", 1000, "nodes of BenchmarkRules, with 8 GPUs each")

// BenchmarkRules evaluates all rules over a fleet in which a claim holds every
// GPU, of 200 workloads of five nodes each. It reports the processor time of each
// group, the total as a share of a core, and what the rules of workloads add to the
// others.
func BenchmarkRules(b *testing.B) {
	families, err := promlabels.Documented(root)
	if err != nil {
		b.Fatal(err)
	}
	groups, err := promlabels.Rules(rulesFile)
	if err != nil {
		b.Fatal(err)
	}
	var text strings.Builder
	for _, group := range groups {
		for _, rule := range group.Rules {
			text.WriteString(rule.Expr + "\n")
		}
	}
	selected := regexp.MustCompile(`[a-z_:]+`).FindAllString(text.String(), -1)
	var series []labels.Labels
	for _, name := range slices.Sorted(maps.Keys(families)) {
		if slices.Contains(selected, name) {
			series = append(series, ofFleet(name, families[name], *benchNodes)...)
		}
	}
	db := tenMinutes(b, series)
	engine := promql.NewEngine(promql.EngineOpts{MaxSamples: 5e7, Timeout: time.Minute, LookbackDelta: 5 * time.Minute, Parser: parser.NewParser(parser.Options{})})
	at := time.UnixMilli(0).Add(10 * time.Minute)
	for b.Loop() {
		share, ofWorkloads, rows, perSecond := 0.0, 0.0, 0, 0.0
		for _, group := range groups {
			interval := max(time.Duration(group.Interval), 0)
			if interval == 0 {
				interval = 30 * time.Second
			}
			began, before := processor(b), rows
			for _, rule := range group.Rules {
				began := processor(b)
				rows += record(b, db, engine, rule.Record, rule.Expr, rule.Labels, at)
				if strings.Contains(rule.Record, "workload") {
					ofWorkloads += (processor(b) - began).Seconds() / interval.Seconds()
				}
			}
			took := processor(b) - began
			share += took.Seconds() / interval.Seconds()
			perSecond += float64(rows-before) / interval.Seconds()
			b.ReportMetric(took.Seconds()*1000, "ms/"+strings.TrimPrefix(group.Name, "dra-exporter."))
		}
		b.ReportMetric(share*100, "%core")
		b.ReportMetric(ofWorkloads/(share-ofWorkloads)*100, "%more-for-workloads")
		b.ReportMetric(float64(rows), "rows")
		b.ReportMetric(perSecond, "rows/s")
		at = at.Add(time.Millisecond) // each timestamp may be recorded only once
	}
	b.ReportMetric(float64(len(series)), "series")
}

// processor returns the processor time of this process, which does not depend
// on other load of the machine.
func processor(b *testing.B) time.Duration {
	b.Helper()
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		b.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// record evaluates one rule and returns the number of its rows.
func record(b *testing.B, db *tsdb.DB, engine *promql.Engine, name, expr string, more map[string]string, at time.Time) int {
	query, err := engine.NewInstantQuery(b.Context(), db, nil, expr, at)
	if err != nil {
		b.Fatal(err)
	}
	defer query.Close()
	began := processor(b)
	result := query.Exec(b.Context())
	if result.Err != nil {
		b.Fatalf("%s: %v", name, result.Err)
	}
	appender := db.Appender(b.Context())
	for _, sample := range result.Value.(promql.Vector) {
		builder := labels.NewBuilder(sample.Metric).Set("__name__", name)
		for label, text := range more {
			builder.Set(label, text)
		}
		if _, err := appender.Append(0, builder.Labels(), at.UnixMilli(), sample.F); err != nil {
			b.Fatalf("%s: %v", name, err)
		}
	}
	if err := appender.Commit(); err != nil {
		b.Fatal(err)
	}
	if took := processor(b) - began; took > 100*time.Millisecond {
		b.Logf("%s: %v", name, took.Round(time.Millisecond))
	}
	return len(result.Value.(promql.Vector))
}

// ofFleet returns the series of one family.
func ofFleet(name string, has []string, nodes int) (all []labels.Labels) {
	gpus := 1
	if slices.Contains(has, "uuid") || slices.Contains(has, "resourceclaim") || slices.Contains(has, "pod") {
		gpus = 8 // a pod and a claim for each, of one namespace
	}
	if slices.Contains(has, "namespace") && gpus == 1 {
		gpus = 3 // namespaces of a node
	}
	for node := range nodes {
		for gpu := range gpus {
			claim := node*8 + gpu
			rows := []map[string]string{{"__name__": name, "job": "dra-exporter", "instance": fmt.Sprintf("node-%d", node)}}
			for _, label := range has {
				var values []string
				switch label {
				case "cluster", "job", "instance", "label_*":
					continue
				case "node":
					values = []string{fmt.Sprintf("node-%d", node)}
				case "uuid":
					values = []string{fmt.Sprintf("GPU-%d", claim)}
				case "namespace":
					values = []string{fmt.Sprintf("team-%d", node/5%40)}
					if gpus == 3 {
						values = []string{fmt.Sprintf("team-%d", (node/5+gpu)%40)}
					}
				case "resourceclaim", "pod", "claim_uid", "pod_uid":
					values = []string{fmt.Sprintf("%s-%d", label, claim)}
				case "deviceclass":
					values = []string{fmt.Sprintf("class-%d", claim%5)}
				case "model":
					values = []string{fmt.Sprintf("model-%d", node/5%3)}
				case "workload":
					values = []string{fmt.Sprintf("job-%d", node/5)}
				case "attribution":
					values = []string{"exclusive"}
				case "clock":
					values = []string{"sm"}
				case "reason":
					values = []string{"hw_power_brake", "hw_thermal", "power_cap", "sync_boost", "thermal"}
				case "parent_uuid":
					values = []string{""}
				default:
					values = numbered(label)
				}
				rows = crossed(rows, label, values)
			}
			for _, row := range rows {
				all = append(all, labels.FromMap(row))
			}
		}
	}
	return all
}

// numbered returns as many values as the label has on a node.
func numbered(label string) (values []string) {
	count := map[string]int{"xid": 43, "le": 14, "source": 7, "reason": 8, "severity": 2, "sensor": 2, "kind": 2, "by": 3, "state": 3, "driver_name": 2, "method_name": 2, "operation_name": 2}[label]
	for i := range max(count, 1) {
		values = append(values, fmt.Sprintf("%s-%d", label, i))
	}
	return values
}

func crossed(rows []map[string]string, label string, values []string) (more []map[string]string) {
	for _, row := range rows {
		for _, value := range values {
			with := maps.Clone(row)
			with[label] = value
			more = append(more, with)
		}
	}
	return more
}

// tenMinutes returns a Prometheus store that has scraped the series every 30
// s. Error counters are 0. Other counters rise, and gauges are constant.
func tenMinutes(b *testing.B, series []labels.Labels) *tsdb.DB {
	b.Helper()
	db, err := tsdb.Open(b.TempDir(), slog.New(slog.DiscardHandler), nil, tsdb.DefaultOptions(), nil)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { db.Close() })
	for scrape := range 21 {
		appender := db.Appender(b.Context())
		for _, one := range series {
			value := 1.0
			switch name := one.Get("__name__"); {
			case strings.Contains(name, "_errors_") || strings.Contains(name, "_replays_") || strings.Contains(name, "_signal_"):
				value = 0
			case strings.HasSuffix(name, "_total") || strings.HasSuffix(name, "_bucket"):
				value = float64(scrape)
			}
			if _, err := appender.Append(0, one, int64(scrape)*30_000, value); err != nil {
				b.Fatal(err)
			}
		}
		if err := appender.Commit(); err != nil {
			b.Fatal(err)
		}
	}
	return db
}
