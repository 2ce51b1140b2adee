package apiserver

import "github.com/dra-exporter/dra-exporter/collector/dra"

// vocabulary is how many words are known at one time, twice.
const vocabulary = 1 << 15

// words makes equal strings share their bytes, for those that many objects
// have: names of classes, drivers, nodes. It forgets what has not been asked
// for while many others were, so it does not grow with what has been. It is
// not safe for concurrent use.
type words struct {
	young, old map[string]string
}

func newWords() *words { return &words{young: make(map[string]string)} }

func (w *words) share(texts ...*string) {
	for _, text := range texts {
		*text = w.word(*text)
	}
}

func (w *words) word(text string) string {
	if known, found := w.young[text]; found || text == "" {
		return known
	}
	known, found := w.old[text]
	if !found {
		known = text
	}
	if len(w.young) >= vocabulary {
		w.old, w.young = w.young, make(map[string]string)
	}
	w.young[known] = known
	return known
}

func (w *words) claim(life *dra.ClaimLife) {
	w.share(&life.Ref.Namespace, &life.PodClaim, &life.Node)
	for i := range life.Classes {
		w.share(&life.Classes[i])
	}
	for i := range life.Results {
		device := &life.Results[i]
		w.share(&device.Request, &device.Class, &device.Device.Driver, &device.Device.Pool, &device.Device.Name)
	}
	for i := range life.ReservedFor {
		consumer := &life.ReservedFor[i]
		w.share(&consumer.Resource)
		if consumer.UID == life.MadeFor.UID && consumer.Name == life.MadeFor.Name {
			consumer.UID, consumer.Name = life.MadeFor.UID, life.MadeFor.Name
		}
	}
	for i := range life.Finalizers {
		w.share(&life.Finalizers[i])
	}
}

// pod shares the scheduler's message as well: pods that wait for the same
// have the same.
func (w *words) pod(life *dra.PodLife) {
	w.share(&life.Ref.Namespace, &life.Node, &life.Group, &life.Unschedulable)
	for i := range life.Claims {
		w.share(&life.Claims[i].Name, &life.Claims[i].Template)
	}
}
