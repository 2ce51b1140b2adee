package cluster

import (
	"slices"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/collector/model"
)

// The phases from when a pod begins to wait for a claim until its first
// container starts.
const (
	phaseAllocation       = "allocation"
	phaseBinding          = "binding"
	phaseScheduling       = "scheduling"
	phasePreparation      = "preparation"
	phaseStart            = "start"
	phasePreparationStart = "preparation_start"
	phaseReady            = "ready" // all of them; has a family of its own
)

// kubeletDelay is how late a kubelet may report what it has dated. A kubelet
// that is busy with a pod, pulling the image of its second container, for
// example, reports only afterwards that the first has started.
const kubeletDelay = 2 * time.Second

// lifecycle follows how far pods and claims have progressed, and measures how
// long each phase took. It takes updates of the index and returns events.
type lifecycle struct {
	now    clock.Instant // of the step
	clocks clocks

	contradictions []model.Counter           // durations that clocks contradict, one counter for each phase
	counters       stableList[model.Counter] // of contradictions
	events         []event                   // of the update that is applied
}

// podProgress is how far a pod has progressed. What happened once stays: the
// sandbox of a running pod may be recreated, and its devices prepared again,
// but that is no start.
type podProgress struct {
	pod                              *podEntry
	created, bound, sandbox, started moment

	boundAtCreation  bool                // was not scheduled
	reportsSandbox   bool                // its kubelet reports at once that its sandbox is ready
	sandboxWithStart bool                // both were observed in one change
	preparationDone  bool                // measured
	schedulingDone   bool                // measured, or never will be
	reservationLost  map[string]observed // by claim UID: when it was no longer reserved for the pod
}

// claimProgress is how far a claim has progressed, for its present allocation.
type claimProgress struct {
	entry                          *claimEntry
	object                         *dra.ClaimLifecycle // as of the last change
	created, allocated, conditions moment              // conditions: all binding conditions are true

	allocationDone, bindingDone bool   // measured, or never will be
	measuredPod                 string // UID of the pod whose wait for the allocation was measured; not the pod, which may be removed
}

// allocation is one allocation of a claim for a pod.
type allocation struct {
	claimUID   string
	allocated  timestamp
	conditions timestamp // when all binding conditions had become true; unset: they had not
	binding    dra.Binding
}

// event is something that happened to a pod or a claim. Which fields are set
// depends on its kind.
type event struct {
	kind       eventKind
	at         observed
	pod        *podProgress
	claim      *claimProgress
	allocation allocation    // that was lost
	since      timestamp     // since when the pod could be bound
	phase      string        // that ended
	class      string        // device class
	took       time.Duration // the phase
}

type eventKind uint8

const (
	podAdded        eventKind = iota
	podDeleting               // its deletion was requested; observed live only
	podSchedulable            // with since: its claims are usable, and it is bound
	podStarted                // its first container has started
	podTerminated             // it ended before a container started
	podRemoved                // it was deleted
	claimRemoved              // it was deleted
	reservationLost           // the claim is no longer reserved for the pod, with allocation
	bindingFailed             // a failure condition of a device of the claim has become true
	phaseEnded                // with phase, class, took; claim is the one that the pod waited for longest; pod is nil for binding
)

func newLifecycle() *lifecycle {
	l := &lifecycle{clocks: newClocks()}
	for _, phase := range []string{phaseAllocation, phaseBinding, phasePreparation, phasePreparationStart, phaseReady, phaseScheduling, phaseStart} {
		l.contradictions = append(l.contradictions, model.Counter{Name: phase})
	}
	return l
}

// begin begins a step.
func (l *lifecycle) begin(now clock.Instant) { l.now = now }

// apply applies an update and returns what happened, in order. nodes has the update. The
// events are valid until the next call.
func (l *lifecycle) apply(u *update, nodes map[string]*dra.Node) []event {
	clear(l.events)
	l.events = l.events[:0]
	at := observed{u.At, u.Live && u.Gone} // the end of a replaced object was not observed
	switch {
	case u.pod != nil:
		l.applyPod(u, nodes)
	case u.claim != nil:
		l.applyClaim(u)
	case u.removedPod != nil:
		l.emit(event{kind: podRemoved, at: at, pod: u.removedPod.progress})
	case u.removedClaim != nil:
		l.emit(event{kind: claimRemoved, at: at, claim: u.removedClaim.progress})
		u.removedClaim.progress = nil
	case u.Node != nil && u.Gone:
		l.clocks.evict(u.Node.Name)
	}
	for _, p := range u.concerned {
		l.updatePhases(p.progress)
	}
	return l.events
}

func (l *lifecycle) emit(e event) { l.events = append(l.events, e) }

func (l *lifecycle) applyClaim(u *update) {
	c, previous, now := u.claim.progress, u.claimBefore, u.Claim
	if previous == nil {
		c = &claimProgress{entry: u.claim, created: observedBy(u.Change).moment()}
		u.claim.progress = c
		l.observeClock(clockServer, "", now.Created, u.Change)
	}
	continued := previous != nil && previous.Allocated
	if continued {
		l.loseReservations(c, u)
	}
	c.object = now
	if continued && (!now.Allocated || (!u.Live && !sameAllocation(previous, now))) {
		*c = claimProgress{entry: c.entry, object: now, created: c.created}
		continued = false
	}
	if !now.Allocated {
		return
	}
	if !continued {
		c.allocated = observedBy(u.Change).moment()
		c.allocationDone, c.bindingDone = !u.Live, false
		l.observeClock(clockScheduler, "", now.AllocatedAt, u.Change)
	}
	l.endAllocation(c, u.users...) // also of a continued one: it may be reserved for other pods now
	switch {
	case now.Binding == dra.BindingDone && !c.conditions.set():
		c.conditions = observedBy(u.Change).moment()
		l.endBinding(c)
	case now.Binding == dra.BindingFailed && u.Live && previous != nil && previous.Binding != dra.BindingFailed:
		l.emit(event{kind: bindingFailed, at: observedBy(u.Change), claim: c, class: now.Class()})
	}
}

// loseReservations records for which pods the claim is no longer reserved: they
// wait for it again from now on, unless they are done. The scheduler withdraws
// a reservation before it withdraws the allocation. It is called while c still
// has the object before.
func (l *lifecycle) loseReservations(c *claimProgress, u *update) {
	for _, consumer := range u.claimBefore.ReservedFor {
		if u.Claim.Allocated && slices.Contains(u.Claim.ReservedFor, consumer) {
			continue
		}
		for _, user := range c.entry.users {
			if !user.isConsumer(consumer) {
				continue
			}
			p, at := user.progress, observedBy(u.Change)
			if p.reservationLost == nil {
				p.reservationLost = make(map[string]observed)
			}
			p.reservationLost[c.object.UID] = at
			l.emit(event{kind: reservationLost, at: at, pod: p, claim: c, allocation: c.allocation()})
		}
	}
}

// sameAllocation reports whether the claim still has the devices that it had.
// An allocation without a timestamp may get one later.
func sameAllocation(a, b *dra.ClaimLifecycle) bool {
	undated := a.AllocatedAt.IsZero() || b.AllocatedAt.IsZero()
	return slices.Equal(a.Results, b.Results) && (undated || a.AllocatedAt.Equal(b.AllocatedAt))
}

func (l *lifecycle) applyPod(u *update, nodes map[string]*dra.Node) {
	p, object, at := u.pod.progress, u.Pod, observedBy(u.Change)
	if p == nil {
		p = &podProgress{pod: u.pod, created: at.moment()}
		u.pod.progress = p
		l.observeClock(clockServer, "", object.Created, u.Change)
		l.emit(event{kind: podAdded, at: at, pod: p})
	}
	if object.Node != "" && !p.bound.set() {
		p.bound, p.boundAtCreation = at.moment(), u.podBefore == nil && u.Live
		if !p.boundAtCreation {
			l.observeClock(clockServer, "", object.Scheduled, u.Change)
		}
	}
	if !object.Sandbox.IsZero() && !p.sandbox.set() {
		p.sandbox, p.sandboxWithStart = at.moment(), !object.Started.IsZero()
		if p.hasPromptSandbox(nodes) {
			l.observeClock(clockNode, object.Node, object.Sandbox, u.Change)
			if at.live && !p.sandboxWithStart && !p.preparesNothing() {
				p.preparationDone = true
				l.endPodPhase(phasePreparation, p, p.boundAt(), p.sandboxAt(&l.clocks))
			}
		}
	}
	l.updatePhases(p)
	starts := !object.Started.IsZero() && !p.started.set()
	if starts {
		p.started = at.moment()
		l.endStart(p, nodes)
		if object.Started.After(u.At.Wall) { // it may be reported late, so that it is evidence of a clock that is ahead only
			l.observeClock(clockNode, object.Node, object.Started, u.Change)
		}
	}
	if u.Live && !object.Deleted.IsZero() && (u.podBefore == nil || u.podBefore.Deleted.IsZero()) {
		l.emit(event{kind: podDeleting, at: at, pod: p})
	}
	switch {
	case starts:
		l.emit(event{kind: podStarted, at: at, pod: p})
	case object.Terminal && !p.started.set():
		l.emit(event{kind: podTerminated, at: at, pod: p})
	}
}

func (l *lifecycle) observeClock(kind clockKind, node string, written time.Time, change *Change) {
	if change.Live {
		l.clocks.observe(kind, node, written, change.At)
	}
}

// hasPromptSandbox reports whether the pod's kubelet reports at once that its
// sandbox is ready. A node that is not known counts as one that does not; what
// was known of it once stays.
func (p *podProgress) hasPromptSandbox(nodes map[string]*dra.Node) bool {
	if node := nodes[p.pod.object.Node]; node != nil && node.SandboxPrompt {
		p.reportsSandbox = true
	}
	return p.reportsSandbox
}

// hasStarted reports whether the first container of a pod has started.
func (p *podEntry) hasStarted() bool { return p.progress.started.set() }

// updatePhases ends the phases that depend on both the pod and its claims: the
// watches of the two deliver in any order.
func (l *lifecycle) updatePhases(p *podProgress) {
	for i := range p.pod.refs {
		if r := &p.pod.refs[i]; r.exists() {
			l.endAllocation(r.claim.progress, p.pod)
		}
	}
	l.endScheduling(p)
}

// endAllocation measures how long pods had to wait for a claim, once its
// allocation and one of them are known. pods are those that may have become
// known since it was called last.
func (l *lifecycle) endAllocation(c *claimProgress, pods ...*podEntry) {
	if c.allocationDone || !c.allocated.set() {
		return
	}
	if begin, p := l.longestPending(c, pods); p != nil {
		c.allocationDone, c.measuredPod = true, p.pod.object.UID
		l.endPhase(event{phase: phaseAllocation, class: c.object.Class(), pod: p, claim: c}, begin, c.allocatedAt())
	}
}

// longestPending returns the first of the pods that waited for the claim when
// it was allocated, and since when: it is alive, references the claim and
// existed then. A pod that had the claim before and lost it is pending since. A
// gated pod does not count.
func (l *lifecycle) longestPending(c *claimProgress, pods []*podEntry) (longest timestamp, waiting *podProgress) {
	var first time.Duration
	for _, pod := range pods {
		p := pod.progress
		if pod.object.Gated || (!pod.alive() && !pod.has(c.object)) || !p.existedAtAllocation(c) {
			continue
		}
		for i := range pod.refs {
			if pod.refs[i].claim != c.entry {
				continue
			}
			wait := p.pendingSince(&pod.refs[i], c, &l.clocks)
			if lost, ok := p.reservationLost[c.object.UID]; ok {
				wait = timestamp{observed: lost}
			}
			if at, ok := l.clocks.steady(wait, c.allocated.at()); ok && (waiting == nil || at < first) {
				longest, waiting, first = wait, p, at
			}
		}
	}
	return longest, waiting
}

// existedAtAllocation reports whether the pod may have waited when the claim
// was allocated. A pod that was observed later existed if the claim was
// allocated for it: it has the claim, and is older by the servers' timestamps.
// Without timestamps, a pod that was found in a list counts as older.
func (p *podProgress) existedAtAllocation(c *claimProgress) bool {
	late := p.created.elapsed - c.allocated.elapsed
	switch {
	case late <= 0 || (late <= watchDisorder && p.created.live):
		return true
	case c.object.AllocatedAt.IsZero():
		return !p.created.live && p.pod.has(c.object)
	default:
		return !p.pod.object.Created.After(c.object.AllocatedAt) && p.pod.has(c.object)
	}
}

// endBinding measures how long binding conditions took to become true.
func (l *lifecycle) endBinding(c *claimProgress) {
	if c.bindingDone || !c.conditions.live {
		return
	}
	c.bindingDone = true
	l.endPhase(event{phase: phaseBinding, class: c.object.Class(), claim: c}, c.allocatedAt(), c.conditionsAt())
}

// endScheduling measures how long it took to bind the pod once its claims were
// usable. It waits until all of them are known to be allocated.
func (l *lifecycle) endScheduling(p *podProgress) {
	if p.schedulingDone || !p.bound.set() {
		return
	}
	if !p.bound.live || p.boundAtCreation {
		p.schedulingDone = true
		return
	}
	begin, claims := p.createdAt(), 0
	for i := range p.pod.refs {
		r := &p.pod.refs[i]
		if r.claim == nil && r.extended > 0 {
			continue // a device plugin's: otherwise the scheduler had named the claim by now
		}
		if !r.exists() || !p.pod.has(r.claim.object) || r.claim.object.Binding == dra.BindingWaiting {
			return // not known yet
		}
		begin = l.clocks.later(begin, r.claim.progress.usableAt(p.pod))
		claims++
	}
	if claims > 0 {
		p.schedulingDone = true
		l.endPodPhase(phaseScheduling, p, begin, p.boundAt())
		l.emit(event{kind: podSchedulable, pod: p, since: begin})
	}
}

// endStart measures the phases that end when the pod's first container starts.
func (l *lifecycle) endStart(p *podProgress, nodes map[string]*dra.Node) {
	if !p.started.live {
		return
	}
	end := p.startedAt(&l.clocks)
	switch {
	case p.preparesNothing() && !p.preparationDone:
		l.endPodPhase(phaseStart, p, p.boundAt(), end)
	case !p.hasPromptSandbox(nodes):
		l.endPodPhase(phasePreparationStart, p, p.boundAt(), end)
	case p.sandbox.set():
		if p.sandboxWithStart {
			l.endPodPhase(phasePreparation, p, p.boundAt(), p.sandboxAt(&l.clocks))
		}
		l.endPodPhase(phaseStart, p, p.sandboxAt(&l.clocks), end)
	}
	if begin, _, ok := l.firstPending(p, p.started.at()); ok {
		l.endPodPhase(phaseReady, p, begin, end)
	}
}

// firstPending returns since when the pod is pending for any of its claims, and
// for which; nil for a claim that does not exist.
func (l *lifecycle) firstPending(p *podProgress, now clock.Instant) (begin timestamp, claim *claimProgress, found bool) {
	var first time.Duration
	for i := range p.pod.refs {
		r := &p.pod.refs[i]
		if r.claim == nil {
			continue // a device plugin's
		}
		c := r.claim.progress
		wait := p.pendingSince(r, c, &l.clocks)
		if at, ok := l.clocks.steady(wait, now); ok && (!found || at < first) {
			begin, claim, first, found = wait, c, at, true
		}
	}
	return begin, claim, found
}

func (l *lifecycle) endPodPhase(phase string, p *podProgress, begin, end timestamp) {
	_, claim, _ := l.firstPending(p, l.now)
	l.endPhase(event{phase: phase, class: p.pod.class(), pod: p, claim: claim}, begin, end)
}

// endPhase measures a phase whose end was observed live, unless its beginning
// is not known or the clocks contradict each other. Contradictions are counted,
// also where our own clock measured the duration, which is reported then.
func (l *lifecycle) endPhase(e event, begin, end timestamp) {
	start, ok := l.clocks.steady(begin, end.at)
	if !ok || e.class == "" {
		return
	}
	e.kind, e.took = phaseEnded, l.clocks.ordered(begin, end, end.at.Elapsed-start)
	contradicted := l.clocks.contradicted(begin, end, e.took)
	if e.took < 0 || contradicted {
		i := slices.IndexFunc(l.contradictions, func(c model.Counter) bool { return c.Name == e.phase })
		l.contradictions[i].Count++
	}
	if e.took < 0 || (contradicted && !begin.live) {
		return
	}
	l.emit(e)
}

// pendingSince returns since when one reference of the pod is or was pending. c
// is the claim that it refers to; nil if that does not exist.
func (p *podProgress) pendingSince(r *reference, c *claimProgress, skews *clocks) timestamp {
	if c == nil || r.extended > 0 {
		return p.createdAt()
	}
	return skews.later(p.createdAt(), c.createdAt())
}

// sandboxAt is when the pod's sandbox was ready. Where that was observed
// together with the start of a container, the kubelet's timestamps separate
// the two.
func (p *podProgress) sandboxAt(skews *clocks) timestamp {
	object := p.pod.object
	t := timestamp{observed: p.sandbox.observed(), written: object.Sandbox, by: clockNode, node: object.Node, disputed: contradicts(object.Scheduled, object.Sandbox)}
	if t.live && p.sandboxWithStart {
		gap := max(0, object.Started.Sub(object.Sandbox))
		t.at, t.corrected = p.startedAt(skews).at.Add(-gap), true
	}
	return t
}

// startedAt is when the first container of the pod started. Where the kubelet
// reports it late, its timestamp decides, unless that is impossible.
func (p *podProgress) startedAt(skews *clocks) timestamp {
	t := timestamp{observed: p.started.observed(), written: p.pod.object.Started, by: clockNode, node: p.pod.object.Node}
	if !t.live {
		return t
	}
	latest := skews.elapsed(clockNode, t.node, t.written, t.at) + time.Second
	bound, ok := skews.steady(p.boundAt(), t.at)
	if late := t.at.Elapsed - latest; late > kubeletDelay && ok && latest > bound {
		t.at, t.corrected = t.at.Add(-late), true
	}
	return t
}

// preparesNothing reports whether no device of any of the pod's claims is
// prepared. Such a pod has no preparation: its start follows the binding.
func (p *podProgress) preparesNothing() bool {
	claims := 0
	for i := range p.pod.refs {
		r := &p.pod.refs[i]
		if r.claim == nil && r.extended > 0 {
			continue // a device plugin's
		}
		if !r.exists() || !r.claim.object.NoPreparation {
			return false
		}
		claims++
	}
	return claims > 0
}

// claimsKnown reports whether the claims of a pod that has started are known:
// that they are allocated, and so since when it could be bound.
func (p *podProgress) claimsKnown() bool {
	claims := 0
	for i := range p.pod.refs {
		r := &p.pod.refs[i]
		if r.claim == nil && r.extended > 0 {
			continue // a device plugin's
		}
		if !r.exists() || !r.claim.object.Allocated {
			return false
		}
		claims++
	}
	return claims == 0 || p.schedulingDone
}

func (p *podProgress) createdAt() timestamp {
	return timestamp{observed: p.created.observed(), written: p.pod.object.Created, by: clockServer}
}

func (p *podProgress) boundAt() timestamp {
	return timestamp{observed: p.bound.observed(), written: p.pod.object.Scheduled, by: clockServer}
}

func (c *claimProgress) createdAt() timestamp {
	return timestamp{observed: c.created.observed(), written: c.object.Created, by: clockServer}
}

func (c *claimProgress) allocatedAt() timestamp {
	at := c.object.AllocatedAt
	return timestamp{observed: c.allocated.observed(), written: at, by: clockScheduler, disputed: contradicts(c.object.Created, at)}
}

// conditionsAt is when the claim's binding conditions became true.
func (c *claimProgress) conditionsAt() timestamp {
	at := c.object.BindingSince
	disputed := contradicts(c.object.AllocatedAt, at) || contradicts(c.object.Created, at)
	return timestamp{observed: c.conditions.observed(), written: at, by: clockDriver, disputed: disputed}
}

func (c *claimProgress) allocation() allocation {
	a := allocation{claimUID: c.object.UID, allocated: c.allocatedAt(), binding: c.object.Binding}
	if c.conditions.set() {
		a.conditions = c.conditionsAt()
	}
	return a
}

// usableAt is when the claim no longer kept a pod from being bound: its binding
// conditions were true, or it has none and was allocated. The pod that a claim
// is reserved for first is the one that it was allocated for.
func (c *claimProgress) usableAt(p *podEntry) timestamp {
	t := c.allocatedAt()
	if c.conditions.set() {
		t = c.conditionsAt()
	}
	if first := c.object.ReservedFor; len(first) > 0 && first[0].UID == p.object.UID && contradicts(p.object.Created, t.written) {
		t.disputed = true
	}
	return t
}

// clockErrors returns how many durations clocks contradict. start is when counting began.
func (l *lifecycle) clockErrors(start time.Time) []model.Counter {
	for _, counter := range l.contradictions {
		counter.Since = start
		l.counters.add(counter)
	}
	return l.counters.take()
}
