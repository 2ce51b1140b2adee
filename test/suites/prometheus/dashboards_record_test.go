//go:build linux

package prometheus

import (
	"math"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	stalemarker "github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"
)

// evaluatedEach is the evaluation interval of rules without one of their own.
const evaluatedEach = time.Minute

// productionEngine is an engine with Prometheus' own limits.
func productionEngine() *promql.Engine {
	return promql.NewEngine(promql.EngineOpts{
		MaxSamples: 50e6, Timeout: 2 * time.Minute, LookbackDelta: 5 * time.Minute,
		EnableAtModifier: true, EnableNegativeOffset: true, Parser: parser.NewParser(parser.Options{}),
	})
}

// record evaluates all rules over the hour, each in its group's interval, and
// stores the results. As in a group of Prometheus, a rule reads the results of
// earlier rules at the same time.
func (f *fleet) record(b *testing.B, engine *promql.Engine, groups []rulefmt.RuleGroup) (recorded int) {
	b.Helper()
	for _, group := range groups {
		interval := time.Duration(group.Interval)
		if interval == 0 {
			interval = evaluatedEach
		}
		for _, rule := range group.Rules {
			if rule.Record != "" {
				recorded += f.recordRule(b, engine, rule, interval)
			}
		}
	}
	return recorded
}

func (f *fleet) recordRule(b *testing.B, engine *promql.Engine, rule rulefmt.Rule, interval time.Duration) int {
	b.Helper()
	query, err := engine.NewRangeQuery(b.Context(), f.db, nil, rule.Expr, f.start, f.end, interval)
	if err != nil {
		b.Fatalf("%s: %v", rule.Record, err)
	}
	defer query.Close()
	result := query.Exec(b.Context())
	if result.Err != nil {
		b.Fatalf("%s: %v", rule.Record, result.Err)
	}
	matrix, is := result.Value.(promql.Matrix)
	if !is {
		b.Fatalf("%s: the result is a %s", rule.Record, result.Value.Type())
	}
	found := len(matrix)
	for len(matrix) > 0 {
		some := matrix[:min(len(matrix), 10000)]
		matrix = matrix[len(some):]
		appender := f.db.Appender(b.Context())
		for _, series := range some {
			builder := labels.NewBuilder(series.Metric).Set("__name__", rule.Record)
			for name, text := range rule.Labels {
				builder.Set(name, text)
			}
			if err := storeRecorded(appender, builder.Labels(), series.Floats, interval, f.end); err != nil {
				b.Fatalf("%s: %v", rule.Record, err)
			}
		}
		if err := appender.Commit(); err != nil {
			b.Fatal(err)
		}
	}
	return found
}

// storeRecorded appends one series, with a staleness marker where the rule has
// no more results, as Prometheus does.
func storeRecorded(appender storage.Appender, series labels.Labels, points []promql.FPoint, interval time.Duration, end time.Time) error {
	var ref storage.SeriesRef
	for i, point := range points {
		var err error
		if ref, err = appender.Append(ref, series, point.T, point.F); err != nil {
			return err
		}
		next := point.T + interval.Milliseconds()
		if next > end.UnixMilli() || i+1 < len(points) && points[i+1].T == next {
			continue
		}
		if ref, err = appender.Append(ref, series, next, math.Float64frombits(stalemarker.StaleNaN)); err != nil {
			return err
		}
	}
	return nil
}
