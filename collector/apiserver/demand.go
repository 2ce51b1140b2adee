package apiserver

import (
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/dra-exporter/dra-exporter/collector/apiserver/decode"
	"github.com/dra-exporter/dra-exporter/collector/dra"
)

// demand is what the pods of the node make necessary to read: their claims, and
// the pools of the devices that those were given. It is kept up to date by what
// changes, a pod or a claim at a time: a node may have tens of thousands of pods
// that have ended.
type demand struct {
	due   map[objectName]bool    // pods that have to be looked at again
	pods  map[objectName]podWant // of pods that want something
	users map[dra.ClaimRef]map[string]int

	// devices are those that known claims were given, by how many results.
	devices map[decode.PoolID]map[string]int

	looks int // at single pods so far
}

// podWant is what one pod makes necessary.
type podWant struct {
	uid    string
	claims []dra.ClaimRef
	hidden []types.UID // pods of the name whose claims are hidden
}

func newDemand() demand {
	return demand{
		due: make(map[objectName]bool), pods: make(map[objectName]podWant),
		users: make(map[dra.ClaimRef]map[string]int), devices: make(map[decode.PoolID]map[string]int),
	}
}

// podChangedTo is called, under the lock, after what is known of a pod has
// changed.
func (n *Node) podChangedTo(name objectName, _ *corev1.Pod, known bool) {
	n.demand.due[name] = true
	delete(n.withClaims, name)
	delete(n.withPlugins, name)
	if !known {
		return
	}
	record := n.pods.items[name]
	if pod := record.UsingClaims(); pod != nil {
		n.withClaims[name] = *pod
	}
	if pod := record.UsingPlugins(); pod != nil {
		n.withPlugins[name] = *pod
	}
}

// wantClaims is called, under the lock, when pods have changed: the claims
// of those that have not ended are wanted. While the pods are not yet known
// to be fresh, all nodes may be starting at once, and the reads are spread.
func (n *Node) wantClaims() {
	changed := make(map[dra.ClaimRef]bool)
	for name := range n.demand.due {
		n.demand.looks++
		before, after := n.demand.pods[name], n.wantOf(name)
		n.demand.use(after, 1, changed)
		n.demand.use(before, -1, changed)
		if n.fed != nil {
			n.fed.hidden.want(n.now(), name.namespace, before.hidden, after.hidden)
		}
		if delete(n.demand.pods, name); len(after.claims) > 0 || len(after.hidden) > 0 {
			n.demand.pods[name] = after
		}
	}
	n.demand.due = make(map[objectName]bool) // a map that has held all pods is as slow as they are many
	within := time.Duration(0)
	if !n.facts.PodsFresh {
		within = min(startSpread, time.Duration(len(n.demand.users))*n.claimReader.pace)
	}
	for ref := range changed {
		if n.book.want(n.now(), ref, slices.Sorted(maps.Keys(n.demand.users[ref])), within) {
			n.touch()
		}
	}
	signal(n.claimReader.wake)
	if n.fed != nil {
		signal(n.hiddenReader.wake)
	}
	n.tellClaims(false)
}

// wantOf is what a pod makes necessary now.
func (n *Node) wantOf(name objectName) podWant {
	record, known := n.pods.items[name]
	if !known || record.Pod.Terminal {
		return podWant{}
	}
	want := podWant{uid: record.Pod.UID}
	for _, claim := range record.Pod.Claims {
		if claim.Claim != "" {
			want.claims = append(want.claims, dra.ClaimRef{Namespace: record.Pod.Ref.Namespace, Name: claim.Claim})
		}
	}
	if n.fed != nil {
		want.claims = append(want.claims, n.fed.candidates(&record.Pod)...)
		want.hidden = n.fed.hides(name)
	}
	return want
}

// use adds a pod to the users of its claims, or takes it from them.
func (d *demand) use(want podWant, step int, changed map[dra.ClaimRef]bool) {
	for _, ref := range want.claims {
		users := d.users[ref]
		if users == nil {
			users = make(map[string]int)
			d.users[ref] = users
		}
		users[want.uid] += step
		if users[want.uid] == 0 {
			delete(users, want.uid)
		}
		if len(users) == 0 {
			delete(d.users, ref)
		}
		changed[ref] = true
	}
}

// claimDiffers is called, under the lock, when a claim becomes another than was
// known. The devices that claims here were given are wanted though no slice of
// this node publishes their pool.
func (n *Node) claimDiffers(before, after *dra.Claim) {
	if after != nil {
		for _, result := range after.Results {
			n.wantDevice(result.Device)
		}
	}
	if before != nil {
		for _, result := range before.Results {
			n.releaseDevice(result.Device)
		}
	}
	signal(n.poolReader.wake)
}

func (n *Node) wantDevice(device dra.DeviceID) {
	pool := poolOf(device)
	if n.demand.devices[pool] == nil {
		n.demand.devices[pool] = make(map[string]int)
	}
	n.demand.devices[pool][device.Name]++
	if _, near := n.pools[pool]; n.slicesListed && !near {
		n.far.want(n.now(), pool, device.Name)
	}
}

func (n *Node) releaseDevice(device dra.DeviceID) {
	pool := poolOf(device)
	names := n.demand.devices[pool]
	if names[device.Name]--; names[device.Name] > 0 {
		return
	}
	if delete(names, device.Name); len(names) == 0 {
		delete(n.demand.devices, pool)
	}
	if n.far.release(pool, device.Name) {
		n.touch()
	}
}

// wantPools finds, under the lock and when slices have changed, the devices that
// claims here were given though no slice of this node publishes their pool.
func (n *Node) wantPools() {
	if !n.slicesListed {
		return
	}
	for pool, names := range n.demand.devices {
		if _, near := n.pools[pool]; near {
			if n.far.drop(pool) {
				n.touch()
			}
			continue
		}
		for name := range names {
			n.far.want(n.now(), pool, name)
		}
	}
	signal(n.poolReader.wake)
}
