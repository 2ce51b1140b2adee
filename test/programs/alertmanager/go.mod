// The newest Alertmanager that is tested. test/Makefile builds it in a copy of
// its module. Nothing imports it, so `go mod tidy` would take it away.
module github.com/dra-exporter/dra-exporter/test/programs/alertmanager

go 1.26.0

require github.com/prometheus/alertmanager v0.34.2
