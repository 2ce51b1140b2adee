package cluster

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/dra"
)

// A randomHistory is a random history of claims and pods of which everything is
// known: when each event happened, when it was delivered, and whether by a
// watch. Watches deliver late, break, and are replaced by lists; the exporter
// is restarted. Observations are compared with the actual phases.
type randomHistory struct {
	*testCluster
	random *rand.Rand
	events []historyEvent
	phases []actualPhase
	kinds  map[string]int // number of phases by how they were observed
}

// historyEvent is one change of one object. The watch of its kind delivers it.
type historyEvent struct {
	at     float64 // seconds after the beginning
	pods   bool    // delivered by the watch of pods, else by that of claims
	change func(*testCluster) *testCluster

	reported   Change // as delivered
	key        string
	reportedAt float64 // when it was delivered
	process    int     // the run of the exporter that received it
	live       bool
	index      int
}

// actualPhase is a phase as it happened. began and ended are indices of events.
type actualPhase struct {
	phase, class string
	began, ended int
	other        int // index of the other event that must be known to measure the beginning; the same as began if there is none
}

// latency is the longest delay of a watch, in seconds.
const latency = 0.03

// add appends an event and returns its index.
func (c *randomHistory) add(at float64, pods bool, change func(*testCluster) *testCluster) int {
	c.events = append(c.events, historyEvent{at: at, pods: pods, change: change, index: len(c.events)})
	return len(c.events) - 1
}

// delay returns a random delay of milliseconds to minutes, distributed
// logarithmically.
func (c *randomHistory) delay() float64 { return 0.005 * math.Pow(10, 4.3*c.random.Float64()) }

func (c *randomHistory) chance(of float64) bool { return c.random.Float64() < of }

func (c *randomHistory) later(a, b int) int {
	if c.events[b].at > c.events[a].at {
		return b
	}
	return a
}

func (c *randomHistory) earlier(a, b int) int {
	if c.later(a, b) == a {
		return b
	}
	return a
}

// addClaim adds the events of a claim: up to three allocations, each for one or
// two pods.
func (c *randomHistory) addClaim(i int) {
	class, name := fmt.Sprint("class-", i), fmt.Sprint("claim-", i)
	at := 300 * c.random.Float64()
	created := c.add(at, false, func(s *testCluster) *testCluster {
		return s.claim(name, func(l *dra.ClaimLifecycle) { l.Classes = []string{class} })
	})
	for round := range 1 + c.random.IntN(3) {
		at = c.addAllocation(created, at, round, name, class) + 1 + c.delay()
	}
}

// addAllocation adds the events of one allocation and returns when it ended.
func (c *randomHistory) addAllocation(created int, at float64, round int, name, class string) float64 {
	first, second := fmt.Sprint(name, "-a", round), fmt.Sprint(name, "-b", round)
	pod := func(pod string) func(*testCluster) *testCluster {
		return func(s *testCluster) *testCluster { return s.pod(pod, uses(name)) }
	}
	if at += c.delay(); round == 0 && c.chance(0.3) {
		at = max(0, c.events[created].at-c.delay()) // the pod is created first
	}
	podCreated := c.add(at, true, pod(first))
	pending := c.later(created, podCreated)
	at = c.events[pending].at + c.delay()
	with, conditions := []func(*dra.ClaimLifecycle){}, c.chance(0.3)
	if conditions {
		with = append(with, binding(dra.BindingWaiting))
	}
	usable := c.add(at, false, func(s *testCluster) *testCluster { return s.claim(name, append(with, s.allocated(first))...) })
	c.phases = append(c.phases, actualPhase{phaseAllocation, class, pending, usable, pending})
	if conditions {
		at += c.delay()
		done := c.add(at, false, func(s *testCluster) *testCluster { return s.claim(name, s.bindingDone) })
		c.phases = append(c.phases, actualPhase{phaseBinding, class, usable, done, usable})
		usable = done
	}
	over := c.addPod(first, class, at+c.delay(), pending, usable)
	if c.chance(0.3) {
		at += 2 * c.random.Float64()
		joined := c.add(at, true, pod(second))
		at += c.delay()
		c.add(at, false, func(s *testCluster) *testCluster { return s.claim(name, s.reserved(second)) })
		over = max(over, c.addPod(second, class, at+c.delay(), joined, usable))
	}
	c.add(over+1, false, func(s *testCluster) *testCluster { return s.claim(name, unallocated) })
	return over + 1
}

// addPod adds the events of a pod from its binding on, and returns when it was
// deleted.
func (c *randomHistory) addPod(name, class string, at float64, pending, usable int) float64 {
	node := []string{"new", "old"}[c.random.IntN(2)]
	update := func(after float64, edit func(*testCluster) func(*dra.PodLifecycle)) int {
		at += after
		return c.add(at, true, func(s *testCluster) *testCluster { return s.pod(name, edit(s)) })
	}
	sandboxed := func(s *testCluster) func(*dra.PodLifecycle) { return s.sandbox }
	broken := func(*testCluster) func(*dra.PodLifecycle) {
		return func(p *dra.PodLifecycle) { p.Sandbox = time.Time{} }
	}
	bound := update(0, func(s *testCluster) func(*dra.PodLifecycle) { return s.bound(node) })
	usable, other := c.later(pending, usable), c.earlier(pending, usable)
	c.phases = append(c.phases, actualPhase{phaseScheduling, class, usable, bound, other})
	begin, phase := bound, phasePreparationStart
	if node == "new" {
		sandbox := update(c.delay(), sandboxed)
		c.phases = append(c.phases, actualPhase{phasePreparation, class, bound, sandbox, bound})
		begin, phase = sandbox, phaseStart
	}
	started := update(c.delay(), func(s *testCluster) func(*dra.PodLifecycle) { return s.started })
	c.phases = append(c.phases, actualPhase{phase, class, begin, started, begin}, actualPhase{phaseReady, class, pending, started, pending})
	if c.chance(0.3) { // the kubelet restarts
		update(c.delay(), broken)
		update(c.delay(), sandboxed)
	}
	update(1+c.delay(), func(*testCluster) func(*dra.PodLifecycle) { return func(p *dra.PodLifecycle) { p.Terminal = true } })
	at += 1 + c.delay()
	c.add(at, true, func(s *testCluster) *testCluster { return s.gonePod(name) })
	return at
}

// outage is a period in which no watch delivers. A list follows at its end.
type outage struct {
	from, to float64
	restart  bool
}
