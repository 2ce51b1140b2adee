// Programs for tests on real GPUs, and what they need alone.
module github.com/dra-exporter/dra-exporter/test/gpukit

go 1.26.8

require (
	github.com/dra-exporter/dra-exporter v0.0.0
	github.com/ebitengine/purego v0.11.3
	github.com/prometheus/client_model v0.6.3
	github.com/prometheus/common v0.72.0
)

require (
	github.com/munnerz/goautoneg v0.0.0-20191010083416-a7dc8b61c822 // indirect
	google.golang.org/protobuf v1.36.12 // indirect
)

replace github.com/dra-exporter/dra-exporter => ../..
