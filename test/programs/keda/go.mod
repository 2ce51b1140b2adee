// KEDA, of which the end-to-end tests take two files and build nothing: the
// definition of ScaledObject, and the scaler that lists what it may say of
// Prometheus. Nothing imports it, so `go mod tidy` would take it away.
module github.com/dra-exporter/dra-exporter/test/programs/keda

go 1.26.0

require github.com/kedacore/keda/v2 v2.18.0
