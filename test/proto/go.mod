// Generates the Go code of plugin/devicemetrics/v1alpha1 from its proto file,
// without protoc. A module of its own, so that the exporter does not depend on
// a compiler.
module github.com/dra-exporter/dra-exporter/test/proto

go 1.26.0

tool (
	google.golang.org/grpc/cmd/protoc-gen-go-grpc
	google.golang.org/protobuf/cmd/protoc-gen-go
)

require (
	github.com/bufbuild/protocompile v0.14.1
	google.golang.org/protobuf v1.36.12
)

require (
	golang.org/x/sync v0.8.0 // indirect
	google.golang.org/grpc/cmd/protoc-gen-go-grpc v1.6.2 // indirect
)
