// The Prometheus operator, of which the end-to-end tests take the definitions of
// PodMonitor and PrometheusRule and build nothing. Nothing imports it, so
// `go mod tidy` would take it away.
module github.com/dra-exporter/dra-exporter/test/programs/operator

go 1.26.0

require github.com/prometheus-operator/prometheus-operator v0.85.0
