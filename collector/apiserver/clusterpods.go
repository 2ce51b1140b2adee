package apiserver

import (
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/dra-exporter/dra-exporter/collector/apiserver/decode"
	"github.com/dra-exporter/dra-exporter/collector/dra"
)

// extendedNames are the names of extended resources that stand for devices of
// a class. Every other extended resource is a device plugin's, and no concern
// of those who follow claims. It is safe for concurrent use.
type extendedNames struct {
	pods *collection[*corev1.Pod, podItem]

	mu      sync.Mutex
	classes map[string]int // how many classes have the name
}

func newExtendedNames() *extendedNames { return &extendedNames{classes: make(map[string]int)} }

// stands reports whether the name stands for devices of a class. The name
// that is made of a class's own always does, if there is no such class too:
// nobody else can provide it.
func (e *extendedNames) stands(name string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.classes[name] > 0 || strings.HasPrefix(name, resourcev1.ResourceDeviceClassPrefix)
}

// count adds a class of the name, or takes one away, and reports whether the
// name came or went by that.
func (e *extendedNames) count(name string, by int) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	had := e.classes[name] > 0
	if e.classes[name] += by; e.classes[name] <= 0 {
		delete(e.classes, name)
	}
	return had != (e.classes[name] > 0)
}

// podItem is what is kept of a pod that uses claims or asks for extended
// resources.
type podItem struct {
	version string
	asked   *dra.PodLife // with all extended resources
	told    *dra.PodLife // with those that stand for devices; nil: it was not told of

	references referenceCount // of told
}

// followPods tells of the pods that use claims, or ask for extended resources
// that stand for devices.
func (c *Cluster) followPods() {
	words := newWords()
	c.asking.pods = follow(c, kind[*corev1.Pod, podItem]{
		resource: "pods", scoped: true,
		offers: []offer{{c.client.core, func() runtime.Object { return &corev1.PodList{} }}},
		known: func(before podItem, pod *corev1.Pod) bool {
			return before.version != "" && before.version == pod.ResourceVersion
		},
		decode: func(pod *corev1.Pod) (podItem, bool) {
			life := decode.PodLife(pod)
			words.pod(&life)
			return podItem{version: pod.ResourceVersion, asked: &life}, len(life.Claims) > 0 || len(life.Extended) > 0
		},
		changed: c.podDiffers,
	})
}

// podDiffers is called, under the lock of the pods, when a pod has come,
// changed or gone. A status forgets the first start of a container that has
// started often.
func (c *Cluster) podDiffers(before, after *podItem, live bool) {
	if before != nil && after != nil && before.asked.UID == after.asked.UID {
		if first := before.asked.Started; !first.IsZero() && first.Before(after.asked.Started) {
			after.asked.Started = first
		}
	}
	c.tellPod(before, after, live)
}

// tellPod tells of the pod so far as it concerns devices. One that has been
// there and comes to concern them is not told of as it happens: it was made
// before.
func (c *Cluster) tellPod(before, after *podItem, live bool) {
	c.pending.remove(before)
	if after != nil {
		after.told = c.asking.concern(after.asked)
		c.pending.admit(after)
	}
	was, is := before.item(), after.item()
	teller[dra.PodLife]{
		journal: c.journal,
		uid:     func(life *dra.PodLife) string { return life.UID },
		change:  func(life *dra.PodLife) Change { return Change{Pod: life} },
	}.tell(was, is, live && !emerges(before, after))
	if is != nil && is.value != after.told {
		if after.asked == after.told {
			after.asked = is.value
		}
		after.told = is.value
	}
}

// emerges reports whether a pod that was there, and was not told of, is now.
func emerges(before, after *podItem) bool {
	return before != nil && before.told == nil && after != nil && before.asked.UID == after.asked.UID
}

func (p *podItem) item() *item[dra.PodLife] {
	if p == nil || p.told == nil {
		return nil
	}
	return &item[dra.PodLife]{value: p.told}
}

// concern is the pod with those of its extended resources alone that stand
// for devices; nil if it has none, and no claims.
func (e *extendedNames) concern(asked *dra.PodLife) *dra.PodLife {
	standing := make(map[string]int64, len(asked.Extended))
	for name, amount := range asked.Extended {
		if e.stands(name) {
			standing[name] = amount
		}
	}
	switch {
	case len(standing) == len(asked.Extended):
		return asked
	case len(standing) == 0 && len(asked.Claims) == 0:
		return nil
	case len(standing) == 0:
		standing = nil
	}
	concern := *asked
	concern.Extended = standing
	return &concern
}

// classItem is what is kept of a device class.
type classItem struct {
	version  string
	extended string // the extended resource that it stands for; may be empty
}

func (i *classItem) name() string {
	if i == nil {
		return ""
	}
	return i.extended
}

// classDiffers is called when a class has come, changed or gone, with the
// extended resources that it stood for and stands for.
func (c *Cluster) classDiffers(was, is string) {
	if was == is {
		return
	}
	for name, by := range map[string]int{was: -1, is: 1} {
		if name != "" && c.asking.count(name, by) {
			c.reviewPods(name)
		}
	}
}

// reviewPods tells anew of the pods that ask for an extended resource which
// has come to stand for devices, or ceased to. Nothing has happened to them.
func (c *Cluster) reviewPods(resource string) {
	pods := c.asking.pods
	pods.lock.Lock()
	defer pods.lock.Unlock()
	for name, before := range pods.items {
		if _, asks := before.asked.Extended[resource]; asks {
			after := before
			c.tellPod(&before, &after, false)
			pods.items[name] = after
		}
	}
	signal(c.journal.changed)
}
