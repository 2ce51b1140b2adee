package apiserver

import (
	"maps"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"

	"github.com/dra-exporter/dra-exporter/collector/apiserver/decode"
	"github.com/dra-exporter/dra-exporter/collector/dra"
)

// listedClaims are the claims that the kubelet's PodResources list for a pod,
// each with the containers that it is listed for, sorted. PodResources do not
// say which of the pod's claims each is.
type listedClaims map[string][]string

// Listed takes in which claims the kubelet's PodResources list for which pods.
func (f *PodFeed) Listed(assignments []dra.Assignment) {
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
	f.node.mu.Lock()
	defer f.node.mu.Unlock()
	if reflect.DeepEqual(f.listed, listed) {
		return
	}
	before := f.listed
	f.listed = listed
	for name := range f.names {
		ref := dra.PodRef{Namespace: decode.Text(name.namespace), Name: decode.Text(name.name)}
		if !reflect.DeepEqual(before[ref], listed[ref]) {
			f.show(name)
		}
	}
	f.node.wantClaims()
}

// candidates are, under the node's lock, the claims that are listed for a pod
// which does not name them: they may be among those whose names have to be
// learned.
func (f *PodFeed) candidates(pod *dra.Pod) []dra.ClaimRef {
	var candidates []dra.ClaimRef
	for _, name := range slices.Sorted(maps.Keys(f.listed[pod.Ref])) {
		if !slices.ContainsFunc(pod.Claims, func(c dra.PodClaim) bool { return c.Claim == name }) {
			candidates = append(candidates, dra.ClaimRef{Namespace: pod.Ref.Namespace, Name: name})
		}
	}
	return candidates
}

// learn takes in, under the node's lock, a claim that was read.
func (f *PodFeed) learn(claim *resourcev1.ResourceClaim) {
	for _, pod := range f.owners(claim) {
		if pod.learned.fromClaim(claim) {
			f.show(nameOf(pod.light))
		}
	}
}

// without is the list without the claims that are known to be others.
func (l listedClaims) without(pod *fedPod) listedClaims {
	rest := maps.Clone(l)
	for _, reference := range pod.light.Spec.ResourceClaims {
		delete(rest, decode.OptionalText(reference.ResourceClaimName))
		delete(rest, pod.learned.names[reference.Name])
	}
	return rest
}

// of finds the claim that was made for a template before it can be read: the
// one that is listed for just those containers that use it, and where that is
// said of several, is named as the controller manager names claims. A wrong one,
// of a pod that had the name before, does no harm: it is not reserved for this
// pod. What it finds is not in the list any more.
func (l listedClaims) of(pod *corev1.Pod, within string) (name string, known bool) {
	users := usersOf(pod, within)
	if len(users) == 0 {
		return "", false
	}
	fits := func(named bool) (names []string) {
		for name, containers := range l {
			if slices.Equal(containers, users) && (!named || strings.HasPrefix(name, pod.Name+"-"+within+"-")) {
				names = append(names, name)
			}
		}
		return names
	}
	names := fits(false)
	if len(names) != 1 || rivals(pod, within, users) {
		names = fits(true)
	}
	if len(names) != 1 {
		return "", false
	}
	delete(l, names[0])
	return names[0], true
}

// rivals reports whether the same containers use another template's claim too.
func rivals(pod *corev1.Pod, within string, users []string) bool {
	return slices.ContainsFunc(pod.Spec.ResourceClaims, func(other corev1.PodResourceClaim) bool {
		return other.Name != within && other.ResourceClaimName == nil && slices.Equal(usersOf(pod, other.Name), users)
	})
}

// special finds the claim for extended resources before it can be read: what is
// listed for a pod that uses some, once all its other claims are known.
func (l listedClaims) special(pod *corev1.Pod) *resourcev1.ResourceClaim {
	if len(l) != 1 || !decode.UsesExtendedResources(pod) {
		return nil
	}
	claim := &resourcev1.ResourceClaim{}
	for name := range l {
		claim.Name = name
	}
	return claim
}

// usersOf are the containers that use a claim of the pod, of those that
// PodResources list: sidecars and main ones. They are sorted.
func usersOf(pod *corev1.Pod, within string) []string {
	var users []string
	for i, container := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
		sidecar := container.RestartPolicy != nil && *container.RestartPolicy == corev1.ContainerRestartPolicyAlways
		uses := slices.ContainsFunc(container.Resources.Claims, func(c corev1.ResourceClaim) bool { return c.Name == within })
		if uses && (sidecar || i >= len(pod.Spec.InitContainers)) {
			users = append(users, decode.Text(container.Name))
		}
	}
	slices.Sort(users)
	return users
}
