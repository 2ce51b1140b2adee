package compare

import (
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
)

// series is one series of a page or one point of a push, so that both can be
// compared.
type series struct {
	metric     string
	attributes attributes
	kind       string // one of the kinds
	unit       string // UCUM
	help       string
	start      uint64 // nanoseconds since 1970; 0 is unknown
	parts      parts
	ended      bool // the point says that there is no value any more
}

// The kinds of metrics, as OpenTelemetry has them. What is none of these is
// described in words and never equal to what is expected.
const (
	gauge         = "gauge"
	counter       = "counter"       // a monotonic cumulative sum
	upDownCounter = "updowncounter" // a cumulative sum that may fall
	histogram     = "histogram"
	exponential   = "exponential histogram"
	summary       = "summary"
)

// parts are the values of one series: one without a name, or those that a
// histogram or a summary consists of, counts cumulated.
type parts map[string]float64

// same is equality to the last bit, but for what is no number.
func same(a, b parts) bool { return maps.EqualFunc(a, b, sameNumber) }

func sameNumber(a, b float64) bool { return a == b || math.IsNaN(a) && math.IsNaN(b) }

// attributes are labels, as names and values. Empty values are not there.
type attributes map[string]string

// String is the same for equal sets.
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

// key tells series from each other.
func (s *series) key() string { return s.metric + s.attributes.String() }

// live reports whether a family is none of a snapshot: it is of the process, of
// its configuration, of the pushing itself, or a histogram.
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

// number writes a float as it is in the texts of pages.
func number(value float64) string { return strconv.FormatFloat(value, 'g', -1, 64) }
