package apiserver

import "github.com/dra-exporter/dra-exporter/collector/dra"

// maxInterned is the size of each of the two generations of interned strings.
const maxInterned = 1 << 15

// interner makes equal strings share their bytes, for those that many objects
// have: names of classes, drivers, nodes. It drops strings that were not used
// while many others were, so its size is limited. It is not safe for concurrent
// use.
type interner struct {
	young, old map[string]string
}

func newInterner() *interner { return &interner{young: make(map[string]string)} }

func (i *interner) share(texts ...*string) {
	for _, text := range texts {
		*text = i.intern(*text)
	}
}

func (i *interner) intern(text string) string {
	if known, found := i.young[text]; found || text == "" {
		return known
	}
	known, found := i.old[text]
	if !found {
		known = text
	}
	if len(i.young) >= maxInterned {
		i.old, i.young = i.young, make(map[string]string)
	}
	i.young[known] = known
	return known
}

func (i *interner) claim(lifecycle *dra.ClaimLifecycle) {
	i.share(&lifecycle.Ref.Namespace, &lifecycle.PodClaim, &lifecycle.Node)
	for n := range lifecycle.Classes {
		i.share(&lifecycle.Classes[n])
	}
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
	for n := range lifecycle.Finalizers {
		i.share(&lifecycle.Finalizers[n])
	}
}

// pod shares the scheduler's message as well: pods that wait for the same reason
// have the same.
func (i *interner) pod(lifecycle *dra.PodLifecycle) {
	i.share(&lifecycle.Ref.Namespace, &lifecycle.Node, &lifecycle.Group, &lifecycle.Unschedulable)
	for n := range lifecycle.Claims {
		i.share(&lifecycle.Claims[n].Name, &lifecycle.Claims[n].Template)
	}
}
