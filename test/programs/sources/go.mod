// Modules that test/Makefile takes files from, or builds in a copy: the newest
// Alertmanager that is tested, KEDA's definition of ScaledObject with the scaler
// that lists what it may say of Prometheus, and the definitions of the operators of
// Prometheus, VictoriaMetrics and Grafana; Thanos, which replaces modules, and
// VictoriaMetrics. Nothing imports them, so `go mod tidy` would
// take them away.
module github.com/dra-exporter/dra-exporter/test/programs/sources

go 1.26.6

require (
	github.com/VictoriaMetrics/VictoriaMetrics v1.151.0
	github.com/VictoriaMetrics/operator v0.57.0
	github.com/grafana/grafana-operator/v5 v5.18.0
	github.com/kedacore/keda/v2 v2.18.0
	github.com/prometheus-operator/prometheus-operator v0.85.0
	github.com/prometheus/alertmanager v0.34.2
	github.com/thanos-io/thanos v0.42.0
)
