package apiserver

import (
	"cmp"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/dra-exporter/dra-exporter/collector/apiserver/decode"
	"github.com/dra-exporter/dra-exporter/collector/apiserver/watch"
	"github.com/dra-exporter/dra-exporter/collector/dra"
)

// podIndex has the pods of the node that have not ended, and which claims they
// reference. Its work for a change does not depend on how many pods there are: a
// node may have tens of thousands that have ended. It is not safe for concurrent
// use.
type podIndex struct {
	withClaims  map[watch.ObjectName]dra.Pod
	withPlugins map[watch.ObjectName]dra.Pod

	changed    map[watch.ObjectName]bool       // pods whose references have to be resolved again
	references map[watch.ObjectName]references // of pods that have some
	consumers  map[dra.ClaimRef]map[string]int // UIDs of the pods that reference a claim, with how many references

	resolved int // how many times the references of a pod were resolved
}

// references of one pod.
type references struct {
	uid      string
	claims   []dra.ClaimRef
	unlisted []types.UID // pods of the name that have unlisted claims
}

func newPodIndex() *podIndex {
	return &podIndex{
		withClaims: make(map[watch.ObjectName]dra.Pod), withPlugins: make(map[watch.ObjectName]dra.Pod),
		changed: make(map[watch.ObjectName]bool), references: make(map[watch.ObjectName]references),
		consumers: make(map[dra.ClaimRef]map[string]int),
	}
}

// apply applies a pod that has changed; nil: it is gone.
func (i *podIndex) apply(name watch.ObjectName, record *decode.PodRecord) {
	i.changed[name] = true
	delete(i.withClaims, name)
	delete(i.withPlugins, name)
	if pod := record.UsingClaims(); pod != nil {
		i.withClaims[name] = *pod
	}
	if pod := record.UsingPlugins(); pod != nil {
		i.withPlugins[name] = *pod
	}
}

// takeChanged returns the pods whose references have to be resolved again.
func (i *podIndex) takeChanged() map[watch.ObjectName]bool {
	changed := i.changed
	i.changed = make(map[watch.ObjectName]bool) // iterating over a map that was large is slow: it is not reused
	return changed
}

// setReferences replaces the references of a pod, and returns those before. It
// adds the claims whose consumers may have changed to a set.
func (i *podIndex) setReferences(name watch.ObjectName, updated references, changed map[dra.ClaimRef]bool) (previous references) {
	i.resolved++
	previous = i.references[name]
	i.count(updated, 1, changed)
	i.count(previous, -1, changed)
	if delete(i.references, name); len(updated.claims) > 0 || len(updated.unlisted) > 0 {
		i.references[name] = updated
	}
	return previous
}

// count adds the references of a pod to the consumers of claims, or removes them.
func (i *podIndex) count(refs references, delta int, changed map[dra.ClaimRef]bool) {
	for _, ref := range refs.claims {
		consumers := i.consumers[ref]
		if consumers == nil {
			consumers = make(map[string]int)
			i.consumers[ref] = consumers
		}
		consumers[refs.uid] += delta
		if consumers[refs.uid] == 0 {
			delete(consumers, refs.uid)
		}
		if len(consumers) == 0 {
			delete(i.consumers, ref)
		}
		changed[ref] = true
	}
}

// listConsumers are the UIDs of the pods that reference a claim, sorted.
func (i *podIndex) listConsumers(ref dra.ClaimRef) []string {
	return slices.Sorted(maps.Keys(i.consumers[ref]))
}

// sortedPods returns the pods by namespace and name; nil for none.
func sortedPods(pods map[watch.ObjectName]dra.Pod) []dra.Pod {
	return slices.SortedFunc(maps.Values(pods), func(a, b dra.Pod) int {
		return cmp.Or(cmp.Compare(a.Ref.Namespace, b.Ref.Namespace), cmp.Compare(a.Ref.Name, b.Ref.Name))
	})
}
