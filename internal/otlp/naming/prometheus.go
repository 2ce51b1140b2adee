// Package naming converts the rows of a snapshot to OpenTelemetry metrics,
// under the names of the scrape or by semantic conventions.
package naming

import (
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/dra-exporter/dra-exporter/collector/metric"
	"github.com/dra-exporter/dra-exporter/collector/model"
	"github.com/dra-exporter/dra-exporter/internal/otlp/setcache"
)

// Prometheus converts rows as the scrape shows them: a family under its whole
// name, labels as attributes under their own names. It is not safe for
// concurrent use.
type Prometheus struct {
	sets *setcache.Cache[*metric.Labels, attribute.Set]
}

// NewPrometheus returns the naming of the scrape.
func NewPrometheus() *Prometheus { return &Prometheus{sets: setcache.New(labelSet)} }

// Metrics returns the rows as gauges and sums with the time of the snapshot, without
// its model. The caller may change what it returns, except for the attribute sets.
func (p *Prometheus) Metrics(rows []metric.Row, _ *model.Node, at time.Time) []metricdata.Metrics {
	p.sets.NextPush()
	var all []metricdata.Metrics
	points := make([]metricdata.DataPoint[float64], 0, len(rows))
	for family, run := range runs(rows) {
		first := len(points)
		for i := range run {
			points = append(points, metricdata.DataPoint[float64]{
				Attributes: p.sets.Get(run[i].Labels), StartTime: run[i].Start, Time: at, Value: run[i].Value,
			})
		}
		all = append(all, familyMetrics(family, points[first:len(points):len(points)]))
	}
	return all
}

// runs iterates over the families; rows of a family are adjacent.
func runs(rows []metric.Row) func(yield func(*metric.Family, []metric.Row) bool) {
	return func(yield func(*metric.Family, []metric.Row) bool) {
		for first := 0; first < len(rows); {
			end := first + 1
			for end < len(rows) && rows[end].Family == rows[first].Family {
				end++
			}
			if !yield(rows[first].Family, rows[first:end]) {
				return
			}
			first = end
		}
	}
}

// familyMetrics is a family under its own name and in its unit. The name already
// contains the unit: conversion to a Prometheus series does not repeat it.
func familyMetrics(family *metric.Family, points []metricdata.DataPoint[float64]) metricdata.Metrics {
	metrics := metricdata.Metrics{Name: family.Name, Description: family.Help, Unit: UCUM(family.Unit)}
	if family.Type == metric.Counter {
		metrics.Data = Sum(family.Name, points)
	} else {
		metrics.Data = metricdata.Gauge[float64]{DataPoints: points}
	}
	return metrics
}

// Sum is a counter. It is monotonic only if its name ends with _total:
// conversion to a Prometheus series moves _total to the end of the name of a
// monotonic sum, or appends it, which would rename counters with other names
// (DCGM's).
func Sum(name string, points []metricdata.DataPoint[float64]) metricdata.Sum[float64] {
	stem, total := strings.CutSuffix(name, "_total")
	return metricdata.Sum[float64]{
		DataPoints:  points,
		Temporality: metricdata.CumulativeTemporality,
		IsMonotonic: total && !strings.Contains(stem+"_", "_total_"),
	}
}

// labelSet has the labels under their own names. A label with an empty value is
// the same as no label, as in Prometheus.
func labelSet(labels *metric.Labels) attribute.Set {
	var attributes [16]attribute.KeyValue // beyond that, append allocates
	list := attributes[:0]
	for name, value := range labels.Each {
		if value != "" {
			list = append(list, attribute.String(name, value))
		}
	}
	return attribute.NewSet(list...)
}

// UCUM converts a unit as metric names spell it to the Unified Code for Units of
// Measure, which OpenTelemetry uses; empty if there is none. Counts have no
// unit: Prometheus takes a gauge with the unit 1 for a ratio and appends that to
// its name.
func UCUM(unit string) string {
	switch unit {
	case "seconds":
		return "s"
	case "bytes":
		return "By"
	case "ratio":
		return "1"
	case "joules":
		return "J"
	case "watts":
		return "W"
	case "celsius":
		return "Cel"
	case "hertz":
		return "Hz"
	case "percent":
		return "%"
	}
	return ""
}
