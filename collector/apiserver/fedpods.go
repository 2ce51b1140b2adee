package apiserver

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/dra-exporter/dra-exporter/collector/apiserver/decode"
	"github.com/dra-exporter/dra-exporter/collector/apiserver/watch"
	"github.com/dra-exporter/dra-exporter/collector/dra"
)

// fedPods are the pods of a PodFeed, and what is learned of the names of their
// claims. Methods that change them return the names of the pods that may be
// different now. It is not safe for concurrent use.
type fedPods struct {
	fields decode.PodFields
	pods   map[types.UID]*fedPod
	names  map[watch.ObjectName]map[types.UID]*fedPod // the same by name
	groups map[watch.ObjectName]map[types.UID]*fedPod // those of a group, by its name
	seen   map[types.UID]bool                         // since begin; nil: it was not called
	count  uint64                                     // of the pods so far
	listed map[dra.PodRef]listedClaims
}

// fedPod is a pod that uses claims or may hold devices of plugins.
type fedPod struct {
	light   *corev1.Pod // stripped
	ordinal uint64      // of all pods
	learned learnedNames
}

func newFedPods(fields decode.PodFields) *fedPods {
	return &fedPods{
		fields: fields, pods: make(map[types.UID]*fedPod),
		names: make(map[watch.ObjectName]map[types.UID]*fedPod), groups: make(map[watch.ObjectName]map[types.UID]*fedPod),
	}
}

func (f *fedPods) begin() { f.seen = make(map[types.UID]bool) }

func (f *fedPods) put(pod *corev1.Pod) (names []watch.ObjectName) {
	if f.seen != nil {
		f.seen[pod.UID] = true
	}
	if _, keep := decode.NewPodRecord(pod, decode.PodFields{}); !keep {
		return nil
	}
	known, ok := f.pods[pod.UID]
	if ok {
		f.unindex(pod.UID, known)
		if earlier := watch.NameOf(known.light); earlier != watch.NameOf(pod) {
			names = append(names, earlier)
		}
	} else {
		f.count++
		known = &fedPod{ordinal: f.count}
		f.pods[pod.UID] = known
		delete(f.listed, podRef(pod)) // that may be of an earlier pod of the name
	}
	known.light = f.strip(pod)
	f.index(pod.UID, known)
	known.learned.fromStatus(pod)
	return append(names, watch.NameOf(pod))
}

// strip keeps what the API server's watch would, and what determines the owner of
// a claim, which containers are listed and which of two pods is the newer one.
func (f *fedPods) strip(pod *corev1.Pod) *corev1.Pod {
	light := decode.StripPod(pod, f.fields)
	light.CreationTimestamp = pod.CreationTimestamp
	for i := range light.Spec.InitContainers {
		light.Spec.InitContainers[i].RestartPolicy = pod.Spec.InitContainers[i].RestartPolicy
	}
	return light
}

func (f *fedPods) remove(uid types.UID) []watch.ObjectName {
	known, ok := f.pods[uid]
	if !ok {
		return nil
	}
	delete(f.pods, uid)
	f.unindex(uid, known)
	return []watch.ObjectName{watch.NameOf(known.light)}
}

// removeUnseen removes the pods that were not put since begin.
func (f *fedPods) removeUnseen() (names []watch.ObjectName) {
	for uid := range f.pods {
		if f.seen != nil && !f.seen[uid] {
			names = append(names, f.remove(uid)...)
		}
	}
	f.seen = nil
	return names
}

func (f *fedPods) index(uid types.UID, pod *fedPod) {
	add := func(pods map[watch.ObjectName]map[types.UID]*fedPod, name watch.ObjectName) {
		if pods[name] == nil {
			pods[name] = make(map[types.UID]*fedPod)
		}
		pods[name][uid] = pod
	}
	add(f.names, watch.NameOf(pod.light))
	if group, ok := pod.group(); ok {
		add(f.groups, group)
	}
}

func (f *fedPods) unindex(uid types.UID, pod *fedPod) {
	remove := func(pods map[watch.ObjectName]map[types.UID]*fedPod, name watch.ObjectName) {
		if delete(pods[name], uid); len(pods[name]) == 0 {
			delete(pods, name)
		}
	}
	remove(f.names, watch.NameOf(pod.light))
	if group, ok := pod.group(); ok {
		remove(f.groups, group)
	}
}

// newest is the newest pod of a name with what is known of its claims; nil: there
// is none.
func (f *fedPods) newest(name watch.ObjectName) *corev1.Pod {
	var newest *fedPod
	for _, pod := range f.names[name] {
		if newest == nil || pod.newerThan(newest) {
			newest = pod
		}
	}
	if newest == nil {
		return nil
	}
	return newest.complete(f.listed[podRef(newest.light)])
}

func podRef(pod *corev1.Pod) dra.PodRef {
	return dra.PodRef{Namespace: decode.Text(pod.Namespace), Name: decode.Text(pod.Name)}
}

// setListed replaces the claims that PodResources list. It reports whether they
// have changed.
func (f *fedPods) setListed(assignments []dra.Assignment) (names []watch.ObjectName, changed bool) {
	listed := make(map[dra.PodRef]listedClaims)
	for _, a := range assignments {
		if a.Claim.Namespace != a.Pod.Namespace {
			continue
		}
		if listed[a.Pod] == nil {
			listed[a.Pod] = make(listedClaims)
		}
		if containers := listed[a.Pod][a.Claim.Name]; !slices.Contains(containers, a.Container) {
			listed[a.Pod][a.Claim.Name] = append(containers, a.Container)
		}
	}
	for _, claims := range listed {
		for _, containers := range claims {
			slices.Sort(containers)
		}
	}
	if reflect.DeepEqual(f.listed, listed) {
		return nil, false
	}
	for name := range f.names {
		ref := dra.PodRef{Namespace: decode.Text(name.Namespace), Name: decode.Text(name.Name)}
		if !reflect.DeepEqual(f.listed[ref], listed[ref]) {
			names = append(names, name)
		}
	}
	f.listed = listed
	return names, true
}

// candidates are the claims that are listed for a pod which does not name them:
// they may be among those whose names have to be learned.
func (f *fedPods) candidates(pod *dra.Pod) []dra.ClaimRef {
	var candidates []dra.ClaimRef
	for _, name := range slices.Sorted(maps.Keys(f.listed[pod.Ref])) {
		if !slices.ContainsFunc(pod.Claims, func(c dra.PodClaim) bool { return c.Claim == name }) {
			candidates = append(candidates, dra.ClaimRef{Namespace: pod.Ref.Namespace, Name: name})
		}
	}
	return candidates
}

// withUnlisted are the pods of a name that have unlisted claims.
func (f *fedPods) withUnlisted(name watch.ObjectName) []types.UID {
	var pods []types.UID
	for uid, pod := range f.names[name] {
		if pod.hasUnlisted() {
			pods = append(pods, uid)
		}
	}
	return pods
}

// learn learns from a claim that was read.
func (f *fedPods) learn(claim *resourcev1.ResourceClaim) (names []watch.ObjectName) {
	for _, pod := range f.owners(claim) {
		if pod.learned.fromClaim(claim) {
			names = append(names, watch.NameOf(pod.light))
		}
	}
	return names
}

// owners are the pods that the claim was made for: one, or a group of them.
func (f *fedPods) owners(claim metav1.Object) []*fedPod {
	var owners []*fedPod
	for _, owner := range claim.GetOwnerReferences() {
		switch {
		case owner.Controller == nil || !*owner.Controller:
		case owner.Kind == "Pod":
			if pod, ok := f.pods[owner.UID]; ok && pod.light.Namespace == claim.GetNamespace() {
				owners = append(owners, pod)
			}
		case owner.Kind == "PodGroup":
			group := f.groups[watch.ObjectName{Namespace: claim.GetNamespace(), Name: owner.Name}]
			owners = slices.AppendSeq(owners, maps.Values(group))
		}
	}
	return owners
}

// group is the group of pods that the pod is one of.
func (p *fedPod) group() (name watch.ObjectName, ok bool) {
	group := p.light.Spec.SchedulingGroup
	if group == nil || group.PodGroupName == nil {
		return watch.ObjectName{}, false
	}
	return watch.ObjectName{Namespace: p.light.Namespace, Name: *group.PodGroupName}, true
}

func (p *fedPod) newerThan(other *fedPod) bool {
	created, others := p.light.CreationTimestamp, other.light.CreationTimestamp
	if created.Equal(&others) {
		return p.ordinal > other.ordinal
	}
	return others.Before(&created)
}

// hasUnlisted reports whether the pod has a claim whose name is not known, and
// that no container uses which PodResources list.
func (p *fedPod) hasUnlisted() bool {
	for _, reference := range p.light.Spec.ResourceClaims {
		_, ok := p.learned.names[reference.Name]
		if !ok && reference.ResourceClaimName == nil && len(containerUsers(p.light, reference.Name)) == 0 {
			return true
		}
	}
	return false
}

// complete returns the pod as the API server has it, as far as that is known. A
// name from PodResources is replaced by that of the claim itself: a kubelet that
// has just started lists nothing.
func (p *fedPod) complete(listed listedClaims) *corev1.Pod {
	whole := *p.light
	whole.Status.ResourceClaimStatuses = nil
	rest, unnamed := listed.without(p), false
	for _, reference := range whole.Spec.ResourceClaims {
		name, ok := p.learned.names[reference.Name]
		if !ok && reference.ResourceClaimName == nil {
			name, ok = rest.takeClaim(&whole, reference.Name)
		}
		if ok {
			p.learned.setName(reference.Name, name)
			whole.Status.ResourceClaimStatuses = append(whole.Status.ResourceClaimStatuses,
				corev1.PodResourceClaimStatus{Name: reference.Name, ResourceClaimName: &name})
		}
		unnamed = unnamed || !ok && reference.ResourceClaimName == nil
	}
	whole.Status.ExtendedResourceClaimStatus = p.learned.extendedStatus
	if p.learned.extendedClaim == nil && p.learned.extendedStatus == nil && !unnamed {
		p.learned.extendedClaim = rest.extendedClaim(&whole)
	}
	if claim := p.learned.extendedClaim; claim != nil {
		whole.Status.ExtendedResourceClaimStatus = extendedStatus(&whole, claim, listed[claim.Name])
	}
	return &whole
}

// extendedStatus returns which container uses which request of the claim for
// extended resources. The scheduler numbers containers, init containers first,
// and names requests after them (createResourceRequestAndMappings in its plugin
// dynamicresources). A container that the kubelet lists the claim for, and after
// which no request is named, uses the claim as a whole.
func extendedStatus(pod *corev1.Pod, claim *resourcev1.ResourceClaim, containers []string) *corev1.PodExtendedResourceClaimStatus {
	status := &corev1.PodExtendedResourceClaimStatus{ResourceClaimName: claim.Name}
	all := slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers)
	for i := range all {
		named := false
		for _, request := range claim.Spec.Devices.Requests {
			if strings.HasPrefix(request.Name, fmt.Sprintf("container-%d-", i)) {
				named = true
				status.RequestMappings = append(status.RequestMappings,
					corev1.ContainerExtendedResourceRequest{ContainerName: all[i].Name, RequestName: request.Name})
			}
		}
		if !named && slices.Contains(containers, all[i].Name) {
			status.RequestMappings = append(status.RequestMappings, corev1.ContainerExtendedResourceRequest{ContainerName: all[i].Name})
		}
	}
	return status
}

// containerUsers are the containers that use a claim of the pod, of those that
// PodResources list: sidecars and main containers. They are sorted.
func containerUsers(pod *corev1.Pod, podClaim string) []string {
	var users []string
	for i, container := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
		sidecar := container.RestartPolicy != nil && *container.RestartPolicy == corev1.ContainerRestartPolicyAlways
		uses := slices.ContainsFunc(container.Resources.Claims, func(c corev1.ResourceClaim) bool { return c.Name == podClaim })
		if uses && (sidecar || i >= len(pod.Spec.InitContainers)) {
			users = append(users, decode.Text(container.Name))
		}
	}
	slices.Sort(users)
	return users
}

// learnedNames are the names of claims that a pod's spec does not have.
//
// The kubelet's pods have the status that the kubelet writes, without the names
// of claims made from templates or for extended resources: others write those
// (pkg/kubelet/status, mergePodStatus). The pods of a kubelet that has just
// started have the status of the API server until the kubelet has one of its
// own. Otherwise the name is learned from the owner reference of the claim.
type learnedNames struct {
	names          map[string]string                      // by the names within the pod
	extendedStatus *corev1.PodExtendedResourceClaimStatus // as the API server had it
	extendedClaim  *resourcev1.ResourceClaim              // otherwise the claim itself, stripped to its requests
}

// fromStatus learns from the status of a pod.
func (l *learnedNames) fromStatus(pod *corev1.Pod) {
	for _, status := range pod.Status.ResourceClaimStatuses {
		if decode.OptionalText(status.ResourceClaimName) != "" {
			l.setName(status.Name, *status.ResourceClaimName)
		}
	}
	if pod.Status.ExtendedResourceClaimStatus != nil {
		l.extendedStatus, l.extendedClaim = pod.Status.ExtendedResourceClaimStatus.DeepCopy(), nil
	}
}

func (l *learnedNames) setName(podClaim, claim string) (changed bool) {
	if l.names[podClaim] == claim {
		return false
	}
	if l.names == nil {
		l.names = make(map[string]string)
	}
	l.names[podClaim] = claim
	return true
}

// fromClaim learns from a claim that was made for the pod.
func (l *learnedNames) fromClaim(claim *resourcev1.ResourceClaim) (changed bool) {
	if podClaim := claim.Annotations[resourcev1.PodResourceClaimAnnotation]; podClaim != "" {
		return l.setName(podClaim, claim.Name)
	}
	if claim.Annotations[resourcev1.ExtendedResourceClaimAnnotation] != "true" {
		return false
	}
	if l.extendedStatus != nil && l.extendedStatus.ResourceClaimName == claim.Name || l.extendedClaim != nil && l.extendedClaim.UID == claim.UID {
		return false
	}
	l.extendedStatus, l.extendedClaim = nil, &resourcev1.ResourceClaim{}
	l.extendedClaim.Name, l.extendedClaim.UID = claim.Name, claim.UID
	l.extendedClaim.Spec.Devices.Requests = claim.DeepCopy().Spec.Devices.Requests
	return true
}

// listedClaims are the claims that the kubelet's PodResources list for a pod,
// each with its containers, sorted. PodResources do not have the names of claims
// within the pod.
type listedClaims map[string][]string

// without returns the list without the claims whose names within the pod are
// known.
func (l listedClaims) without(pod *fedPod) listedClaims {
	rest := maps.Clone(l)
	for _, reference := range pod.light.Spec.ResourceClaims {
		delete(rest, decode.OptionalText(reference.ResourceClaimName))
		delete(rest, pod.learned.names[reference.Name])
	}
	return rest
}

// takeClaim finds, and removes from the list, the claim that was made from a
// template before it can be read: the one that is listed for exactly the
// containers that use it and, if there are several, is named as the controller
// manager names claims. A wrong one, of an earlier pod of the name, is not
// reserved for this pod.
func (l listedClaims) takeClaim(pod *corev1.Pod, podClaim string) (name string, known bool) {
	users := containerUsers(pod, podClaim)
	if len(users) == 0 {
		return "", false
	}
	matching := func(named bool) (names []string) {
		for name, containers := range l {
			if slices.Equal(containers, users) && (!named || strings.HasPrefix(name, pod.Name+"-"+podClaim+"-")) {
				names = append(names, name)
			}
		}
		return names
	}
	// Do the same containers use another claim from a template, too?
	ambiguous := slices.ContainsFunc(pod.Spec.ResourceClaims, func(other corev1.PodResourceClaim) bool {
		return other.Name != podClaim && other.ResourceClaimName == nil && slices.Equal(containerUsers(pod, other.Name), users)
	})
	names := matching(false)
	if len(names) != 1 || ambiguous {
		names = matching(true)
	}
	if len(names) != 1 {
		return "", false
	}
	delete(l, names[0])
	return names[0], true
}

// extendedClaim finds the claim for extended resources before it can be read: the
// only one that is listed for a pod that requests some, after all other claims.
func (l listedClaims) extendedClaim(pod *corev1.Pod) *resourcev1.ResourceClaim {
	if len(l) != 1 || !decode.UsesExtendedResources(pod) {
		return nil
	}
	claim := &resourcev1.ResourceClaim{}
	for name := range l {
		claim.Name = name
	}
	return claim
}
