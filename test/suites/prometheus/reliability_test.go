package prometheus

import (
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/tsdb"
)

// incidentStream is the counters of one agent whose devices fail at a known rate: after
// each incident the device is not watched for a while. Restarts set the counters to zero,
// and a zero of the incidents is not exported.
type incidentStream struct {
	rate    float64 // incidents of a device in a second in which it is watched
	devices []float64
	random  *rand.Rand

	incidents, watched float64
}

// incidentLasts is how long an incident lasts, seconds.
const incidentLasts = 300

// advance plays so many seconds. A device has the seconds until it is watched again if
// they are negative, else those until it fails.
func (s *incidentStream) advance(seconds float64) {
	for i, left := range s.devices {
		passed := 0.0
		for passed < seconds {
			step := min(seconds-passed, math.Abs(left))
			passed += step
			if left < 0 {
				if left += step; left >= 0 {
					left = s.random.ExpFloat64() / s.rate
				}
				continue
			}
			s.watched += step
			if left -= step; left <= 0 {
				s.incidents++
				left = -incidentLasts
			}
		}
		s.devices[i] = left
	}
}

// TestMeanTimeBetweenIncidents: of 1,000 streams of incidents with known rates, of which
// some agents restart, the interval that the rules record covers the true mean in 950 at
// least, and the bounds are not far apart for nothing.
func TestMeanTimeBetweenIncidents(t *testing.T) {
	const runs, hours, every = 1000, 24, 5 * time.Minute
	db, err := tsdb.Open(t.TempDir(), slog.New(slog.DiscardHandler), nil, tsdb.DefaultOptions(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	db.DisableCompactions()
	engine := promql.NewEngine(promql.EngineOpts{MaxSamples: 1e8, Timeout: time.Minute, LookbackDelta: 5 * time.Minute, Parser: parser.NewParser(parser.Options{})})
	random := rand.New(rand.NewPCG(24, 6))
	streams, sets := make([]incidentStream, runs), make([][3]labels.Labels, runs)
	for i := range streams {
		devices := make([]float64, 1+random.IntN(16))
		expected := math.Exp(math.Log(0.3) + random.Float64()*math.Log(40/0.3)) // of all devices
		rate := expected / float64(len(devices)) / (hours * 3600)
		for j := range devices {
			devices[j] = random.ExpFloat64() / rate
		}
		streams[i] = incidentStream{rate: rate, devices: devices, random: random}
		of := func(name string) labels.Labels {
			return labels.FromStrings("__name__", name, "job", "node", "instance", fmt.Sprint(i), "node", "n", "model", fmt.Sprint(i), "driver_version", "580", "kind", "xid_reset")
		}
		sets[i] = [3]labels.Labels{of("dra_incidents_total"), of("dra_incident_watched_seconds_total"), labels.FromStrings("__name__", "dra_exporter_build_info", "job", "node", "instance", fmt.Sprint(i))}
	}
	final := []rulefmt.Rule{{Expr: "model_kind:dra_incident_watched_seconds:mtbf_lower28d + model_kind:dra_incident_watched_seconds:mtbf_upper28d"}}
	var windows, after []rulefmt.Rule
	for _, rule := range append(neededRules(t, final), rulesNamed(t, "model_kind:dra_incident_watched_seconds:mtbf_lower28d", "model_kind:dra_incident_watched_seconds:mtbf_upper28d")...) {
		switch {
		case slices.ContainsFunc(slices.Concat(windows, after), func(r rulefmt.Rule) bool { return r.Record == rule.Record }):
		case rule.Record == "job_instance:dra_exporter_build_info:count10m" || names(rule.Expr, "job_instance:dra_exporter_build_info:count10m"):
			windows = append(windows, rule)
		default:
			after = append(after, rule)
		}
	}
	at := time.UnixMilli(0)
	for range int(hours * time.Hour / every) {
		at = at.Add(every)
		appender := db.Appender(t.Context())
		for i := range streams {
			s := &streams[i]
			if i%5 == 0 && random.IntN(60) == 0 {
				s.incidents, s.watched = 0, 0
			}
			s.advance(every.Seconds())
			for j, value := range []float64{s.incidents, s.watched, 1} {
				if j == 0 && value == 0 {
					continue
				}
				if _, err := appender.Append(0, sets[i][j], at.UnixMilli(), value); err != nil {
					t.Fatal(err)
				}
			}
		}
		if err := appender.Commit(); err != nil {
			t.Fatal(err)
		}
		for _, rule := range windows {
			evaluateRule(t, engine, db, rule, at, nil)
		}
	}
	for _, rule := range after {
		evaluateRule(t, engine, db, rule, at, nil)
	}
	bound := func(name string) map[string]float64 {
		values := map[string]float64{}
		for _, row := range vector(t, engine, db, "model_kind:dra_incident_watched_seconds:"+name, at) {
			values[row.Metric.Get("model")] = row.F
		}
		return values
	}
	lower, upper, incidents := bound("mtbf_lower28d"), bound("mtbf_upper28d"), 0
	covered, wide := 0, 0.0
	for i := range streams {
		low, there := lower[fmt.Sprint(i)]
		if !there {
			t.Fatalf("stream %d has no bounds", i)
		}
		high, limited := upper[fmt.Sprint(i)]
		if mean := 1 / streams[i].rate; low <= mean && (!limited || mean <= high) {
			covered++
		}
		if limited {
			incidents++
			wide += math.Log(high / low)
		}
	}
	t.Logf("the interval covers the mean in %d of %d runs; its bounds are apart by a factor of %.1f", covered, runs, math.Exp(wide/float64(incidents)))
	if covered < 950 || covered > 990 {
		t.Errorf("the interval covers the mean in %d of %d runs", covered, runs)
	}
	if incidents < runs/2 {
		t.Errorf("only %d streams have incidents", incidents)
	}
}

// rulesNamed returns the rules with these names.
func rulesNamed(t *testing.T, records ...string) (found []rulefmt.Rule) {
	t.Helper()
	for _, rule := range rules(t) {
		if slices.Contains(records, rule.Record) {
			found = append(found, rule)
		}
	}
	if len(found) < len(records) {
		t.Fatalf("%d rules of %v", len(found), records)
	}
	return found
}
