package cluster

import (
	"cmp"
	"slices"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/collector/model"
	"github.com/dra-exporter/dra-exporter/collector/source"
)

// onsetDelay is how long a reason must last before it is counted: the watches
// of pods and of claims deliver related changes in any order.
const onsetDelay = 2 * time.Second

// mixedDelay is how long reason "other" must last while the scheduler also
// reports devices. Once devices suffice, the scheduler's next attempt may
// succeed, and it comes no later than the end of the pod's backoff, which is at
// most ten seconds by default (k8s.io/kubernetes,
// pkg/scheduler/apis/config/v1, PodMaxBackoffSeconds).
const mixedDelay = 15 * time.Second

// Why a reference has no diagnosis.
const (
	causeQueued    = "queued"
	causeOverLimit = "over_limit"
)

// pending holds the references that are pending: since when, and for which
// reason. It evaluates again only what changes and diagnoses concern.
type pending struct {
	once     bool // Config.Once
	parser   messageParser
	extended extendedResources
	watches  watchLag
	synced   Synced // of the last step in which pods and claims were known

	pods        map[*podEntry]*pendingPod
	sharedSince map[*claimEntry]time.Time // see updateSharedSince
	added       map[*podEntry]bool        // pods that are new in this step; true: also found in a list

	order    []*pendingRef            // the oldest first
	incoming []*pendingRef            // not yet in order
	removed  bool                     // some of order are removed
	resort   bool                     // some of order have another since
	recent   map[*pendingRef]struct{} // whose reason is not counted yet
	outdated map[*pendingRef]struct{} // whose reason must be determined again
	gangs    map[dra.PodRef]struct{}  // of which a pod has changed

	changes   []pendingChange // of this step
	listed    bool            // what follows is up to date
	refs      []*PendingRef
	questions []dra.Question

	undiagnosed stableList[model.Undiagnosed]
}

// pendingPod is a pod with references that are pending.
type pendingPod struct {
	*podEntry
	pending  []*pendingRef
	asked    bool          // is in the questions that are being listed
	question *dra.Question // nil: it must be made again
}

// pendingRef is a reference that is pending.
type pendingRef struct {
	reference
	pod      *pendingPod
	claim    string // name of the claim; empty until it exists
	claimUID string
	class    string
	since    time.Time

	diagnosis   *dra.Diagnosis
	own         ownReason
	reason      dra.PendingReason
	message     string
	reasonSince clock.Instant
	counted     map[dra.PendingReason]struct{}
	value       *PendingRef // as output, immutable; nil: it must be made again

	removed     bool // not pending any more
	preexisting bool // was found in a list: its first reason is not counted
	mixed       bool // the scheduler's message is about devices, among others
	suffices    bool // nothing is known to prevent it: it may wait for its gang
}

// pendingUpdate is what one step changed. The first three are immutable, and
// the same slices as in the step before if nothing has changed.
type pendingUpdate struct {
	refs        []*PendingRef
	questions   []dra.Question
	undiagnosed []model.Undiagnosed
	changes     []pendingChange
	onsets      []onset
}

// pendingChange is a reference that has another reason or message, or that is
// not pending any more: then the reason is ReasonNone.
type pendingChange struct {
	pod     *podEntry
	name    string
	reason  dra.PendingReason
	message string
}

// onset is a reason that has lasted long enough to be counted.
type onset struct {
	class  string
	reason dra.PendingReason
}

// watchLag records when the watch of pods or of claims was last seen to be
// down. A watch that has fallen behind the other delivers half of what
// happened: that a claim which a pod references does not exist, or that the pod
// for which a claim is reserved does not. Synced does not show it, since it
// includes everything that was listed once.
type watchLag struct {
	lagged     bool
	at         clock.Instant
	consistent bool // both watches have been up long enough for each to have delivered the other's events
}

// update takes the states of the sources. A source without a state counts as
// up.
func (w *watchLag) update(sources []source.Status, now clock.Instant) {
	for i := range sources {
		if s := &sources[i]; !s.Up && (s.Name == "pods" || s.Name == "resourceclaims") {
			w.lagged, w.at = true, now
		}
	}
	w.consistent = !w.lagged || now.Since(w.at) >= onsetDelay
}

func newPending(once bool) *pending {
	return &pending{
		once:        once,
		parser:      newMessageParser(),
		extended:    newExtendedResources(),
		pods:        make(map[*podEntry]*pendingPod),
		sharedSince: make(map[*claimEntry]time.Time),
		added:       make(map[*podEntry]bool),
		recent:      make(map[*pendingRef]struct{}),
		outdated:    make(map[*pendingRef]struct{}),
		gangs:       make(map[dra.PodRef]struct{}),
	}
}

// apply applies an update of the index: what a pod that is found in a list is
// pending for may have been counted before the exporter started.
func (p *pending) apply(u *update) {
	if u.ComputeDomain != nil {
		p.applyDomain(u)
	}
	if u.pod == nil {
		return
	}
	if found, ok := p.added[u.pod]; ok || u.podBefore == nil {
		p.added[u.pod] = found || !u.Live
	}
}

// applyDomain has the reasons determined again of references to the template of a
// ComputeDomain that is new or gone.
func (p *pending) applyDomain(u *update) {
	if !u.Gone && u.domainBefore != nil && u.domainBefore.Template == u.ComputeDomain.Template {
		return
	}
	for _, ref := range slices.Concat(p.order, p.incoming) {
		if !ref.removed && ref.reference.template != "" && ref.pod.ref.Namespace == u.ComputeDomain.Ref.Namespace {
			p.outdated[ref] = struct{}{}
		}
	}
}

// update runs once per step, after all changes: it evaluates what they concern,
// and applies the diagnoses.
func (p *pending) update(x *index, facts Facts, now clock.Instant) pendingUpdate {
	p.watches.update(facts.Sources, now)
	p.changes = nil
	var others []*podEntry // beside those that have changed
	if p.extended.update(facts.Supply) {
		others = p.extended.requesters()
	}
	for c := range x.changed.claims {
		if !p.updateSharedSince(c) {
			continue
		}
		for _, user := range c.users {
			if _, ok := x.changed.pods[user]; !ok {
				others = append(others, user)
			}
		}
	}
	for pod := range x.changed.pods {
		p.updatePod(pod)
		p.markGang(pod)
	}
	for _, pod := range others {
		p.updatePod(pod)
	}
	p.added = cleared(p.added)
	if !facts.Synced.Claims || !facts.Synced.Pods {
		p.sort()
		return pendingUpdate{changes: p.changes} // what is pending is not known
	}
	p.applyDiagnoses(x, facts)
	p.updateReasons(x, facts.Synced, now)
	onsets := p.onsets(now)
	p.sort()
	if !p.listed {
		p.list()
	}
	return pendingUpdate{refs: p.refs, questions: p.questions, undiagnosed: p.undiagnosed.list, changes: p.changes, onsets: onsets}
}

// updateSharedSince determines since when pods that may be scheduled have been
// pending for a claim that is not allocated: the claim's creation, or that of the
// oldest of them if it came later. Gated pods do not count. It reports whether
// that has changed.
func (p *pending) updateSharedSince(c *claimEntry) bool {
	var oldest time.Time
	users := c.users
	if c.object != nil && c.object.Allocated {
		users = nil
	}
	for _, user := range users {
		if !user.alive() || user.object.Gated {
			continue
		}
		if oldest.IsZero() || user.object.Created.Before(oldest) {
			oldest = user.object.Created
		}
	}
	if c.object != nil && !oldest.IsZero() && oldest.Before(c.object.Created) {
		oldest = c.object.Created
	}
	switch previous := p.sharedSince[c]; {
	case oldest.Equal(previous):
		return false
	case oldest.IsZero():
		delete(p.sharedSince, c)
	default:
		p.sharedSince[c] = oldest
	}
	return true
}

// updatePod determines which references of a pod are pending. Those that
// remain pending keep their reason.
func (p *pending) updatePod(pod *podEntry) {
	p.extended.applyPod(pod)
	owner := p.pods[pod]
	if owner == nil {
		if !pod.alive() || pod.object.Node != "" {
			return
		}
		owner = &pendingPod{podEntry: pod}
	}
	owner.question = nil
	previous := owner.pending
	var now []*pendingRef
	for i := range pod.refs {
		r := &pod.refs[i]
		isSame := func(pr *pendingRef) bool { return pr.name == r.name }
		if !pod.isPending(r) || !p.extended.isDevice(r) || slices.ContainsFunc(now, isSame) {
			continue
		}
		var ref *pendingRef
		if at := slices.IndexFunc(previous, isSame); at >= 0 {
			ref = previous[at]
		} else {
			ref = &pendingRef{pod: owner, reference: *r, preexisting: p.added[pod]}
			p.incoming = append(p.incoming, ref)
		}
		now = append(now, ref)
		p.updateRef(ref, r)
	}
	for _, ref := range previous {
		if !slices.Contains(now, ref) {
			p.remove(ref)
		}
	}
	if owner.pending = now; len(now) > 0 {
		p.pods[pod] = owner
	} else {
		delete(p.pods, pod)
	}
}

// updateRef applies what a reference is now.
func (p *pending) updateRef(ref *pendingRef, r *reference) {
	ref.reference = *r
	claim, uid, class, start := "", "", p.extended.class(r), ref.pod.pendingSince(r)
	if r.exists() {
		claim, uid = r.claim.ref.Name, r.claim.object.UID
	}
	if r.exists() && r.extended == 0 {
		class = r.claim.object.Class()
		if shared, ok := p.sharedSince[r.claim]; ok && shared.Before(start) {
			start = shared
		}
	}
	if !ref.diagnosable() || ref.claimUID != "" && uid != ref.claimUID {
		ref.dropDiagnosis() // it is about another claim
	}
	if diagnosed := classOfDiagnosis(ref.diagnosis); diagnosed != "" && (class == "" || r.extended > 0) {
		class = diagnosed
	}
	p.resort = p.resort || !ref.since.IsZero() && !start.Equal(ref.since)
	ref.claim, ref.claimUID, ref.class, ref.since, ref.value = claim, uid, class, start, nil
	p.outdated[ref] = struct{}{}
	p.listed = false
}

func (p *pending) remove(ref *pendingRef) {
	ref.removed, p.removed, p.listed = true, true, false
	delete(p.recent, ref)
	delete(p.outdated, ref)
	p.changes = append(p.changes, pendingChange{pod: ref.pod.podEntry, name: ref.name})
}

// applyDiagnoses applies the results of diagnoses. A diagnosis is kept until
// another comes, as long as its reference is diagnosable. While slices or
// classes cannot be read, the diagnoses used an empty inventory, and are
// ignored.
func (p *pending) applyDiagnoses(x *index, facts Facts) {
	if !facts.Synced.Diagnosable() {
		return
	}
	for i := range facts.Diagnoses {
		diagnosis := &facts.Diagnoses[i]
		pod := x.pod(diagnosis.Pod, diagnosis.PodUID)
		if pod == nil || p.pods[pod] == nil {
			continue
		}
		for _, ref := range p.pods[pod].pending {
			if ref.name != diagnosis.PodClaim || !ref.diagnosable() || ref.diagnosis != nil && sameDiagnosis(ref.diagnosis, diagnosis) {
				continue
			}
			applied := *diagnosis
			ref.diagnosis = &applied
			p.updateRef(ref, &ref.reference)
		}
	}
}

// sameDiagnosis reports whether two diagnoses have the same result, of whichever
// inventory. A diagnosis with detail is for a person, and always new.
func sameDiagnosis(a, b *dra.Diagnosis) bool {
	return a.Reason == b.Reason && a.Message == b.Message && b.Detail == nil && a.Detail == nil && slices.Equal(a.Requests, b.Requests)
}

// classOfDiagnosis is the device class of what a reference requests, while the
// claim that would have it does not exist yet; empty without a diagnosis. Of the
// classes that have one extended resource, a diagnosis uses the one that the
// scheduler does.
func classOfDiagnosis(v *dra.Diagnosis) string {
	if v == nil {
		return ""
	}
	classes := make([]string, len(v.Requests))
	for i := range v.Requests {
		classes[i] = v.Requests[i].Class
	}
	return dra.OneClass(classes)
}

// updateReasons determines the reasons of the references whose evidence has
// changed: of all where other collections are known.
func (p *pending) updateReasons(x *index, synced Synced, now clock.Instant) {
	if synced != p.synced {
		for _, ref := range slices.Concat(p.order, p.incoming) {
			if ref.removed {
				continue
			}
			if !synced.Diagnosable() {
				ref.dropDiagnosis()
			}
			p.outdated[ref] = struct{}{}
		}
		p.synced, p.listed = synced, false
	}
	for ref := range p.outdated {
		e := p.evidenceFor(ref, x)
		ref.mixed = e.scheduler.aboutDRA()
		ref.own.reason, ref.own.message = decideReason(e)
		ref.suffices = e.suffices(ref.own.reason)
		p.markGang(ref.pod.podEntry)
	}
	for ref := range p.outdated {
		if ref.pod.object.Group == "" { // the reasons of groups follow together
			p.applyReason(ref, ref.own.reason, ref.own.message, now)
		}
	}
	clear(p.outdated)
	p.updateGangs(x, now)
}

// applyReason applies the reason of a reference.
func (p *pending) applyReason(ref *pendingRef, reason dra.PendingReason, message string, now clock.Instant) {
	if reason == ref.reason && message == ref.message {
		return
	}
	if reason != ref.reason {
		// What follows a gate was not there before the exporter started.
		ref.preexisting = ref.preexisting && !ref.reason.Gated()
		ref.reason, ref.reasonSince = reason, now
		p.recent[ref] = struct{}{}
	}
	ref.message, ref.value, p.listed = message, nil, false
	p.changes = append(p.changes, pendingChange{ref.pod.podEntry, ref.name, reason, message})
}

func (p *pending) evidenceFor(ref *pendingRef, x *index) evidence {
	extended := ""
	if ref.reference.extended > 0 {
		extended = ref.name
	}
	message := ref.pod.object.Unschedulable
	if group := x.group(ref.pod.podEntry); message == "" && group != nil {
		message = group.Unschedulable // the scheduler may not have come to the pod itself
	}
	return evidence{
		reference: ref.reference, pod: ref.pod.podEntry, diagnosis: ref.diagnosis,
		scheduler: p.parser.parse(message, extended), message: message,
		kueue: x.queues.of(ref.pod.podEntry), domain: x.templates[dra.PodRef{Namespace: ref.pod.ref.Namespace, Name: ref.reference.template}],
		creation: x.creationWarning(ref.pod.podEntry, ref.name), nodesUnknown: !p.synced.Nodes,
		queued: !p.once && ref.diagnosable() && p.synced.Diagnosable(),
	}
}

// onsets returns the reasons that have lasted long enough. Each counts once for
// each pending reference, however often it returns; the first one of a
// reference that was found in a list does not count. While the watches are
// inconsistent nothing counts; afterwards what then still applies.
func (p *pending) onsets(now clock.Instant) []onset {
	if !p.watches.consistent {
		return nil
	}
	var onsets []onset
	for ref := range p.recent {
		if !isFailure(ref.reason) {
			delete(p.recent, ref)
			continue
		}
		delay := onsetDelay
		if ref.reason == dra.ReasonOther && ref.mixed {
			delay = mixedDelay
		}
		if now.Since(ref.reasonSince) < delay && !ref.preexisting {
			continue
		}
		delete(p.recent, ref)
		if _, ok := ref.counted[ref.reason]; ok {
			continue
		}
		if ref.counted == nil {
			ref.counted = make(map[dra.PendingReason]struct{})
		}
		ref.counted[ref.reason] = struct{}{}
		if !ref.preexisting {
			onsets = append(onsets, onset{ref.class, ref.reason})
		}
		ref.preexisting = false
	}
	return onsets
}

// sort brings the order up to date: new references are sorted and merged in;
// all are sorted only if one has another since.
func (p *pending) sort() {
	if len(p.incoming) == 0 && !p.removed && !p.resort {
		return
	}
	isRemoved := func(ref *pendingRef) bool { return ref.removed }
	p.incoming = slices.DeleteFunc(p.incoming, isRemoved)
	if p.removed {
		p.order = slices.DeleteFunc(p.order, isRemoved)
	}
	if p.resort {
		slices.SortFunc(p.order, comparePending)
	}
	if len(p.incoming) > 0 {
		slices.SortFunc(p.incoming, comparePending)
		p.order = merge(p.order, p.incoming, comparePending)
	}
	clear(p.incoming)
	p.incoming, p.removed, p.resort = p.incoming[:0], false, false
}

// comparePending puts the oldest first, and the rest in a stable order.
func comparePending(a, b *pendingRef) int {
	return cmp.Or(a.since.Compare(b.since), cmp.Compare(a.pod.ref.Namespace, b.pod.ref.Namespace), cmp.Compare(a.pod.ref.Name, b.pod.ref.Name), cmp.Compare(a.name, b.name))
}

// merge merges two sorted lists into the first.
func merge[T any](a, b []T, compare func(T, T) int) []T {
	i, j := len(a)-1, len(b)-1
	a = append(a, b...)
	for k := len(a) - 1; j >= 0; k-- {
		if i >= 0 && compare(a[i], b[j]) > 0 {
			a[k] = a[i]
			i--
		} else {
			a[k] = b[j]
			j--
		}
	}
	return a
}

// list lists the pending references, and what is to be diagnosed: one question
// for each pod with a diagnosable reference, at the position of its oldest one.
// While slices or classes cannot be read there are no questions: the diagnoses
// would use an empty inventory.
func (p *pending) list() {
	diagnosable, count := p.synced.Diagnosable(), len(p.questions)
	p.refs, p.questions, p.listed = make([]*PendingRef, len(p.order)), nil, true
	if diagnosable && len(p.order) > 0 {
		p.questions = make([]dra.Question, 0, min(count+1, len(p.order)))
	}
	for i, ref := range p.order {
		if ref.value == nil {
			ref.value = ref.made()
		}
		p.refs[i] = ref.value
		if diagnosable && !ref.pod.asked && ref.diagnosable() {
			ref.pod.asked = true
			if ref.pod.question == nil {
				ref.pod.question = p.question(ref.pod.podEntry)
			}
			p.questions = append(p.questions, *ref.pod.question)
		}
	}
	for _, ref := range p.order {
		ref.pod.asked = false
	}
	p.listUndiagnosed()
}

// question returns a question about all claims of a pod, also those that are
// allocated: they limit the nodes on which the others can be used.
func (p *pending) question(pod *podEntry) *dra.Question {
	q := &dra.Question{Pod: pod.ref, PodUID: pod.object.UID}
	for i := range pod.refs {
		r := &pod.refs[i]
		asked := dra.PendingRef{PodClaim: r.name, Template: r.template, Extended: r.extended}
		if r.existsFor(pod) {
			asked.Claim = r.claim.ref.Name
		}
		if (asked.Claim != "" || asked.Template != "" || asked.Extended > 0) && p.extended.isDevice(r) {
			q.Refs = append(q.Refs, asked)
		}
	}
	return q
}

// warningClass is the device class of the claims that a Kubernetes event reports:
// of those that cannot be created for a pod or a group of pods, or of a pod's
// claims that cannot be prepared. It is empty while it is not known.
func (p *pending) warningClass(warning *dra.Warning, x *index) string {
	pod := x.pod(warning.Pod, warning.PodUID)
	if warning.Kind == dra.WarningPreparation {
		if pod == nil {
			return ""
		}
		return pod.class()
	}
	var classes []string
	if pod != nil {
		classes = p.uncreatedClasses(pod, warning)
	}
	for _, pod := range x.members[warning.Pod] {
		if group := x.group(pod); group == nil || group.UID == warning.PodUID {
			classes = append(classes, p.uncreatedClasses(pod, warning)...)
		}
	}
	if slices.Contains(classes, "") {
		return ""
	}
	return dra.OneClass(classes)
}

// uncreatedClasses are the classes of the references that a warning may be
// about: of the one that it names, else of all whose claims do not exist. The
// class of one that is not known is empty.
func (p *pending) uncreatedClasses(pod *podEntry, warning *dra.Warning) []string {
	name, named := referenceIn(warning.Message)
	var classes []string
	for i := range pod.refs {
		r := &pod.refs[i]
		if r.template == "" || (named && r.name != name) || (!named && r.exists()) {
			continue
		}
		class := ""
		if r.exists() { // it has been created since
			class = r.claim.object.Class()
		} else if owner := p.pods[pod]; owner != nil {
			if at := slices.IndexFunc(owner.pending, func(ref *pendingRef) bool { return ref.name == r.name }); at >= 0 {
				class = owner.pending[at].class
			}
		}
		classes = append(classes, class)
	}
	return classes
}

// consistent reports whether the watches of pods and claims agree.
func (p *pending) consistent() bool { return p.watches.consistent }

// listUndiagnosed lists since when the oldest reference has been queued for a
// diagnosis, and since when the oldest diagnosis has been over its limit.
func (p *pending) listUndiagnosed() {
	var queued, overLimit *pendingRef
	for _, ref := range p.order {
		switch ref.reason {
		case dra.ReasonPendingDiagnosis:
			queued = longerUndiagnosed(queued, ref)
		case dra.ReasonUndetermined:
			overLimit = longerUndiagnosed(overLimit, ref)
		}
	}
	if queued != nil {
		p.undiagnosed.add(model.Undiagnosed{Cause: causeQueued, Since: queued.reasonSince.Wall})
	}
	if overLimit != nil {
		p.undiagnosed.add(model.Undiagnosed{Cause: causeOverLimit, Since: overLimit.reasonSince.Wall})
	}
	p.undiagnosed.take()
}

func longerUndiagnosed(a, b *pendingRef) *pendingRef {
	if a == nil || b.reasonSince.Elapsed < a.reasonSince.Elapsed {
		return b
	}
	return a
}

func (ref *pendingRef) made() *PendingRef {
	node := ""
	if r := &ref.reference; r.exists() {
		node = r.claim.object.Node
	}
	return &PendingRef{
		Pod: ref.pod.ref, PodUID: ref.pod.object.UID, Node: node, PodClaim: ref.name, Claim: ref.claim,
		DeviceClass: ref.class, Since: ref.since, Workload: ref.pod.object.Member.Workload,
		Reason: ref.reason, Message: ref.message, Diagnosis: ref.diagnosis,
	}
}

// diagnosable reports whether a diagnosis can find why the reference is
// pending: it is known what it requests, it has no devices yet, and its pod may
// be scheduled.
func (ref *pendingRef) diagnosable() bool {
	r := &ref.reference
	switch {
	case ref.pod.object.Gated || r.deleting():
		return false
	case r.existsFor(ref.pod.podEntry):
		return !r.claim.object.Allocated
	default:
		return r.template != "" || r.extended > 0
	}
}

func (ref *pendingRef) dropDiagnosis() {
	ref.diagnosis, ref.value = nil, nil
}

// uids yields the UIDs of the pods with pending references.
func (p *pending) uids(yield func(string) bool) {
	for pod := range p.pods {
		if !yield(pod.object.UID) {
			return
		}
	}
}
