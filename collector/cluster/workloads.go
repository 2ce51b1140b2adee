package cluster

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/collector/model"
)

// startSettles is for how long all pods of a workload must have started until the
// duration of its start is measured, unless its gang is known to be complete:
// controllers may create pods one after the other.
const startSettles = 10 * time.Second

// maxStartHistograms bounds the histograms of starts, and maxStartHistogramsEach those
// that the workloads of one namespace begin: whoever creates pods decides on the kinds
// and queues of their workloads. Further ones have one together.
const (
	maxStartHistograms     = 200
	maxStartHistogramsEach = 20
	kindOther              = "other"
	queueOther             = "other"
)

// workloads counts the pods of each workload by state, and measures how long
// workloads take to start. Of pods without claims it knows those of PodGroups
// alone.
type workloads struct {
	pods     map[*podEntry]workloadMember
	byName   map[workloadName]*workloadEntry
	order    ordered[workloadEntry]
	kueue    map[dra.PodRef]*workloadEntry // by the Workload of Kueue that is for it
	starting map[*workloadEntry]struct{}   // whose start may have to be measured in this step

	histograms map[[2]string]struct{} // kind and queue of starts
	began      map[string]int         // how many of them, by namespace
	observed   []Observation          // in this step
	opened     []Observation          // histograms that exist from this step on

	shown  stableList[*model.Workload]
	queued stableList[model.QueuedWorkload]
}

// workloadName identifies a workload.
type workloadName struct{ namespace, kind, name string }

func compareWorkloads(a, b workloadName) int {
	return cmp.Or(cmp.Compare(a.namespace, b.namespace), cmp.Compare(a.kind, b.kind), cmp.Compare(a.name, b.name))
}

// workloadMember is how a pod was counted last.
type workloadMember struct {
	workload *workloadEntry
	state    model.PodState
	gang     string // of the workload's gangs; empty: none
}

// workloadEntry is a workload that has pods, or a Workload of Kueue.
type workloadEntry struct {
	name  workloadName
	queue string // as its pods have it
	pods  [model.PodStates]int

	members map[*podEntry]struct{}
	span    workloadSpan

	gangs map[string]gang // by name; nil: none is known
	kueue map[dra.PodRef]*dra.KueueWorkload

	start workloadStart
	model *model.Workload // nil: outdated
}

// workloadStart is the start of a workload, from the creation of its first pod
// until all of its pods have started, by our steady clock.
type workloadStart struct {
	measured    bool          // or it never will be
	completed   clock.Instant // since when all pods have started; zero: not all have
	begin, end  time.Duration // of the first pod; of the last one so far
	began, live bool          // begin is known; end was observed live
}

// gang is pods of a workload that start together.
type gang struct {
	pods    int // that exist
	minPods int // that are needed
}

func newWorkloads() *workloads {
	return &workloads{
		order: ordered[workloadEntry]{compare: func(a, b *workloadEntry) int { return compareWorkloads(a.name, b.name) }},
		kueue: make(map[dra.PodRef]*workloadEntry), pods: make(map[*podEntry]workloadMember), byName: make(map[workloadName]*workloadEntry),
		starting: make(map[*workloadEntry]struct{}), histograms: make(map[[2]string]struct{}), began: make(map[string]int),
	}
}

// update runs once per step, after all changes: it counts the pods that they
// concern.
func (w *workloads) update(x *index, skews *clocks, now clock.Instant) {
	w.observed, w.opened = nil, nil
	for _, p := range slices.SortedFunc(maps.Keys(x.changed.pods), compareChanged) {
		w.updatePod(p, x, skews, now)
	}
	for ref := range x.changed.kueue {
		w.updateKueue(ref, x)
	}
	for entry := range w.starting {
		w.measureStart(entry, now)
	}
}

// compareChanged puts pods that are gone or have ended first: pods that replace
// them in the same step begin another start. The rest is a stable order.
func compareChanged(a, b *podEntry) int {
	switch {
	case a.alive() == b.alive():
		return cmp.Or(cmp.Compare(a.ref.Namespace, b.ref.Namespace), cmp.Compare(a.ref.Name, b.ref.Name), cmp.Compare(a.object.UID, b.object.UID))
	case b.alive():
		return -1
	default:
		return 1
	}
}

func (w *workloads) updatePod(p *podEntry, x *index, skews *clocks, at clock.Instant) {
	previous, ok := w.pods[p]
	if ok {
		previous.workload.count(previous, -1)
		previous.workload.span.known = false
		delete(previous.workload.members, p)
	}
	workload := p.object.Member.Workload
	if p.removed || workload == nil {
		delete(w.pods, p)
	} else {
		entry := w.entry(workloadName{p.ref.Namespace, workload.Kind, workload.Name})
		entry.queue = workload.Queue
		entry.members[p], entry.span.known = struct{}{}, false
		now := workloadMember{workload: entry, state: decidePodState(p)}
		var minPods int
		now.gang, minPods = findGang(p, x)
		if entry.count(now, 1); now.gang != "" {
			g := entry.gangs[now.gang]
			g.minPods = minPods
			entry.gangs[now.gang] = g
		}
		w.pods[p] = now
		w.applyStart(entry, p, !ok || previous.workload != entry, skews, at)
	}
	if ok {
		w.release(previous.workload)
	}
}

// entry returns the entry of a workload; it adds one if there is none.
func (w *workloads) entry(name workloadName) *workloadEntry {
	entry := w.byName[name]
	if entry == nil {
		entry = &workloadEntry{name: name, members: make(map[*podEntry]struct{})}
		w.byName[name] = entry
		w.order.add(entry)
	}
	return entry
}

// updateKueue applies a Workload of Kueue to the workload that it is for.
func (w *workloads) updateKueue(ref dra.PodRef, x *index) {
	previous, object := w.kueue[ref], x.queues.objects[ref]
	if previous != nil {
		delete(previous.kueue, ref)
		delete(w.kueue, ref)
		previous.model = nil
	}
	if name := resolveName(object, x); name != (workloadName{}) {
		entry := w.entry(name)
		if entry.kueue == nil {
			entry.kueue = make(map[dra.PodRef]*dra.KueueWorkload)
		}
		entry.kueue[ref], w.kueue[ref], entry.model = object, entry, nil
	}
	if previous != nil {
		w.release(previous)
	}
}

// resolveName returns the workload that a Workload of Kueue is for: that of the pods that
// name it, else what it says; the zero value for none.
func resolveName(object *dra.KueueWorkload, x *index) workloadName {
	if object == nil || object.Workload.Name == "" {
		return workloadName{}
	}
	var first *podEntry // by name: several may name it for different workloads
	for _, p := range x.queues.heldBy(object, x.pods) {
		if p.object.Member.Workload != nil && (first == nil || p.ref.Name < first.ref.Name) {
			first = p
		}
	}
	if first != nil {
		workload := first.object.Member.Workload
		return workloadName{first.ref.Namespace, workload.Kind, workload.Name}
	}
	return workloadName{object.Ref.Namespace, object.Workload.Kind, object.Workload.Name}
}

// release removes a workload that has neither pods nor a Workload of Kueue.
func (w *workloads) release(entry *workloadEntry) {
	if entry.size() > 0 || len(entry.kueue) > 0 {
		return
	}
	delete(w.starting, entry)
	delete(w.byName, entry.name)
	w.order.remove(entry)
}

// applyStart applies what a pod says about the start of its workload. A workload
// whose earlier pods have all ended starts again.
func (w *workloads) applyStart(entry *workloadEntry, p *podEntry, added bool, skews *clocks, now clock.Instant) {
	state := w.pods[p].state
	if added && state != model.PodEnded && entry.size() == entry.pods[model.PodEnded]+1 {
		entry.start = workloadStart{}
	}
	start := &entry.start
	if start.measured {
		return
	}
	w.starting[entry] = struct{}{}
	w.histogram(entry)
	progress := p.progress
	if created, ok := skews.steady(progress.createdAt(), now); added && ok && (!start.began || created < start.begin) {
		start.begin, start.began = created, true
	}
	if state != model.PodRunning {
		return
	}
	if started, ok := skews.steady(progress.startedAt(skews), now); ok && (start.end == 0 || started > start.end) {
		start.end, start.live = started, progress.started.live
	}
}

// count adds a pod to the counts, or removes it.
func (e *workloadEntry) count(member workloadMember, delta int) {
	e.model = nil
	e.pods[member.state] += delta
	if member.gang == "" {
		return
	}
	if e.gangs == nil {
		e.gangs = make(map[string]gang)
	}
	g := e.gangs[member.gang]
	if g.pods += delta; g.pods == 0 {
		delete(e.gangs, member.gang)
	} else {
		e.gangs[member.gang] = g
	}
}

// size is how many pods the workload has.
func (e *workloadEntry) size() int {
	size := 0
	for _, count := range e.pods {
		size += count
	}
	return size
}

// minimum is how many pods the workload's gangs need; 0: it has none.
func (e *workloadEntry) minimum() int {
	minimum := 0
	for _, g := range e.gangs {
		minimum += g.minPods
	}
	return minimum
}

// needed is how many pods the workload's gangs need, else how many Kueue admits
// together; 0: neither is known.
func (e *workloadEntry) needed() int {
	minimum := e.minimum()
	if minimum > 0 {
		return minimum
	}
	for _, object := range e.kueue {
		minimum += int(object.Pods)
	}
	return minimum
}

// queueName is the queue that the pods of the workload have, else that of Kueue.
func (e *workloadEntry) queueName() string {
	if e.queue != "" || len(e.kueue) == 0 {
		return e.queue
	}
	queue := ""
	for _, object := range e.kueue {
		if name := object.Workload.Queue; queue == "" || name != "" && name < queue {
			queue = name
		}
	}
	return queue
}

// waitingFor is why, of the workload's Workloads of Kueue, the one that has waited
// longest is not admitted; nil: none waits.
func (e *workloadEntry) waitingFor() *dra.KueueWaiting {
	var longest *dra.KueueWaiting
	for _, object := range e.kueue {
		if waiting := object.Waiting; waiting != nil && (longest == nil || cmp.Or(waiting.Since.Compare(longest.Since), cmp.Compare(waiting.Reason, longest.Reason)) < 0) {
			longest = waiting
		}
	}
	return longest
}

// isShown reports whether the workload has pods, or waits in a queue with pods that will
// use devices. One that is admitted and has no pods may have them under another name,
// as a TrainJob has those of its JobSet.
func (e *workloadEntry) isShown(extended *extendedResources) bool {
	if e.size() > 0 {
		return true
	}
	for _, object := range e.kueue {
		if object.Waiting != nil && (object.Claims || slices.ContainsFunc(object.Extended, func(name string) bool {
			return extended.class(&reference{name: name, extended: 1}) != ""
		})) {
			return true
		}
	}
	return false
}

func decidePodState(p *podEntry) model.PodState {
	switch {
	case !p.alive():
		return model.PodEnded
	case p.object.Gated:
		return model.PodGated
	case p.object.Node == "":
		return model.PodPending
	case !p.hasStarted():
		return model.PodStarting
	default:
		return model.PodRunning
	}
}

// findGang returns the name of a pod's gang among those of its workload, and how many
// pods it needs: by the PodGroup, else by the size that the pod's annotation gives,
// which is that of its replica, as LeaderWorkerSet defines it.
func findGang(p *podEntry, x *index) (name string, minPods int) {
	if group := x.group(p); group != nil && group.MinPods > 0 {
		return "group/" + p.object.Group, int(group.MinPods)
	}
	if member := &p.object.Member; member.Size > 0 {
		return "replica/" + member.Replica, int(member.Size)
	}
	return "", 0
}

// measureStart measures the start of a workload, if it is over and its end was
// observed live.
func (w *workloads) measureStart(entry *workloadEntry, now clock.Instant) {
	start, minimum, running := &entry.start, entry.minimum(), entry.pods[model.PodRunning]
	if entry.pods[model.PodGated]+entry.pods[model.PodPending]+entry.pods[model.PodStarting] > 0 || running == 0 || running < minimum {
		start.completed = clock.Instant{}
		delete(w.starting, entry)
		return
	}
	if start.completed.IsZero() {
		start.completed = now
	}
	if minimum == 0 && now.Since(start.completed) < startSettles {
		return
	}
	start.measured = true
	delete(w.starting, entry)
	if start.began && start.live && start.end >= start.begin {
		observation := w.histogram(entry)
		observation.Took = start.end - start.begin
		w.observed = append(w.observed, observation)
	}
}

// histogram returns an observation for the histogram of a workload's start, which
// exists from then on.
func (w *workloads) histogram(entry *workloadEntry) Observation {
	o := Observation{WorkloadKind: entry.name.kind, Queue: entry.queueName()}
	for {
		key := [2]string{o.WorkloadKind, o.Queue}
		if _, ok := w.histograms[key]; ok {
			return o
		}
		isOther := o.WorkloadKind == kindOther && o.Queue == queueOther
		if isOther || len(w.histograms) < maxStartHistograms && w.began[entry.name.namespace] < maxStartHistogramsEach {
			w.histograms[key] = struct{}{}
			if !isOther {
				w.began[entry.name.namespace]++
			}
			w.opened = append(w.opened, o)
			return o
		}
		o.WorkloadKind, o.Queue = kindOther, queueOther
	}
}

// list returns the workloads that are shown, and those of them that wait in queues.
func (w *workloads) list(extended *extendedResources) ([]*model.Workload, []model.QueuedWorkload) {
	for _, entry := range w.order.sorted() {
		if !entry.isShown(extended) {
			continue
		}
		w.shown.add(entry.sharedModel())
		if waiting := entry.waitingFor(); waiting != nil {
			w.queued.add(model.QueuedWorkload{
				Namespace: entry.name.namespace, Kind: entry.name.kind, Name: entry.name.name, Reason: waiting.Reason, Since: waiting.Since,
			})
		}
	}
	return w.shown.take(), w.queued.take()
}

// sharedModel returns the workload as the model has it, the same one while nothing changes.
func (e *workloadEntry) sharedModel() *model.Workload {
	if e.model == nil {
		e.model = &model.Workload{
			Namespace: e.name.namespace, Kind: e.name.kind, Name: e.name.name, Queue: e.queueName(),
			Pods: e.pods, MinPods: e.needed(), Domains: e.span.domains, LeastDomains: e.span.least,
		}
	}
	return e.model
}
