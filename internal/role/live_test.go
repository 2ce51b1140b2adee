package role

import (
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/dra-exporter/dra-exporter/collector/metric"
)

func liveRegistry(t testing.TB, level metric.Level, include string) *prometheus.Registry {
	t.Helper()
	var patterns []metric.Pattern
	if include != "" {
		pattern, err := metric.NewPattern(include, ProcessFamilies())
		if err != nil {
			t.Fatal(err)
		}
		patterns = append(patterns, pattern)
	}
	registry := prometheus.NewRegistry()
	addProcessMetrics(registry, metric.NewFilter(level, patterns, nil))
	return registry
}

// TestCollectorsOfTheProcess: a collector runs if a family of it is exported, and not
// otherwise.
func TestCollectorsOfTheProcess(t *testing.T) {
	for name, test := range map[string]struct {
		level   metric.Level
		include string
		want    []string // how the names of gathered families begin
	}{
		"lean":     {level: metric.LevelLean, want: []string{"process_"}},
		"default":  {level: metric.LevelDefault, want: []string{"process_"}},
		"full":     {level: metric.LevelFull, want: []string{"go_", "process_"}},
		"included": {level: metric.LevelDefault, include: "go_goroutines", want: []string{"go_", "process_"}},
	} {
		t.Run(name, func(t *testing.T) {
			families, err := liveRegistry(t, test.level, test.include).Gather()
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, family := range families {
				prefix, _, _ := strings.Cut(family.GetName(), "_")
				got = append(got, prefix+"_")
			}
			if got = slices.Compact(got); !slices.Equal(got, test.want) {
				t.Errorf("families begin with %q, want %q", got, test.want)
			}
		})
	}
}

// TestFewProcessFamilies: they are those of the library, whatever reads them.
func TestFewProcessFamilies(t *testing.T) {
	few := newProcessFamilies()
	if few == nil {
		t.Skip("/proc is not read on this system")
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(few)
	theirs := prometheus.NewRegistry()
	theirs.MustRegister(processCollectors()...)
	ours, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	known, err := theirs.Gather()
	if err != nil {
		t.Fatal(err)
	}
	if len(ours) != 3 {
		t.Errorf("%d families, want 3", len(ours))
	}
	for _, family := range ours {
		i := slices.IndexFunc(known, func(k *dto.MetricFamily) bool { return k.GetName() == family.GetName() })
		if i < 0 || known[i].GetHelp() != family.GetHelp() || known[i].GetType() != family.GetType() {
			t.Errorf("%v is not the library's", family)
		}
		if name := family.GetName(); name == "process_start_time_seconds" && family.Metric[0].GetGauge().GetValue() != known[i].Metric[0].GetGauge().GetValue() {
			t.Errorf("%s is %v, want %v", name, family.Metric[0], known[i].Metric[0])
		}
	}
}

// BenchmarkProcessMetrics gathers what each scrape does.
func BenchmarkProcessMetrics(b *testing.B) {
	for _, level := range []metric.Level{metric.LevelDefault, metric.LevelFull} {
		b.Run(level.String(), func(b *testing.B) {
			registry := liveRegistry(b, level, "")
			b.ReportAllocs()
			for b.Loop() {
				if _, err := registry.Gather(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
