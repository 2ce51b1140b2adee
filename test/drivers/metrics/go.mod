// Serves device metrics from a file, with the kit for authors of drivers.
module github.com/dra-exporter/dra-exporter/test/drivers/metrics

go 1.26.8

require github.com/dra-exporter/dra-exporter v0.0.0

require (
	golang.org/x/net v0.60.0 // indirect
	golang.org/x/sys v0.49.0 // indirect
	golang.org/x/text v0.42.0 // indirect
	google.golang.org/genproto/googleapis/rpc v0.0.0-20260928230214-8a89bd6388cc // indirect
	google.golang.org/grpc v1.85.0 // indirect
	google.golang.org/protobuf v1.36.12 // indirect
)

replace github.com/dra-exporter/dra-exporter => ../../..
