// What writes the files that the chart copies. It needs Go and nothing else, so
// that a fresh clone has them at once.
module github.com/dra-exporter/dra-exporter/deploy/helm/gen

go 1.26.0
