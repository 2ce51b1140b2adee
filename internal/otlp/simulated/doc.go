// Package simulated is an OpenTelemetry collector for tests: it is made up,
// and it speaks the real protocol. It listens on real sockets, takes OTLP by
// gRPC and by HTTP with protobuf, with gzip and with TLS, keeps what it took,
// and misbehaves as it is told to: it refuses, is slow, hangs, breaks
// connections, dies and comes back.
//
// It shares no code with what pushes: both sides meet in OpenTelemetry's
// published protocol (go.opentelemetry.io/proto/otlp).
package simulated
