package dcgmnames

import (
	"math"
	"testing"
	"time"
)

// The meters of these tests use readings for 10 s and wait 3 s for growth.
func testTiming() meterTiming { return meterTiming{quiet: 3 * time.Second, stale: 10 * time.Second} }

func TestMeter(t *testing.T) {
	unknown := math.NaN()
	type snapshot struct {
		seconds float64
		value   float64
		want    float64
		stale   bool
	}
	for _, test := range []struct {
		name      string
		snapshots []snapshot
	}{
		{"the first growth was read at an unknown time", []snapshot{
			{0, 100, unknown, false}, {0.1, 200, unknown, false}, {1.1, 300, 100, false},
		}},
		{"growth belongs to the time between the readings, whatever snapshots are between", []snapshot{
			{0, 0, unknown, false}, {1, 10, unknown, false}, {1.2, 10, unknown, false}, {1.9, 10, unknown, false},
			{2, 20, 10, false}, {2.5, 20, 10, false}, {4, 60, 20, false},
		}},
		{"a counter without growth", []snapshot{
			{0, 5, unknown, false}, {1, 5, unknown, false}, {3, 5, 0, false}, {4, 5, 0, false},
		}},
		{"growth ends", []snapshot{
			{0, 0, unknown, false}, {1, 10, unknown, false}, {2, 20, 10, false}, {3, 20, 10, false}, {4.9, 20, 10, false}, {5, 20, 0, false},
		}},
		{"growth begins again: the rate is at most the growth", []snapshot{
			{0, 5, unknown, false}, {3, 5, 0, false}, {60, 5, unknown, false}, {63, 5, 0, false}, {63.01, 35, 30 / 3.01, false}, {64.01, 65, 30, false},
		}},
		{"it restarts", []snapshot{
			{0, 100, unknown, false}, {1, 110, unknown, false}, {2, 120, 10, false}, {3, 7, unknown, false}, {4, 17, 10, false},
		}},
		{"readings are too far apart", []snapshot{
			{0, 0, unknown, false}, {1, 10, unknown, false}, {2, 20, 10, false},
			{13, 130, unknown, false}, {13.1, 140, unknown, false}, {14.1, 150, 10, false},
		}},
		{"the device is stale", []snapshot{
			{0, 0, unknown, false}, {1, 10, unknown, false}, {2, 20, 10, false},
			{5, 20, unknown, true}, {9, 20, unknown, true}, {11, 110, 10, false},
		}},
		{"it vanishes", []snapshot{
			{0, 0, unknown, false}, {1, 10, unknown, false}, {2, 20, 10, false},
			{3, unknown, unknown, false}, {4, 40, unknown, false}, {5, 50, unknown, false}, {6, 60, 10, false},
		}},
		{"two snapshots at one time", []snapshot{
			{0, 0, unknown, false}, {1, 10, unknown, false}, {1, 20, unknown, false}, {2, 20, 10, false},
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			var m growthMeter
			for _, at := range test.snapshots {
				got := m.observe(at.value, !at.stale, time.Duration(at.seconds*float64(time.Second)), testTiming())
				if math.IsNaN(got) != math.IsNaN(at.want) || math.Abs(got-at.want) > 1e-6 {
					t.Errorf("at %g s: rate %g, want %g", at.seconds, got, at.want)
				}
			}
		})
	}
}

// TestMeterAtIntervals checks for several intervals that a growing counter has a rate,
// that one without growth has the rate 0, and that one that grows again has no higher
// rate than before.
func TestMeterAtIntervals(t *testing.T) {
	for _, interval := range []time.Duration{100 * time.Millisecond, time.Second, 5 * time.Second, time.Minute} {
		var (
			m       growthMeter
			timing  = newTiming(Options{Interval: interval, Staleness: max(3*interval, 10*time.Second)})
			now     time.Duration
			counter float64
			rate    float64
		)
		run := func(readings int, perSecond float64) {
			for range readings {
				now += interval + interval/50
				counter += perSecond * interval.Seconds()
				m.observe(counter, true, now, timing)
				rate = m.observe(counter, true, now+interval/2, timing) // a snapshot between two readings
			}
		}
		run(3, 100)
		if math.Abs(rate-100) > 3 {
			t.Errorf("every %v: rate %g of a counter that grows by 100 a second", interval, rate)
		}
		run(int(timing.stale/interval)*3, 0)
		if rate != 0 {
			t.Errorf("every %v: rate %g of a counter without growth", interval, rate)
		}
		if run(1, 100); !(rate > 0 && rate <= 100) {
			t.Errorf("every %v: rate %g of a counter that has grown by 100 a second again", interval, rate)
		}
	}
}

// FuzzMeter checks for any times of readings and snapshots that no rate is
// significantly above the fastest growth.
func FuzzMeter(f *testing.F) {
	f.Add([]byte{1, 9, 3, 0, 20, 255, 7})
	f.Fuzz(func(t *testing.T, steps []byte) {
		const fastest = 1000.0 // a second
		var (
			m              growthMeter
			now, read      time.Duration
			shown, counter float64
		)
		for _, step := range steps {
			now += time.Duration(step%16+1) * 50 * time.Millisecond
			for read+time.Second <= now {
				read += time.Second
				counter += fastest * float64(step/16) / 15
				// Every reading is followed by a snapshot immediately.
				shown = counter
				if rate := m.observe(shown, true, read+time.Millisecond, testTiming()); rate > fastest*1.01 || rate < 0 {
					t.Fatalf("rate %g after growth of at most %g a second", rate, fastest)
				}
			}
			if rate := m.observe(shown, true, now+2*time.Millisecond, testTiming()); rate > fastest*1.01 {
				t.Fatalf("rate %g after growth of at most %g a second", rate, fastest)
			}
		}
	})
}
