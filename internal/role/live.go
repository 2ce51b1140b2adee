package role

import (
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/dra-exporter/dra-exporter/collector/metric"
	"github.com/dra-exporter/dra-exporter/collector/self"
)

// liveMetrics are the metrics that are not part of snapshots: those of the process, the
// durations of reads, and the steps of the reducer.
type liveMetrics struct {
	registry *prometheus.Registry
	reads    *prometheus.HistogramVec // by source
	steps    struct{ count, seconds prometheus.Counter }
}

func newLiveMetrics() *liveMetrics {
	l := &liveMetrics{registry: prometheus.NewRegistry()}
	reads := self.ReadDuration()
	l.reads = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:                           reads.Name,
		Help:                           reads.Help,
		Buckets:                        []float64{0.01, 0.1, 1}, // devices are read each second; native buckets are finer
		NativeHistogramBucketFactor:    1.1,
		NativeHistogramMaxBucketNumber: 160,
	}, reads.Labels)
	counter := func(family *metric.Family) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Name: family.Name, Help: family.Help, Unit: family.Unit})
	}
	steps := self.NewSteps()
	l.steps.count, l.steps.seconds = counter(steps.Count), counter(steps.Seconds)
	l.registry.MustRegister(l.reads, l.steps.count, l.steps.seconds)
	return l
}

// processCollectors are the collectors of go_* and process_*. The older memory
// statistics are left out: they stop the world at each scrape, and name one family
// twice in OpenMetrics.
func processCollectors() []prometheus.Collector {
	return []prometheus.Collector{
		collectors.NewGoCollector(collectors.WithGoCollectorMemStatsMetricsDisabled(), collectors.WithGoCollectorRuntimeMetrics(collectors.MetricsMemory)),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	}
}

// addProcessMetrics registers those of which the filter selects a family, since a
// collector reads all of its families at each scrape; and, for those of every level
// alone, one that reads no others.
func addProcessMetrics(registry *prometheus.Registry, filter *metric.Filter) {
	for _, collector := range processCollectors() {
		selected := slices.DeleteFunc(families(collector), func(name string) bool { return !filter.Has(name) })
		if few := newProcessFamilies(); few != nil && len(selected) > 0 && isSubset(selected, families(few)) {
			collector = few
		}
		if len(selected) > 0 {
			registry.MustRegister(collector)
		}
	}
}

func isSubset(names, all []string) bool {
	return !slices.ContainsFunc(names, func(name string) bool { return !slices.Contains(all, name) })
}

// families returns the names of a collector's families.
func families(collector prometheus.Collector) (names []string) {
	registry := prometheus.NewRegistry()
	registry.MustRegister(collector)
	gathered, _ := registry.Gather() // what cannot be read here has no name to check
	for _, family := range gathered {
		names = append(names, family.GetName())
	}
	return names
}

// ProcessFamilies returns the names of the families about the process and its web
// server.
func ProcessFamilies() []string {
	names := []string{"promhttp_metric_handler_requests_total", "promhttp_metric_handler_requests_in_flight", "promhttp_metric_handler_errors_total"}
	for _, collector := range processCollectors() {
		names = append(names, families(collector)...)
	}
	return names
}

// observeRead returns the function that observes the durations of a source's reads, in seconds.
func (l *liveMetrics) observeRead(source string) func(seconds float64) {
	return l.reads.WithLabelValues(source).Observe
}

// observeStep counts a step.
func (l *liveMetrics) observeStep(duration time.Duration) {
	l.steps.count.Inc()
	l.steps.seconds.Add(duration.Seconds())
}
