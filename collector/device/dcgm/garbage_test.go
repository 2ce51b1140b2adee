//go:build cgo && linux

package dcgm

import (
	"fmt"
	"testing"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/device"
	"github.com/dra-exporter/dra-exporter/test/fakes/devicetest"
	"github.com/dra-exporter/dra-exporter/test/fakes/stubs"
)

// The engine has a utilization of NVIDIA/DCGM#199, numbers of all bits, and counters of
// another state of the GPU.
func TestGarbageOfTheEngine(t *testing.T) {
	const all32, all64 = "4294967295", "18446744073709551615"
	node := stubs.NewNode(t, 2)
	use(t, node)
	r := connected(t, newSource(t, Options{}))
	times := func() (at [2]time.Duration) { // when each GPU's clock was read last
		for _, o := range read(t, r, device.Fast) {
			window, _ := measured(o, device.ClockFrequency, "sm")
			at[o.Device.Minor] = window.To
		}
		return at
	}
	devicetest.Garbage{
		Wrong: map[string][]string{
			"utilization.gpu": {"808334905", "65535", all32},
			"memory.used":     {all64, "9223372036854775808"},
			"power.draw":      {"4294967.295", "80833490"},
			"energy":          {"0", "200", "18446744073709551", "9223372036854"},
			"temperature.gpu": {"0", "65535", "255000"},
			"nvlink.tx_bytes": {"0", "200", "9223372036854775808"},
		},
		Truth: func(second int) map[string]string {
			return map[string]string{
				"utilization.gpu": "50", "memory.used": "40000000000", "power.draw": "300", "energy": fmt.Sprint(22500000 + 300*second), "temperature.gpu": "50",
				"nvlink.tx_bytes": fmt.Sprint(1<<40 + 5<<30*second),
			}
		},
		Set: func(gpu int, values map[string]string) {
			node.Script(gpu, values)
			if gpu == 0 {
				return
			}
			for range 2 { // the first read may have begun before
				before := times()
				eventually(t, "both GPUs to be read", func() bool { now := times(); return now[0] > before[0] && now[1] > before[1] })
			}
		},
		Read: func(gpu int) (device.Observation, error) {
			observations, err := r.Read(t.Context(), device.Slow)
			for _, o := range observations {
				if o.Device.Minor == gpu {
					return o, nil
				}
			}
			return device.Observation{}, fmt.Errorf("GPU %d is not there: %w", gpu, err)
		},
	}.Run(t)
}
