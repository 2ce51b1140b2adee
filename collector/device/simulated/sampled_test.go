package simulated

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/device"
)

const sampledExample = `
devices:
- uuid: GPU-a
  quantities:
    power: {curve: ramp, min: 0, max: 100, period: 100s, sampled: 4s}
    energy: {rate: 10}
    nvlink_transmit: {rate: 100, sampled: 8s}
  faults:
  - {kind: set, quantity: power, value: 7, after: 17s, for: 1s}
  - {kind: reset, after: 21s}
`

// What a library samples by itself stands still in between, and says when it
// was sampled. All else says nothing: the sampler knows.
func TestSampledQuantities(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		now := clock.System()
		time.Sleep(time.Minute)
		s := New(parsed(t, sampledExample), now)
		r, err := s.Readers(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		every := ""
		for second := range 26 {
			observations, err := r[0].Read(t.Context(), device.Fast)
			if err != nil {
				t.Fatal(err)
			}
			line := ""
			for _, r := range observations[0].Readings {
				line += fmt.Sprintf(" %s=%.4g", device.Specs()[r.Quantity].Name, r.Value)
				if w := r.Measured; !w.IsZero() {
					line += fmt.Sprintf("@%.4g", (w.From - time.Minute).Truncate(time.Millisecond).Seconds())
					if w.From != w.To {
						t.Errorf("%d s: a sample is of %v", second, w)
					}
				}
			}
			switch second {
			case 0, 3, 4, 7, 8, 13, 16, 17, 20, 21, 24:
				every += fmt.Sprintf("%d:%s\n", second, line)
			}
			if second == 12 {
				s.SetLoad("GPU-a", 0)
				s.Replace(parsed(t, sampledExample))
			}
			time.Sleep(time.Second)
		}
		// The load ends at 12 s and the counters begin again at 21 s, but what
		// is sampled shows it with the next sample.
		expect(t, every, `
			0: power=0@0 energy=0 nvlink_transmit=0@0
			3: power=0@0 energy=30 nvlink_transmit=0@0
			4: power=4@4 energy=40 nvlink_transmit=0@0
			7: power=4@4 energy=70 nvlink_transmit=0@0
			8: power=8@8 energy=80 nvlink_transmit=800@8
			13: power=12@12 energy=130 nvlink_transmit=800@8
			16: power=16@16 energy=160 nvlink_transmit=1200@16
			17: power=16@16 energy=170 nvlink_transmit=1200@16
			20: power=20@20 energy=200 nvlink_transmit=1200@16
			21: power=20@20 energy=0 nvlink_transmit=1200@16
			24: power=24@24 energy=30 nvlink_transmit=0@24
			`)
	})
}
