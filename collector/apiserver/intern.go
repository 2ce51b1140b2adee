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

func (i *interner) claim(life *dra.ClaimLife) {
	i.share(&life.Ref.Namespace, &life.PodClaim, &life.Node)
	for n := range life.Classes {
		i.share(&life.Classes[n])
	}
	for n := range life.Results {
		device := &life.Results[n]
		i.share(&device.Request, &device.Class, &device.Device.Driver, &device.Device.Pool, &device.Device.Name)
	}
	for n := range life.ReservedFor {
		consumer := &life.ReservedFor[n]
		i.share(&consumer.Resource)
		if consumer.UID == life.MadeFor.UID && consumer.Name == life.MadeFor.Name {
			consumer.UID, consumer.Name = life.MadeFor.UID, life.MadeFor.Name
		}
	}
	for n := range life.Finalizers {
		i.share(&life.Finalizers[n])
	}
}

// pod shares the scheduler's message as well: pods that wait for the same reason
// have the same.
func (i *interner) pod(life *dra.PodLife) {
	i.share(&life.Ref.Namespace, &life.Node, &life.Group, &life.Unschedulable)
	for n := range life.Claims {
		i.share(&life.Claims[n].Name, &life.Claims[n].Template)
	}
}
