package otlp

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// naming reads --otlp.naming.
func (r *reader) naming(flags Flags) string {
	return r.choice(given{"--otlp.naming", strings.TrimSpace(flags.Naming)}, namingPrometheus, namingSemconv)
}

// shortestInterval is how often a push is worth its cost: nothing is sampled
// more often.
const shortestInterval = time.Second

// intervalFlag reads --otlp.interval; zero where it is not given.
func (r *reader) intervalFlag(flags Flags) time.Duration {
	if flags.Interval != 0 && (flags.Interval < shortestInterval || flags.Interval > longest) {
		r.refuse(given{"--otlp.interval", flags.Interval.String()}, "out of range: use %s to %s", shortestInterval, longest)
	}
	return flags.Interval
}

// metrics reads what concerns metrics alone.
func (r *reader) metrics(s *Settings) {
	interval := r.milliseconds(r.variable("OTEL_METRIC_EXPORT_INTERVAL"), shortestInterval, time.Minute)
	if s.Interval == 0 {
		s.Interval = interval
	}
	s.Timeout = r.milliseconds(r.variable("OTEL_METRIC_EXPORT_TIMEOUT"), time.Millisecond, 30*time.Second)
	// Two variables limit the same thing here, the shorter counts.
	s.Metrics.Timeout = min(s.Metrics.Timeout, s.Timeout)
	s.ExponentialHistograms = r.choice(r.variable(exporterPrefix+"METRICS_DEFAULT_HISTOGRAM_AGGREGATION"),
		"explicit_bucket_histogram", "base2_exponential_bucket_histogram") == "base2_exponential_bucket_histogram"
	r.temporality()
}

// temporality refuses everything but cumulative: our counters are totals since
// a moment that is told with them, and a lost push is made up for by the next.
func (r *reader) temporality() {
	g := r.variable(exporterPrefix + "METRICS_TEMPORALITY_PREFERENCE")
	switch strings.ToLower(g.value) {
	case "", "cumulative":
	case "delta", "lowmemory":
		r.refuse(g, "only cumulative is supported; for deltas, use the collector's cumulativetodelta processor")
	default:
		r.refuse(g, "unknown; use cumulative")
	}
}

const (
	// queueSize is more than the specification's 2,048: the claims of a whole
	// node pool may become ready in the minute in which a collector is away.
	queueSize = 65536
	batchSize = 512
	mostSpans = 1 << 20
)

// traces reads what concerns traces alone. The limits of spans
// (OTEL_SPAN_…_LIMIT and their like) are read by the SDK itself.
func (r *reader) traces(s *Settings) {
	s.Sampler, s.sampled = r.sampler()
	s.Delay = r.milliseconds(r.variable("OTEL_BSP_SCHEDULE_DELAY"), time.Millisecond, 5*time.Second)
	s.QueueSize = r.count(r.variable("OTEL_BSP_MAX_QUEUE_SIZE"), mostSpans, queueSize)
	batch := r.variable("OTEL_BSP_MAX_EXPORT_BATCH_SIZE")
	s.BatchSize = r.count(batch, mostSpans, min(batchSize, s.QueueSize))
	if s.BatchSize > s.QueueSize {
		r.refuse(batch, "more than the queue's %d (OTEL_BSP_MAX_QUEUE_SIZE)", s.QueueSize)
	}
	// Two variables limit the same thing here, the shorter counts.
	s.Traces.Timeout = min(s.Traces.Timeout, r.milliseconds(r.variable("OTEL_BSP_EXPORT_TIMEOUT"), time.Millisecond, 30*time.Second))
}

// sampler reads OTEL_TRACES_SAMPLER and its argument. A claim's trace has no
// parent, so that those with and without parentbased_ do the same. It returns
// the words for it as well.
func (r *reader) sampler() (sampler sdktrace.Sampler, words string) {
	name := r.choice(r.variable("OTEL_TRACES_SAMPLER"), "parentbased_always_on", "parentbased_always_off",
		"parentbased_traceidratio", "always_on", "always_off", "traceidratio")
	kind, parentBased := strings.CutPrefix(name, "parentbased_")
	words = name
	switch kind {
	case "always_off":
		sampler = sdktrace.NeverSample()
	case "traceidratio":
		ratio := r.ratio()
		sampler, words = sdktrace.TraceIDRatioBased(ratio), fmt.Sprintf("%s %v", name, ratio)
	default:
		sampler = sdktrace.AlwaysSample()
	}
	if parentBased {
		sampler = sdktrace.ParentBased(sampler)
	}
	return sampler, words
}

// ratio reads the sampler's argument; not given, it is 1.
func (r *reader) ratio() float64 {
	g := r.variable("OTEL_TRACES_SAMPLER_ARG")
	if !g.is() {
		return 1
	}
	ratio, err := strconv.ParseFloat(g.value, 64)
	if err != nil || !(ratio >= 0 && ratio <= 1) { // not a number is out of range too
		r.refuse(g, "use the share of the traces to keep, a number from 0 to 1")
		return 1
	}
	return ratio
}
