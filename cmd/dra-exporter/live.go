package main

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	dto "github.com/prometheus/client_model/go"

	"github.com/dra-exporter/dra-exporter/collector/self"
	"github.com/dra-exporter/dra-exporter/collector/source"
)

// liveMetrics are those that no snapshot holds: of the process, and how long
// sources take.
func liveMetrics() (*prometheus.Registry, *prometheus.HistogramVec) {
	family := self.ReadDuration()
	durations := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:                           family.Name,
		Help:                           family.Help,
		Buckets:                        []float64{0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10},
		NativeHistogramBucketFactor:    1.1,
		NativeHistogramMaxBucketNumber: 160,
	}, family.Labels)
	// The older memory statistics stop the world at each scrape, and name one
	// family twice in OpenMetrics.
	goCollector := collectors.NewGoCollector(collectors.WithGoCollectorMemStatsMetricsDisabled(), collectors.WithGoCollectorRuntimeMetrics(collectors.MetricsMemory))
	registry := prometheus.NewRegistry()
	registry.MustRegister(durations, goCollector, collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return registry, durations
}

// gatherer asks for the page of the newest snapshot at each scrape.
type gatherer func() prometheus.Gatherer

func (g gatherer) Gather() ([]*dto.MetricFamily, error) { return g().Gather() }

// troubles says in words what is amiss with each source.
func troubles(statuses []source.Status) map[string]string {
	texts := make(map[string]string)
	for _, status := range statuses {
		if status.Message != "" {
			texts[status.Name] = status.Message
		}
	}
	return texts
}
