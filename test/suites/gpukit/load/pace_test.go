package load

import (
	"fmt"
	"math"
	"testing"
	"time"
)

// Over many periods a device is busy for its part of them, whatever a unit
// takes, and however much longer the start of work makes a few units.
func TestPaceKeepsItsDuty(t *testing.T) {
	for _, unit := range []time.Duration{20 * time.Nanosecond, 3 * time.Microsecond, 700 * time.Microsecond, 9 * time.Millisecond, 250 * time.Millisecond} {
		for _, duty := range []int{1, 10, 50, 99, 100} {
			t.Run(fmt.Sprintf("%s at %d %%", unit, duty), func(t *testing.T) {
				const period = 100 * time.Millisecond
				const periods = 2000
				p := newPace(period, duty)
				var busy time.Duration
				for range periods {
					p.begin()
					for range 16 {
						units, perLaunch := p.next()
						if units == 0 {
							break
						}
						if launches := (units + perLaunch - 1) / perLaunch; launches > 100_000_000 {
							t.Fatalf("%d units in %d launches", units, launches)
						}
						took := time.Duration(units)*unit + 2*time.Microsecond
						busy += took
						p.done(units, took)
					}
				}
				want := periods * period * time.Duration(duty) / 100
				if off := math.Abs((busy - want).Seconds()); off > (2*period + 2*unit).Seconds() {
					t.Errorf("busy for %s, not for %s", busy, want)
				}
			})
		}
	}
}

// A launch takes a few milliseconds at most, once the pace knows the work.
func TestPaceLimitsLaunches(t *testing.T) {
	p := newPace(time.Second, 100)
	p.begin()
	for {
		units, perLaunch := p.next()
		if units == 0 {
			break
		}
		if perLaunch > 1 && time.Duration(perLaunch)*time.Microsecond > 3*time.Millisecond {
			t.Errorf("%d units of 1 µs in one launch", perLaunch)
		}
		p.done(units, time.Duration(units)*time.Microsecond)
	}
	if units := p.largest; units < 100_000 {
		t.Errorf("at most %d units of 1 µs at once in a second", units)
	}
}

// What a device was busy with for others is made up for by one period, not by
// all that follow.
func TestPaceAfterAStall(t *testing.T) {
	p := newPace(100*time.Millisecond, 50)
	p.begin()
	p.done(1, time.Millisecond)
	p.done(8, time.Minute)
	p.unit = 0.001
	empty := 0
	for p.begin(); p.left < p.busy/2; p.begin() {
		empty++
	}
	if empty > 3 {
		t.Errorf("%d periods are left empty", empty)
	}
}
