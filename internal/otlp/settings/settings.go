// Package settings reads what is pushed by OTLP, where to and how, from the
// command line and from OpenTelemetry's environment variables.
package settings

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

// The protocols and namings.
const (
	ProtocolGRPC = "grpc"
	ProtocolHTTP = "http/protobuf"

	NamingPrometheus = "prometheus"
	NamingSemconv    = "semconv"
)

// Parts of an endpoint.
const (
	PortGRPC   = "4317" // of OTLP over gRPC, by the specification
	portHTTP   = "4318" // of OTLP over HTTP
	UnixScheme = "unix://"
)

// Flags are the values of the command line. A zero field was not set: the
// environment or the default applies.
type Flags struct {
	Endpoint    string        // --otlp.endpoint: for both signals; overrides every variable
	Protocol    string        // --otlp.protocol: "grpc" or "http/protobuf"
	Naming      string        // --otlp.naming: "prometheus" or "semconv"
	ClusterName string        // --otlp.cluster-name: the attribute k8s.cluster.name
	Interval    time.Duration // --otlp.interval: between two pushes of metrics
}

// Settings are what is pushed, where to and how. They contain secrets (headers):
// log them by String or as a slog value, which contain none.
type Settings struct {
	Metrics, Traces SignalSettings

	Naming                string        // "prometheus" or "semconv"
	Interval              time.Duration // between two pushes of metrics
	Timeout               time.Duration // of one export of metrics, and of collecting; no shorter than Metrics.Timeout
	ExponentialHistograms bool

	Sampler   sdktrace.Sampler // nil where no traces are pushed
	QueueSize int              // most spans in the queue
	BatchSize int              // most spans in one export
	Delay     time.Duration    // how long a span may wait for its batch to fill

	// Attributes are the resource attributes set by the user, sorted by key, each
	// key once.
	Attributes []attribute.KeyValue

	// Agent is the user agent, as name/version. Empty: the name alone.
	Agent string

	sampled     string // the sampler as the log line shows it
	hasEndpoint bool   // an endpoint is set, whether anything is on or not
	disabled    bool   // OTEL_SDK_DISABLED
}

// SignalSettings is how one kind of data, metrics or traces, is exported. It contains
// secrets: see Settings.
type SignalSettings struct {
	On       bool
	Protocol string // "grpc" or "http/protobuf"
	// Endpoint is host:port, of HTTP also host alone; of gRPC also
	// unix:///path.
	Endpoint string
	Path     string            // of HTTP: begins with a slash, not escaped
	Insecure bool              // plaintext
	Headers  map[string]string // keys in lower case
	Gzip     bool
	Timeout  time.Duration // of one export, including retries and the waits between them
	TLS      *tls.Config   // nil for plaintext
}

// On reports whether anything is pushed.
func (s Settings) On() bool { return s.Metrics.On || s.Traces.On }

// Withheld reports whether an endpoint is set and yet nothing is pushed: the
// variables that cause this may have been meant for other programs.
func (s Settings) Withheld() bool { return s.hasEndpoint && !s.On() }

// URL is the signal's destination as logs show it: scheme, host, port and path.
// It contains no secrets.
func (s SignalSettings) URL() string {
	if strings.HasPrefix(s.Endpoint, UnixScheme) {
		return s.Endpoint
	}
	target := url.URL{Scheme: "https", Host: s.Endpoint, Path: s.Path}
	if s.Insecure {
		target.Scheme = "http"
	}
	return target.String()
}

// String describes the signal without secrets.
func (s SignalSettings) String() string {
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

// String describes the settings for the log line at start, without secrets.
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
func (s SignalSettings) LogValue() slog.Value { return slog.StringValue(s.String()) }
