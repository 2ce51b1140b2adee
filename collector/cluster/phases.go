package cluster

import (
	"slices"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/collector/metric"
)

// The phases between a pod's waiting for a claim and its first container.
const (
	phaseAllocation       = "allocation"
	phaseBinding          = "binding"
	phaseScheduling       = "scheduling"
	phasePreparation      = "preparation"
	phaseStart            = "start"
	phasePreparationStart = "preparation_start"
	phaseReady            = "ready" // all of them; has a family of its own
)

// disorder is by how much two watches may tell of things in the wrong order.
const disorder = time.Second

// tardiness is by how much a kubelet may tell late of what it has dated. One
// that is busy with a pod, pulling the image of its second container, say,
// tells only afterwards that the first has started.
const tardiness = 2 * time.Second

// phases is what has been found out of durations.
type phases struct {
	observed  []Observation // in this step
	anomalies []anomaly     // one for each phase

	under   map[*podEntry]struct{} // pods with a phase under way
	changed bool                   // something of under has, since rows were made
	rows    []phaseRow

	open     openings
	classes  map[string]struct{} // of which anything was ever observed
	closed   []string            // classes that were forgotten in this step, of which nothing was
	prompted bool                // a kubelet is known now to tell of sandboxes at once
}

// anomaly counts the durations of a phase that clocks contradict.
type anomaly struct {
	phase  string
	total  float64
	labels *metric.Labels
}

func newPhases(f *families) phases {
	p := phases{under: make(map[*podEntry]struct{}), classes: make(map[string]struct{})}
	for _, phase := range []string{phaseAllocation, phaseBinding, phasePreparation, phasePreparationStart, phaseReady, phaseScheduling, phaseStart} {
		p.anomalies = append(p.anomalies, anomaly{phase: phase, labels: metric.NewLabels(f.clockOff.Labels, phase)})
	}
	return p
}

// contradict counts a duration that clocks contradict.
func (p *phases) contradict(phase string) {
	i := slices.IndexFunc(p.anomalies, func(a anomaly) bool { return a.phase == phase })
	p.anomalies[i].total++
}

// endAllocation observes how long those that wait for a claim had to wait, once
// its allocation and one of them are known. Only the pods that are given are
// looked at: of the others that name the claim it is known that they did not.
func (s *State) endAllocation(c *claimEntry, pods ...*podEntry) {
	if c.course.allocationDone || !c.course.allocated.set() {
		return
	}
	begin, pod, found := s.longestWait(c, pods)
	if !found {
		return
	}
	if c.course.allocationDone = true; s.tracing.on {
		c.course.observed = pod
	}
	s.observe(phaseAllocation, c.life.Class(), whose{pod, c}, begin, c.allocatedMoment())
}

// longestWait is since when somebody waited for the claim that has just been
// allocated: the first of those that are alive, name it, and were there then.
// Who had it before and lost it waits since. One behind a gate makes nobody
// else's wait longer.
func (s *State) longestWait(c *claimEntry, pods []*podEntry) (longest moment, pod *podEntry, found bool) {
	var first time.Duration
	for _, p := range pods {
		if p.life == nil || p.life.Gated || (!p.alive() && !c.reservedFor(p)) || !p.wasThere(c.course.allocated, c) {
			continue
		}
		for i := range p.refs {
			if p.refs[i].claim != c {
				continue
			}
			wait := s.waitMoment(p, &p.refs[i])
			if lost, had := p.journey.lost[c.life.UID]; had {
				wait = moment{mark: lost}
			}
			if at, known := s.instant(wait, c.course.allocated.told); known && (!found || at < first) {
				longest, pod, first, found = wait, p, at, true
			}
		}
	}
	return longest, pod, found
}

// wasThere reports whether the pod can have waited when the claim was
// allocated. One that was told of later was there if the claim was allocated
// for it: if it has it, and servers say that it is the older of the two. Where
// they do not, one found in a list is believed.
func (p *podEntry) wasThere(allocated mark, c *claimEntry) bool {
	made := p.journey.made
	late := made.told.Since(allocated.told)
	switch {
	case late <= 0 || (late <= disorder && made.live):
		return true
	case c.life.AllocatedAt.IsZero():
		return !made.live && c.reservedFor(p)
	default:
		return !p.life.Created.After(c.life.AllocatedAt) && c.reservedFor(p)
	}
}

// endBinding observes how long binding conditions took to become true.
func (s *State) endBinding(c *claimEntry) {
	if c.course.bindingDone || !c.course.bound.live {
		return
	}
	c.course.bindingDone = true
	s.observe(phaseBinding, c.life.Class(), s.whoseBinding(c), c.allocatedMoment(), c.conditionsMoment())
}

// endScheduling observes how long it took to bind the pod once it could be as
// far as its claims go; as soon as all of them are known to be allocated.
func (s *State) endScheduling(p *podEntry) {
	j := &p.journey
	if j.schedulingDone || !j.bound.set() {
		return
	}
	if !j.bound.live || j.direct {
		j.schedulingDone = true
		return
	}
	begin, claims := p.madeMoment(), 0
	for i := range p.refs {
		c := p.refs[i].claim
		if c == nil && p.refs[i].extended > 0 {
			continue // a device plugin's: else the scheduler had named the claim by now
		}
		if c == nil || !c.reservedFor(p) || c.life.Binding == dra.BindingWaiting {
			return // not known yet
		}
		begin = s.later(begin, c.usableMoment(p))
		claims++
	}
	if claims > 0 {
		j.schedulingDone = true
		s.observe(phaseScheduling, p.class(), s.whoseClaim(p), begin, p.boundMoment())
		if j.story != nil {
			j.story.schedulable = begin
		}
	}
}

// endPreparation observes how long the pod's sandbox took.
func (s *State) endPreparation(p *podEntry) {
	if p.journey.sandbox.live && !p.journey.together {
		s.observe(phasePreparation, p.class(), s.whoseClaim(p), p.boundMoment(), s.sandboxMoment(p))
	}
}

// endStart observes what ends with the start of the pod's first container.
func (s *State) endStart(p *podEntry) {
	j := &p.journey
	if !j.started.live {
		return
	}
	class, of, end := p.class(), s.whoseClaim(p), s.startedMoment(p)
	switch {
	case !s.prompt(p):
		s.observe(phasePreparationStart, class, of, p.boundMoment(), end)
	case j.sandbox.set():
		if j.together {
			s.observe(phasePreparation, class, of, p.boundMoment(), s.sandboxMoment(p))
		}
		s.observe(phaseStart, class, of, s.sandboxMoment(p), end)
	}
	if begin, _, found := s.firstWait(p, j.started.told); found {
		s.observe(phaseReady, class, of, begin, end)
	}
}

// firstWait is since when the pod waits for any of its claims, and for which.
func (s *State) firstWait(p *podEntry, now clock.Instant) (begin moment, claim *claimEntry, found bool) {
	var first time.Duration
	for i := range p.refs {
		if p.refs[i].claim == nil {
			continue // a device plugin's
		}
		wait := s.waitMoment(p, &p.refs[i])
		if at, known := s.instant(wait, now); known && (!found || at < first) {
			begin, claim, first, found = wait, p.refs[i].claim, at, true
		}
	}
	return begin, claim, found
}
