package apiserver

import (
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/dra-exporter/dra-exporter/collector/apiserver/watch"
	"github.com/dra-exporter/dra-exporter/collector/dra"
)

// PodFeed receives the pods of the node from the kubelet, instead of the API
// server's watch of them. Its methods may be called from any goroutine.
//
// The kubelet knows the pods that run on the node, which are not quite those of
// the API server: a pod that was force-deleted stays until its containers have
// ended, perhaps beside a new one of the same name. The newer one counts, since
// it is the only one that the API server still has.
type PodFeed struct {
	node *NodeWatch

	// Under the node's lock.
	pods     *fedPods
	unlisted *unlistedClaims
}

// Begin starts a list: the pods received until Synced are all that exist.
func (f *PodFeed) Begin() {
	f.node.mu.Lock()
	defer f.node.mu.Unlock()
	f.pods.begin()
}

// Pod receives a pod that is new, or has changed. It keeps nothing that belongs
// to the caller.
func (f *PodFeed) Pod(pod *corev1.Pod) {
	f.node.mu.Lock()
	defer f.node.mu.Unlock()
	f.apply(f.pods.put(pod))
}

// Ended removes a pod whose containers have ended for good.
func (f *PodFeed) Ended(uid string) {
	f.node.mu.Lock()
	defer f.node.mu.Unlock()
	f.apply(f.pods.remove(types.UID(uid)))
}

// Synced removes the pods that were not received since Begin.
func (f *PodFeed) Synced() {
	f.node.mu.Lock()
	f.apply(f.pods.removeUnseen())
	f.node.mu.Unlock()
	f.node.setPodsFresh(true)
}

// Lost records that changes are no longer received.
func (f *PodFeed) Lost() {
	f.node.mu.Lock()
	f.pods.seen = nil
	f.node.mu.Unlock()
	f.node.setPodsFresh(false)
}

// Listed receives which claims the kubelet's PodResources list for which pods.
func (f *PodFeed) Listed(assignments []dra.Assignment) {
	f.node.mu.Lock()
	defer f.node.mu.Unlock()
	if names, changed := f.pods.setListed(assignments); changed {
		f.apply(names)
		f.node.resolveReferences()
	}
}

// learn learns, under the node's lock, the names of a claim's pods' claims.
func (f *PodFeed) learn(claim *resourcev1.ResourceClaim) { f.apply(f.pods.learn(claim)) }

// apply applies, under the node's lock, what is known now of the pods of these
// names.
func (f *PodFeed) apply(names []watch.ObjectName) {
	for _, name := range names {
		f.node.index.changed[name] = true // even if the pod is the same, its references may have changed
		changed := false
		if pod := f.pods.newest(name); pod != nil {
			changed = f.node.pods.Put(pod)
		} else {
			changed = f.node.pods.Remove(name)
		}
		if changed {
			f.node.resolveReferences()
		}
	}
}
