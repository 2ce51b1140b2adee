//go:build linux

package prometheus

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/rulefmt"
	"golang.org/x/sys/unix"

	"github.com/dra-exporter/dra-exporter/test/suites/prometheus/promlabels"
)

const (
	// panelLimit is the longest acceptable time of a panel's query.
	panelLimit = 100 * time.Millisecond
	// ruleLimit is the longest acceptable time of one evaluation of a rule or
	// an alert.
	ruleLimit = 500 * time.Millisecond

	rounds = 10 // of all panels; rules are evaluated in each third round
)

// BenchmarkDashboards evaluates all queries of dashboards, rules and alerts
// over an hour of a thousand nodes with eight GPUs each, in Prometheus' own
// store and with its own engine. It lists the slowest of each kind, and those
// without a result, whose time is meaningless.
//
//	go test -run '^$' -bench Dashboards -benchtime 1x -timeout 30m .
//
// It takes seven minutes and 7 GiB. DRA_BENCH_NODES sets the size of the
// fleet, and DRA_BENCH_ALL lists everything.
func BenchmarkDashboards(b *testing.B) {
	recording, alerts := ruleGroups(b, rulesFile), ruleGroups(b, root+"/alerts/alerts.yaml")
	began := time.Now()
	f := newFleet(b, fleetNodes(b), usedNames(b, slices.Concat(recording, alerts)))
	printf("%d nodes: %d series of an agent, %d of them used; %d used series in all; %s", f.nodes, f.perNode, f.usedPerNode, f.series, since(began))
	began = time.Now()
	engine := productionEngine()
	printf("%d recorded series; %s", f.record(b, engine, recording), since(began))
	queries := f.dashboardQueries(b, engine)
	rules := f.ruleQueries(recording, engine)
	rules = append(rules, f.ruleQueries(alerts, engine)...)
	// The result is the processor time of the fastest of several rounds,
	// because the machine may have other load. The engine evaluates a query in
	// one thread, and waits for nothing.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for b.Loop() {
		for round := range rounds {
			measure(b, queries)
			if round%3 == 0 {
				measure(b, rules)
			}
		}
	}
	missed := report("panels and variables", queries, panelLimit)
	report("rules and alerts, one evaluation", rules, ruleLimit)
	reportGroups(rules)
	b.ReportMetric(float64(len(queries)), "queries")
	b.ReportMetric(float64(missed), "misses")
	b.ReportMetric(queries[0].took.Seconds()*1000, "worst-ms")
	b.ReportMetric(heapMiB(), "MiB")
	b.ReportMetric(0, "ns/op") // the total is meaningless
}

// benchQuery is one query of the benchmark.
type benchQuery struct {
	name string
	ask  func(ctx context.Context) (rows int, err error)

	took, elapsed time.Duration
	rows, rounds  int
}

// measure evaluates each query once more and keeps its shortest time.
func measure(b *testing.B, all []benchQuery) {
	b.Helper()
	for i := range all {
		q := &all[i]
		began, spent := time.Now(), threadTime(b)
		rows, err := q.ask(b.Context())
		took, elapsed := threadTime(b)-spent, time.Since(began)
		if err != nil {
			b.Fatalf("%s: %v", q.name, err)
		}
		if q.rounds++; q.rounds == 1 || took < q.took {
			q.took = took
		}
		if q.rounds == 1 || elapsed < q.elapsed {
			q.elapsed = elapsed
		}
		q.rows = rows
	}
}

// threadTime returns the processor time that this thread has used.
func threadTime(b *testing.B) time.Duration {
	b.Helper()
	var spent unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &spent); err != nil {
		b.Fatal(err)
	}
	return time.Duration(spent.Nano())
}

// report lists the queries above the limit, or at least the ten slowest, and
// those without a result. It returns how many are too slow.
func report(title string, all []benchQuery, limit time.Duration) (missed int) {
	slices.SortStableFunc(all, func(x, y benchQuery) int { return cmp.Compare(y.took, x.took) })
	var text strings.Builder
	for i, q := range all {
		if q.took > limit {
			missed++
		}
		if q.took > limit || i < 10 || os.Getenv("DRA_BENCH_ALL") != "" {
			fmt.Fprintf(&text, "%8.1f ms %8.1f ms %6d rows  %s\n", q.took.Seconds()*1000, q.elapsed.Seconds()*1000, q.rows, q.name)
		}
	}
	printf("%s: %d, %d above %s; the slowest, by processor time and time:\n%s", title, len(all), missed, limit, text.String())
	var silent []string
	for _, q := range all {
		if q.rows == 0 {
			silent = append(silent, q.name)
		}
	}
	slices.Sort(silent)
	printf("%d had no answer:\n%s", len(silent), strings.Join(silent, "\n"))
	return missed
}

// reportGroups prints how long one evaluation of each group of rules takes.
func reportGroups(rules []benchQuery) {
	sums := map[string]time.Duration{}
	for _, q := range rules {
		group, _, _ := strings.Cut(q.name, " / ")
		sums[group] += q.took
	}
	for _, group := range slices.SortedFunc(maps.Keys(sums), func(x, y string) int { return cmp.Compare(sums[y], sums[x]) }) {
		printf("%8.1f ms  %s", sums[group].Seconds()*1000, group)
	}
}

func ruleGroups(b *testing.B, file string) []rulefmt.RuleGroup {
	b.Helper()
	groups, err := promlabels.Rules(file)
	if err != nil {
		b.Fatal(err)
	}
	return groups
}

// fleetNodes returns the number of nodes.
func fleetNodes(b *testing.B) int {
	text := os.Getenv("DRA_BENCH_NODES")
	if text == "" {
		return 1000
	}
	nodes, err := strconv.Atoi(text)
	if err != nil || nodes <= unhealthyEach {
		b.Fatalf("DRA_BENCH_NODES is %q: it must be above %d", text, unhealthyEach)
	}
	return nodes
}

// printf prints what testing would truncate after ten lines.
func printf(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) }

func since(began time.Time) string { return time.Since(began).Round(time.Second / 10).String() }

func heapMiB() float64 {
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	return float64(memory.Sys) / (1 << 20)
}
