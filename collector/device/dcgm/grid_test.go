package dcgm

import (
	"encoding/binary"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/device"
)

// noon is the wall clock's time where elapsed time begins.
var noon = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

// seconds is a time in seconds.
func seconds(n float64) time.Duration { return time.Duration(n * float64(time.Second)) }

// call is a call between two elapsed times in seconds.
func call(began, ended float64) *callTime {
	return &callTime{seconds(began), clock.Instant{Elapsed: seconds(ended), Wall: noon.Add(seconds(ended))}}
}

// stamped is the timestamp of a sample taken at an elapsed time in seconds, by
// a clock that is so many seconds ahead of ours.
func stamped(at, ahead float64) int64 { return noon.Add(seconds(at)).Add(seconds(ahead)).UnixMicro() }

// small is a grid of one field whose values count for ten seconds.
func small() (*grid, entity) {
	gpu := entity{wholeGPU, 0}
	return newGrid([]entity{gpu}, []uint16{totalEnergy}, func(uint16) time.Duration { return 10 * time.Second }), gpu
}

// step is a call that begins at a time and takes a tenth of a second or as
// long as takes says, and its result: a sample of a time, by a clock that is
// ahead, or a failure.
type step struct {
	began, takes, sampled, ahead float64
	status                       status
	want                         string // the window of the value, in seconds
}

func TestWindows(t *testing.T) {
	for name, steps := range map[string][]step{
		"the engine's clock is ours": {
			{began: 100, sampled: 99.5, want: "99.5 99.5"},
			{began: 101, sampled: 100.5, want: "100.5 100.5"},
			{began: 102, sampled: 102.05, want: "102.05 102.05"},
		},
		"an unchanged value keeps its time": {
			{began: 100, sampled: 99.5, want: "99.5 99.5"},
			{began: 101, sampled: 99.5, want: "99.5 99.5"},
			{began: 108, sampled: 99.5, want: "99.5 99.5"},
			{began: 109, sampled: 108.5, want: "108.5 108.5"},
		},
		"a wrong clock cannot say when, but what was seen bounds it": {
			{began: 100, sampled: 99.5, ahead: -3600, want: "90.1 100.1"},
			{began: 101, sampled: 99.5, ahead: -3600, want: "90.1 100.1"},
			{began: 104, sampled: 103.5, ahead: -3600, want: "101 104.1"},
			{began: 105, sampled: 103.5, ahead: -3600, want: "101 104.1"},
		},
		"nor one that is ahead": {
			{began: 100, sampled: 99.5, ahead: 3600, want: "90.1 100.1"},
			{began: 101, sampled: 100.5, ahead: 3600, want: "100 101.1"},
		},
		"nor one that jumps": {
			{began: 100, sampled: 99.5, want: "99.5 99.5"},
			{began: 101, sampled: 100.5, ahead: -7200, want: "100 101.1"},
			{began: 102, sampled: 101.5, ahead: 7200, want: "101 102.1"},
			{began: 103, sampled: 102.5, want: "102.5 102.5"},
		},
		"nor the year 1970, nor the largest number": {
			{began: 100, sampled: 99.5, ahead: -float64(noon.Unix()), want: "90.1 100.1"},
			{began: 101, sampled: 100.5, ahead: 9e9, want: "100 101.1"},
			{began: 102, sampled: 101.5, ahead: -9e9, want: "101 102.1"},
		},
		"a clock that is a little slow stays within the bounds": {
			{began: 100, sampled: 99.5, ahead: -0.7, want: "98.8 98.8"},
			{began: 101, sampled: 100.9, ahead: -0.7, want: "100.2 100.2"},
			{began: 102, sampled: 101.3, ahead: -0.7, want: "101 102.1"},
		},
		"a clock that is set back within the bounds leaves the order": {
			{began: 100, sampled: 100.08, want: "100.08 100.08"},
			{began: 101, sampled: 101.02, ahead: -1, want: "100.08 101.1"},
			{began: 102, sampled: 101.5, want: "101.5 101.5"},
		},
		"a first value older than one that counts": {
			{began: 100, sampled: 40, want: "90.1 100.1"},
			{began: 101, sampled: 100.5, want: "100.5 100.5"},
		},
		"before our time began": {
			{began: 2, sampled: 1.5, ahead: -5, want: "0 2.1"},
			{began: 3, sampled: 2.5, want: "2.5 2.5"},
		},
		"a failure in between does not make a value new": {
			{began: 100, sampled: 99.5, want: "99.5 99.5"},
			{began: 101, status: statusNoData, want: "99.5 99.5"},
			{began: 102, sampled: 99.5, want: "99.5 99.5"},
			{began: 103, status: statusNoData, want: "99.5 99.5"},
			{began: 104, sampled: 103.5, ahead: 60, want: "103 104.1"},
		},
		"a failure first: there was no value then": {
			{began: 100, status: statusNoData, want: "0 0"},
			{began: 101, sampled: 100.5, ahead: 60, want: "100 101.1"},
		},
		"a call that hangs": {
			{began: 100, sampled: 99.5, ahead: 60, want: "90.1 100.1"},
			{began: 101, takes: 5, sampled: 104, ahead: 60, want: "100 106"},
			{began: 107, sampled: 105, ahead: 60, want: "101 107.1"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			g, gpu := small()
			for _, s := range steps {
				v := integer(1)
				v.entity, v.field, v.status, v.at = gpu, totalEnergy, s.status, stamped(s.sampled, s.ahead)
				if s.status != statusOK {
					v.at = 0
				}
				if s.takes == 0 {
					s.takes = 0.1
				}
				g.begin()
				g.apply(&v, call(s.began, s.began+s.takes))
				w := g.get(gpu, totalEnergy).measured
				if got := fmt.Sprintf("%g %g", w.From.Seconds(), w.To.Seconds()); got != s.want {
					t.Errorf("read at %g s, of a sample of %g s: measured at [%s], want [%s]", s.began, s.sampled, got, s.want)
				}
			}
		})
	}
}

// Whatever an engine's clock and our wall clock do: a value that is seen for
// the first time was measured after the last call that did not return it and
// before the answer of this one, a repeated value keeps its window,
// and none was measured before the one that it replaces.
func FuzzWindows(f *testing.F) {
	f.Add([]byte{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18})
	f.Add([]byte("0 100 200 000 1111 2222 3333 4444 5555 6666 7777 8888 9999"))
	f.Add(slices.Repeat([]byte{0, 255, 128, 7, 1}, 40))
	f.Fuzz(func(t *testing.T, dice []byte) {
		draw := func(sides int) int {
			if len(dice) < 2 {
				return 0
			}
			n := int(binary.BigEndian.Uint16(dice)) % sides
			dice = dice[2:]
			return n
		}
		g, gpu := small()
		now, jumped, stamp := time.Duration(draw(60))*time.Second, time.Duration(0), int64(0)
		var last cell
		for len(dice) >= 2 {
			now += time.Duration(draw(3000)) * time.Millisecond
			if draw(8) == 0 {
				jumped = time.Duration(draw(7200)-3600) * time.Second
			}
			a := &callTime{began: now}
			now += time.Duration(draw(4)*draw(500)) * time.Millisecond
			a.ended = clock.Instant{Elapsed: now, Wall: noon.Add(now + jumped)}
			v := integer(1)
			v.entity, v.field = gpu, totalEnergy
			switch draw(6) {
			case 0:
				v.status = statusNoData
			case 1: // the same again
			case 2:
				stamp = int64(draw(1<<16)) << 47 // anything
			case 3:
				stamp = -int64(draw(1<<16)) << 47
			default:
				stamp = noon.Add(now - time.Duration(draw(5000))*time.Millisecond).UnixMicro()
			}
			v.at = stamp
			g.begin()
			g.apply(&v, a)
			c := *g.get(gpu, totalEnergy)
			checkWindow(t, &last, &c, a)
			last = c
		}
	})
}

// checkWindow checks the window of a value against what was known before.
func checkWindow(t *testing.T, last, c *cell, a *callTime) {
	t.Helper()
	if !c.sampled {
		return
	}
	w := c.measured
	least := max(a.ended.Elapsed-10*time.Second, 0)
	if last.round != 0 {
		least = last.queried
	}
	switch {
	case c.status != statusOK || last.sampled && last.stamp == c.stamp:
		if w != last.measured {
			t.Fatalf("a repeated value was measured at %v, before it was %v", w, last.measured)
		}
	case w.From > w.To || w.From < least || w.To > a.ended.Elapsed:
		t.Fatalf("measured at %v, not between %v and %v", w, least, a.ended.Elapsed)
	case w.From < last.measured.From || w.To < last.measured.To:
		t.Fatalf("measured at %v, the value before it at %v", w, last.measured)
	}
}

// when returns when the readings of a quantity were measured, in seconds: once for
// all that were measured at the same time.
func (f *deviceResult) when(q device.Quantity) string {
	text, last := "", device.Window{From: -1}
	for _, r := range append(slices.Clone(f.Readings), f.Slow...) {
		if w := r.Measured; r.Quantity == q && w != last {
			text += fmt.Sprintf("[%g %g]", w.From.Seconds(), w.To.Seconds())
			last = w
		}
	}
	return text
}

// Each kind of reading has the time of its value, and a
// quantity that does not change for eight seconds while others do keeps
// its own.
func TestTimesOfReadings(t *testing.T) {
	b := newConverterFixture(true)
	b.at = noon.UnixMicro()
	read := func(tier device.Tier, lag float64, fields ...uint16) *deviceResult {
		b.now, b.at = b.now+time.Second, b.at+1e6
		b.grid.begin()
		for field, v := range map[uint16]value{
			totalEnergy: integer(5000), nvlinkTransmit: integer(600), pcieTransmitRate: integer(7),
			clocksEventReasons: integer(reasonHardwareSlowdown), recoveryAction: integer(1), eccCorrected: integer(3),
		} {
			v.entity, v.field, v.at = entity{wholeGPU, 0}, field, b.at-100_000
			if slices.Contains(fields, field) {
				v.at = b.at - int64(lag*1e6)
			}
			b.grid.apply(&v, b.call())
		}
		return b.observe(&b.plan.targets[0], tier, b.now)
	}
	expect := func(f *deviceResult, want map[device.Quantity]string) {
		t.Helper()
		for q, w := range want {
			if got := f.when(q); got != w {
				t.Errorf("at %s %s was measured at %q, want %q", b.now, device.Specs()[q].Name, got, w)
			}
		}
	}
	expect(read(device.Slow, 0.5, nvlinkTransmit, pcieTransmitRate, clocksEventReasons, recoveryAction, eccCorrected), map[device.Quantity]string{
		device.Energy: "[0.9 0.9]", device.NVLinkTransmit: "[0.5 0.5]", device.PCIeTransmit: "[0.5 0.5]", device.Throttled: "[0.5 0.5]",
		device.RecoveryAction: "[0.5 0.5]",
		device.ECCErrors:      "[0.5 0.5]",
	})
	for second := 2; second <= 8; second++ {
		f := read(device.Slow, float64(second)-0.5, nvlinkTransmit, clocksEventReasons, eccCorrected)
		expect(f, map[device.Quantity]string{
			device.Energy: fmt.Sprintf("[%[1]g %[1]g]", float64(second)-0.1), device.NVLinkTransmit: "[0.5 0.5]",
			device.PCIeTransmit: fmt.Sprintf("[%[1]g %[1]g]", float64(second)-0.1),
			device.Throttled:    "[0.5 0.5]", device.ECCErrors: "[0.5 0.5]",
		})
	}
	expect(read(device.Fast, 0.2, nvlinkTransmit), map[device.Quantity]string{
		device.NVLinkTransmit: "[8.8 8.8]", device.Throttled: "[8.9 8.9]", device.ECCErrors: "",
	})
}

// Another plan, as after a change of MIG on another GPU, makes no
// value new, neither for its window nor for its age. An entity at another location
// is another entity.
func TestPlanChangeKeepsValues(t *testing.T) {
	b := newConverter(Options{}.complete())
	plans := make(map[string]watchPlan)
	for name, uuids := range map[string][]string{"both": {"GPU-a", "GPU-b"}, "renumbered": {"GPU-b", "GPU-a"}, "grown": {"GPU-a", "GPU-b", "GPU-c"}} {
		var gpus []uint
		who := make(map[entity]identity)
		for i, uuid := range uuids {
			gpus, who[entity{wholeGPU, uint(i)}] = append(gpus, uint(i)), identity{uuid: uuid}
		}
		plans[name] = makePlan(gpus, nil, who)
	}
	read := func(at float64) *deviceResult {
		b.grid.begin()
		v := integer(5000)
		v.entity, v.field, v.at = entity{wholeGPU, 0}, totalEnergy, stamped(100, 3600)
		b.grid.apply(&v, call(at, at+0.1))
		return b.observe(&b.plan.targets[0], device.Fast, seconds(at))
	}
	for i, step := range []struct {
		plan string
		at   float64
		want string
	}{
		{"both", 100, "[90.1 100.1]"}, {"grown", 105, "[90.1 100.1]"}, {"both", 110, "[90.1 100.1]"}, {"grown", 111, ""},
		{"renumbered", 112, "[102.1 112.1]"},
	} {
		b.applyPlan(plans[step.plan])
		for range i {
			b.grid.begin()
			if f := b.observe(&b.plan.targets[0], device.Fast, seconds(step.at)); len(f.Readings) > 0 {
				t.Errorf("with %s at %g s a read without values finds %v", step.plan, step.at, f.Readings)
			}
		}
		if got := read(step.at).when(device.Energy); got != step.want {
			t.Errorf("with %s at %g s it was measured at %q, want %q", step.plan, step.at, got, step.want)
		}
	}
}

// A value that does not change is dropped at the limit, also where failures occur
// between that would make it look new.
func TestUnchangedValuesExpireDespiteFailures(t *testing.T) {
	b := newConverterFixture(false)
	for second := range 20 {
		b.now += time.Second
		b.grid.begin()
		v := integer(5000)
		v.entity, v.field, v.at = entity{wholeGPU, 0}, totalEnergy, 1e15
		if second%3 == 2 {
			v.status, v.at = statusNoData, 0
		}
		b.grid.apply(&v, b.call())
		f := b.observe(&b.plan.targets[0], device.Fast, b.now)
		if got, want := f.text(device.Energy) != "", second%3 != 2 && second <= 10; got != want {
			t.Errorf("%d s after it was sampled the energy is %q", second, f.text(device.Energy))
		}
	}
}
