//go:build cgo

package nvml

import (
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock/dgxh100"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/device"
)

// Each sample counts for the read that follows it, and the first read takes in
// no history.
func TestStartOfProcessMeasurement(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &listing{compute: []nvml.ProcessInfo{using(10, 5), using(11, 6)}}
		_, _, r := listed(t, l)
		start := time.Now().UnixMicro()
		at := func(seconds float64) uint64 { return uint64(start + int64(seconds*1e6)) }
		for i, step := range []struct {
			wait    time.Duration
			samples []nvml.ProcessUtilizationSample
			since   float64 // seconds after the start
			want    string
		}{
			{0, []nvml.ProcessUtilizationSample{doing(10, 90, at(-3)), doing(11, 20, at(-0.5))}, -1, "10:5:0 11:6:0.2"},
			{time.Second, []nvml.ProcessUtilizationSample{doing(10, 30, at(0.9))}, 0, "10:5:0.3 11:6:0"},
			// Nothing newer, though it goes on: the last sample still stands.
			{200 * time.Millisecond, nil, 0.9, "10:5:0.3 11:6:0"},
			// Now it does not.
			{time.Second, nil, 1.2, "10:5:0 11:6:0"},
			// A long pause between two reads is measured as a whole.
			{10 * time.Second, []nvml.ProcessUtilizationSample{doing(11, 70, at(4)), doing(10, 10, at(12.1))}, 2.2, "10:5:0.1 11:6:0.7"},
			{time.Second, []nvml.ProcessUtilizationSample{doing(10, 40, at(13.3))}, 12.2, "10:5:0.4 11:6:0"},
			{500 * time.Millisecond, nil, 13.3, "10:5:0.4 11:6:0"},
			// Taken while it was asked for, and not taken for the next second's.
			{time.Second, []nvml.ProcessUtilizationSample{doing(10, 50, at(14.705))}, 13.7, "10:5:0.5 11:6:0"},
			{999 * time.Millisecond, nil, 14.705, "10:5:0 11:6:0"},
		} {
			time.Sleep(step.wait)
			l.samples, l.asked = step.samples, nil
			got := processText(r.Read(t.Context(), device.Fast))
			if got != step.want || len(l.asked) != 1 || l.asked[0] != at(step.since) {
				t.Errorf("read %d, since %v: %s, want since %v: %s", i, l.asked, got, at(step.since), step.want)
			}
		}
	})
}

// Drivers return what they have, also from long before what they are asked
// for, and buffers that were never filled.
func TestSamplesOlderThanRequested(t *testing.T) {
	now := uint64(time.Now().UnixMicro())
	s, _, r := listed(t, &listing{compute: []nvml.ProcessInfo{using(10, 5), using(11, 6)}})
	samples := []nvml.ProcessUtilizationSample{doing(10, 90, now-60e6), doing(11, 30, now), doing(12, 80, now-60e6), doing(13, 70, 0)}
	gpu(s, 0).GetProcessUtilizationFunc = func(uint64) ([]nvml.ProcessUtilizationSample, nvml.Return) { return samples, nvml.SUCCESS }
	if got, want := processText(r.Read(t.Context(), device.Fast)), "10:5:0 11:6:0.3"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// A wall clock that is set back, or a driver that returns times in the future,
// does not stop the measurement.
func TestProcessesWhileTheClockJumps(t *testing.T) {
	l := &listing{compute: []nvml.ProcessInfo{using(10, 5)}}
	s := fitted(dgxh100.New())
	lists(gpu(s, 0), l)
	now := clock.System()()
	from := NewOver(s, Options{Processes: always, Clock: func() clock.Instant { return now }})
	r := readers(t, from)[0]
	const never = time.Duration(math.MinInt64)
	read := func(wall time.Duration, sampled time.Duration, want string) {
		t.Helper()
		now.Elapsed += time.Second
		now.Wall = now.Wall.Add(wall)
		l.samples = []nvml.ProcessUtilizationSample{doing(10, 30, uint64(now.Wall.Add(sampled).UnixMicro()))}
		if sampled == never {
			l.samples = nil
		}
		if got := processText(r.Read(t.Context(), device.Fast)); got != want {
			t.Errorf("%v after the jump by %v: %s, want %s", sampled, wall, got, want)
		}
	}
	read(time.Second, -time.Millisecond, "10:5:0.3")
	read(-time.Hour, -time.Millisecond, "10:5:0.3")
	read(time.Second, -time.Millisecond, "10:5:0.3")
	read(-time.Hour, never, "10:5:0") // what was done before the jump is not done now
	read(3*time.Hour, -time.Millisecond, "10:5:0.3")
	read(time.Second, 24*time.Hour, "10:5:0.3")
	read(time.Second, -time.Millisecond, "10:5:0.3")
	read(time.Second, time.Millisecond, "10:5:0.3") // taken while it was asked for
	read(time.Second, 0, "10:5:0.3")
}
