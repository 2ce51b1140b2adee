package explain

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/cluster"
	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/collector/model"
)

// Facts is what has been read of the cluster, and what the reducer of the cluster
// role finds in it.
type Facts struct {
	Now       time.Time
	Server    string // version of the API server; empty: unknown
	Objects   *Objects
	Pending   []cluster.PendingRef // with their reasons and diagnoses
	Phases    []*model.Phase
	Supply    *dra.Supply // nil: not counted
	Claims    map[dra.ClaimRef]Spec
	Templates map[Template]Spec
	Classes   []string // names of all device classes
	Gaps      Gaps
}

// Template names a ResourceClaimTemplate.
type Template struct {
	Namespace, Name string
}

// spec returns what the claim or the template requests; nil: unknown.
func (f *Facts) spec(namespace, claim, template string) *Spec {
	if claim != "" {
		if spec, ok := f.Claims[dra.ClaimRef{Namespace: namespace, Name: claim}]; ok {
			return &spec
		}
		return nil
	}
	if spec, ok := f.Templates[Template{namespace, template}]; ok {
		return &spec
	}
	return nil
}

// Objects indexes the newest version of each object of the API server. It is not
// safe for concurrent use; what it points to is immutable.
type Objects struct {
	claims    map[dra.ClaimRef]*dra.ClaimLifecycle
	pods      map[dra.PodRef]*dra.PodLifecycle
	groups    map[dra.PodRef]*dra.Group
	generated map[generatedKey]string // names of claims
	warnings  map[string]*dra.Warning
	nodes     map[string]*dra.Node
	kueue     map[dra.PodRef]*dra.KueueWorkload
	domains   map[dra.PodRef]*dra.ComputeDomain
	scaling   map[string]*dra.Autoscaling // the newest event of autoscalers, by the pod's UID

	usedBy map[dra.ClaimRef][]*dra.PodLifecycle // made when it is first asked for; nil after a change
}

// generatedKey identifies a claim that is generated for a pod or a group by the
// owner's UID and the reference: the pod's status has its name only later.
type generatedKey struct{ owner, podClaim string }

// NewObjects returns an empty index.
func NewObjects() *Objects {
	return &Objects{
		claims: make(map[dra.ClaimRef]*dra.ClaimLifecycle), pods: make(map[dra.PodRef]*dra.PodLifecycle),
		groups: make(map[dra.PodRef]*dra.Group), generated: make(map[generatedKey]string), warnings: make(map[string]*dra.Warning), nodes: make(map[string]*dra.Node),
		kueue: make(map[dra.PodRef]*dra.KueueWorkload), domains: make(map[dra.PodRef]*dra.ComputeDomain),
		scaling: make(map[string]*dra.Autoscaling),
	}
}

// Claim sets or deletes a claim.
func (o *Objects) Claim(claim *dra.ClaimLifecycle, gone bool) {
	o.usedBy = nil
	set(o.claims, claim.Ref, claim, gone)
	key := generatedKey{claim.MadeFor.UID, claim.PodClaim}
	if key.owner != "" && key.podClaim != "" && (!gone || o.generated[key] == claim.Ref.Name) {
		set(o.generated, key, claim.Ref.Name, gone)
	}
}

// Pod sets or deletes a pod that uses claims.
func (o *Objects) Pod(pod *dra.PodLifecycle, gone bool) {
	o.usedBy = nil
	set(o.pods, pod.Ref, pod, gone)
}

// Group sets or deletes a group of pods that share claims.
func (o *Objects) Group(group *dra.Group, gone bool) {
	o.usedBy = nil
	set(o.groups, group.Ref, group, gone)
}

// Warning sets or deletes an event.
func (o *Objects) Warning(warning *dra.Warning, gone bool) {
	set(o.warnings, warning.Name, warning, gone)
}

// Node sets or deletes a node.
func (o *Objects) Node(node *dra.Node, gone bool) {
	set(o.nodes, node.Name, node, gone)
}

// Autoscaling sets or deletes an event of an autoscaler, unless a newer one is known.
func (o *Objects) Autoscaling(event *dra.Autoscaling, gone bool) {
	known := o.scaling[event.PodUID]
	switch {
	case gone && known != nil && known.Name == event.Name:
		delete(o.scaling, event.PodUID)
	case !gone && (known == nil || known.Name == event.Name || !known.Last.After(event.Last)):
		o.scaling[event.PodUID] = event
	}
}

// autoscaling returns what an autoscaler has reported of a pod; nil: nothing.
func (o *Objects) autoscaling(uid string) *Autoscaling {
	event := o.scaling[uid]
	if event == nil {
		return nil
	}
	return &Autoscaling{Name: string(event.Autoscaler), State: string(event.State), Message: event.Message, At: event.Last.UTC()}
}

func set[K comparable, V any](all map[K]V, key K, value V, gone bool) {
	if gone {
		delete(all, key)
		return
	}
	all[key] = value
}

// users returns the pods that refer to the claim and have not ended, sorted by
// name.
func (o *Objects) users(ref dra.ClaimRef) []*dra.PodLifecycle {
	if o.usedBy == nil {
		o.findUsers()
	}
	return o.usedBy[ref]
}

// findUsers finds the users of all claims.
func (o *Objects) findUsers() {
	o.usedBy = make(map[dra.ClaimRef][]*dra.PodLifecycle)
	for _, pod := range o.pods {
		if pod.Terminal {
			continue
		}
		for _, reference := range pod.Claims {
			ref := dra.ClaimRef{Namespace: pod.Ref.Namespace, Name: o.claimName(pod, reference)}
			users := o.usedBy[ref]
			if last := len(users) - 1; ref.Name != "" && (last < 0 || users[last] != pod) { // it may refer to a claim twice
				o.usedBy[ref] = append(users, pod)
			}
		}
	}
	for _, users := range o.usedBy {
		slices.SortFunc(users, func(a, b *dra.PodLifecycle) int { return cmp.Compare(a.Ref.Name, b.Ref.Name) })
	}
}

// claimName returns the name of the claim that a reference of a pod names, that its
// group shares, or that was generated for either; empty while there is none. A pod
// shares a claim of its group by a reference of the same name to the same claim or
// template.
func (o *Objects) claimName(pod *dra.PodLifecycle, reference dra.PodClaim) string {
	if reference.Claim != "" {
		return reference.Claim
	}
	owner := pod.UID
	if group, ok := o.groups[dra.PodRef{Namespace: pod.Ref.Namespace, Name: pod.Group}]; ok {
		for _, shared := range group.Claims {
			if shared.Name != reference.Name || shared.Template != reference.Template {
				continue
			}
			if shared.Claim != "" {
				return shared.Claim
			}
			owner = group.UID
		}
	}
	return o.generated[generatedKey{owner, reference.Name}]
}

// creationFailed reports whether an event has the message about a claim that cannot
// be created.
func (o *Objects) creationFailed(message string) bool {
	for _, warning := range o.warnings {
		if warning.Kind == dra.WarningCreation && warning.Message == message {
			return true
		}
	}
	return false
}

// preparationFailure returns the newest event about devices that could not be
// prepared for the pod; nil without one.
func (o *Objects) preparationFailure(pod dra.PodRef, uid string) *dra.Warning {
	var newest *dra.Warning
	for _, warning := range o.warnings {
		if warning.Kind != dra.WarningPreparation || warning.Pod != pod || (warning.PodUID != "" && warning.PodUID != uid) {
			continue
		}
		if newest == nil || warning.Last.After(newest.Last) || warning.Last.Equal(newest.Last) && warning.Name > newest.Name {
			newest = warning
		}
	}
	return newest
}

// events returns what events report about the preparation of the pods' claims, while
// these have not started, the newest first. What reports a claim that could not be
// created is in the message of its reference.
func (f *Facts) events(pods []*dra.PodLifecycle) []failureEvent {
	var all []failureEvent
	for _, warning := range f.Objects.warnings {
		i := slices.IndexFunc(pods, func(pod *dra.PodLifecycle) bool {
			return pod.Ref == warning.Pod && (warning.PodUID == "" || warning.PodUID == pod.UID)
		})
		if i < 0 || warning.Kind != dra.WarningPreparation || !pods[i].Started.IsZero() || pods[i].Terminal {
			continue
		}
		all = append(all, failureEvent{"kubelet", max(warning.Count, 1), warning.Last.UTC(), warning.Message})
	}
	slices.SortFunc(all, func(a, b failureEvent) int {
		return cmp.Or(b.last.Compare(a.last), cmp.Compare(a.message, b.message))
	})
	return all
}

// podClaim returns the pod's reference of the name; one without a name where the
// name is that of an extended resource.
func (o *Objects) podClaim(ref dra.PodRef, name string) dra.PodClaim {
	pod, ok := o.pods[ref]
	if !ok {
		return dra.PodClaim{Name: name}
	}
	for _, reference := range pod.Claims {
		if reference.Name != "" && reference.Name == name {
			return reference
		}
	}
	return dra.PodClaim{}
}

// members returns the pods of workloads with the subject's name, by role, replica,
// rank and name, and the kinds of the workloads.
func (o *Objects) members(subject Subject) (members []*dra.PodLifecycle, kinds []string) {
	found := make(map[string]bool)
	for ref, pod := range o.pods {
		workload := pod.Member.Workload
		if workload == nil || ref.Namespace != subject.Namespace || workload.Name != subject.Name ||
			subject.WorkloadKind != "" && !strings.EqualFold(workload.Kind, subject.WorkloadKind) {
			continue
		}
		members, found[workload.Kind] = append(members, pod), true
	}
	slices.SortFunc(members, func(a, b *dra.PodLifecycle) int {
		x, y := &a.Member, &b.Member
		return cmp.Or(cmp.Compare(x.Role, y.Role), compareIndices(x.Replica, y.Replica), compareIndices(x.Rank, y.Rank),
			cmp.Compare(a.Ref.Name, b.Ref.Name))
	})
	return members, slices.Sorted(maps.Keys(found))
}

// compareIndices compares numbers as numbers, and what is none as text.
func compareIndices(a, b string) int {
	x, notX := strconv.Atoi(a)
	y, notY := strconv.Atoi(b)
	if notX != nil || notY != nil {
		return cmp.Compare(a, b)
	}
	return cmp.Compare(x, y)
}
