// Runs the examples as their readers do, against the demo and a real Prometheus.
module github.com/dra-exporter/dra-exporter/test/suites/examples

go 1.26.0
