package otlp

import (
	"crypto/tls"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// The protocols and namings that there are.
const (
	protocolGRPC = "grpc"
	protocolHTTP = "http/protobuf"

	namingPrometheus = "prometheus"
	namingSemconv    = "semconv"
)

// Flags are what the command line says. What is zero was not given, and the
// environment or the default says it.
type Flags struct {
	Endpoint    string        // --otlp.endpoint: for both signals, before every variable
	Protocol    string        // --otlp.protocol: "grpc" or "http/protobuf"
	Naming      string        // --otlp.naming: "prometheus" or "semconv"
	ClusterName string        // --otlp.cluster-name: the attribute k8s.cluster.name
	Interval    time.Duration // --otlp.interval: between two pushes of metrics
}

// Settings say what is pushed, where to and how. They hold secrets (headers):
// log them by String or as a slog value, which hold none.
type Settings struct {
	Metrics, Traces Signal

	Naming                string        // "prometheus" or "semconv"
	Interval              time.Duration // between two pushes of metrics
	Timeout               time.Duration // of one export of metrics, and of collecting; no shorter than Metrics.Timeout
	ExponentialHistograms bool

	Sampler   sdktrace.Sampler // nil where no traces are pushed
	QueueSize int              // spans that wait at most
	BatchSize int              // spans in one export at most
	Delay     time.Duration    // for which a span may wait for others of its batch

	// Attributes are those of the resource that the user has named, sorted by
	// key, each key once.
	Attributes []attribute.KeyValue

	// Agent names this program to the collector, as name/version. Empty: the
	// name alone.
	Agent string

	sampled  string // the sampler, for people
	named    bool   // an endpoint is, whatever is on
	disabled bool   // OTEL_SDK_DISABLED
}

// Signal is how one kind of data, metrics or traces, leaves. It holds secrets:
// see Settings.
type Signal struct {
	On       bool
	Protocol string // "grpc" or "http/protobuf"
	// Endpoint is host:port, of HTTP also host alone; of gRPC also
	// unix:///path.
	Endpoint string
	Path     string            // of HTTP: begins with a slash, not escaped
	Insecure bool              // plaintext
	Headers  map[string]string // keys in lower case
	Gzip     bool
	Timeout  time.Duration // of one export, attempts and the waits between them included
	TLS      *tls.Config   // nil where plaintext is spoken
}

// On reports whether anything is pushed.
func (s Settings) On() bool { return s.Metrics.On || s.Traces.On }

// Withheld reports whether an endpoint is named and nothing is pushed all the
// same: the variables that make it so may have been meant for other programs.
func (s Settings) Withheld() bool { return s.named && !s.On() }

// Load reads the settings from the command line and the environment, by
// OpenTelemetry's specification of environment variables. Nothing is on unless
// an endpoint is named; then everything that is wrong is an error, which names
// the flag or the variable, its value (but never a secret), and what would be
// right. Variables of what is off are not looked at.
//
// Certificate files are read once here to refuse what is wrong with them.
func Load(flags Flags, lookup func(string) (string, bool)) (Settings, error) {
	r := &reader{lookup: lookup}
	settings := Settings{
		Naming:   r.naming(flags),
		Interval: r.intervalFlag(flags),
	}
	r.protocolFlag(flags)
	metrics, traces := r.placed(flags, metricsSignal), r.placed(flags, tracesSignal)
	settings.named = metrics || traces
	settings.disabled = settings.named && r.truth(r.variable("OTEL_SDK_DISABLED"))
	if metrics && !settings.disabled && r.exported(metricsSignal) {
		settings.Metrics = r.signal(flags, metricsSignal)
		r.metrics(&settings)
	}
	if traces && !settings.disabled && r.exported(tracesSignal) {
		settings.Traces = r.signal(flags, tracesSignal)
		r.traces(&settings)
	}
	if settings.On() {
		settings.Attributes = r.attributes(flags)
	}
	if r.err != nil {
		return Settings{}, r.err
	}
	return settings, nil
}

// URL is where the signal goes, for people: scheme, host, port and path. It
// holds no secrets.
func (s Signal) URL() string {
	if strings.HasPrefix(s.Endpoint, unixScheme) {
		return s.Endpoint
	}
	target := url.URL{Scheme: "https", Host: s.Endpoint, Path: s.Path}
	if s.Insecure {
		target.Scheme = "http"
	}
	return target.String()
}

// String says where the signal goes, without secrets.
func (s Signal) String() string {
	if !s.On {
		return "off"
	}
	text := s.URL() + " (" + s.Protocol
	switch {
	case s.Insecure:
		text += ", plaintext"
	case s.TLS != nil && s.TLS.GetClientCertificate != nil:
		text += ", TLS with a client certificate"
	default:
		text += ", TLS"
	}
	if s.Gzip {
		text += ", gzip"
	}
	if len(s.Headers) > 0 {
		text += fmt.Sprintf(", headers: %d", len(s.Headers))
	}
	return text + fmt.Sprintf(", timeout %s)", s.Timeout)
}

// String says what is pushed, for the log line at start, without secrets.
func (s Settings) String() string {
	if s.disabled {
		return "off: OTEL_SDK_DISABLED=true"
	}
	if s.Withheld() {
		return "off: no endpoint is set for a signal of this role (OTEL_METRICS_EXPORTER, OTEL_TRACES_EXPORTER; the node role pushes only metrics)"
	}
	if !s.On() {
		return "off"
	}
	text := "metrics " + s.Metrics.String()
	if s.Metrics.On {
		text += fmt.Sprintf(" every %s by the names of %s", s.Interval, s.Naming)
	}
	text += "; traces " + s.Traces.String()
	if s.Traces.On && s.sampled != "" {
		text += " sampled by " + s.sampled
	}
	return text
}

// LogValue keeps secrets out of structured logs, whatever their handler.
func (s Settings) LogValue() slog.Value { return slog.StringValue(s.String()) }

// LogValue keeps secrets out of structured logs, whatever their handler.
func (s Signal) LogValue() slog.Value { return slog.StringValue(s.String()) }
