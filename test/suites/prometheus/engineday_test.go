//go:build linux

package prometheus

import (
	"hash/fnv"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	staleness "github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb"
	"github.com/prometheus/prometheus/tsdb/tsdbutil"
)

// Minutes of the engines' day.
const (
	engineDay = day

	faultsBegin  = 3 * hour // counters of errors rise, and states change, for an hour
	restartsNode = 6 * hour // the agent of a node: two scrapes fail, and its counters begin again
	losesScrapes = 9 * hour // Prometheus is down for twelve minutes
	restartsAll  = 12 * hour
)

// daySeries is a series of the engines' day.
type daySeries struct {
	labels  labels.Labels
	counter bool
	native  bool    // a native histogram
	level   float64 // of a gauge on average; of a counter, its growth in an hour
	alive   [2]int  // minutes
	seed    int     // by which series differ
	starts  []int   // minutes in which its exporter starts
}

// claimLives are the minutes in which claims of the pages exist; others exist all day.
func claimLives() map[string][2]int {
	return map[string][2]int{
		"claim-00": {0, 5 * hour}, "claim-01": {2 * hour, 15 * hour}, "claim-02": {hour, hour + 10}, "claim-03": {10 * hour, day}, "claim-11": {7 * hour, 7*hour + 3},
	}
}

// engineSeries returns the series of two nodes and a cluster role, from the pages with
// which the levels are compared, and of histograms.
func engineSeries(t *testing.T) (all []daySeries) {
	t.Helper()
	second := strings.NewReplacer("gpu-node-1", "gpu-node-2", "GPU-", "GPU-2", "MIG-", "MIG-2")
	for _, page := range []struct {
		file, instance string
		starts         []int
		rename         func(string) string
	}{
		{levelPages + "full.txt", "gpu-node-1", []int{0, restartsNode + 2, restartsAll}, func(text string) string { return text }},
		{levelPages + "full.txt", "gpu-node-2", []int{0, restartsAll + 3}, func(text string) string { return shortened(second.Replace(text)) }},
		{clusterLevelPages + "full.txt", "cluster", []int{0, restartsAll + 1}, func(text string) string { return text }},
	} {
		for _, row := range levelRows(t, page.file) {
			builder := labels.NewBuilder(row.labels)
			row.labels.Range(func(l labels.Label) {
				if l.Name != "__name__" {
					builder.Set(l.Name, page.rename(l.Value))
				}
			})
			of := builder.Set("instance", page.instance).Labels()
			all = append(all, daySeries{labels: of, counter: row.counter, level: row.value, alive: claimLife(of), seed: hashSeed(of), starts: page.starts})
		}
		if page.instance == "cluster" {
			all = append(all, histogramSeries(page.starts)...)
		}
	}
	return all
}

// shortened gives UUIDs that have got a digit in front their length back.
func shortened(text string) string {
	if (strings.HasPrefix(text, "GPU-") || strings.HasPrefix(text, "MIG-")) && len(text) == len("GPU-")+37 {
		return text[:5] + text[6:]
	}
	return text
}

func claimLife(of labels.Labels) [2]int {
	if life, ok := claimLives()[of.Get("resourceclaim")]; ok {
		return life
	}
	return [2]int{0, engineDay}
}

func hashSeed(of labels.Labels) int {
	sum := fnv.New32a()
	_, _ = sum.Write([]byte(of.String()))
	return int(sum.Sum32() % 1000)
}

// histogramSeries are histograms of durations: classic ones, and native ones of another
// cluster.
func histogramSeries(starts []int) (all []daySeries) {
	bounds := []string{"0.1", "1", "10", "60", "+Inf"}
	target := func(pairs ...string) *labels.Builder {
		builder := labels.NewBuilder(labels.FromStrings(pairs...)).Set("job", "dra-exporter").Set("instance", "cluster")
		return builder
	}
	for _, phase := range []string{"allocation", "scheduling", "preparation", "ready"} {
		for _, class := range []string{"gpu.example.com", "net.example.com"} {
			pairs := []string{"deviceclass", class, "phase", phase}
			all = append(all, daySeries{labels: target(append(pairs, "__name__", "dra_allocation_duration_seconds", "cluster", "native")...).Labels(), native: true, alive: [2]int{0, engineDay}, starts: starts})
			for i, bound := range bounds {
				of := target(append(pairs, "__name__", "dra_allocation_duration_seconds_bucket", "le", bound)...).Labels()
				all = append(all, daySeries{labels: of, counter: true, level: float64(20 * (i + 1)), alive: [2]int{0, engineDay}, starts: starts})
			}
			for name, level := range map[string]float64{"_count": 100, "_sum": 720} {
				of := target(append(pairs, "__name__", "dra_allocation_duration_seconds"+name)...).Labels()
				all = append(all, daySeries{labels: of, counter: true, level: level, alive: [2]int{0, engineDay}, starts: starts})
			}
		}
	}
	return all
}

// began returns the minute in which the exporter has started last; false: it is starting,
// or the series does not exist.
func (s *daySeries) began(minute int) (start int, ok bool) {
	if minute < s.alive[0] || minute >= s.alive[1] {
		return 0, false
	}
	down := false
	for _, at := range s.starts {
		if at <= minute {
			start = at
		} else if at-minute <= 2 {
			down = true
		}
	}
	return max(start, s.alive[0]), !down
}

// at returns the value of a minute of a series that is not a native histogram.
func (s *daySeries) at(minute int, began int, now time.Time) float64 {
	name := s.labels.Get("__name__")
	faulty := minute >= faultsBegin && minute < faultsBegin+hour
	switch age := float64(minute - began); {
	case strings.HasSuffix(name, "_timestamp_seconds") || name == "process_start_time_seconds":
		return s.time(name, minute, began, now)
	case s.counter && s.level == 0: // of errors: some rise
		if s.seed%3 == 0 && minute >= faultsBegin && began < faultsBegin+hour {
			return float64(min(minute-max(faultsBegin, began), hour) / 10)
		}
		return 0
	case s.counter && s.seed%2 == 0:
		return math.Floor(s.level/hour*age + 12) // it begins with what was counted before
	case s.counter:
		return s.level / hour * (age + 10 + 10*math.Sin(float64(s.seed)+age/30))
	case s.level == 0 || s.level == 1:
		if faulty && s.seed%7 == 0 {
			return 1 - s.level
		}
		return s.level
	default:
		return s.level * (1 + 0.2*math.Sin(float64(s.seed)+float64(minute)/9))
	}
}

func (s *daySeries) time(name string, minute, began int, now time.Time) float64 {
	at := now
	switch {
	case strings.Contains(name, "_since_"), strings.Contains(name, "xid_last"):
		at = now.Add(-time.Duration(minute-max(began, s.seed%600)) * time.Minute)
	case strings.Contains(name, "start_time"), strings.Contains(name, "reload"):
		at = now.Add(-time.Duration(minute-began) * time.Minute)
	default:
		at = now.Add(-time.Second)
	}
	return float64(at.UnixMilli()) / 1000
}

// playEngineDay returns a store with the day, and what the recording rules make of it.
func playEngineDay(t *testing.T, start time.Time, minutes int) *tsdb.DB {
	t.Helper()
	db, all, groups := emptyStore(t), engineSeries(t), groups(t)
	engine := promql.NewEngine(promql.EngineOpts{MaxSamples: 1e8, Timeout: time.Minute, LookbackDelta: 5 * time.Minute, Parser: parser.NewParser(parser.Options{})})
	recorded, present := map[[2]int]map[string]labels.Labels{}, make([]bool, len(all))
	for minute := range minutes {
		if minute >= losesScrapes && minute < losesScrapes+12 {
			continue
		}
		now := start.Add(time.Duration(minute) * time.Minute)
		appender := db.Appender(t.Context())
		for i := range all {
			scraped := now.Add(-time.Duration(5+7*len(all[i].labels.Get("instance"))) * time.Second / 2)
			if err := all[i].append(appender, minute, scraped, &present[i]); err != nil {
				t.Fatal(err)
			}
		}
		if err := appender.Commit(); err != nil {
			t.Fatal(err)
		}
		for g, group := range groups {
			if group.Interval.String() == "5m" && minute%5 != 0 {
				continue
			}
			for i, rule := range group.Rules {
				recorded[[2]int{g, i}] = evaluateRule(t, engine, db, rule, now, recorded[[2]int{g, i}])
			}
		}
	}
	return db
}

// append appends the sample of a minute, or a mark that the series has ended.
func (s *daySeries) append(appender storage.Appender, minute int, now time.Time, present *bool) error {
	began, ok := s.began(minute)
	isUp := s.labels.Get("__name__") == "up"
	value := math.Float64frombits(staleness.StaleNaN)
	switch {
	case isUp && !ok:
		value = 0
	case isUp:
		value = 1
	case !ok && !*present:
		return nil
	case ok && s.native:
		*present = true
		_, err := appender.AppendHistogram(0, s.labels, now.UnixMilli(), tsdbutil.GenerateTestHistogram(int64(minute-began)), nil)
		return err
	case ok:
		value = s.at(minute, began, now)
	}
	*present = ok
	_, err := appender.Append(0, s.labels, now.UnixMilli(), value)
	return err
}

// events are minutes around which engines may differ.
func events() (all []int) {
	for _, at := range []int{0, hour, faultsBegin, faultsBegin + hour, 5 * hour, restartsNode, 7 * hour, losesScrapes, losesScrapes + 12, restartsAll, 15 * hour} {
		for _, after := range []int{1, 2, 4, 6, 11} {
			all = append(all, at+after)
		}
	}
	for at := 20; at < engineDay; at += 97 {
		all = append(all, at)
	}
	slices.Sort(all)
	return slices.Compact(all)
}
