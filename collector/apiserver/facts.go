package apiserver

import (
	"maps"
	"reflect"
	"slices"

	"github.com/dra-exporter/dra-exporter/collector/apiserver/decode"
	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/dra"
)

// Latest returns what is known now.
func (n *Node) Latest() Facts {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.staleSince = clock.Instant{}
	if n.stale {
		n.stale = false
		n.facts.Pods = sortedPods(n.withClaims)
		n.facts.Claims = n.book.claims()
		n.facts.Unread = n.book.unread()
		n.facts.Published = n.published()
	}
	if n.stalePlugins {
		n.stalePlugins = false
		n.facts.PluginPods = sortedPods(n.withPlugins)
	}
	return n.facts
}

// sortedPods are the values in the order of the pods' names; nil for none.
func sortedPods(pods map[objectName]dra.Pod) []dra.Pod {
	return slices.SortedFunc(maps.Values(pods), comparePods)
}

func (n *Node) published() []dra.PublishedDevice {
	devices := n.far.devices()
	for _, pool := range n.pools {
		devices = append(devices, pool...)
	}
	slices.SortFunc(devices, compareDevices)
	return devices
}

// touch notes, under the lock, that the facts are behind.
func (n *Node) touch() {
	n.stale = true
	n.behind()
	signal(n.changed)
}

// behind notes since when the facts are behind.
func (n *Node) behind() {
	if n.staleSince.IsZero() {
		n.staleSince = n.now()
	}
}

// podDiffers is called, under the lock, when a pod has come, changed or gone.
// The kubelet need not be asked about what it has itself just said. Pods with
// device plugins alone are facts by themselves: the lists of all else stay the
// same lists, so that nobody looks at them again.
func (n *Node) podDiffers(before, after *decode.PodRecord) {
	if !decode.SameToKubelet(before, after) {
		signal(n.podChanged)
	}
	if !reflect.DeepEqual(before.UsingClaims(), after.UsingClaims()) {
		n.touch()
	}
	if !reflect.DeepEqual(before.UsingPlugins(), after.UsingPlugins()) {
		n.stalePlugins = true
		n.behind()
		signal(n.changed)
	}
}

// podsTurned notes that the watch of pods works, or has ceased to.
func (n *Node) podsTurned(alive bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if alive == n.facts.PodsFresh {
		return
	}
	n.facts.PodsFresh = alive
	n.touch()
	if alive {
		n.book.hurry(n.now())
		signal(n.claimReader.wake)
		n.tellClaims(false)
	}
}

// slicesDiffer is called, under the lock, when slices have come or gone.
func (n *Node) slicesDiffer() {
	before := maps.Clone(n.pools)
	n.pools.update(slices.Collect(maps.Values(n.slices.items)))
	if !reflect.DeepEqual(before, n.pools) {
		n.touch()
	}
	n.wantPools()
}

// slicesTurned notes that the watch of slices works, or has ceased to.
func (n *Node) slicesTurned(alive bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if alive != n.facts.SlicesFresh {
		n.facts.SlicesFresh = alive
		n.touch()
		if alive && n.fed != nil { // else the pods' watch says that the API server is back
			n.book.hurry(n.now())
			signal(n.claimReader.wake)
			n.fed.hidden.hurry(n.now())
			signal(n.hiddenReader.wake)
		}
	}
	if alive && !n.slicesListed {
		n.slicesListed = true
		n.wantPools()
	}
}
