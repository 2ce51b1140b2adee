package otlp

import (
	"encoding/hex"

	dto "github.com/prometheus/client_model/go"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/trace"
)

// The labels by which an exemplar points to a span, as Prometheus and its
// receiver of OTLP know them.
const (
	traceLabel = "trace_id"
	spanLabel  = "span_id"
)

// exemplars converts those that are there. Prometheus has ids as labels of
// hexadecimal digits, OTLP as bytes: digits in their place make collectors
// reject a whole request.
func exemplars(from ...*dto.Exemplar) []metricdata.Exemplar[float64] {
	var all []metricdata.Exemplar[float64]
	for _, e := range from {
		if e == nil {
			continue
		}
		traceID, spanID := spanOf(e.GetLabel())
		all = append(all, metricdata.Exemplar[float64]{
			FilteredAttributes: pairAttributes(withoutIDs(e.GetLabel())),
			Time:               timeOf(e.GetTimestamp()), Value: e.GetValue(),
			TraceID: traceID, SpanID: spanID,
		})
	}
	return all
}

// spanOf are the ids of the span that an exemplar points to. Both are nil if
// the trace's is missing or malformed, the span's too if it alone is: an id
// that is not one is not passed on.
func spanOf(labels []*dto.LabelPair) (traceID, spanID []byte) {
	for _, label := range labels {
		switch label.GetName() {
		case traceLabel:
			traceID = identifier(label.GetValue(), len(trace.TraceID{}))
		case spanLabel:
			spanID = identifier(label.GetValue(), len(trace.SpanID{}))
		}
	}
	if traceID == nil {
		return nil, nil
	}
	return traceID, spanID
}

// identifier decodes an id of so many bytes; nil if it is none. An id of
// zeroes is invalid by the specification.
func identifier(digits string, size int) []byte {
	id, err := hex.DecodeString(digits)
	if err != nil || len(id) != size {
		return nil
	}
	for _, b := range id {
		if b != 0 {
			return id
		}
	}
	return nil
}

func withoutIDs(labels []*dto.LabelPair) []*dto.LabelPair {
	var rest []*dto.LabelPair
	for _, label := range labels {
		if name := label.GetName(); name != traceLabel && name != spanLabel {
			rest = append(rest, label)
		}
	}
	return rest
}
