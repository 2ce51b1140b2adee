package apiserver

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/dra-exporter/dra-exporter/collector/apiserver/decode"
	"github.com/dra-exporter/dra-exporter/collector/dra"
)

// PodFeed takes in the pods of the node from the kubelet, in place of the API
// server's watch of them. Its methods may be called from any goroutine.
//
// The kubelet knows the pods that run here, not quite those that the API
// server has: a pod that was deleted by force is told of until its containers
// have ended, beside a new one of the same name, perhaps. Then the newer one
// counts, as it is the only one that the API server still has.
type PodFeed struct {
	node   *Node
	labels []string

	// Under the node's lock.
	pods   map[types.UID]*fedPod
	names  map[objectName]map[types.UID]*fedPod // the same by name
	groups map[objectName]map[types.UID]*fedPod // those of a group, by its name
	seen   map[types.UID]bool                   // since Begin; nil: nothing was begun
	first  uint64                               // how many pods have come so far
	listed map[dra.PodRef]listedClaims
	hidden *hiddenClaims
}

// fedPod is a pod that uses claims or may hold devices of plugins.
type fedPod struct {
	light   *corev1.Pod // stripped
	first   uint64      // the how manieth it was
	learned learned
}

// newPodFeed returns the feed of a node, whose pods are nothing but what comes
// from it.
func newPodFeed(n *Node, labels []string) *PodFeed {
	return &PodFeed{
		node: n, labels: labels, hidden: newHiddenClaims(), pods: make(map[types.UID]*fedPod),
		names: make(map[objectName]map[types.UID]*fedPod), groups: make(map[objectName]map[types.UID]*fedPod),
	}
}

// Begin says that the pods named until Synced are all that there are.
func (f *PodFeed) Begin() {
	f.node.mu.Lock()
	defer f.node.mu.Unlock()
	f.seen = make(map[types.UID]bool)
}

// Pod takes in a pod that is there, or has changed. It keeps nothing that
// belongs to the caller.
func (f *PodFeed) Pod(pod *corev1.Pod) {
	f.node.mu.Lock()
	defer f.node.mu.Unlock()
	if f.seen != nil {
		f.seen[pod.UID] = true
	}
	if _, keep := decode.NewPodRecord(pod); !keep {
		return
	}
	known, found := f.pods[pod.UID]
	if !found {
		f.first++
		known = &fedPod{first: f.first}
		f.pods[pod.UID] = known
		delete(f.listed, refOf(pod)) // that may be of an earlier pod of the name
	}
	if found {
		f.unlist(pod.UID, known)
	}
	earlier := known.light
	known.light = f.strip(pod)
	f.enlist(pod.UID, known)
	if earlier != nil && nameOf(earlier) != nameOf(pod) {
		f.show(nameOf(earlier))
	}
	known.learned.fromStatus(pod)
	f.show(nameOf(pod))
}

// strip keeps what the API server's watch would, and what tells whose a claim
// is, which containers are listed and which of two pods is the newer one.
func (f *PodFeed) strip(pod *corev1.Pod) *corev1.Pod {
	light := decode.StripPod(pod, f.labels...)
	light.CreationTimestamp = pod.CreationTimestamp
	light.Spec.SchedulingGroup = pod.Spec.SchedulingGroup
	for i := range light.Spec.InitContainers {
		light.Spec.InitContainers[i].RestartPolicy = pod.Spec.InitContainers[i].RestartPolicy
	}
	return light
}

// Ended takes out a pod whose containers have ended for good.
func (f *PodFeed) Ended(uid string) {
	f.node.mu.Lock()
	defer f.node.mu.Unlock()
	f.drop(types.UID(uid))
}

func (f *PodFeed) drop(uid types.UID) {
	if known, found := f.pods[uid]; found {
		delete(f.pods, uid)
		f.unlist(uid, known)
		f.show(nameOf(known.light))
	}
}

// Synced takes out the pods that have not been named since Begin.
func (f *PodFeed) Synced() {
	f.node.mu.Lock()
	for uid := range f.pods {
		if f.seen != nil && !f.seen[uid] {
			f.drop(uid)
		}
	}
	f.seen = nil
	f.node.mu.Unlock()
	f.node.podsTurned(true)
}

// Lost says that changes are not told any more.
func (f *PodFeed) Lost() {
	f.node.mu.Lock()
	f.seen = nil
	f.node.mu.Unlock()
	f.node.podsTurned(false)
}

// show has the pod of a name be what is known of it now.
func (f *PodFeed) show(name objectName) {
	var newest *fedPod
	for _, pod := range f.names[name] {
		if newest == nil || pod.newerThan(newest) {
			newest = pod
		}
	}
	f.node.demand.due[name] = true // what it makes necessary may be something else even so
	stir := false
	if newest == nil {
		stir = f.node.pods.remove(name)
	} else {
		stir = f.node.pods.take(newest.complete(f.listed[refOf(newest.light)]))
	}
	if stir {
		f.node.pods.settled()
	}
}

// enlist makes a pod known by its name and its group.
func (f *PodFeed) enlist(uid types.UID, pod *fedPod) {
	put := func(in map[objectName]map[types.UID]*fedPod, name objectName) {
		if in[name] == nil {
			in[name] = make(map[types.UID]*fedPod)
		}
		in[name][uid] = pod
	}
	put(f.names, nameOf(pod.light))
	if group, has := pod.group(); has {
		put(f.groups, group)
	}
}

func (f *PodFeed) unlist(uid types.UID, pod *fedPod) {
	take := func(from map[objectName]map[types.UID]*fedPod, name objectName) {
		if delete(from[name], uid); len(from[name]) == 0 {
			delete(from, name)
		}
	}
	take(f.names, nameOf(pod.light))
	if group, has := pod.group(); has {
		take(f.groups, group)
	}
}

// group is the group of pods that the pod is one of.
func (p *fedPod) group() (name objectName, has bool) {
	group := p.light.Spec.SchedulingGroup
	if group == nil || group.PodGroupName == nil {
		return objectName{}, false
	}
	return objectName{namespace: p.light.Namespace, name: *group.PodGroupName}, true
}

func refOf(pod *corev1.Pod) dra.PodRef {
	return dra.PodRef{Namespace: decode.Text(pod.Namespace), Name: decode.Text(pod.Name)}
}

func (p *fedPod) newerThan(other *fedPod) bool {
	mine, its := p.light.CreationTimestamp, other.light.CreationTimestamp
	if mine.Equal(&its) {
		return p.first > other.first
	}
	return its.Before(&mine)
}

// owners are the pods that the claim was made for: one, or a group of them.
func (f *PodFeed) owners(claim metav1.Object) []*fedPod {
	var owners []*fedPod
	for _, owner := range claim.GetOwnerReferences() {
		switch {
		case owner.Controller == nil || !*owner.Controller:
		case owner.Kind == "Pod":
			if pod, known := f.pods[owner.UID]; known && pod.light.Namespace == claim.GetNamespace() {
				owners = append(owners, pod)
			}
		case owner.Kind == "PodGroup":
			group := f.groups[objectName{namespace: claim.GetNamespace(), name: owner.Name}]
			owners = slices.AppendSeq(owners, maps.Values(group))
		}
	}
	return owners
}
