// Builds the image of the Dockerfile without a container engine, for the
// end-to-end tests. The root module holds only what the binary and its own tests
// import, so this has a module of its own.
module github.com/dra-exporter/dra-exporter/test/suites/image

go 1.26.8

require (
	github.com/google/go-containerregistry v0.20.6
	github.com/moby/buildkit v0.26.0
	github.com/moby/patternmatcher v0.6.0
)

require (
	github.com/agext/levenshtein v1.2.3 // indirect
	github.com/containerd/stargz-snapshotter/estargz v0.17.0 // indirect
	github.com/containerd/typeurl/v2 v2.2.3 // indirect
	github.com/docker/go-units v0.5.0 // indirect
	github.com/dra-exporter/dra-exporter v0.0.0
	github.com/gogo/protobuf v1.3.2 // indirect
	github.com/klauspost/compress v1.20.1 // indirect
	github.com/moby/docker-image-spec v1.3.1 // indirect
	github.com/opencontainers/go-digest v1.0.0 // indirect
	github.com/opencontainers/image-spec v1.1.1 // indirect
	github.com/pkg/errors v0.9.1 // indirect
	github.com/planetscale/vtprotobuf v0.6.1-0.20240319094008-0393e58bdf10 // indirect
	github.com/tonistiigi/go-csvvalue v0.0.0-20240814133006-030d3b2625d0 // indirect
	github.com/vbatts/tar-split v0.12.2 // indirect
	golang.org/x/sync v0.24.0 // indirect
	google.golang.org/protobuf v1.36.12 // indirect
)

replace github.com/dra-exporter/dra-exporter => ../../..
