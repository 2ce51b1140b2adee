package cluster

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/dra"
)

// index holds the objects as last observed, and which pod references which
// claim. It is the first stage: it applies changes, and finds everything that
// depends on a change by key.
type index struct {
	pods      map[dra.PodRef]*podEntry
	claims    map[dra.ClaimRef]*claimEntry
	groups    map[dra.PodRef]*dra.Group
	members   map[dra.PodRef][]*podEntry // by group, which need not exist
	nodes     map[string]*dra.Node
	queues    queues
	domains   map[dra.PodRef]*dra.ComputeDomain
	templates map[dra.PodRef]*dra.ComputeDomain // by the template that its controller makes
	generated map[generatedKey]dra.ClaimRef
	warnings  warnings
	scaling   autoscaling
	changed   changeSet
}

// podEntry is a pod. An entry is for one pod, not for its name: a pod that is
// recreated under its name gets another entry. The entry of a removed pod keeps
// its last object and references.
type podEntry struct {
	ref     dra.PodRef
	object  *dra.PodLifecycle
	refs    []reference
	removed bool

	progress *podProgress // of the lifecycle
}

// claimEntry is a claim, or the name of one that a pod references and that
// does not exist: it was deleted, not created yet, or not listed yet.
type claimEntry struct {
	ref    dra.ClaimRef
	object *dra.ClaimLifecycle // nil: does not exist
	users  []*podEntry         // pods that reference it, in no order

	progress *claimProgress // of the lifecycle; nil: does not exist
	counted  countedClaim   // of the counts of claims
}

// reference is what a pod uses: a claim of its spec, or an amount of an
// extended resource. The scheduler creates one claim for all extended
// resources of a pod.
type reference struct {
	name     string // within the pod; of an extended resource, its name
	template string
	extended int64       // amount of the extended resource; 0: a claim
	claim    *claimEntry // nil until its name is known
}

// generatedKey records for which pod or group, and for which of its references,
// a claim was generated. So the claim is known before the pod's status names
// it.
type generatedKey struct {
	owner    string // UID of the pod or group
	podClaim string // empty: for extended resources
}

// update is what one change did to the index.
type update struct {
	*Change

	pod         *podEntry           // added or modified
	podBefore   *dra.PodLifecycle   // nil: added
	claim       *claimEntry         // added or modified
	claimBefore *dra.ClaimLifecycle // nil: added
	users       []*podEntry         // of the claim, without those that were resolved by the change
	concerned   []*podEntry         // pods whose claim or group was added, modified or removed; may hold duplicates

	removedPod    *podEntry
	removedClaim  *claimEntry
	removedObject *dra.ClaimLifecycle // of the removed claim

	nodeBefore   *dra.Node
	domainBefore *dra.ComputeDomain
	occurrences  int64 // of a warning since it was last observed
}

// changeSet is what the changes of one step concern: pods whose object, claims, group
// or Workload of Kueue changed, claims that changed or whose users did, and Workloads
// of Kueue. It includes what was removed.
type changeSet struct {
	pods   map[*podEntry]struct{}
	claims map[*claimEntry]struct{}
	kueue  map[dra.PodRef]struct{}
}

func newIndex() *index {
	return &index{
		pods:      make(map[dra.PodRef]*podEntry),
		claims:    make(map[dra.ClaimRef]*claimEntry),
		groups:    make(map[dra.PodRef]*dra.Group),
		members:   make(map[dra.PodRef][]*podEntry),
		nodes:     make(map[string]*dra.Node),
		queues:    newQueues(),
		domains:   make(map[dra.PodRef]*dra.ComputeDomain),
		templates: make(map[dra.PodRef]*dra.ComputeDomain),
		generated: make(map[generatedKey]dra.ClaimRef),
		warnings:  newWarnings(),
		changed:   newChangeSet(),
	}
}

func newChangeSet() changeSet {
	return changeSet{pods: make(map[*podEntry]struct{}), claims: make(map[*claimEntry]struct{}), kueue: make(map[dra.PodRef]struct{})}
}

// maxCleared is the size up to which a map is cleared rather than replaced:
// clearing a map takes time in proportion to its largest size.
const maxCleared = 4096

func (c *changeSet) clear() {
	c.pods, c.claims, c.kueue = cleared(c.pods), cleared(c.claims), cleared(c.kueue)
}

// cleared returns an empty map: this one, or, if it is large, another.
func cleared[K comparable, V any](m map[K]V) map[K]V {
	if len(m) > maxCleared {
		return make(map[K]V)
	}
	clear(m)
	return m
}

// replace removes the object that a change replaces: the one of the same name
// with another UID, whose deletion was not observed.
func (x *index) replace(change *Change) (u update, replaced bool) {
	u = update{Change: change}
	switch {
	case change.Gone:
	case change.Claim != nil:
		if c := x.claims[change.Claim.Ref]; c != nil && c.object != nil && c.object.UID != change.Claim.UID {
			x.removeClaim(c, &u)
			return u, true
		}
	case change.Pod != nil:
		if p := x.pods[change.Pod.Ref]; p != nil && p.object.UID != change.Pod.UID {
			x.removePod(p, &u)
			return u, true
		}
	}
	return u, false
}

// apply applies a change after replace.
func (x *index) apply(change *Change) update {
	u := update{Change: change}
	switch {
	case change.Claim != nil:
		x.applyClaim(&u)
	case change.Pod != nil:
		x.applyPod(&u)
	case change.Group != nil:
		x.applyGroup(&u)
	case change.Node != nil:
		x.applyNode(&u)
	case change.Warning != nil:
		x.applyWarning(&u)
	case change.KueueWorkload != nil:
		x.applyKueue(&u)
	case change.ComputeDomain != nil:
		x.applyDomain(&u)
	case change.Autoscaling != nil:
		x.scaling.apply(change.Autoscaling, change.Gone)
	}
	return u
}

func (x *index) applyClaim(u *update) {
	c := x.claim(u.Claim.Ref)
	if u.Gone && c.object != nil && c.object.UID != u.Claim.UID {
		return // an earlier claim; the name has been taken since
	}
	x.changed.claims[c] = struct{}{}
	if u.Gone {
		x.removeClaim(c, u)
	} else {
		u.claim, u.claimBefore, u.users = c, c.object, c.users[:len(c.users):len(c.users)]
		c.object = u.Claim
		x.resolveOwner(u)
	}
	for _, p := range c.users {
		x.changed.pods[p] = struct{}{}
	}
	if u.concerned == nil {
		u.concerned = c.users
	} else {
		u.concerned = slices.Concat(u.concerned, c.users)
	}
	x.release(c)
}

func (x *index) removeClaim(c *claimEntry, u *update) {
	if c.object == nil {
		return
	}
	key := generatedKey{c.object.MadeFor.UID, c.object.PodClaim}
	if key.owner != "" && x.generated[key] == c.ref {
		delete(x.generated, key)
	}
	u.removedClaim, u.removedObject = c, c.object
	c.object = nil
}

// resolveOwner records for which pod or group a claim was generated, and
// resolves the references of those pods.
func (x *index) resolveOwner(u *update) {
	owner := u.Claim.MadeFor
	if owner.UID == "" || (u.Claim.PodClaim == "" && !u.Claim.ExtendedResource) {
		return
	}
	key := generatedKey{owner.UID, u.Claim.PodClaim}
	if x.generated[key] == u.Claim.Ref {
		return
	}
	x.generated[key] = u.Claim.Ref
	ref := dra.PodRef{Namespace: u.Claim.Ref.Namespace, Name: owner.Name}
	if owner.Resource == "podgroups" {
		x.resolveGroup(ref, u)
	} else if p := x.pod(ref, owner.UID); p != nil {
		x.markChanged(p)
		x.resolve(p)
	}
}

func (x *index) applyPod(u *update) {
	p := x.pods[u.Pod.Ref]
	if u.Gone {
		if p != nil && p.object.UID == u.Pod.UID {
			x.removePod(p, u)
		}
		return
	}
	if p == nil {
		p = &podEntry{ref: u.Pod.Ref}
		x.pods[p.ref] = p
	}
	previous := p.object
	u.pod, u.podBefore = p, previous
	p.object = u.Pod
	x.moveToGroups(p, previous, u.Pod)
	if previous == nil || previous.Group != u.Pod.Group || !slices.Equal(previous.Claims, u.Pod.Claims) || !maps.Equal(previous.Extended, u.Pod.Extended) {
		x.resolve(p)
	}
	x.markChanged(p)
}

func (x *index) removePod(p *podEntry, u *update) {
	x.markChanged(p)
	delete(x.pods, p.ref)
	p.removed = true
	x.moveToGroups(p, p.object, nil)
	x.link(p, p.refs, nil)
	u.removedPod = p
}

// markChanged adds a pod and the claims that it references to the change set.
func (x *index) markChanged(p *podEntry) {
	x.changed.pods[p] = struct{}{}
	for i := range p.refs {
		if c := p.refs[i].claim; c != nil {
			x.changed.claims[c] = struct{}{}
		}
	}
}

func (x *index) applyGroup(u *update) {
	ref := u.Group.Ref
	switch previous := x.groups[ref]; {
	case !u.Gone:
		x.groups[ref] = u.Group
	case previous != nil && previous.UID == u.Group.UID:
		delete(x.groups, ref)
	}
	x.resolveGroup(ref, u)
}

func (x *index) resolveGroup(ref dra.PodRef, u *update) {
	for _, p := range x.members[ref] {
		x.markChanged(p)
		x.resolve(p)
	}
	u.concerned = x.members[ref]
}

func (x *index) applyNode(u *update) {
	u.nodeBefore = x.nodes[u.Node.Name]
	if u.Gone {
		delete(x.nodes, u.Node.Name)
	} else {
		x.nodes[u.Node.Name] = u.Node
	}
}

func (x *index) applyKueue(u *update) {
	previous, applied := x.queues.apply(u.KueueWorkload, u.Gone)
	if !applied {
		return // an earlier one; the name has been taken since
	}
	x.changed.kueue[u.KueueWorkload.Ref] = struct{}{}
	for _, object := range []*dra.KueueWorkload{previous, u.KueueWorkload} {
		for _, p := range x.queues.heldBy(object, x.pods) {
			x.markChanged(p)
		}
	}
}

func (x *index) applyDomain(u *update) {
	domain := u.ComputeDomain
	previous := x.domains[domain.Ref]
	if u.Gone && (previous == nil || previous.UID != domain.UID) {
		return // an earlier one; the name has been taken since
	}
	u.domainBefore = previous
	if u.Gone {
		delete(x.domains, domain.Ref)
	} else {
		x.domains[domain.Ref] = domain
	}
	x.updateTemplate(domainTemplate(domain))
	if previous != nil && previous.Template != domain.Template {
		x.updateTemplate(domainTemplate(previous))
	}
}

// updateTemplate determines the ComputeDomain of a template: the first by name, if
// several name the same.
func (x *index) updateTemplate(template dra.PodRef) {
	var first *dra.ComputeDomain
	for ref, domain := range x.domains {
		if domainTemplate(domain) == template && (first == nil || ref.Name < first.Ref.Name) {
			first = domain
		}
	}
	if x.templates[template] = first; first == nil {
		delete(x.templates, template)
	}
}

// domainTemplate names the template that the controller of a ComputeDomain makes.
func domainTemplate(domain *dra.ComputeDomain) dra.PodRef {
	return dra.PodRef{Namespace: domain.Ref.Namespace, Name: domain.Template}
}

func (x *index) applyWarning(u *update) {
	warning := u.Warning
	if p := x.pods[warning.Pod]; p != nil {
		x.changed.pods[p] = struct{}{}
	}
	for _, p := range x.members[warning.Pod] { // it may be about a group
		x.changed.pods[p] = struct{}{}
	}
	u.occurrences = x.warnings.apply(warning, u.Gone)
}

// pod returns the pod of a name with this UID; nil if it is not known.
func (x *index) pod(ref dra.PodRef, uid string) *podEntry {
	if p := x.pods[ref]; p != nil && p.object.UID == uid {
		return p
	}
	return nil
}

// claim returns the entry of a name; it adds one if there is none.
func (x *index) claim(ref dra.ClaimRef) *claimEntry {
	c := x.claims[ref]
	if c == nil {
		c = &claimEntry{ref: ref}
		x.claims[ref] = c
	}
	return c
}

// release removes the entry of a claim that neither exists nor is referenced.
func (x *index) release(c *claimEntry) {
	if c.object == nil && len(c.users) == 0 && x.claims[c.ref] == c {
		delete(x.claims, c.ref)
	}
}

// group returns the group that the pod belongs to; nil if it is not known.
func (x *index) group(p *podEntry) *dra.Group {
	if p.object.Group == "" {
		return nil
	}
	return x.groups[dra.PodRef{Namespace: p.ref.Namespace, Name: p.object.Group}]
}

// moveToGroups updates the pods of groups, and those that name a Workload of Kueue. A
// pod without an object is in none.
func (x *index) moveToGroups(p *podEntry, previous, now *dra.PodLifecycle) {
	p.move(x.members, podGroup(previous), podGroup(now))
	source, target := heldBy(previous), heldBy(now)
	p.move(x.queues.named, source, target)
	for _, name := range []string{source, target} {
		if name != "" {
			x.changed.kueue[dra.PodRef{Namespace: p.ref.Namespace, Name: name}] = struct{}{}
		}
	}
}

// podGroup is the name of a pod's group; empty without one, and for no pod.
func podGroup(pod *dra.PodLifecycle) string {
	if pod == nil {
		return ""
	}
	return pod.Group
}

// move moves a pod from the list of one name in its namespace to that of another; the
// empty name has no list.
func (p *podEntry) move(lists map[dra.PodRef][]*podEntry, previous, now string) {
	if previous == now {
		return
	}
	if key := (dra.PodRef{Namespace: p.ref.Namespace, Name: previous}); previous != "" {
		if lists[key] = without(lists[key], p); len(lists[key]) == 0 {
			delete(lists, key)
		}
	}
	if key := (dra.PodRef{Namespace: p.ref.Namespace, Name: now}); now != "" {
		lists[key] = append(lists[key], p)
	}
}

// without removes one pod; the order of the others may change.
func without(pods []*podEntry, p *podEntry) []*podEntry {
	i := slices.Index(pods, p)
	if i < 0 {
		return pods
	}
	last := len(pods) - 1
	pods[i], pods[last] = pods[last], nil
	return pods[:last]
}

// resolve determines the references of a pod and the claims that they stand
// for.
func (x *index) resolve(p *podEntry) {
	previous := p.refs
	p.refs = x.findReferences(p)
	x.link(p, previous, p.refs)
}

// link updates the users of the claims that a pod's references stood for and
// refer to now. Claims that gain or lose a user have changed.
func (x *index) link(p *podEntry, previous, now []reference) {
	for i := range now {
		if c := now[i].claim; c != nil && !references(previous, c) && !references(now[:i], c) {
			c.users = append(c.users, p)
			x.changed.claims[c] = struct{}{}
		}
	}
	for i := range previous {
		if c := previous[i].claim; c != nil && !references(now, c) && !references(previous[:i], c) {
			c.users = without(c.users, p)
			x.changed.claims[c] = struct{}{}
			x.release(c)
		}
	}
}

func references(refs []reference, c *claimEntry) bool {
	for i := range refs {
		if refs[i].claim == c {
			return true
		}
	}
	return false
}

func (x *index) findReferences(p *podEntry) []reference {
	entry := func(name string) *claimEntry {
		if name == "" {
			return nil
		}
		return x.claim(dra.ClaimRef{Namespace: p.ref.Namespace, Name: name})
	}
	refs := make([]reference, 0, len(p.object.Claims)+len(p.object.Extended))
	forExtended := ""
	for _, pc := range p.object.Claims {
		if pc.Name == "" {
			forExtended = pc.Claim
			continue
		}
		refs = append(refs, reference{name: pc.Name, template: pc.Template, claim: entry(x.claimName(p, pc))})
	}
	if len(p.object.Extended) == 0 {
		return refs
	}
	if forExtended == "" {
		forExtended = x.generated[generatedKey{owner: p.object.UID}].Name
	}
	for _, resource := range slices.Sorted(maps.Keys(p.object.Extended)) {
		refs = append(refs, reference{name: resource, extended: p.object.Extended[resource], claim: entry(forExtended)})
	}
	return refs
}

// claimName is the name of the claim that a pod's reference refers to: the one
// in its status or spec; else the one that its group has under the same name
// from the same template; else the one that was generated for it.
func (x *index) claimName(p *podEntry, pc dra.PodClaim) string {
	if pc.Claim != "" {
		return pc.Claim
	}
	owner := p.object.UID
	if group := x.group(p); group != nil {
		for _, claim := range group.Claims {
			if claim.Name != pc.Name || claim.Template != pc.Template {
				continue
			}
			if claim.Claim != "" {
				return claim.Claim
			}
			owner = group.UID
		}
	}
	return x.generated[generatedKey{owner, pc.Name}].Name
}

// consumers reports whether a claim is orphaned: reserved for pods alone, none
// of which exists. indirect reports whether it depends on pods that do not
// reference it: pods for which it is reserved.
func (x *index) consumers(c *claimEntry) (orphaned, indirect bool) {
	if c.object == nil || len(c.object.ReservedFor) == 0 {
		return false, false
	}
	orphaned = true
	for i := range c.object.ReservedFor {
		consumer := &c.object.ReservedFor[i]
		if consumer.Resource != "pods" {
			orphaned = false
			continue
		}
		p := x.pod(dra.PodRef{Namespace: c.ref.Namespace, Name: consumer.Name}, consumer.UID)
		orphaned = orphaned && p == nil
		indirect = indirect || p == nil || !references(p.refs, c)
	}
	return orphaned, indirect
}

// creationWarning is the message of the newest Kubernetes event about why the
// claim for one of the pod's references cannot be created; empty if there is
// none.
func (x *index) creationWarning(p *podEntry, podClaim string) string {
	message := x.warnings.newest(p.object.UID, podClaim)
	if group := x.group(p); message == "" && group != nil {
		message = x.warnings.newest(group.UID, podClaim)
	}
	return message
}

// creationWarnings lists the Kubernetes events about claims of the pod that
// cannot be created.
func (x *index) creationWarnings(p *podEntry) []dra.Warning {
	all := x.warnings.sorted(p.object.UID)
	if group := x.group(p); group != nil {
		all = append(all, x.warnings.sorted(group.UID)...)
	}
	return all
}

// warnedPods lists the pods that a Kubernetes event is about: a pod, or those of a
// group.
func (x *index) warnedPods(warning *dra.Warning) []*podEntry {
	var pods []*podEntry
	if p := x.pod(warning.Pod, warning.PodUID); p != nil {
		pods = append(pods, p)
	}
	for _, p := range x.members[warning.Pod] {
		if group := x.group(p); group != nil && group.UID == warning.PodUID {
			pods = append(pods, p)
		}
	}
	return pods
}

// alive reports whether the pod may still use what it references.
func (p *podEntry) alive() bool {
	return !p.removed && !p.object.Terminal && p.object.Deleted.IsZero()
}

// has reports whether a claim is allocated and reserved for the pod or its
// group. A nil claim is not.
func (p *podEntry) has(claim *dra.ClaimLifecycle) bool {
	return claim != nil && claim.Allocated && slices.ContainsFunc(claim.ReservedFor, p.isConsumer)
}

// isConsumer reports whether a reservation is for the pod or its group.
func (p *podEntry) isConsumer(consumer dra.Consumer) bool {
	switch consumer.Resource {
	case "pods":
		return consumer.UID == p.object.UID
	case "podgroups":
		return p.object.Group != "" && consumer.Name == p.object.Group
	default:
		return false
	}
}

// isPending reports whether a reference of a pod that may still be scheduled
// is not satisfied: its claim is not reserved for the pod or its group, has
// binding conditions that are not true, or is being deleted.
func (p *podEntry) isPending(r *reference) bool {
	if !p.alive() || p.object.Node != "" {
		return false
	}
	if r.claim == nil || !p.has(r.claim.object) || r.deleting() {
		return true
	}
	return r.claim.object.Binding != dra.BindingNone && r.claim.object.Binding != dra.BindingDone
}

// pendingSince is since when a reference of the pod is or was pending, by the
// API server's clock. A claim for extended resources is created when it is
// satisfied, so that only the pod's creation counts there.
func (p *podEntry) pendingSince(r *reference) time.Time {
	if !r.exists() || r.extended > 0 || r.claim.object.Created.Before(p.object.Created) {
		return p.object.Created
	}
	return r.claim.object.Created
}

// class is the one device class of the pod's claims; empty if none is known.
func (p *podEntry) class() string {
	var classes []string
	for i := range p.refs {
		if p.refs[i].exists() {
			classes = append(classes, p.refs[i].claim.object.Class())
		}
	}
	return dra.OneClass(classes)
}

// exists reports whether the claim that the reference refers to exists.
func (r *reference) exists() bool { return r.claim != nil && r.claim.object != nil }

func (r *reference) deleting() bool { return r.exists() && !r.claim.object.Deleted.IsZero() }

// existsFor reports whether the claim exists and is not another pod's.
func (r *reference) existsFor(p *podEntry) bool {
	return r.exists() && !r.isForeign(r.claim.object, p)
}

// isForeign reports whether the claim under the reference's name was generated
// for another pod, so that the reference does not refer to it. A pod may name
// another pod's claim in its spec: like the scheduler, it checks the owner only
// of a claim that is generated for the pod.
func (r *reference) isForeign(claim *dra.ClaimLifecycle, p *podEntry) bool {
	if r.template == "" && r.extended == 0 {
		return false
	}
	return claim.MadeFor.Resource == "pods" && claim.MadeFor.UID != p.object.UID
}

// warnings holds the Kubernetes events about claims: how often each was
// observed, and what they report.
type warnings struct {
	counts      map[string]int64                  // by the event's name
	creation    map[string]map[string]dra.Warning // by the UID of the pod or group, and the event's name
	preparation map[string]*dra.Warning           // by the event's name; no more than maxPreparationWarnings
}

// maxPreparationWarnings bounds the events about devices that could not be prepared.
// They are only shown to people.
const maxPreparationWarnings = 4096

func newWarnings() warnings {
	return warnings{
		counts: make(map[string]int64), creation: make(map[string]map[string]dra.Warning), preparation: make(map[string]*dra.Warning),
	}
}

// apply returns how often the event occurred since it was last observed. An
// event that is observed first occurred once, whatever its count: after it has
// expired, it is written again with the count of before.
func (w *warnings) apply(warning *dra.Warning, gone bool) int64 {
	if warning.Kind == dra.WarningCreation {
		w.keepCreation(warning, gone)
	} else if w.preparation[warning.Name] != nil || len(w.preparation) < maxPreparationWarnings {
		w.preparation[warning.Name] = warning
	}
	if gone {
		delete(w.preparation, warning.Name)
		delete(w.counts, warning.Name)
		return 0
	}
	previous, ok := w.counts[warning.Name]
	w.counts[warning.Name] = warning.Count
	if !ok {
		return 1
	}
	return max(0, warning.Count-previous)
}

// keepCreation keeps events about claims that cannot be created, for as long
// as the API server does.
func (w *warnings) keepCreation(warning *dra.Warning, gone bool) {
	warnings := w.creation[warning.PodUID]
	switch {
	case gone:
		if delete(warnings, warning.Name); len(warnings) == 0 {
			delete(w.creation, warning.PodUID)
		}
	case warnings == nil:
		w.creation[warning.PodUID] = map[string]dra.Warning{warning.Name: *warning}
	default:
		warnings[warning.Name] = *warning
	}
}

// sorted lists the events about a pod or group by name.
func (w *warnings) sorted(uid string) []dra.Warning {
	warnings := w.creation[uid]
	var all []dra.Warning
	for _, name := range slices.Sorted(maps.Keys(warnings)) {
		all = append(all, warnings[name])
	}
	return all
}

// newest is the message of the newest event about a reference of a pod or
// group. A message begins with the reference's name (k8s.io/kubernetes v1.34.4
// to v1.37.1, pkg/controller/resourceclaim); one that does not is about all.
func (w *warnings) newest(uid, podClaim string) string {
	var last dra.Warning
	for _, warning := range w.creation[uid] {
		if name, named := referenceIn(warning.Message); named && name != podClaim {
			continue
		}
		if last.Name == "" || warning.Last.After(last.Last) || warning.Last.Equal(last.Last) && warning.Name > last.Name {
			last = warning
		}
	}
	return last.Message
}

// referenceIn is the name of the reference that an event's message is about.
func referenceIn(message string) (podClaim string, named bool) {
	for _, prefix := range []string{"PodResourceClaim ", "PodGroupResourceClaim "} {
		if rest, ok := strings.CutPrefix(message, prefix); ok {
			name, _, found := strings.Cut(rest, ": ")
			return name, found
		}
	}
	return "", false
}
