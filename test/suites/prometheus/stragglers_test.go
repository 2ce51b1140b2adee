package prometheus

import (
	"fmt"
	"log/slog"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	staleness "github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb"

	"github.com/dra-exporter/dra-exporter/test/suites/prometheus/jobs"
)

const (
	playedScrape = 30 * time.Second
	playedEvery  = time.Minute // the interval of the rules of workload devices

	stragglerAlert = "DRAWorkloadStraggler"
	hungAlert      = "DRAWorkloadHung"

	// faultBegins is when the fault of a played job begins, and faultClears how long
	// after its end an alert may fire: for as long as the rates and keep_firing_for
	// look back.
	faultBegins = 70 * time.Minute
	faultClears = 15 * time.Minute
)

// played is a job that is played, with at most one fault.
type played struct {
	job      jobs.Job
	faults   []jobs.Fault
	seed     uint64
	duration time.Duration
}

// outcome is what the alerts say about played jobs.
type outcome struct {
	hours   float64 // of jobs without their faults
	falsely []string
	kinds   map[string]*detection // by the kind of the fault and its size
}

type detection struct {
	faults, found, named int             // named: the alert names the rank
	after                []time.Duration // from the begin of the fault until the alert fires
}

// TestStragglersAndHangs plays jobs with known faults and without. The alerts must
// find the faults with the right rank, and nothing else. With DRA_PLAYED_JOBS=N it
// plays so many, of up to 512 devices, and prints the table of docs/benchmarks.md.
// DRA_PLAYED_SEED is the first seed: the thresholds were chosen with 1, and the table
// was made with 1000001.
func TestStragglersAndHangs(t *testing.T) {
	count, first, largest := 16, uint64(2000001), 32
	if given := os.Getenv("DRA_PLAYED_JOBS"); given != "" {
		count, largest = number(t, given), 512
	}
	if given := os.Getenv("DRA_PLAYED_SEED"); given != "" {
		first = uint64(number(t, given))
	}
	all := outcome{kinds: map[string]*detection{}}
	var lock sync.Mutex
	var wait sync.WaitGroup
	next := make(chan int)
	for range runtime.GOMAXPROCS(0) {
		wait.Go(func() {
			for i := range next {
				p := drawn(first+uint64(i), i, largest)
				fired, hung := firedAlerts(t, p)
				lock.Lock()
				all.add(p, fired, hung)
				lock.Unlock()
			}
		})
	}
	for i := range count {
		next <- i
	}
	close(next)
	wait.Wait()
	all.print(t)
	stragglers, found := 0, 0
	for kind, d := range all.kinds {
		if strings.HasPrefix(kind, "hang") {
			if d.found < d.faults {
				t.Errorf("%s: %d of %d found", kind, d.found, d.faults)
			}
			for _, after := range d.after {
				if after > 10*time.Minute {
					t.Errorf("%s: found after %v", kind, after)
				}
			}
		} else if !strings.Contains(kind, "below") {
			stragglers, found = stragglers+d.faults, found+d.named
		}
	}
	if float64(found) < 0.95*float64(stragglers) {
		t.Errorf("of %d stragglers of 15 %% and more, %d are named", stragglers, found)
	}
	if float64(len(all.falsely)) > math.Max(1, all.hours/1000) {
		t.Errorf("%d false alerts in %.0f hours: %s", len(all.falsely), all.hours, strings.Join(all.falsely, "\n"))
	}
}

func number(t *testing.T, text string) int {
	t.Helper()
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// drawn returns a job that its seed decides: a third have no fault, a third a
// straggler, a third a hang.
func drawn(seed uint64, index, largest int) played {
	random := rand.New(rand.NewPCG(seed, 2))
	between := func(low, high float64) float64 { return low + (high-low)*random.Float64() }
	minutes := func(low, high float64) time.Duration { return time.Duration(between(low, high) * float64(time.Minute)) }
	sizes := []int{8, 8, 16, 16, 32, 64, 128, 256, 512}
	sizes = slices.DeleteFunc(sizes, func(n int) bool { return n > largest })
	devices := sizes[random.IntN(len(sizes))]
	job := jobs.Job{
		Namespace: "ml", Name: fmt.Sprintf("train-%d", seed), Devices: devices,
		Step: time.Duration(between(1, 12) * float64(time.Second)), Compute: between(0.55, 0.85),
		StepBytes: between(2e9, 20e9), Memory: between(30e9, 75e9),
		Checkpoint: jobs.Pause{Every: minutes(15, 60), Lasts: minutes(0.3, 5), Waits: random.IntN(2) == 0},
		Imbalance:  max(0, between(-0.1, 0.1)),
	}
	if devices > 8 {
		job.NodeBytes = between(1e9, 5e9)
	}
	if random.IntN(2) == 0 {
		job.Evaluation = jobs.Pause{Every: minutes(20, 90), Lasts: minutes(2, 15)}
	}
	if random.IntN(3) == 0 {
		job.DataStall = jobs.Pause{Every: minutes(10, 60), Lasts: minutes(0.2, 3)}
	}
	p := played{job: job, seed: seed, duration: 4 * time.Hour}
	fault := jobs.Fault{Rank: random.IntN(devices), From: faultBegins, Slowdown: between(0.05, 0.4)}
	stragglers := []jobs.Kind{jobs.ThermalThrottle, jobs.BadNVLink, jobs.NoisyNeighbour, jobs.SlowNIC}
	hangs := []jobs.Kind{jobs.HangCollective, jobs.HangStuckRank, jobs.HangDeadRank}
	switch index % 3 {
	case 0: // what passes within minutes is no fault
		for range random.IntN(4) {
			from := minutes(10, 200)
			p.faults = append(p.faults, jobs.Fault{Kind: jobs.ThermalThrottle, Rank: random.IntN(devices), From: from, To: from + minutes(0.5, 3), Slowdown: between(0.05, 0.4), Passes: true})
		}
	case 1:
		if job.NodeBytes == 0 {
			stragglers = stragglers[:3]
		}
		fault.Kind, fault.To = stragglers[random.IntN(len(stragglers))], fault.From+minutes(30, 60)
		p.faults = []jobs.Fault{fault}
	case 2:
		fault.Kind, fault.To = hangs[random.IntN(len(hangs))], fault.From+minutes(15, 30)
		p.faults = []jobs.Fault{fault}
	}
	return p
}

// firing is an alert that fires.
type firing struct {
	alert, uuid string
	from        time.Duration
}

// firedAlerts plays a job into a Prometheus store and evaluates the rules that the
// alerts need, and the alerts, as Prometheus does. It also returns when the job has
// hung.
func firedAlerts(t *testing.T, p played) (fired []firing, hung time.Duration) {
	t.Helper()
	db, err := tsdb.Open(t.TempDir(), slog.New(slog.DiscardHandler), nil, tsdb.DefaultOptions(), nil)
	if err != nil {
		t.Error(err)
		return nil, 0
	}
	defer db.Close()
	db.DisableCompactions()
	engine := promql.NewEngine(promql.EngineOpts{MaxSamples: 1e8, Timeout: time.Minute, LookbackDelta: 5 * time.Minute, Parser: parser.NewParser(parser.Options{})})
	var watched []rulefmt.Rule
	for _, rule := range alerts(t) {
		if rule.Alert == stragglerAlert || rule.Alert == hungAlert {
			watched = append(watched, rule)
		}
	}
	needed := neededRules(t, watched)
	recorded := make([]map[string]labels.Labels, len(needed))
	since := map[string]time.Duration{}
	write := newSampleWriter(p.job)
	var appender storage.Appender
	player := jobs.NewPlayer(p.job, p.faults, p.seed)
	player.Play(playedScrape, p.duration, func(s jobs.Sample) {
		if s.Rank == 0 {
			appender = db.Appender(t.Context())
		}
		if err := write.append(appender, s); err != nil {
			t.Error(err)
		}
		if s.Rank < p.job.Devices-1 {
			return
		}
		if err := appender.Commit(); err != nil {
			t.Error(err)
		}
		if s.At%playedEvery != 0 {
			return
		}
		at := time.UnixMilli(0).Add(s.At)
		for i, rule := range needed {
			recorded[i] = evaluateRule(t, engine, db, rule, at, recorded[i])
		}
		pending := map[string]bool{}
		for _, rule := range watched {
			for _, row := range vector(t, engine, db, rule.Expr, at) {
				key := rule.Alert + row.Metric.String()
				pending[key] = true
				if _, is := since[key]; !is {
					since[key] = s.At
				}
				if s.At-since[key] == time.Duration(rule.For).Truncate(playedEvery) {
					fired = append(fired, firing{rule.Alert, row.Metric.Get("uuid"), s.At})
				}
			}
		}
		maps.DeleteFunc(since, func(key string, _ time.Duration) bool { return !pending[key] })
	})
	return fired, player.Hung()
}

func vector(t *testing.T, engine *promql.Engine, db *tsdb.DB, expr string, at time.Time) promql.Vector {
	t.Helper()
	query, err := engine.NewInstantQuery(t.Context(), db, nil, expr, at)
	if err != nil {
		t.Error(err)
		return nil
	}
	result := query.Exec(t.Context())
	if result.Err != nil {
		t.Errorf("%s: %v", expr, result.Err)
		return nil
	}
	found, _ := result.Vector()
	found = slices.Clone(found)
	return found
}

// evaluateRule records the results of a rule, and marks the series as stale that it
// had the last time and does not have any more.
func evaluateRule(t *testing.T, engine *promql.Engine, db *tsdb.DB, rule rulefmt.Rule, at time.Time, before map[string]labels.Labels) (now map[string]labels.Labels) {
	t.Helper()
	appender := db.Appender(t.Context())
	now = make(map[string]labels.Labels)
	for _, sample := range vector(t, engine, db, rule.Expr, at) {
		builder := labels.NewBuilder(sample.Metric).Set("__name__", rule.Record)
		for name, text := range rule.Labels {
			builder.Set(name, text)
		}
		of := builder.Labels()
		now[of.String()] = of
		if _, err := appender.Append(0, of, at.UnixMilli(), sample.F); err != nil {
			t.Errorf("%s: %v", rule.Record, err)
		}
	}
	for key, of := range before {
		if _, still := now[key]; !still {
			if _, err := appender.Append(0, of, at.UnixMilli(), math.Float64frombits(staleness.StaleNaN)); err != nil {
				t.Errorf("%s: %v", rule.Record, err)
			}
		}
	}
	if err := appender.Commit(); err != nil {
		t.Error(err)
	}
	return now
}

// neededRules returns the rules that others use, directly or through other rules, in
// the order of the file.
func neededRules(t *testing.T, by []rulefmt.Rule) []rulefmt.Rule {
	t.Helper()
	var found []rulefmt.Rule
	all := rules(t)
	for i := len(all) - 1; i >= 0; i-- { // a rule uses those above it
		uses := func(r rulefmt.Rule) bool { return names(r.Expr, all[i].Record) }
		if slices.ContainsFunc(by, uses) || slices.ContainsFunc(found, uses) {
			found = append(found, all[i])
		}
	}
	slices.Reverse(found)
	return found
}

// sampleWriter writes the samples of a job as the series of the node role. Eight
// ranks are a pod on a node of its own; the network adapter of a rank is a device.
type sampleWriter struct {
	job    jobs.Job
	series [][]playedSeries // by rank
}

type playedSeries struct {
	labels labels.Labels
	ref    storage.SeriesRef
	value  func(jobs.Sample) float64
}

func newSampleWriter(job jobs.Job) *sampleWriter {
	w := &sampleWriter{job: job, series: make([][]playedSeries, job.Devices)}
	one := func(jobs.Sample) float64 { return 1 }
	for rank := range w.series {
		node, gpu, nic := strconv.Itoa(rank/8), playedUUID(rank), fmt.Sprintf("NIC-%d", rank)
		add := func(value func(jobs.Sample) float64, name string, pairs ...string) {
			w.series[rank] = append(w.series[rank], playedSeries{labels: labels.FromStrings(append(pairs, "__name__", name, "node", "n"+node)...), value: value})
		}
		claim := func(uuid string, more ...string) []string {
			return append(more, "namespace", job.Namespace, "resourceclaim", job.Name+"-"+node, "uuid", uuid)
		}
		devices := map[string]string{gpu: "NVIDIA H100 80GB HBM3"}
		if job.NodeBytes > 0 {
			devices[nic] = "ConnectX-7"
		}
		for uuid, model := range devices {
			add(one, "dra_device_info", "uuid", uuid, "model", model)
			add(one, "dra_claim_held", claim(uuid)...)
			add(one, "dra_claim_consumer_info", claim(uuid, "pod", job.Name+"-"+node, "container", "main")...)
		}
		if rank%8 == 0 {
			add(one, "dra_claim_info", "namespace", job.Namespace, "resourceclaim", job.Name+"-"+node, "deviceclass", "gpu.nvidia.com")
			add(one, "dra_pod_workload_info", "namespace", job.Namespace, "pod", job.Name+"-"+node, "workload_kind", "JobSet", "workload", job.Name, "role", "worker", "rank", node)
		}
		exclusive := func(uuid string) []string { return claim(uuid, "attribution", "exclusive") }
		add(func(s jobs.Sample) float64 { return s.BusySeconds }, "dra_claim_busy_seconds_total", exclusive(gpu)...)
		add(func(s jobs.Sample) float64 { return s.Energy }, "dra_claim_energy_joules_total", exclusive(gpu)...)
		add(func(s jobs.Sample) float64 { return s.NVLinkBytes }, "dra_claim_nvlink_transmit_bytes_total", exclusive(gpu)...)
		add(func(s jobs.Sample) float64 { return s.NVLinkBytes }, "dra_claim_nvlink_receive_bytes_total", exclusive(gpu)...)
		add(func(s jobs.Sample) float64 { return s.Clock }, "dra_device_clock_hertz", "uuid", gpu, "clock", "sm")
		add(func(s jobs.Sample) float64 { return s.ThrottledSeconds }, "dra_device_throttled_seconds_total", "uuid", gpu, "reason", "thermal")
		add(func(s jobs.Sample) float64 { return s.NVLinkErrors }, "dra_device_nvlink_errors_total", "uuid", gpu, "kind", "crc_flit")
		if job.NodeBytes > 0 {
			add(func(s jobs.Sample) float64 { return s.NetworkBytes }, "dra_claim_network_transmit_bytes_total", exclusive(nic)...)
			add(func(s jobs.Sample) float64 { return s.NetworkBytes }, "dra_claim_network_receive_bytes_total", exclusive(nic)...)
			add(func(s jobs.Sample) float64 { return s.NetworkErrors }, "dra_device_network_errors_total", "uuid", nic, "kind", "out_of_sequence")
		}
	}
	return w
}

func playedUUID(rank int) string { return fmt.Sprintf("GPU-%d", rank) }

func (w *sampleWriter) append(to storage.Appender, s jobs.Sample) error {
	for i := range w.series[s.Rank] {
		series := &w.series[s.Rank][i]
		ref, err := to.Append(series.ref, series.labels, s.At.Milliseconds(), series.value(s))
		if err != nil {
			return err
		}
		series.ref = ref
	}
	return nil
}

// add counts what the alerts have said about a job.
func (o *outcome) add(p played, fired []firing, hung time.Duration) {
	o.hours += p.duration.Hours()
	if len(p.faults) == 0 || p.faults[0].Passes {
		for _, f := range fired {
			o.falsely = append(o.falsely, fmt.Sprintf("%s: %+v", p.job.Name, f))
		}
		return
	}
	fault := p.faults[0]
	kind, alert := string(fault.Kind), stragglerAlert
	switch {
	case fault.Kind.IsHang():
		alert = hungAlert
	case fault.Slowdown < 0.15:
		kind += ", below 15 %"
	default:
		kind += ", 15 to 40 %"
	}
	if o.kinds[kind] == nil {
		o.kinds[kind] = &detection{}
	}
	d := o.kinds[kind]
	d.faults++
	first, named := time.Duration(0), false
	for _, f := range fired {
		during := f.from >= fault.From && f.from <= fault.To+faultClears
		suspect := f.uuid == playedUUID(fault.Rank) || f.uuid == fmt.Sprintf("NIC-%d", fault.Rank)
		switch {
		case !during, f.alert != alert && !suspect, alert == stragglerAlert && !suspect:
			o.falsely = append(o.falsely, fmt.Sprintf("%s with %+v: %+v", p.job.Name, fault, f))
		case f.alert == alert && first == 0:
			first = f.from
		}
		named = named || suspect && during
	}
	if first > 0 {
		d.found++
		d.after = append(d.after, first-max(fault.From, hung))
	} else {
		o.kinds[kind].after = append(d.after, p.duration)
	}
	if named || alert == hungAlert && first > 0 {
		d.named++
	}
	if first == 0 {
		fmt.Printf("missed: %s: %d devices, %+v\n", p.job.Name, p.job.Devices, fault)
	}
}

func (o *outcome) print(t *testing.T) {
	t.Helper()
	t.Logf("%.0f hours of jobs, %d false alerts: %s", o.hours, len(o.falsely), strings.Join(o.falsely, "\n"))
	for _, kind := range slices.Sorted(maps.Keys(o.kinds)) {
		d := o.kinds[kind]
		slices.Sort(d.after)
		t.Logf("| %s | %d | %d | %d | %v | %v |", kind, d.faults, d.found, d.named, d.after[len(d.after)/2], d.after[len(d.after)-1])
	}
}
