//go:build linux

package prometheus

import (
	"fmt"
	"maps"
	"math"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/prometheus/model/labels"
)

const (
	scrapedJob = "scraped"
	pushedJob  = "dra-exporter"
	// scrapeTolerance is how many seconds after a snapshot's time it has been
	// scraped: there is one a second, and it is scraped twice. On a busy machine, a scrape may
	// happen that much later than its timestamp.
	scrapeTolerance = 4.0
	// fewPushes is the number of pushes that may all have been of snapshots which
	// another one replaced before the next scrape.
	fewPushes = 4
)

// TestPushedIsScraped: a real Prometheus to which the demo pushes has the same
// series as by scraping: names, labels, types, units and values, each under
// one name only.
func TestPushedIsScraped(t *testing.T) {
	if testing.Short() {
		t.Skip("the demo runs for a minute")
	}
	pages := map[string]string{demoNode: freeAddress(t), "cluster": freeAddress(t)}
	server := startReceiver(t, pages)
	startDemo(t, pages, server)
	until(t, "both roles have pushed eight times", func() bool {
		pushes := server.query(t, `dra_exporter_build_info{job="`+pushedJob+`"}[10m]`)
		return len(pushes) == 2 && len(pushes[0].Values) >= 8 && len(pushes[1].Values) >= 8
	})
	until(t, "exemplars arrive", func() bool { return len(exemplars(t, server, pushedJob)) > 0 })
	pushed, scraped := server.series(t, pushedJob), server.series(t, scrapedJob)
	if len(pushed) < 2000 {
		t.Errorf("only %d series were pushed", len(pushed))
	}
	if none := unknownTo(scraped, pushed); len(none) > 0 {
		t.Errorf("%d series were pushed again and again and never scraped, such as\n%s", len(none), some(none))
	}
	compareSeries(t, pushed, scraped)
	checkGone(t, server, pushed)
	checkExports(t, server)
	for id := range exemplars(t, server, pushedJob) {
		if !regexp.MustCompile("^[0-9a-f]{32}$").MatchString(id) {
			t.Errorf("an exemplar points to the trace %q", id)
		}
	}
}

// series returns the series of a job, by the parts that both jobs have: all
// labels except the job itself, the type and the unit. It omits what only
// scraping or only pushing can have. Prometheus writes the bound 1 of a bucket
// as 1.0 if it was scraped, and as 1 if it came by OTLP: both are 1 here.
func (r *receiver) series(t *testing.T, job string) map[string]stored {
	t.Helper()
	all := map[string]stored{}
	for _, series := range r.query(t, `{job="`+job+`"}[30m]`) {
		name := series.Metric["__name__"]
		if name == "target_info" || name == "up" || strings.HasPrefix(name, "scrape_") {
			continue
		}
		common := maps.Clone(series.Metric)
		for _, label := range []string{"job", "__type__", "__unit__"} {
			delete(common, label)
		}
		for _, label := range []string{"le", "quantile"} {
			if bound, found := common[label]; found {
				common[label] = strings.TrimSuffix(bound, ".0")
			}
		}
		key := labels.FromMap(common).String()
		if other, twice := all[key]; twice {
			t.Errorf("two series of %s differ in type or unit alone: %v and %v", job, series.Metric, other.Metric)
		}
		all[key] = series
	}
	return all
}

// unknownTo returns series that were pushed more than once, so not only before
// the first scrape or between two scrapes, and that were not scraped.
func unknownTo(scraped, pushed map[string]stored) (unknown []string) {
	for key, series := range pushed {
		if _, found := scraped[key]; !found && len(series.Values) > 3 {
			unknown = append(unknown, key)
		}
	}
	slices.Sort(unknown)
	return unknown
}

func some(keys []string) string { return strings.Join(keys[:min(10, len(keys))], "\n") }

// compareSeries looks up each scraped series that existed around a push.
func compareSeries(t *testing.T, pushed, scraped map[string]stored) {
	t.Helper()
	pushes := map[string][]sample{}
	for _, series := range pushed {
		if series.Metric["__name__"] == "dra_exporter_build_info" {
			pushes[series.Metric["instance"]] = series.Values
		}
	}
	var missing, differ []string
	compared := 0
	for key, series := range scraped {
		if !slices.ContainsFunc(pushes[series.Metric["instance"]], func(push sample) bool { return around(series.Values, push.at) }) {
			continue // it existed only between pushes
		}
		other, found := pushed[key]
		if !found {
			missing = append(missing, key)
			continue
		}
		checkMeta(t, other.Metric, series.Metric)
		looked, equal := sameValues(other, series)
		if compared += looked; !equal {
			differ = append(differ, key)
		}
	}
	slices.Sort(missing)
	slices.Sort(differ)
	if len(missing) > 0 {
		t.Errorf("%d series were scraped and not pushed, such as\n%s", len(missing), some(missing))
	}
	if len(differ) > 0 {
		t.Errorf("%d series have other values when pushed, such as\n%s", len(differ), some(differ))
	}
	if compared < 10000 {
		t.Errorf("only %d values could be compared", compared)
	}
}

// around reports whether there are samples shortly before and after.
func around(samples []sample, at float64) bool {
	return last(samples, at-2*scrapeTolerance, at-scrapeTolerance) != nil && first(samples, at+scrapeTolerance, at+2*scrapeTolerance) != nil
}

func last(samples []sample, from, to float64) (found *sample) {
	for i := range samples {
		if samples[i].at >= from && samples[i].at <= to {
			found = &samples[i]
		}
	}
	return found
}

func first(samples []sample, from, to float64) *sample {
	for i := range samples {
		if samples[i].at >= from && samples[i].at <= to {
			return &samples[i]
		}
	}
	return nil
}

// checkMeta compares types and units. The documented differences are: DCGM's
// counters, whose names do not end as those of counters; ratios, whose unit
// Prometheus derives from the name if they came by OTLP; and live metrics,
// whose unit a push derives from the name if the page has none, except for
// units without a code.
func checkMeta(t *testing.T, pushed, scraped map[string]string) {
	t.Helper()
	name := scraped["__name__"]
	kind := scraped["__type__"]
	if strings.HasPrefix(name, "DCGM_FI_") {
		kind = "gauge"
	}
	if pushed["__type__"] != kind && kind != "unknown" {
		t.Errorf("%s is of type %q when pushed, and %q when scraped", name, pushed["__type__"], scraped["__type__"])
	}
	unit := strings.TrimSuffix(scraped["__unit__"], "ratio")
	stem := regexp.MustCompile("_(total|bucket|sum|count)$").ReplaceAllString(name, "")
	byName := unit == "" && isLive(name) && strings.HasSuffix(stem, "_"+pushed["__unit__"])
	uncoded := pushed["__unit__"] == "" && unit == "threads"
	if pushed["__unit__"] != unit && !byName && !uncoded {
		t.Errorf("%s has the unit %q when pushed, and %q when scraped", name, pushed["__unit__"], scraped["__unit__"])
	}
}

// sameValues compares each pushed sample that was scraped soon before and
// after. Of rows of snapshots, it must equal one of the values scraped
// between, because other snapshots may have passed between two scrapes.
// Counters must be between the values scraped before and after. looked is how
// many samples it compared.
func sameValues(pushed, scraped stored) (looked int, equal bool) {
	name := pushed.Metric["__name__"]
	counts := strings.HasSuffix(name, "_total") || regexp.MustCompile("_(bucket|sum|count)$").MatchString(name)
	seen := false
	for _, push := range pushed.Values {
		if !around(scraped.Values, push.at) {
			continue
		}
		before, after := last(scraped.Values, push.at-2*scrapeTolerance, push.at-scrapeTolerance), first(scraped.Values, push.at+scrapeTolerance, push.at+2*scrapeTolerance)
		if counts && (push.value < before.value || push.value > after.value) {
			return looked, false
		}
		looked++
		seen = seen || slices.ContainsFunc(scraped.Values, func(sample sample) bool {
			same := sample.value == push.value || math.IsNaN(sample.value) && math.IsNaN(push.value)
			return same && sample.at >= push.at && sample.at <= push.at+scrapeTolerance
		})
	}
	return looked, looked < fewPushes || seen || isLive(name)
}

// isLive reports whether a metric does not belong to a snapshot, and changes
// between two of them.
func isLive(name string) bool {
	return regexp.MustCompile(`^(go|process|promhttp)_|^dra_exporter_(otlp|config_last_reload|step|steps)_|_duration_seconds`).MatchString(name)
}

// checkGone: a series that was pushed and is not in later pushes has no value
// from then on, as if it had been scraped, although Prometheus looks back for
// five minutes.
func checkGone(t *testing.T, server *receiver, pushed map[string]stored) {
	t.Helper()
	complete := map[string]float64{} // time of the last push but one: of the last, only a part may be stored yet
	for _, series := range pushed {
		if series.Metric["__name__"] == "dra_exporter_build_info" {
			complete[series.Metric["instance"]] = series.Values[len(series.Values)-2].at
		}
	}
	gone := 0
	for instance, at := range complete {
		there := map[string]bool{}
		query := fmt.Sprintf(`{job=%q, instance=%q} @ %.3f`, pushedJob, instance, at)
		for _, series := range server.query(t, query) {
			there[labels.FromMap(series.Metric).String()] = true
		}
		for key, series := range pushed {
			live := isLive(series.Metric["__name__"]) // it has its own time, after that of the snapshot
			if series.Metric["instance"] != instance || live {
				continue
			}
			last := series.Values[len(series.Values)-1].at
			if last < at {
				gone++
			}
			pushedThen := slices.ContainsFunc(series.Values, func(m sample) bool { return m.at == at })
			if is := there[labels.FromMap(series.Metric).String()]; is != pushedThen {
				t.Errorf("%s was pushed: %t, and has a value: %t; its last push was %.3f s before", key, pushedThen, is, at-last)
			}
		}
	}
	if gone == 0 {
		t.Error("nothing has gone while the demo ran")
	}
}

// checkExports fails the test unless each push was accepted completely,
// according to the exporter and the server.
func checkExports(t *testing.T, server *receiver) {
	t.Helper()
	results := server.query(t, `dra_exporter_otlp_exports_total{signal="metrics", job="`+scrapedJob+`"}[30m]`)
	if len(results) != 6 {
		t.Errorf("%d results of pushing, want three of each role", len(results))
	}
	for _, series := range results {
		last := series.Values[len(series.Values)-1].value
		if ok := series.Metric["result"] == "success"; ok != (last > 0) {
			t.Errorf("%v exports of %s ended with %s", last, series.Metric["instance"], series.Metric["result"])
		}
	}
}

// exemplars returns the traces to which exemplars of a job refer.
func exemplars(t *testing.T, server *receiver, job string) map[string]bool {
	t.Helper()
	var data []struct {
		Exemplars []struct{ Labels map[string]string }
	}
	server.get(t, "query_exemplars", url.Values{
		"query": {`{__name__=~"dra_.+_bucket", job="` + job + `"}`}, "start": {"0"}, "end": {"9999999999"},
	}, &data)
	traces := map[string]bool{}
	for _, series := range data {
		for _, exemplar := range series.Exemplars {
			traces[exemplar.Labels["trace_id"]] = true
		}
	}
	return traces
}
