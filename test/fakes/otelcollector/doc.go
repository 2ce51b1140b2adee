// Package otelcollector is an OpenTelemetry collector for tests. It implements the
// real protocol: it listens on real sockets, takes OTLP by gRPC and by HTTP with
// protobuf, with gzip and with TLS, and keeps what it took. It fails as the test
// configures: it refuses, is slow, hangs, breaks connections, stops and starts
// again.
//
// It shares no code with what pushes: both sides meet in OpenTelemetry's
// published protocol (go.opentelemetry.io/proto/otlp).
package otelcollector
