package cluster

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/dra"
)

// A chronicle is a random history of claims and pods of which everything is
// known: when each thing truly happened, when it was told, and whether live.
// Watches delay what they tell, break, and are replaced by lists; the exporter
// is restarted. What was observed is held against the truth.
type chronicle struct {
	*saga
	random *rand.Rand
	happen []happening
	truths []truth
	kinds  map[string]int // how many phases were told of in which way
}

// happening is one change of one object. It is told by the watch of its kind.
type happening struct {
	at     float64 // seconds after the beginning
	pods   bool    // by the watch of pods, else of claims
	change func(*saga) *saga

	told  Change // as it looks
	key   string
	when  float64 // it was told
	era   int     // the run of the exporter that was told
	live  bool
	index int
}

// truth is a phase as it truly was, by the indices of what began and ended it.
type truth struct {
	phase, class string
	began, ended int
	other        int // what else had to be known to tell when it began; the same as began where nothing had
}

// latency is the most that a watch delays what it tells, in seconds.
const latency = 0.03

// add notes a happening and returns which it is.
func (c *chronicle) add(at float64, pods bool, change func(*saga) *saga) int {
	c.happen = append(c.happen, happening{at: at, pods: pods, change: change, index: len(c.happen)})
	return len(c.happen) - 1
}

// delay is from milliseconds to minutes, each as likely.
func (c *chronicle) delay() float64 { return 0.005 * math.Pow(10, 4.3*c.random.Float64()) }

func (c *chronicle) chance(of float64) bool { return c.random.Float64() < of }

func (c *chronicle) later(a, b int) int {
	if c.happen[b].at > c.happen[a].at {
		return b
	}
	return a
}

func (c *chronicle) sooner(a, b int) int {
	if c.later(a, b) == a {
		return b
	}
	return a
}

// live writes the whole life of a claim: up to three allocations, each for one
// or two pods.
func (c *chronicle) live(i int) {
	class, name := fmt.Sprint("class-", i), fmt.Sprint("claim-", i)
	at := 300 * c.random.Float64()
	made := c.add(at, false, func(s *saga) *saga {
		return s.claim(name, func(l *dra.ClaimLife) { l.Classes = []string{class} })
	})
	for round := range 1 + c.random.IntN(3) {
		at = c.round(made, at, round, name, class) + 1 + c.delay()
	}
}

// round writes one allocation and returns when all of it was over.
func (c *chronicle) round(made int, at float64, round int, name, class string) float64 {
	first, second := fmt.Sprint(name, "-a", round), fmt.Sprint(name, "-b", round)
	pod := func(pod string) func(*saga) *saga { return func(s *saga) *saga { return s.pod(pod, uses(name)) } }
	if at += c.delay(); round == 0 && c.chance(0.3) {
		at = max(0, c.happen[made].at-c.delay()) // the pod is first
	}
	podMade := c.add(at, true, pod(first))
	waits := c.later(made, podMade)
	at = c.happen[waits].at + c.delay()
	with, conditions := []func(*dra.ClaimLife){}, c.chance(0.3)
	if conditions {
		with = append(with, binding(dra.BindingWaiting))
	}
	usable := c.add(at, false, func(s *saga) *saga { return s.claim(name, append(with, s.allocated(first))...) })
	c.truths = append(c.truths, truth{phaseAllocation, class, waits, usable, waits})
	if conditions {
		at += c.delay()
		done := c.add(at, false, func(s *saga) *saga { return s.claim(name, s.bindingDone) })
		c.truths = append(c.truths, truth{phaseBinding, class, usable, done, usable})
		usable = done
	}
	over := c.pod(first, class, at+c.delay(), waits, usable)
	if c.chance(0.3) {
		at += 2 * c.random.Float64()
		joined := c.add(at, true, pod(second))
		at += c.delay()
		c.add(at, false, func(s *saga) *saga { return s.claim(name, s.reserved(second)) })
		over = max(over, c.pod(second, class, at+c.delay(), joined, usable))
	}
	c.add(over+1, false, func(s *saga) *saga { return s.claim(name, unallocated) })
	return over + 1
}

// pod writes what becomes of a pod from its binding on, and returns when it
// was gone.
func (c *chronicle) pod(name, class string, at float64, waits, usable int) float64 {
	node := []string{"new", "old"}[c.random.IntN(2)]
	tell := func(after float64, edit func(*saga) func(*dra.PodLife)) int {
		at += after
		return c.add(at, true, func(s *saga) *saga { return s.pod(name, edit(s)) })
	}
	sandboxed := func(s *saga) func(*dra.PodLife) { return s.sandbox }
	broken := func(*saga) func(*dra.PodLife) { return func(p *dra.PodLife) { p.Sandbox = time.Time{} } }
	bound := tell(0, func(s *saga) func(*dra.PodLife) { return s.bound(node) })
	usable, other := c.later(waits, usable), c.sooner(waits, usable)
	c.truths = append(c.truths, truth{phaseScheduling, class, usable, bound, other})
	begin, phase := bound, phasePreparationStart
	if node == "new" {
		sandbox := tell(c.delay(), sandboxed)
		c.truths = append(c.truths, truth{phasePreparation, class, bound, sandbox, bound})
		begin, phase = sandbox, phaseStart
	}
	started := tell(c.delay(), func(s *saga) func(*dra.PodLife) { return s.started })
	c.truths = append(c.truths, truth{phase, class, begin, started, begin}, truth{phaseReady, class, waits, started, waits})
	if c.chance(0.3) { // the kubelet is restarted
		tell(c.delay(), broken)
		tell(c.delay(), sandboxed)
	}
	tell(1+c.delay(), func(*saga) func(*dra.PodLife) { return func(p *dra.PodLife) { p.Terminal = true } })
	at += 1 + c.delay()
	c.add(at, true, func(s *saga) *saga { return s.gonePod(name) })
	return at
}

// outage is when nothing is told; what a list tells at its end is all.
type outage struct {
	from, to float64
	restart  bool
}
