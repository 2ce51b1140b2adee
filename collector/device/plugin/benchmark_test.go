package plugin

import (
	"fmt"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/plugin/devicemetrics/v1alpha1"
)

// BenchmarkReport decodes a report of a driver with 1,000 devices of 20 readings
// each, from the bytes of the message to observations.
func BenchmarkReport(b *testing.B) {
	const devices = 1000
	names := make([]string, devices)
	report := &v1alpha1.Report{Measured: timestamppb.New(now().Wall)}
	for i := range devices {
		names[i] = fmt.Sprintf("gpu-%d", i)
		device := &v1alpha1.DeviceReport{Device: uint32(i), Readings: []*v1alpha1.Reading{
			reading("utilization", 0.5), reading("memory_activity", 0.5), reading("memory_used", 1e9), reading("memory_size", 8e9),
			reading("memory_reserved", 1e8), reading("power", 70), reading("power_limit", 300), reading("energy", 1e6),
			reading("pcie_transmit", 1e9), reading("pcie_receive", 1e9), reading("network_transmit", 1e9), reading("network_receive", 1e9),
			reading("pcie_replays", 1),
		}}
		for _, r := range []struct{ quantity, detail string }{
			{"engine_active", "compute"}, {"temperature", "gpu"}, {"temperature", "memory"}, {"clock", "graphics"},
			{"throttled", "thermal"}, {"throttled", "power"}, {"ecc_errors", "corrected"},
		} {
			device.Readings = append(device.Readings, reading(r.quantity, 0.5, r.detail))
		}
		report.Devices = append(report.Devices, device)
	}
	encoded, err := proto.Marshal(&v1alpha1.WatchResponse{Message: &v1alpha1.WatchResponse_Report{Report: report}})
	if err != nil {
		b.Fatal(err)
	}
	d := newDecoder(b, names...)
	b.ReportAllocs()
	b.SetBytes(int64(len(encoded)))
	for b.Loop() {
		var message v1alpha1.WatchResponse
		if err := proto.Unmarshal(encoded, &message); err != nil {
			b.Fatal(err)
		}
		if _, _, err := d.Report(message.GetReport(), clock.Instant{Wall: now().Wall, Elapsed: now().Elapsed}); err != nil {
			b.Fatal(err)
		}
	}
}
