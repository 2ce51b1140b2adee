package settings

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"go.opentelemetry.io/otel/attribute"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

const (
	// shortestInterval is the shortest interval that is worth its cost: nothing
	// is sampled more often.
	shortestInterval = time.Second
	// DefaultQueueSize is more than the specification's 2,048: the claims of a
	// whole node pool may become ready in the minute in which a collector is
	// unavailable.
	DefaultQueueSize = 65536
	defaultBatchSize = 512
	mostSpans        = 1 << 20 // in the queue or a batch
)

// Load reads the settings from the command line and the environment, by
// OpenTelemetry's specification of environment variables. Nothing is on unless
// an endpoint is set; then every invalid value is an error, which names the
// flag or the variable, its value (but never a secret), and valid values.
// Variables of a signal that is off are not read.
//
// Certificate files are read once here to refuse invalid ones.
func Load(flags Flags, lookup func(string) (string, bool)) (Settings, error) {
	l := &loader{reader: &reader{lookup: lookup}, flags: flags}
	loaded := Settings{
		Naming:   l.choice(input{"--otlp.naming", strings.TrimSpace(flags.Naming)}, NamingPrometheus, NamingSemconv),
		Interval: l.intervalFlag(),
	}
	metrics, traces := l.signal(metricsSignal), l.signal(tracesSignal)
	l.protocolName(metrics.protocolFlag) // an invalid one is refused also where nothing is on
	loaded.hasEndpoint = metrics.endpointInput.isSet() || traces.endpointInput.isSet()
	loaded.disabled = loaded.hasEndpoint && l.boolean(l.variable("OTEL_SDK_DISABLED"))
	if !loaded.disabled && metrics.exported() {
		loaded.Metrics = metrics.load()
		l.metrics(&loaded)
	}
	if !loaded.disabled && traces.exported() {
		loaded.Traces = traces.load()
		l.traces(&loaded)
	}
	if loaded.On() {
		loaded.Attributes = l.attributes()
	}
	if l.err != nil {
		return Settings{}, l.err
	}
	return loaded, nil
}

// loader reads everything but the signals' transport.
type loader struct {
	*reader
	flags Flags
}

// intervalFlag is zero if the flag is not set.
func (l *loader) intervalFlag() time.Duration {
	interval := l.flags.Interval
	if interval != 0 && (interval < shortestInterval || interval > longestDuration) {
		l.refuse(input{"--otlp.interval", interval.String()}, "out of range: use %s to %s", shortestInterval, longestDuration)
	}
	return interval
}

// metrics reads what concerns metrics alone.
func (l *loader) metrics(s *Settings) {
	interval := l.milliseconds(l.variable("OTEL_METRIC_EXPORT_INTERVAL"), shortestInterval, time.Minute)
	if s.Interval == 0 {
		s.Interval = interval
	}
	s.Timeout = l.milliseconds(l.variable("OTEL_METRIC_EXPORT_TIMEOUT"), time.Millisecond, 30*time.Second)
	// Two variables limit the same thing here; the shorter one applies.
	s.Metrics.Timeout = min(s.Metrics.Timeout, s.Timeout)
	s.ExponentialHistograms = l.choice(l.variable(exporterPrefix+"METRICS_DEFAULT_HISTOGRAM_AGGREGATION"),
		"explicit_bucket_histogram", "base2_exponential_bucket_histogram") == "base2_exponential_bucket_histogram"

	// Only cumulative temporality: the counters are totals since their start
	// time, and the next push makes up for a lost one.
	temporality := l.variable(exporterPrefix + "METRICS_TEMPORALITY_PREFERENCE")
	switch strings.ToLower(temporality.value) {
	case "", "cumulative":
	case "delta", "lowmemory":
		l.refuse(temporality, "only cumulative is supported; for deltas, use the collector's cumulativetodelta processor")
	default:
		l.refuse(temporality, "unknown; use cumulative")
	}
}

// traces reads what concerns traces alone. The SDK itself reads the limits of
// spans (OTEL_SPAN_…_LIMIT and the like).
func (l *loader) traces(s *Settings) {
	s.Sampler, s.sampled = l.sampler()
	s.Delay = l.milliseconds(l.variable("OTEL_BSP_SCHEDULE_DELAY"), time.Millisecond, 5*time.Second)
	s.QueueSize = l.count(l.variable("OTEL_BSP_MAX_QUEUE_SIZE"), mostSpans, DefaultQueueSize)
	batch := l.variable("OTEL_BSP_MAX_EXPORT_BATCH_SIZE")
	s.BatchSize = l.count(batch, mostSpans, min(defaultBatchSize, s.QueueSize))
	if s.BatchSize > s.QueueSize {
		l.refuse(batch, "more than the queue's %d (OTEL_BSP_MAX_QUEUE_SIZE)", s.QueueSize)
	}
	// Two variables limit the same thing here; the shorter one applies.
	s.Traces.Timeout = min(s.Traces.Timeout, l.milliseconds(l.variable("OTEL_BSP_EXPORT_TIMEOUT"), time.Millisecond, 30*time.Second))
}

// sampler reads OTEL_TRACES_SAMPLER and its argument. The trace of a claim has
// no parent, so that parentbased_ makes no difference. It also returns the
// sampler's description.
func (l *loader) sampler() (sampler sdktrace.Sampler, description string) {
	name := l.choice(l.variable("OTEL_TRACES_SAMPLER"), "parentbased_always_on", "parentbased_always_off",
		"parentbased_traceidratio", "always_on", "always_off", "traceidratio")
	kind, parentBased := strings.CutPrefix(name, "parentbased_")
	description = name
	switch kind {
	case "always_off":
		sampler = sdktrace.NeverSample()
	case "traceidratio":
		ratio := l.samplerRatio()
		sampler, description = sdktrace.TraceIDRatioBased(ratio), fmt.Sprintf("%s %v", name, ratio)
	default:
		sampler = sdktrace.AlwaysSample()
	}
	if parentBased {
		sampler = sdktrace.ParentBased(sampler)
	}
	return sampler, description
}

// samplerRatio reads the sampler's argument; not set, it is 1.
func (l *loader) samplerRatio() float64 {
	setting := l.variable("OTEL_TRACES_SAMPLER_ARG")
	if !setting.isSet() {
		return 1
	}
	ratio, err := strconv.ParseFloat(setting.value, 64)
	if err != nil || !(ratio >= 0 && ratio <= 1) { // NaN is out of range too
		l.refuse(setting, "use the share of the traces to keep, a number from 0 to 1")
		return 1
	}
	return ratio
}

// attributes reads OTEL_RESOURCE_ATTRIBUTES. OTEL_SERVICE_NAME and the flag
// override its entries.
func (l *loader) attributes() []attribute.KeyValue {
	values := make(map[string]string)
	setting := l.variable("OTEL_RESOURCE_ATTRIBUTES")
	for _, entry := range l.list(setting) {
		values[entry.key] = l.utf8(input{setting.name, entry.value})
	}
	if name := l.variable("OTEL_SERVICE_NAME"); name.isSet() {
		values["service.name"] = l.utf8(name)
	}
	if cluster := (input{"--otlp.cluster-name", strings.TrimSpace(l.flags.ClusterName)}); cluster.isSet() {
		values["k8s.cluster.name"] = l.utf8(cluster)
	}
	list := make([]attribute.KeyValue, 0, len(values))
	for _, key := range slices.Sorted(maps.Keys(values)) {
		list = append(list, attribute.String(l.utf8(input{setting.name, key}), values[key]))
	}
	return list
}

// utf8 refuses text that protobuf cannot encode: one such attribute would fail
// every export.
func (l *loader) utf8(setting input) string {
	if !utf8.ValidString(setting.value) {
		l.refuse(setting, "not UTF-8")
	}
	return setting.value
}
