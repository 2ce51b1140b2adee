package cluster

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/dra"
)

// bounds returns the interval in which the observed duration of a phase must
// be, in seconds; false if the phase must not be observed because its end was
// not observed live. With clock skew, a phase that needs two clocks is
// optional.
func (c *randomHistory) bounds(t actualPhase, byIndex []historyEvent) (in interval, seen bool) {
	began, ended, other := byIndex[t.began], byIndex[t.ended], byIndex[t.other]
	took := ended.at - began.at
	if !ended.live {
		return interval{}, false
	}
	in = interval{low: max(0, took-latency), high: took + latency}
	if !began.live || began.process != ended.process { // by the servers' timestamps
		in.high++
		if len(c.off) > 0 {
			in.low, in.high = max(0, in.low-1), in.high+clockSlack.Seconds()
		}
	}
	live := began.live && began.process == ended.process && other.live && other.process == ended.process
	in.optional = len(c.off) > 0 && !live
	return in, true
}

func TestEachPhaseIsObservedOnce(t *testing.T) {
	kinds := map[string]int{}
	for seed := range uint64(400) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			c := newRandomHistory(t, seed, kinds)
			c.run(c.outages(seed%4 > 0))
			c.compare()
			if seed%4 == 0 {
				c.checkSums()
			}
		})
	}
	for _, kind := range []string{"live", "by stamps", "not observed"} {
		if kinds[kind] < 1000 {
			t.Errorf("%d phases were %s: too few to show anything", kinds[kind], kind)
		}
	}
}

// With clock skew of minutes, phases that our own clock can measure are
// observed. Others are observed correctly or not at all.
func TestPhasesWithClockSkew(t *testing.T) {
	kinds := map[string]int{}
	observed := 0
	for seed := range uint64(200) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			c := newRandomHistory(t, seed, kinds)
			for _, which := range []string{"server", "scheduler", "kubelet", "driver"} {
				c.off[which] = time.Duration((c.random.Float64() - 0.5) * float64(20*time.Minute))
			}
			c.off["old"] = c.off["kubelet"].Abs() // a clock that is behind cannot be distinguished from late reports
			c.run(c.outages(true))
			c.compare()
			observed += len(c.observed)
		})
	}
	t.Logf("%v, of which %d observed", kinds, observed)
	if wanted := kinds["live"] + kinds["by stamps"]/3; observed < wanted {
		t.Errorf("%d phases observed, want %d", observed, wanted)
	}
}

func newRandomHistory(t *testing.T, seed uint64, kinds map[string]int) *randomHistory {
	c := &randomHistory{testCluster: newTestCluster(t), random: rand.New(rand.NewPCG(seed, 4)), kinds: kinds}
	for i := range 12 {
		c.addClaim(i)
	}
	return c
}

func (c *randomHistory) outages(some bool) (outages []outage) {
	for at := 100 * c.random.Float64(); some && at < 1000; at += 1 + 300*c.random.Float64() {
		to := at + c.delay()
		outages = append(outages, outage{at, to, c.chance(0.5)})
		at = to
	}
	return outages
}

func (c *randomHistory) compare() {
	byIndex := make([]historyEvent, len(c.events))
	for _, h := range c.events {
		byIndex[h.index] = h
	}
	c.compareTraces(byIndex)
	want, got := map[string][]interval{}, map[string][]float64{}
	for _, t := range c.phases {
		key := t.phase + " " + t.class
		in, seen := c.bounds(t, byIndex)
		if seen {
			want[key] = append(want[key], in)
		}
		c.kinds[kind(in, seen)]++
	}
	for key, took := range c.byPhase() {
		got[key] = took
		if len(want[key]) == 0 {
			c.t.Errorf("%s: observed %v, want nothing", key, took)
		}
	}
	for key, intervals := range want {
		if !matched(got[key], intervals) {
			c.t.Errorf("%s: observed %v, want %v", key, got[key], intervals)
		}
	}
}

type interval struct {
	low, high float64
	optional  bool
}

func kind(in interval, seen bool) string {
	switch {
	case !seen:
		return "not observed"
	case in.high-in.low > 1:
		return "by stamps"
	default:
		return "live"
	}
}

// matched reports whether each value is in a different interval, and all
// remaining intervals are optional.
func matched(values []float64, intervals []interval) bool {
	const rounding = 1e-6
	if len(values) == 0 {
		return !slices.ContainsFunc(intervals, func(in interval) bool { return !in.optional })
	}
	for i, in := range intervals {
		if values[0] < in.low-rounding || values[0] > in.high+rounding {
			continue
		}
		if matched(values[1:], slices.Concat(intervals[:i], intervals[i+1:])) {
			return true
		}
	}
	return false
}

func (c *randomHistory) byPhase() map[string][]float64 {
	phases := map[string][]float64{}
	for _, o := range c.observed {
		key := o.Phase + " " + o.DeviceClass
		phases[key] = append(phases[key], o.Took.Seconds())
	}
	return phases
}

// checkSums compares the sum of all phases of a class with the time until its
// pods were ready, for classes in which each claim had one pod.
func (c *randomHistory) checkSums() {
	sums, pods := map[string]float64{}, map[string]int{}
	allocations := map[string]int{}
	for _, o := range c.observed {
		if o.Phase == phaseReady {
			sums[o.DeviceClass] -= o.Took.Seconds()
			pods[o.DeviceClass]++
			continue
		}
		if o.Phase == phaseAllocation {
			allocations[o.DeviceClass]++
		}
		sums[o.DeviceClass] += o.Took.Seconds()
	}
	checked := 0
	for class, sum := range sums {
		if pods[class] != allocations[class] {
			continue
		}
		checked++
		if math.Abs(sum) > float64(pods[class])*2*latency {
			c.t.Errorf("%s: the phases of %d pods add up to %v s more than they took", class, pods[class], sum)
		}
	}
	if checked == 0 {
		c.t.Error("no class was checked")
	}
}

// No timestamps, however contradictory, lead to an observation that is negative
// or longer than the exporter could know.
func FuzzTimestamps(f *testing.F) {
	f.Add(int64(0), int64(1), int64(2), int64(3), int64(4), uint8(0))
	f.Add(int64(9), int64(-1e9), int64(1e9), int64(-7), int64(1<<40), uint8(255))
	f.Fuzz(func(t *testing.T, created, allocated, scheduled, sandbox, started int64, live uint8) {
		s := newTestCluster(t)
		stamp := func(after int64) time.Time { return s.began.Wall.Add(time.Duration(after%1e10) * time.Second) }
		bit := func(i int) bool { return live&(1<<i) != 0 }
		pod := dra.PodLifecycle{Ref: dra.PodRef{Namespace: "ns", Name: "a"}, UID: "a", Created: stamp(created), Claims: []dra.PodClaim{{Name: "r", Claim: "c"}}}
		claim := dra.ClaimLifecycle{Ref: dra.ClaimRef{Namespace: "ns", Name: "c"}, UID: "c", Created: stamp(created), Classes: []string{"gpu"}}
		deliver := func(i int, claims bool) {
			s.at(float64(i))
			p, c := pod, claim
			if claims {
				s.deliver(Change{Live: bit(i), Claim: &c})
				return
			}
			s.deliver(Change{Live: bit(i), Pod: &p})
		}
		deliver(0, true)
		deliver(1, false)
		claim.Allocated, claim.AllocatedAt = true, stamp(allocated)
		claim.Results, claim.ReservedFor = []dra.AllocatedDevice{{Class: "gpu"}}, []dra.Consumer{{Resource: "pods", UID: "a"}}
		deliver(2, true)
		pod.Node, pod.Scheduled = "new", stamp(scheduled)
		deliver(3, false)
		pod.Sandbox = stamp(sandbox)
		deliver(4, false)
		pod.Started = stamp(started)
		deliver(5, false)
		for _, o := range s.observed {
			if o.Took < 0 {
				t.Errorf("observed %v of %s", o.Took, o.Phase)
			}
		}
		for i := range s.traced {
			s.checkSpans(&s.traced[i], false)
		}
	})
}
