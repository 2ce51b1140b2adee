package device

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/clock"
)

// measured writes down when each reading of the device was measured, in
// seconds since the start.
func (s *sampling) measured(uuid string) string {
	var b strings.Builder
	for _, sample := range s.Latest() {
		if sample.Device.UUID != uuid {
			continue
		}
		for _, r := range sample.Readings {
			w := r.Measured
			fmt.Fprintf(&b, " %s=[%g %g]", Specs()[r.Quantity].Name,
				w.From.Truncate(time.Millisecond).Seconds(), w.To.Truncate(time.Millisecond).Seconds())
		}
	}
	return strings.TrimPrefix(b.String(), " ")
}

func (s *sampling) expectMeasured(t *testing.T, uuid, want string) {
	t.Helper()
	if got := s.measured(uuid); got != want {
		t.Errorf("after %s %s was measured at %s, want %s", time.Since(s.start), uuid, got, want)
	}
}

// A reading whose source does not say when it was measured was measured while
// it was read. What a slow read found keeps the time of that read.
func TestReadingsHaveTheTimeOfTheirRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := sample(t, &fakeSource{name: "fake", readers: []Reader{lasting("GPU-a", func(_ int, tier Tier) time.Duration {
			return 100*time.Millisecond + time.Duration(tier)*200*time.Millisecond
		})}})
		s.pass(500 * time.Millisecond)
		s.expectMeasured(t, "GPU-a", "power=[0 0.3] power_limit=[0 0.3]")
		s.pass(time.Second)
		s.expectMeasured(t, "GPU-a", "power=[1 1.1] power_limit=[0 0.3]")
		s.pass(28 * time.Second)
		s.expectMeasured(t, "GPU-a", "power=[29 29.1] power_limit=[0 0.3]")
		s.pass(time.Second)
		s.expectMeasured(t, "GPU-a", "power=[30 30.3] power_limit=[30 30.3]")
	})
}

// A call that hangs may return what it read at its beginning or at its end.
func TestLateReadHasTheTimeOfItsRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := sample(t, &fakeSource{name: "fake", readers: []Reader{
			steady("GPU-a"),
			lasting("GPU-b", func(call int, _ Tier) time.Duration {
				if call == 3 {
					return 5500 * time.Millisecond
				}
				return 0
			}),
		}})
		s.pass(7 * time.Second)
		s.expectMeasured(t, "GPU-a", "power=[7 7] power_limit=[0 0]")
		s.expectMeasured(t, "GPU-b", "power=[1 1] power_limit=[0 0]")
		s.pass(700 * time.Millisecond)
		s.expectMeasured(t, "GPU-b", "power=[2 7.5] power_limit=[0 0]")
		s.pass(time.Second)
		s.expectMeasured(t, "GPU-b", "power=[8 8] power_limit=[0 0]")
	})
}

// A read that found nothing leaves what was known with the time of the read
// that found it.
func TestFailedReadLeavesTheTimeOfTheOneBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := sample(t, &fakeSource{name: "fake", readers: []Reader{
			&fakeReader{key: "GPU-a", read: func(call int, tier Tier) ([]Observation, error) {
				if call > 2 {
					return []Observation{{Device: Device{UUID: "GPU-a"}}}, errBroken
				}
				return watts("GPU-a", 1, tier), nil
			}},
		}})
		s.pass(5 * time.Second)
		s.expectMeasured(t, "GPU-a", "power=[1 1] power_limit=[0 0]")
	})
}

// lagging is a reader of a counter which its library samples every so often.
// In between it answers with the last sample and the time of it.
func lagging(uuid string, q Quantity, every time.Duration, now clock.Clock) *fakeReader {
	var last Reading
	return &fakeReader{key: uuid, read: func(call int, _ Tier) ([]Observation, error) {
		at := now().Elapsed
		if last.Measured.IsZero() || at-last.Measured.To >= every {
			last = Reading{Quantity: q, Value: float64(call), Measured: Window{at, at}}
		}
		return []Observation{{Device: Device{UUID: uuid}, Readings: []Reading{last}}}, nil
	}}
}

// A second source's reading comes under the first one's sample, but with its
// own time: who holds the device by the time of the sample need not have held
// it then.
func TestLaterSourcesReadingKeepsItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		now := clock.System()
		s := sample(t,
			&fakeSource{name: "nvml", readers: []Reader{steady("GPU-a")}},
			&fakeSource{name: "dcgm", readers: []Reader{lagging("GPU-a", NVLinkTransmit, 9*time.Second, now)}},
		)
		s.pass(8 * time.Second)
		s.expectMeasured(t, "GPU-a", "power=[8 8] power_limit=[0 0] nvlink_transmit=[0 0]")
		if at := s.Latest()[0].At.Wall.Sub(s.start); at != 8*time.Second {
			t.Errorf("the sample is of %s", at)
		}
		s.pass(time.Second)
		s.expectMeasured(t, "GPU-a", "power=[9 9] power_limit=[0 0] nvlink_transmit=[9 9]")
	})
}

// Merge itself: each reading with the time that its source gave it, sorted in
// among the others.
func TestMergeKeepsTimes(t *testing.T) {
	at := func(r Reading, from, to int) Reading {
		r.Measured = Window{time.Duration(from) * time.Second, time.Duration(to) * time.Second}
		return r
	}
	merged, _ := Merge([][]Sample{
		{seen("x", Device{UUID: "GPU-1"}, 50, at(power(100), 49, 50))},
		{seen("y", Device{UUID: "GPU-1"}, 48, at(utilization(0.5), 41, 42), at(power(1), 47, 48))},
		{seen("z", Device{UUID: "GPU-1"}, 41, at(energy(7), 31, 32), at(utilization(1), 40, 41))},
	}, 10*time.Second)
	want := []Reading{at(utilization(0.5), 41, 42), at(power(100), 49, 50), at(energy(7), 31, 32)}
	want[0].Origin, want[2].Origin = 2<<8, 3<<8
	if len(merged) != 1 || fmt.Sprint(merged[0].Readings) != fmt.Sprint(want) {
		t.Errorf("merged %v, want the readings %v", merged, want)
	}
}

// Whatever the sources do, each reading that leaves the sampler has a time,
// which lies before now and does not go back.
func TestEveryReadingHasATime(t *testing.T) {
	for seed := range uint64(20) {
		synctest.Test(t, func(t *testing.T) {
			dice := rand.New(rand.NewPCG(seed, 1))
			now := clock.System()
			s := sample(t,
				&fakeSource{name: "x", readers: []Reader{unsteady(dice, "GPU-a"), unsteady(dice, "GPU-b")}},
				&fakeSource{name: "y", readers: []Reader{lagging("GPU-a", Energy, 7*time.Second, now), unsteady(dice, "GPU-c")}},
			)
			defer func() {
				s.stop()
				time.Sleep(20 * time.Second) // reads that were left behind
			}()
			before := make(map[string]Window)
			for range 200 {
				s.pass(time.Duration(dice.IntN(2500)) * time.Millisecond)
				for _, sample := range s.Latest() {
					for _, r := range sample.Readings {
						key, w := fmt.Sprint(sample.Device.UUID, r.Quantity), r.Measured
						b := before[key]
						if w.IsZero() || w.From > w.To || w.To > now().Elapsed || w.From < b.From || w.To < b.To {
							t.Fatalf("seed %d, after %s: %s was measured at %v, before at %v", seed, time.Since(s.start), key, w, b)
						}
						before[key] = w
					}
				}
			}
		})
	}
}

// unsteady is a reader whose reads fail or take long as the dice fall.
func unsteady(dice *rand.Rand, uuid string) *fakeReader {
	own := rand.New(rand.NewPCG(dice.Uint64(), 2))
	return &fakeReader{key: uuid, read: func(call int, tier Tier) ([]Observation, error) {
		if own.IntN(4) == 0 {
			time.Sleep(time.Duration(own.IntN(12_000)) * time.Millisecond)
		}
		switch own.IntN(6) {
		case 0:
			return nil, errBroken
		case 1:
			return []Observation{{Device: Device{UUID: uuid}}}, errBroken
		case 2:
			return watts(uuid, float64(call), tier), errBroken
		default:
			return watts(uuid, float64(call), tier), nil
		}
	}}
}
