package apiserver

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

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
	seen   map[types.UID]bool // since Begin; nil: nothing was begun
	first  uint64             // how many pods have come so far
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
	return &PodFeed{node: n, labels: labels, pods: make(map[types.UID]*fedPod), hidden: newHiddenClaims()}
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
	if _, keep := recordPod(pod); !keep {
		return
	}
	known, found := f.pods[pod.UID]
	if !found {
		f.first++
		known = &fedPod{first: f.first}
		f.pods[pod.UID] = known
		delete(f.listed, refOf(pod)) // that may be of an earlier pod of the name
	}
	known.light = f.strip(pod)
	known.learned.fromStatus(pod)
	f.show(nameOf(pod))
}

// strip keeps what the API server's watch would, and what tells whose a claim
// is, which containers are listed and which of two pods is the newer one.
func (f *PodFeed) strip(pod *corev1.Pod) *corev1.Pod {
	light := stripPod(pod, f.labels...).(*corev1.Pod)
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
	for _, pod := range f.pods {
		if nameOf(pod.light) == name && (newest == nil || pod.newerThan(newest)) {
			newest = pod
		}
	}
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

func refOf(pod *corev1.Pod) dra.PodRef {
	return dra.PodRef{Namespace: clean(pod.Namespace), Name: clean(pod.Name)}
}

func (p *fedPod) newerThan(other *fedPod) bool {
	mine, its := p.light.CreationTimestamp, other.light.CreationTimestamp
	if mine.Equal(&its) {
		return p.first > other.first
	}
	return its.Before(&mine)
}

// owns reports whether the claim was made for the pod, or for the group of
// pods that it is one of.
func (p *fedPod) owns(claim metav1.Object) bool {
	return slices.ContainsFunc(claim.GetOwnerReferences(), func(owner metav1.OwnerReference) bool {
		switch {
		case owner.Controller == nil || !*owner.Controller || claim.GetNamespace() != p.light.Namespace:
			return false
		case owner.Kind == "Pod":
			return owner.UID == p.light.UID
		case owner.Kind == "PodGroup":
			group := p.light.Spec.SchedulingGroup
			return group != nil && group.PodGroupName != nil && *group.PodGroupName == owner.Name
		default:
			return false
		}
	})
}
