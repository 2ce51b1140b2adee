package apiserver

import "github.com/dra-exporter/dra-exporter/collector/dra"

// maxInterned is the size of each of the two generations of interned values.
const maxInterned = 1 << 15

// interner makes equal values share their memory, for those that many objects
// have: names of classes, drivers, nodes, workloads. It is not safe for concurrent
// use.
type interner struct {
	texts     generations[string, string]
	lists     generations[string, []string] // of one text
	workloads generations[dra.Workload, *dra.Workload]
}

// generations are the values that were used last. Those that were not used while
// many others were are dropped, so the size is limited.
type generations[K comparable, V any] struct {
	young, old map[K]V
}

// get returns the value that is known for a key; it remembers the given one if
// there is none.
func (g *generations[K, V]) get(key K, value V) V {
	if known, ok := g.young[key]; ok {
		return known
	}
	if known, ok := g.old[key]; ok {
		value = known
	}
	if g.young == nil || len(g.young) >= maxInterned {
		g.old, g.young = g.young, make(map[K]V)
	}
	g.young[key] = value
	return value
}

func newInterner() *interner { return &interner{} }

func (i *interner) share(texts ...*string) {
	for _, text := range texts {
		if *text != "" {
			*text = i.texts.get(*text, *text)
		}
	}
}

// shareList shares the texts of a list, and the list if it has one. It is not changed
// afterwards.
func (i *interner) shareList(list *[]string) {
	for n := range *list {
		i.share(&(*list)[n])
	}
	if len(*list) == 1 {
		*list = i.lists.get((*list)[0], *list)
	}
}

func (i *interner) claim(lifecycle *dra.ClaimLifecycle) {
	i.share(&lifecycle.Ref.Namespace, &lifecycle.PodClaim, &lifecycle.Node)
	i.shareList(&lifecycle.Classes)
	i.shareList(&lifecycle.Finalizers)
	for n := range lifecycle.Results {
		device := &lifecycle.Results[n]
		i.share(&device.Request, &device.Class, &device.Device.Driver, &device.Device.Pool, &device.Device.Name)
	}
	for n := range lifecycle.ReservedFor {
		consumer := &lifecycle.ReservedFor[n]
		i.share(&consumer.Resource)
		if consumer.UID == lifecycle.MadeFor.UID && consumer.Name == lifecycle.MadeFor.Name {
			consumer.UID, consumer.Name = lifecycle.MadeFor.UID, lifecycle.MadeFor.Name
		}
	}
}

// pod shares the scheduler's message as well: pods that wait for the same reason
// have the same.
func (i *interner) pod(lifecycle *dra.PodLifecycle) {
	i.share(&lifecycle.Ref.Namespace, &lifecycle.Node, &lifecycle.Group, &lifecycle.Unschedulable)
	for n := range lifecycle.Claims {
		i.share(&lifecycle.Claims[n].Name, &lifecycle.Claims[n].Template)
	}
	member := &lifecycle.Member
	i.share(&member.Role, &member.Replica, &member.Rank)
	if member.Workload != nil {
		member.Workload = i.workloads.get(*member.Workload, member.Workload)
	}
}
