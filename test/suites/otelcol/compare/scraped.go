package compare

import (
	"math"
	"strings"

	dto "github.com/prometheus/client_model/go"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// scraped returns the series of a page as they are expected in a push with the
// names of Prometheus: rows and live series.
func scraped(page *Page) (rows, alive []series) {
	for _, family := range page.Families {
		for _, m := range family.GetMetric() {
			s := series{
				metric: family.GetName(), attributes: attributes{}, kind: kindOf(family),
				unit: unitOf(family), help: family.GetHelp(),
			}
			for _, label := range m.GetLabel() {
				if label.GetValue() != "" {
					s.attributes[label.GetName()] = label.GetValue()
				}
			}
			s.fill(m)
			if live(s.metric, s.kind) {
				alive = append(alive, s)
			} else {
				rows = append(rows, s)
			}
		}
	}
	return rows, alive
}

func (s *series) fill(m *dto.Metric) {
	switch {
	case m.Counter != nil:
		s.parts, s.start = parts{"": m.GetCounter().GetValue()}, nanoseconds(m.GetCounter().GetCreatedTimestamp())
	case m.Histogram != nil:
		s.parts, s.start = histogramParts(m.GetHistogram()), nanoseconds(m.GetHistogram().GetCreatedTimestamp())
	case m.Summary != nil:
		h := m.GetSummary()
		s.parts, s.start = parts{"count": float64(h.GetSampleCount()), "sum": h.GetSampleSum()}, nanoseconds(h.GetCreatedTimestamp())
		for _, q := range h.GetQuantile() {
			s.parts["quantile "+number(q.GetQuantile())] = q.GetValue()
		}
	case m.Gauge != nil:
		s.parts = parts{"": m.GetGauge().GetValue()}
	default:
		s.parts = parts{"": m.GetUntyped().GetValue()}
	}
}

// histogramParts returns classic and native buckets, of which a push has one
// kind. Native ones are numbered as in OTLP, from the lower bound, which is
// one less.
func histogramParts(h *dto.Histogram) parts {
	all := parts{"count": float64(h.GetSampleCount()), "sum": h.GetSampleSum(), "le +Inf": float64(h.GetSampleCount())}
	for _, bucket := range h.GetBucket() {
		if !math.IsInf(bucket.GetUpperBound(), 1) {
			all["le "+number(bucket.GetUpperBound())] = float64(bucket.GetCumulativeCount())
		}
	}
	if h.Schema == nil {
		return all
	}
	all["zero"] = float64(h.GetZeroCount())
	native := func(sign string, spans []*dto.BucketSpan, deltas []int64) {
		index, count := int32(0), int64(0)
		for _, span := range spans {
			index += span.GetOffset()
			for range span.GetLength() {
				count, deltas = count+deltas[0], deltas[1:]
				all[bucketName(sign, h.GetSchema(), index-1)] = float64(count)
				index++
			}
		}
	}
	native("positive", h.GetPositiveSpan(), h.GetPositiveDelta())
	native("negative", h.GetNegativeSpan(), h.GetNegativeDelta())
	return all
}

func kindOf(family *dto.MetricFamily) string {
	switch family.GetType() {
	case dto.MetricType_COUNTER:
		// Counters of other exporters without _total would get it when a
		// Prometheus series is made from a monotonic sum.
		if strings.HasSuffix(family.GetName(), "_total") {
			return counter
		}
		return upDownCounter
	case dto.MetricType_HISTOGRAM, dto.MetricType_GAUGE_HISTOGRAM:
		return histogram
	case dto.MetricType_SUMMARY:
		return summary
	default:
		return gauge
	}
}

// unitOf returns the unit of the page or, if it has none, that at the end of
// the name.
func unitOf(family *dto.MetricFamily) string {
	unit := family.GetUnit()
	if unit == "" {
		name := strings.TrimSuffix(family.GetName(), "_total")
		unit = name[strings.LastIndexByte(name, '_')+1:]
	}
	return map[string]string{
		"seconds": "s", "bytes": "By", "ratio": "1", "joules": "J", "watts": "W",
		"celsius": "Cel", "hertz": "Hz", "percent": "%",
	}[unit]
}

func nanoseconds(at *timestamppb.Timestamp) uint64 {
	if at == nil {
		return 0
	}
	return uint64(at.AsTime().UnixNano())
}
