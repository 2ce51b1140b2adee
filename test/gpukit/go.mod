// Programs for tests on real GPUs, and what they need alone.
module github.com/dra-exporter/dra-exporter/test/gpukit

go 1.26.8

require (
	github.com/dra-exporter/dra-exporter v0.0.0
	github.com/ebitengine/purego v0.11.3
)

replace github.com/dra-exporter/dra-exporter => ../..
