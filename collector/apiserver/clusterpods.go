package apiserver

import (
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/dra-exporter/dra-exporter/collector/apiserver/decode"
	"github.com/dra-exporter/dra-exporter/collector/apiserver/watch"
	"github.com/dra-exporter/dra-exporter/collector/dra"
)

// podItem is what is kept of a pod that uses claims or requests extended
// resources.
type podItem struct {
	version  string
	decoded  *dra.PodLife // with all extended resources
	reported *dra.PodLife // with those that stand for devices; nil: the pod is not reported

	references referenceCount // of reported
}

// clusterPods records the changes of the pods that use claims, or request
// extended resources that stand for devices. Every other extended resource is
// provided by a device plugin.
type clusterPods struct {
	recorder recorder[dra.PodLife]
	limit    *referenceLimit // of references of pending pods
	store    *watch.Store[*corev1.Pod, podItem]
	lock     sync.Locker // of the store

	mu      sync.Mutex
	classes map[string]int // by the extended resource: how many device classes it stands for
}

func newClusterPods(log *changelog) *clusterPods {
	return &clusterPods{
		recorder: recorder[dra.PodLife]{
			log:    log,
			uid:    func(life *dra.PodLife) string { return life.UID },
			change: func(life *dra.PodLife) dra.Change { return dra.Change{Pod: life} },
		},
		limit: newReferenceLimit(), classes: make(map[string]int),
	}
}

func (c *Cluster) watchPods() {
	strings := newInterner()
	c.pods.store, c.pods.lock = addCollection(c, collection[*corev1.Pod, podItem]{
		resource: "pods", namespaced: true,
		versions: podVersions(),
		decoder: watch.Decoder[*corev1.Pod, podItem]{
			Unchanged: func(before podItem, pod *corev1.Pod) bool {
				return before.version != "" && before.version == pod.ResourceVersion
			},
			Decode: func(pod *corev1.Pod) (podItem, bool) {
				life := decode.PodLife(pod)
				strings.pod(&life)
				return podItem{version: pod.ResourceVersion, decoded: &life}, len(life.Claims) > 0 || len(life.Extended) > 0
			},
			Apply: func(event watch.Event[*corev1.Pod, podItem]) { c.pods.apply(event.Before, event.After, event.Live) },
		},
	})
}

// apply applies, under the lock of the store, the change of a pod. The status
// of a pod does not keep the first start of a container that has started often.
func (p *clusterPods) apply(before, after *podItem, live bool) {
	if before != nil && after != nil && before.decoded.UID == after.decoded.UID {
		if first := before.decoded.Started; !first.IsZero() && first.Before(after.decoded.Started) {
			after.decoded.Started = first
		}
	}
	p.record(before, after, live)
}

// record records the change of what is reported of a pod. A pod that was there
// and is reported from now on was created before: that is not live.
func (p *clusterPods) record(before, after *podItem, live bool) {
	p.limit.release(before)
	var was, is *dra.PodLife
	if before != nil {
		was = before.reported
	}
	if after != nil {
		after.reported = p.reported(after.decoded)
		p.limit.admit(after)
		is = after.reported
	}
	known := before != nil && was == nil && after != nil && before.decoded.UID == after.decoded.UID
	kept := p.recorder.record(was, is, live && !known)
	if is != nil && kept != is {
		if after.decoded == is {
			after.decoded = kept
		}
		after.reported = kept
	}
}

// reported returns the pod with only those extended resources that stand for
// devices; nil if it has none, and no claims.
func (p *clusterPods) reported(pod *dra.PodLife) *dra.PodLife {
	extended := make(map[string]int64, len(pod.Extended))
	for name, amount := range pod.Extended {
		if p.standsForDevices(name) {
			extended[name] = amount
		}
	}
	switch {
	case len(extended) == len(pod.Extended):
		return pod
	case len(extended) == 0 && len(pod.Claims) == 0:
		return nil
	case len(extended) == 0:
		extended = nil
	}
	reported := *pod
	reported.Extended = extended
	return &reported
}

// standsForDevices reports whether an extended resource stands for devices of a
// class. A name that is made of the name of a class always does, even if there
// is no such class: no device plugin can provide it.
func (p *clusterPods) standsForDevices(name string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.classes[name] > 0 || strings.HasPrefix(name, resourcev1.ResourceDeviceClassPrefix)
}

// applyClass applies the change of a class, from the extended resource that it
// stood for to the one that it stands for. It reports whether pods were recorded
// again.
func (p *clusterPods) applyClass(was, is string) (changed bool) {
	if was == is {
		return false
	}
	for name, by := range map[string]int{was: -1, is: 1} {
		if name != "" && p.countClass(name, by) {
			p.revise(name)
			changed = true
		}
	}
	return changed
}

// countClass adds a class of an extended resource, or removes one. It reports
// whether the resource begins or ceases to stand for devices.
func (p *clusterPods) countClass(name string, by int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	had := p.classes[name] > 0
	if p.classes[name] += by; p.classes[name] <= 0 {
		delete(p.classes, name)
	}
	return had != (p.classes[name] > 0)
}

// revise records again the pods that request an extended resource which begins
// or ceases to stand for devices. The pods themselves did not change.
func (p *clusterPods) revise(resource string) {
	p.lock.Lock()
	defer p.lock.Unlock()
	p.store.Revise(func(item podItem) podItem {
		if _, requested := item.decoded.Extended[resource]; !requested {
			return item
		}
		after := item
		p.record(&item, &after, false)
		return after
	})
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

// watchClasses passes classes to the keeper, and the extended resources that
// they stand for to the pods.
func (c *Cluster) watchClasses() {
	addCollection(c, collection[*resourcev1.DeviceClass, classItem]{
		resource: "deviceclasses", ofDRA: true,
		versions: []watch.Version{{Group: resourcev1.SchemeGroupVersion, Empty: func() runtime.Object { return &resourcev1.DeviceClassList{} }}},
		decoder: watch.Decoder[*resourcev1.DeviceClass, classItem]{
			Unchanged: func(before classItem, class *resourcev1.DeviceClass) bool {
				return before.version != "" && before.version == class.ResourceVersion
			},
			Decode: func(class *resourcev1.DeviceClass) (classItem, bool) {
				return classItem{version: class.ResourceVersion, extended: decode.OptionalText(class.Spec.ExtendedResourceName)}, true
			},
			Apply: func(event watch.Event[*resourcev1.DeviceClass, classItem]) {
				if c.pods.applyClass(event.Before.name(), event.After.name()) {
					signal(c.log.changed)
				}
				c.options.Keeper.Class(decode.Text(event.Name.Name), decode.StripClass(event.Object))
			},
		},
	})
}
