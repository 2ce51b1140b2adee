package device_test

import (
	"fmt"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/device"
)

// Two sources read one GPU. The first in precedence is believed, and the other one adds
// what the first does not know.
func ExampleMerge() {
	at := clock.Instant{Wall: time.Unix(1_800_000_000, 0), Elapsed: time.Hour}
	gpu := device.Device{UUID: "GPU-0", Vendor: "nvidia"}
	named := device.Device{UUID: "GPU-0", Vendor: "nvidia", Model: "NVIDIA H100 80GB HBM3"}
	dcgm := []device.Sample{{Device: gpu, Source: "dcgm", At: at, Readings: []device.Reading{{Quantity: device.Power, Value: 412.5}}}}
	nvml := []device.Sample{{Device: named, Source: "nvml", At: at, Readings: []device.Reading{{Quantity: device.Power, Value: 399}}}}

	merged, duplicates := device.Merge([][]device.Sample{dcgm, nvml}, device.StaleAfter(time.Second))
	for _, sample := range merged {
		fmt.Println(sample.Source, sample.Device.UUID, sample.Device.Model, sample.Readings[0].Value)
	}
	fmt.Println(len(duplicates), "duplicates")
	// Output:
	// dcgm GPU-0 NVIDIA H100 80GB HBM3 412.5
	// 0 duplicates
}
