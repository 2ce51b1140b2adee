//go:build linux

package prometheus

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/klauspost/compress/snappy"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/prompb"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb"
	"github.com/prometheus/prometheus/tsdb/chunkenc"

	"github.com/dra-exporter/dra-exporter/dashboards/gen/queries"
)

// counts matches queries that read how fast counters rise.
var counts = regexp.MustCompile(`\b(rate|increase|delta|resets)\(|:(rate|increase)`)

// engine is a server that answers queries of Prometheus' API.
type engine struct {
	name    string
	write   string     // URL of remote write; empty: another engine's store
	query   string     // URL without /api/v1
	options url.Values // of each query
	dropped []string   // labels that it adds
	causes  []difference
}

// difference is a known cause of results that differ. It is the cause of those that are
// equal without it, or that have the same rows with values that are near.
type difference struct {
	cause   string
	options url.Values               // in addition to the engine's
	rewrite func(expr string) string // nil: no other query
	within  float64                  // a part of the wanted value; of queries with rates alone
	numbers bool                     // only rows that are numbers are wanted
	without string                   // rows that contain it are not compared
}

const extrapolation = "`rate` and `increase` of a counter that began within the window extrapolate further"

// engines starts each engine over a store of its own.
func engines(t *testing.T) []engine {
	t.Helper()
	programs := filepath.Join(root, "test", ".bin")
	newest := startPrometheus(t, filepath.Join(programs, "prometheus", "prometheus"))
	all := []engine{{name: "Prometheus", write: "http://" + newest + "/api/v1/write", query: "http://" + newest}}
	oldest := startPrometheus(t, filepath.Join(programs, "prometheus-oldest", "prometheus"), "--enable-feature=native-histograms")
	all = append(all, engine{name: "Prometheus 2.42", write: "http://" + oldest + "/api/v1/write", query: "http://" + oldest, causes: []difference{{cause: extrapolation, within: 0.3}}})
	all = append(all, startThanos(t, filepath.Join(programs, "engines", "thanos"))...)
	return append(all, startVictoriaMetrics(t, filepath.Join(programs, "engines", "victoria-metrics")))
}

func startPrometheus(t *testing.T, program string, flags ...string) (address string) {
	t.Helper()
	folder, address := t.TempDir(), freeAddress(t)
	file := filepath.Join(folder, "prometheus.yaml")
	if err := os.WriteFile(file, []byte("global: {}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	run(t, exec.CommandContext(t.Context(), program, append(flags, "--config.file="+file, "--storage.tsdb.path="+filepath.Join(folder, "data"),
		"--web.listen-address="+address, "--web.enable-remote-write-receiver")...))
	until(t, "Prometheus is ready", func() bool { return reachable(t, "http://"+address+"/-/ready") })
	return address
}

// startThanos starts a receiver, and a querier of it, which has two engines.
func startThanos(t *testing.T, program string) []engine {
	t.Helper()
	folder, write, grpc, http := t.TempDir(), freeAddress(t), freeAddress(t), freeAddress(t)
	run(t, exec.CommandContext(t.Context(), program, "receive", "--tsdb.path="+folder, "--remote-write.address="+write, "--grpc-address="+grpc,
		"--http-address="+http, `--label=receive_replica="0"`, "--tsdb.retention=30d", "--receive.capnproto-address="+freeAddress(t)))
	until(t, "the receiver is ready", func() bool { return reachable(t, "http://"+http+"/-/ready") })
	query := freeAddress(t)
	run(t, exec.CommandContext(t.Context(), program, "query", "--endpoint="+grpc, "--http-address="+query, "--grpc-address="+freeAddress(t), "--query.replica-label=receive_replica",
		"--query.promql-engine=prometheus"))
	until(t, "the querier is ready", func() bool { return reachable(t, "http://"+query+"/-/ready") })
	made := engine{
		name: "Thanos 0.42", write: "http://" + write + "/api/v1/receive", query: "http://" + query,
		options: url.Values{"engine": {"prometheus"}, "partial_response": {"false"}}, dropped: []string{"tenant_id", "receive_replica"},
		causes: []difference{
			{cause: "deduplication takes the resets out of counters", options: url.Values{"dedup": {"false"}}},
			{cause: extrapolation, options: url.Values{"dedup": {"false"}}, within: 0.3},
		},
	}
	own := made
	own.name, own.write, own.options = "Thanos 0.42, its own engine", "", url.Values{"engine": {"thanos"}, "partial_response": {"false"}}
	return []engine{made, own}
}

// startVictoriaMetrics: instant queries have the step that vmalert gives them.
func startVictoriaMetrics(t *testing.T, program string) engine {
	t.Helper()
	address := freeAddress(t)
	run(t, exec.CommandContext(t.Context(), program, "-storageDataPath="+t.TempDir(), "-httpListenAddr="+address, "-retentionPeriod=1y", "-search.latencyOffset=0s", "-search.disableCache"))
	until(t, "VictoriaMetrics is ready", func() bool { return reachable(t, "http://"+address+"/health") })
	return engine{
		name: "VictoriaMetrics 1.151", write: "http://" + address + "/api/v1/write", query: "http://" + address + "/prometheus", options: url.Values{"step": {"5m"}},
		causes: []difference{
			{cause: "a result that is no number is left out", numbers: true},
			{cause: "`rate` and `increase` take the sample before the window, and extrapolate nothing", rewrite: countLikePrometheus, within: 0.6},
			{cause: "native histograms are kept as buckets", rewrite: countLikePrometheus, within: 0.6, without: `cluster="native"`},
		},
	}
}

// countLikePrometheus replaces the functions that read samples before their window.
func countLikePrometheus(expr string) string {
	rate := regexp.MustCompile(`\brate\(([^()\[\]{}]*(?:\{[^{}]*\})?)\[(\w+)\]\)`)
	expr = rate.ReplaceAllStringFunc(expr, func(call string) string {
		parts := rate.FindStringSubmatch(call)
		window, err := model.ParseDuration(parts[2])
		if err != nil {
			return call
		}
		return fmt.Sprintf("(increase_prometheus(%s[%s]) / %g)", parts[1], parts[2], time.Duration(window).Seconds())
	})
	return regexp.MustCompile(`\b(increase|delta|changes)\(`).ReplaceAllString(expr, "${1}_prometheus(")
}

// writeDay sends all samples of a store to the engines, a quarter of an hour at a time.
func writeDay(t *testing.T, db *tsdb.DB, start time.Time, minutes int, all []engine) {
	t.Helper()
	const part = 15
	for first := 0; first < minutes; first += part {
		from, to := start.Add(time.Duration(first)*time.Minute), start.Add(time.Duration(first+part)*time.Minute-time.Millisecond)
		message, err := writeRequest(t, db, from, to).Marshal()
		if err != nil {
			t.Fatal(err)
		}
		body := snappy.Encode(nil, message)
		for _, e := range all {
			if e.write == "" {
				continue
			}
			until(t, e.name+" accepts samples", func() bool { return e.accepts(t, body) })
		}
	}
}

// accepts writes samples; false: the engine does not listen yet.
func (e engine) accepts(t *testing.T, body []byte) bool {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, e.write, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"Content-Encoding": "snappy", "Content-Type": "application/x-protobuf", "X-Prometheus-Remote-Write-Version": "0.1.0"} {
		request.Header.Set(name, text)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return false
	}
	defer response.Body.Close()
	text, _ := io.ReadAll(response.Body)
	if response.StatusCode/100 != 2 {
		t.Fatalf("%s: %s: %s", e.name, response.Status, text)
	}
	return true
}

func writeRequest(t *testing.T, db *tsdb.DB, from, to time.Time) *prompb.WriteRequest {
	t.Helper()
	querier, err := db.Querier(from.UnixMilli(), to.UnixMilli())
	if err != nil {
		t.Fatal(err)
	}
	defer querier.Close()
	request := &prompb.WriteRequest{}
	found := querier.Select(t.Context(), false, nil, labels.MustNewMatcher(labels.MatchRegexp, "__name__", ".+"))
	var iterator chunkenc.Iterator
	for found.Next() {
		request.Timeseries = append(request.Timeseries, timeSeries(found.At(), &iterator))
	}
	if found.Err() != nil {
		t.Fatal(found.Err())
	}
	return request
}

func timeSeries(of storage.Series, iterator *chunkenc.Iterator) prompb.TimeSeries {
	series := prompb.TimeSeries{Labels: prompb.FromLabels(of.Labels(), nil)}
	*iterator = of.Iterator(*iterator)
	for kind := (*iterator).Next(); kind != chunkenc.ValNone; kind = (*iterator).Next() {
		if kind == chunkenc.ValFloat {
			at, value := (*iterator).At()
			series.Samples = append(series.Samples, prompb.Sample{Timestamp: at, Value: value})
			continue
		}
		at, value := (*iterator).AtFloatHistogram((*histogram.FloatHistogram)(nil))
		series.Histograms = append(series.Histograms, prompb.FromFloatHistogram(at, value))
	}
	return series
}

// asked is a query that something shipped asks.
type asked struct {
	kind, name, expr string
}

func listQuestions(t *testing.T) (all []asked) {
	t.Helper()
	for _, rule := range rules(t) {
		all = append(all, asked{"rules", rule.Record, rule.Expr})
	}
	for _, rule := range alerts(t) {
		all = append(all, asked{"alerts", rule.Alert, rule.Expr})
	}
	chosen := queries.Chosen{"job": {"dra-exporter"}, "node": {"gpu-node-1"}, "namespace": {"team-1"}, "resourceclaim": {"claim-01"}, "kind": {"Job"}, "workload": {"claim-01"}}
	for _, board := range boards(t) {
		for _, query := range board.Queries {
			expr, err := board.Expr(query.Expr, chosenOf(board, chosen), anHour())
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, asked{"panels", fmt.Sprintf("%s / %s / %s", strings.TrimPrefix(board.UID, "dra-"), query.Panel, query.Ref), expr})
		}
	}
	return all
}

// ask returns the result by its series, without their names.
func (e engine) ask(t *testing.T, expr string, at time.Time, options ...url.Values) (map[string]float64, error) {
	t.Helper()
	query := url.Values{"query": {expr}, "time": {strconv.FormatInt(at.Unix(), 10)}}
	for _, more := range append([]url.Values{e.options}, options...) {
		maps.Copy(query, more)
	}
	response, err := http.PostForm(e.query+"/api/v1/query", query)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	var answer struct {
		Status, Error string
		Warnings      []string
		Data          struct {
			ResultType string
			Result     json.RawMessage
		}
	}
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil || answer.Status != "success" {
		return nil, fmt.Errorf("%s %s %w", answer.Status, answer.Error, err)
	}
	rows := map[string]float64{}
	if answer.Data.ResultType == "scalar" {
		var value sample
		err := json.Unmarshal(answer.Data.Result, &value)
		rows["scalar"] = value.value
		return rows, err
	}
	var series []struct {
		Metric    map[string]string
		Value     sample
		Histogram any
	}
	if err := json.Unmarshal(answer.Data.Result, &series); err != nil {
		return nil, err
	}
	for _, s := range series {
		for _, label := range append(e.dropped, "__name__") {
			delete(s.Metric, label)
		}
		key := labels.FromMap(s.Metric).String()
		if _, ok := rows[key]; ok {
			return nil, fmt.Errorf("two rows of %s", key)
		}
		if rows[key] = s.Value.value; s.Histogram != nil {
			rows[key] = -1
		}
	}
	return rows, nil
}

// hasAll reports whether the engine shows as many series as another one.
func (e engine) hasAll(t *testing.T, reference engine, at time.Time) bool {
	t.Helper()
	const count = `count({__name__=~"dra_.+", __name__!~".+_duration_seconds.*"})`
	want, err := reference.ask(t, count, at)
	got, failed := e.ask(t, count, at)
	return err == nil && failed == nil && len(want) == 1 && want["{}"] == got["{}"]
}

// compareResults describes the first difference of two results; empty: there is none.
// Values may differ by a part of the wanted ones.
func compareResults(want, got map[string]float64, within float64) string {
	for _, key := range slices.Sorted(maps.Keys(want)) {
		value, ok := got[key]
		if !ok {
			return fmt.Sprintf("lacks %s %g", key, want[key])
		}
		if !isNear(want[key], value, max(within, 1e-6)) {
			return fmt.Sprintf("%s is %g, not %g", key, value, want[key])
		}
	}
	for _, key := range slices.Sorted(maps.Keys(got)) {
		if _, ok := want[key]; !ok {
			return fmt.Sprintf("has %s %g", key, got[key])
		}
	}
	return ""
}

// isNear: VictoriaMetrics keeps about twelve digits, of which a difference loses some.
func isNear(a, b, within float64) bool {
	return a == b || math.IsNaN(a) && math.IsNaN(b) || math.Abs(a-b) <= within*max(math.Abs(a), math.Abs(b))
}

// judge says how the engine's result differs, and the cause if it is known; both are
// empty if it is the wanted one.
func (e engine) judge(t *testing.T, expr string, at time.Time, want map[string]float64) (text, cause string) {
	t.Helper()
	if text = e.compare(t, expr, at, want, difference{}); text == "" {
		return "", ""
	}
	for _, known := range e.causes {
		if (known.within == 0 || counts.MatchString(expr)) && e.compare(t, expr, at, want, known) == "" {
			return text, known.cause
		}
	}
	return text, ""
}

// compare asks without what a known cause changes.
func (e engine) compare(t *testing.T, expr string, at time.Time, want map[string]float64, known difference) string {
	t.Helper()
	if known.rewrite != nil {
		expr = known.rewrite(expr)
	}
	got, err := e.ask(t, expr, at, known.options)
	if err != nil {
		return err.Error()
	}
	want = maps.Clone(want)
	for _, rows := range []map[string]float64{want, got} {
		maps.DeleteFunc(rows, func(row string, value float64) bool {
			return known.numbers && math.IsNaN(value) || known.without != "" && strings.Contains(row, known.without)
		})
	}
	return compareResults(want, got, known.within)
}

// tally counts queries of a kind on an engine.
type tally struct {
	equal, all int
	causes     map[string]bool
}

// row is the engine's row of the document.
func (e engine) row(tallies map[string]*tally) string {
	row, causes := "| "+e.name, map[string]bool{}
	for _, kind := range []string{"rules", "alerts", "panels"} {
		row += fmt.Sprintf(" | %d of %d", tallies[kind].equal, tallies[kind].all)
		maps.Copy(causes, tallies[kind].causes)
	}
	return row + " | " + strings.Join(slices.Sorted(maps.Keys(causes)), "; ") + " |\n"
}

const (
	enginesFile   = root + "/docs/compatibility.md"
	enginesBegin  = "<!-- engines -->\n"
	enginesEnd    = "<!-- end of engines -->\n"
	enginesHeader = "| engine | rules | alerts | dashboards | cause |\n|---|---|---|---|---|\n"
)

// hashQueries identifies what the engines are asked.
func hashQueries(t *testing.T) string {
	t.Helper()
	sum := sha256.New()
	for _, question := range listQuestions(t) {
		fmt.Fprintln(sum, question)
	}
	return fmt.Sprintf("<!-- of the queries %x -->\n", sum.Sum(nil)[:6])
}

func writeEngines(t *testing.T, rows string) {
	t.Helper()
	before, rest, _ := strings.Cut(read(t, enginesFile), enginesBegin)
	_, after, ok := strings.Cut(rest, enginesEnd)
	if !ok {
		t.Fatal("docs/compatibility.md has lost the marks around its table of engines")
	}
	text := before + enginesBegin + hashQueries(t) + enginesHeader + rows + enginesEnd + after
	if err := os.WriteFile(enginesFile, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestEnginesAreOfTheseQueries: the committed table is of the present rules, alerts and
// dashboards.
func TestEnginesAreOfTheseQueries(t *testing.T) {
	if !strings.Contains(read(t, enginesFile), enginesBegin+hashQueries(t)) {
		t.Error("a rule, an alert or a dashboard has changed: run `make engines ENGINES_FLAGS=-update`")
	}
}

// TestEngines: all rules, alerts and queries of dashboards have the results of the newest
// Prometheus on each engine that fleets run, over the same day, but for differences with
// a known cause.
func TestEngines(t *testing.T) {
	text := os.Getenv("DRA_TEST_ENGINES")
	if text == "" {
		t.Skip("make engines")
	}
	minutes := engineDay
	if number, err := strconv.Atoi(text); err == nil {
		minutes = number
	}
	start := time.Now().Truncate(time.Hour).Add(-time.Duration(minutes) * time.Minute)
	db, all := playEngineDay(t, start, minutes), engines(t)
	writeDay(t, db, start, minutes, all)
	reference := all[0]
	for _, e := range all {
		until(t, e.name+" shows what was written", func() bool { return e.hasAll(t, reference, start.Add(time.Duration(minutes-1)*time.Minute)) })
	}
	var lock sync.Mutex
	answered, tallies := map[string]bool{}, map[string]map[string]*tally{}
	var group sync.WaitGroup
	questions := make(chan asked)
	for range 4 {
		group.Go(func() {
			for question := range questions {
				has, found := askAll(t, all, question, start, minutes)
				lock.Lock()
				answered[question.name] = answered[question.name] || has
				for _, e := range all[1:] {
					if tallies[e.name] == nil {
						tallies[e.name] = map[string]*tally{"rules": {}, "alerts": {}, "panels": {}}
					}
					tallies[e.name][question.kind].add(found[e.name])
				}
				lock.Unlock()
			}
		})
	}
	for _, question := range listQuestions(t) {
		questions <- question
	}
	close(questions)
	group.Wait()
	var table strings.Builder
	for _, e := range all[1:] {
		table.WriteString(e.row(tallies[e.name]))
	}
	t.Log("\n" + table.String())
	if *update && minutes == engineDay && !t.Failed() {
		writeEngines(t, table.String())
	}
	with := 0
	for _, has := range answered {
		if has {
			with++
		}
	}
	t.Logf("of %d queries, %d have a result", len(answered), with)
	if least := 550; minutes == engineDay && with < least {
		t.Errorf("only %d queries have a result in this day, not %d", with, least)
	}
}

// add counts a query, given the causes for which its results differ.
func (t *tally) add(causes map[string]bool) {
	if t.all++; len(causes) == 0 {
		t.equal++
	}
	if t.causes == nil {
		t.causes = map[string]bool{}
	}
	maps.Copy(t.causes, causes)
}

// failed is the cause of a difference without a known one.
const failed = "failed"

// askAll returns whether the reference, which is the first engine, has a result in any of
// the minutes, and the causes for which the results of each other engine differ in some.
func askAll(t *testing.T, all []engine, question asked, start time.Time, minutes int) (has bool, causes map[string]map[string]bool) {
	t.Helper()
	causes = map[string]map[string]bool{}
	for _, e := range all {
		causes[e.name] = map[string]bool{}
	}
	for _, minute := range events() {
		if minute >= minutes {
			break
		}
		at := start.Add(time.Duration(minute)*time.Minute + 13*time.Second)
		want, err := all[0].ask(t, question.expr, at)
		if err != nil {
			t.Errorf("%s: %v", question.name, err)
			return false, causes
		}
		has = has || len(want) > 0
		for _, e := range all[1:] {
			text, cause := e.judge(t, question.expr, at, want)
			switch {
			case text == "" || causes[e.name][failed]:
			case cause != "":
				causes[e.name][cause] = true
			default:
				causes[e.name][failed] = true
				t.Errorf("%s | %s %s | minute %d: %s", e.name, question.kind, question.name, minute, text)
			}
		}
	}
	return has, causes
}
