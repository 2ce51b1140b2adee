package compare

import (
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
)

// series is one series of a page or one point of a push, in a form in which
// both can be compared.
type series struct {
	metric     string
	attributes attributes
	kind       string // one of the kinds
	unit       string // UCUM
	help       string
	start      uint64 // nanoseconds since 1970; 0 is unknown
	parts      parts
	ended      bool // the point has no value, which ends the series
}

// The kinds of metrics, as in OpenTelemetry. Other kinds have a description
// instead, which never equals an expected kind.
const (
	gauge         = "gauge"
	counter       = "counter"       // a monotonic cumulative sum
	upDownCounter = "updowncounter" // a cumulative sum that may decrease
	histogram     = "histogram"
	exponential   = "exponential histogram"
	summary       = "summary"
)

// parts are the values of one series: one without a name, or those of a
// histogram or a summary, with cumulated counts.
type parts map[string]float64

// same reports whether all values are equal to the last bit, or both NaN.
func same(a, b parts) bool { return maps.EqualFunc(a, b, sameNumber) }

func sameNumber(a, b float64) bool { return a == b || math.IsNaN(a) && math.IsNaN(b) }

// attributes are labels by name. Empty values are omitted.
type attributes map[string]string

// String returns the same text for equal sets.
func (a attributes) String() string {
	var text strings.Builder
	for i, name := range slices.Sorted(maps.Keys(a)) {
		if i > 0 {
			text.WriteByte(',')
		}
		text.WriteString(name + "=" + strconv.Quote(a[name]))
	}
	return "{" + text.String() + "}"
}

// key identifies a series.
func (s *series) key() string { return s.metric + s.attributes.String() }

// live reports whether a family does not belong to a snapshot: it is about the
// process, its configuration, or the pushes, or it is a histogram.
func live(family, kind string) bool {
	switch kind {
	case histogram, exponential, summary:
		return true
	}
	for _, prefix := range []string{"go_", "process_", "promhttp_", "dra_exporter_config_", "dra_exporter_otlp_", "dra_exporter_step"} {
		if strings.HasPrefix(family, prefix) {
			return true
		}
	}
	return false
}

// number formats a float as pages do.
func number(value float64) string { return strconv.FormatFloat(value, 'g', -1, 64) }
