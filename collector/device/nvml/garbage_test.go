//go:build cgo && linux

package nvml

import (
	"fmt"
	"testing"

	"github.com/dra-exporter/dra-exporter/collector/device"
	"github.com/dra-exporter/dra-exporter/test/fakes/devicetest"
)

// The library returns blanks that are not recognized, numbers of all bits, and counters
// of another state of the GPU.
func TestGarbageOfTheLibrary(t *testing.T) {
	const all32, all64 = "4294967295", "18446744073709551615"
	node, from := stubbed(t, 2, Options{})
	found := map[int]device.Reader{}
	for _, r := range readers(t, from) {
		o, err := r.Read(t.Context(), device.Fast)
		if err != nil {
			t.Fatal(err)
		}
		found[o[0].Device.Minor] = r
	}
	devicetest.Garbage{
		Wrong: map[string][]string{
			"utilization.gpu":       {"808334905", "65535", all32},
			"memory.used":           {all64, "9223372036854775808"},
			"power.draw":            {"4294967.295", "80833490"},
			"energy":                {"0", "200", "18446744073709551", "9223372036854"},
			"temperature.gpu":       {"0", "65535", "255000"},
			"nvlink.tx_bytes":       {"0", "200", "9223372036854775808"},
			"ecc.uncorrected":       {"0", all32},
			"ecc.corrected":         {"0", all32, all64},
			"throttle.hw_thermal":   {"0", "9223372036854775808"},
			"remapped_rows.pending": {"2", all32},
			"power.limit":           {"0", "4294967.295"},
		},
		Truth: func(second int) map[string]string {
			return map[string]string{
				"utilization.gpu": "50", "memory.used": "40000000000", "power.draw": "300", "energy": fmt.Sprint(22500000 + 300*second), "temperature.gpu": "50",
				"nvlink.tx_bytes": fmt.Sprint(1<<40 + 5<<30*second), "ecc.uncorrected": "5", "ecc.corrected": "100", "throttle.hw_thermal": fmt.Sprint(40000000000 + 10000000*second),
				"remapped_rows.pending": "0", "power.limit": "700",
			}
		},
		Set: node.Script,
		Read: func(gpu int) (device.Observation, error) {
			observations, err := found[gpu].Read(t.Context(), device.Slow)
			if err != nil {
				return device.Observation{}, err
			}
			return observations[0], nil
		},
	}.Run(t)
}
