package otlp

import (
	"context"
	"fmt"
	"strings"

	"github.com/go-logr/logr"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// metricExporter makes the exporter of metrics. It connects when something is
// exported, not before. An export is tried again, for as long as the signal's
// timeout lasts, where that may help. Shutdown releases its connections.
func (s Settings) metricExporter(context.Context) (sdkmetric.Exporter, error) {
	silence()
	made := &metricExports{signal: s.Metrics, messages: newMessages()}
	if s.Metrics.Protocol != protocolGRPC {
		made.sender = &httpSender{
			client: s.Metrics.httpClient(s.agent(), &made.asked), url: s.Metrics.URL(),
			headers: s.Metrics.Headers, gzip: s.Metrics.Gzip,
		}
		return made, nil
	}
	var err error
	made.sender, err = newGRPCSender(s.Metrics.target(), s.Metrics.Headers, s.Metrics.dialOptions(s.agent(), &made.asked))
	if err != nil {
		return nil, fmt.Errorf("create the exporter of metrics to %s: %w", s.Metrics.URL(), err)
	}
	return made, nil
}

// The SDK's exporters read the environment by themselves, and what they do not
// like there they say to OpenTelemetry's global logger, values of headers
// included. The settings have read the same, more strictly, so each of them is
// passed as an option, also where it says nothing, and the logger is silenced.

// spanExporter makes the exporter of spans. It connects when something is
// exported, not before, and tries each export once. Shutdown releases its
// connections.
func (s Settings) spanExporter(ctx context.Context) (sdktrace.SpanExporter, error) {
	silence()
	made := &spanExports{signal: s.Traces}
	var err error
	if s.Traces.Protocol == protocolGRPC {
		made.SpanExporter, err = otlptracegrpc.New(ctx,
			otlptracegrpc.WithEndpoint(s.Traces.target()),
			otlptracegrpc.WithHeaders(s.Traces.Headers),
			otlptracegrpc.WithTimeout(s.Traces.Timeout),
			otlptracegrpc.WithRetry(otlptracegrpc.RetryConfig{}),
			otlptracegrpc.WithDialOption(s.Traces.dialOptions(s.agent(), &made.asked)...),
		)
	} else {
		made.client = s.Traces.httpClient(s.agent(), &made.asked)
		compression := otlptracehttp.NoCompression
		if s.Traces.Gzip {
			compression = otlptracehttp.GzipCompression
		}
		made.SpanExporter, err = otlptracehttp.New(ctx,
			otlptracehttp.WithEndpointURL(s.Traces.URL()),
			otlptracehttp.WithTLSClientConfig(nil),
			otlptracehttp.WithHTTPClient(made.client),
			otlptracehttp.WithHeaders(s.Traces.Headers),
			otlptracehttp.WithCompression(compression),
			otlptracehttp.WithEncoding(otlptracehttp.EncodingProtobuf),
			otlptracehttp.WithTimeout(s.Traces.Timeout),
			otlptracehttp.WithMaxResponseSize(answerBytes),
			otlptracehttp.WithRetry(otlptracehttp.RetryConfig{}),
		)
	}
	if err != nil {
		return nil, fmt.Errorf("create the exporter of traces to %s: %w", s.Traces.URL(), err)
	}
	return made, nil
}

// agent is the user agent. Control characters of a version would be refused
// by every request.
func (s Settings) agent() string {
	const product = "dra-exporter"
	if s.Agent == "" || strings.ContainsFunc(s.Agent, notPrintable) {
		return product
	}
	return s.Agent
}

// silence keeps OpenTelemetry's own log out of ours. Nothing is lost: what
// fails is returned by the exporters, and counted and told from there.
func silence() { otel.SetLogger(logr.Discard()) }
