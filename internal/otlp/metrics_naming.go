package otlp

import (
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/dra-exporter/dra-exporter/collector/metric"
)

// prometheusNaming spells rows as the scrape does: a family under its whole
// name, labels as attributes under theirs.
type prometheusNaming struct {
	sets *sets[*metric.Labels, attribute.Set]
}

func newPrometheusNaming() naming {
	return &prometheusNaming{sets: newSets(labelSet)}
}

func (n *prometheusNaming) metrics(rows []metric.Row, at time.Time) []metricdata.Metrics {
	n.sets.turn()
	var (
		points = make([]metricdata.DataPoint[float64], len(rows))
		all    []metricdata.Metrics
	)
	for first := 0; first < len(rows); {
		family, end := rows[first].Family, first
		for ; end < len(rows) && rows[end].Family == family; end++ {
			row := &rows[end]
			points[end] = metricdata.DataPoint[float64]{
				Attributes: n.sets.of(row.Labels), StartTime: row.Start, Time: at, Value: row.Value,
			}
		}
		all = append(all, plain(family, points[first:end:end]))
		first = end
	}
	return all
}

// plain is a family under its own name and in its unit, which the name has
// already and does not get once more where a Prometheus series is made of it.
func plain(family *metric.Family, points []metricdata.DataPoint[float64]) metricdata.Metrics {
	metrics := metricdata.Metrics{Name: family.Name, Description: family.Help, Unit: ucum(family.Unit)}
	if family.Type == metric.Counter {
		metrics.Data = sum(family.Name, points)
	} else {
		metrics.Data = metricdata.Gauge[float64]{DataPoints: points}
	}
	return metrics
}

// sum is a counter. It is called monotonic if its name is that of a counter:
// whoever makes a Prometheus series of a monotonic sum puts _total at its end
// and nowhere else, and would give a second name to counters that others have
// named in another way (DCGM's).
func sum(name string, points []metricdata.DataPoint[float64]) metricdata.Sum[float64] {
	stem, counts := strings.CutSuffix(name, "_total")
	return metricdata.Sum[float64]{
		DataPoints:  points,
		Temporality: metricdata.CumulativeTemporality,
		IsMonotonic: counts && !strings.Contains(stem+"_", "_total_"),
	}
}

// labelSet has the labels under their own names. A label without a value is
// one that is not there, as for Prometheus.
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

// ucum is a unit as OpenTelemetry writes it, in the Unified Code for Units of
// Measure, for one as names spell it; empty if there is none. What is merely
// counted has no unit: a gauge with the unit 1 is a ratio to Prometheus, which
// says so in its name.
func ucum(unit string) string {
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
