package simulated

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/device"
)

// faulty is two devices; the faults are those of the first.
func faulty(faults string) string {
	return `
devices:
- uuid: GPU-a
  quantities: {power: 5, energy: {rate: 10}}
  faults: ` + faults + `
- {uuid: GPU-b, quantities: {power: 6}}
`
}

func TestFaults(t *testing.T) {
	const (
		wellA = "GPU-a: power=5 energy=%d\n"
		wellB = "GPU-b: power=6\n"
	)
	for name, test := range map[string]struct {
		file string
		want map[int]string // by second
	}{
		"error": {
			file: faulty("[{kind: error, after: 10s, for: 5s}]"),
			want: map[int]string{
				9:  fmt.Sprintf(wellA, 90) + wellB,
				10: "error: simulated error of the device\n" + wellB,
				14: "error: simulated error of the device\n" + wellB,
				15: fmt.Sprintf(wellA, 150) + wellB,
			},
		},
		"error of a quantity": {
			file: faulty("[{kind: error, quantity: power, after: 1s}]"),
			want: map[int]string{
				0:   fmt.Sprintf(wellA, 0) + wellB,
				100: "GPU-a: energy=1000\nerror: read power of GPU-a: simulated error of the device\n" + wellB,
			},
		},
		"disappear": {
			file: faulty("[{kind: disappear, after: 2s, for: 1s}]"),
			want: map[int]string{2: wellB, 3: fmt.Sprintf(wellA, 30) + wellB},
		},
		"reset": {
			file: faulty("[{kind: reset, after: 10s}, {kind: reset, after: 20s}]"),
			want: map[int]string{
				9: fmt.Sprintf(wellA, 90) + wellB, 10: fmt.Sprintf(wellA, 0) + wellB,
				15: fmt.Sprintf(wellA, 50) + wellB, 23: fmt.Sprintf(wellA, 30) + wellB,
			},
		},
		"error of the source": {
			file: faulty("[]") + "faults: [{kind: error, after: 5s, for: 1s}]",
			want: map[int]string{4: fmt.Sprintf(wellA, 40) + wellB, 5: "simulated error of the source\n", 6: fmt.Sprintf(wellA, 60) + wellB},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := New(parsed(t, test.file), clock.System())
				for second := range 101 {
					if want, there := test.want[second]; there {
						if got := read(t, s, device.Fast); got != want {
							t.Errorf("after %d s\n%swant\n%s", second, got, want)
						}
					}
					time.Sleep(time.Second)
				}
			})
		})
	}
}

func TestHangIgnoresTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(parsed(t, faulty("[{kind: hang, after: 10s, for: 5s}]")), clock.System())
		readers, err := s.Readers(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Second)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		if _, err := readers[1].Read(ctx, device.Fast); err != nil || time.Since(began) > 0 {
			t.Errorf("the other device: %v after %s", err, time.Since(began))
		}
		if _, err := readers[0].Read(ctx, device.Fast); err != nil || time.Since(began).Round(time.Second) != 5*time.Second {
			t.Errorf("the read came back after %s with %v, want 5 s and success", time.Since(began), err)
		}
	})
}

func TestFaultsAreReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(parsed(t, faulty("[]")), clock.System())
		time.Sleep(10 * time.Second)
		s.Replace(parsed(t, faulty("[{kind: reset}]")))
		time.Sleep(time.Second)
		expect(t, read(t, s, device.Fast), "GPU-a: power=5 energy=10\nGPU-b: power=6\n")

		for of, file := range map[string]string{
			"the source": faulty("[]") + "faults: [{kind: hang}]\n",
			"a device":   faulty("[{kind: hang}]"),
		} {
			s.Replace(parsed(t, file))
			answer := make(chan string, 1)
			go func() { answer <- read(t, s, device.Fast) }()
			time.Sleep(time.Hour)
			select {
			case text := <-answer:
				t.Errorf("a call came back while %s hangs: %s", of, text)
			default:
			}
			s.Replace(parsed(t, faulty("[]")))
			if text := <-answer; !strings.Contains(text, "GPU-a: power=5") {
				t.Errorf("after the hang: %s", text)
			}
		}
	})
}

// A reset is over once it has been heeded, whatever becomes of the load.
func TestResetUnderChangingLoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(parsed(t, `
devices:
- uuid: GPU-a
  quantities: {nvlink_transmit: {rate: 10}}
  faults: [{kind: reset, after: 10s}]
`), clock.System())
		time.Sleep(20 * time.Second) // 10 s of 10 bytes since the reset
		s.SetLoad("GPU-a", 0.5)
		time.Sleep(10 * time.Second)
		s.SetLoad("GPU-a", 0)
		time.Sleep(10 * time.Second)
		expect(t, read(t, s, device.Fast), "GPU-a: nvlink_transmit=150\n")
	})
}
