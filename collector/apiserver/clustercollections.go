package apiserver

import (
	"hash/maphash"
	"log/slog"
	"strconv"
	"sync"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	resourcev1alpha3 "k8s.io/api/resource/v1alpha3"
	resourcev1beta2 "k8s.io/api/resource/v1beta2"
	schedulingv1alpha3 "k8s.io/api/scheduling/v1alpha3"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/dra-exporter/dra-exporter/collector/apiserver/decode"
	"github.com/dra-exporter/dra-exporter/collector/apiserver/watch"
	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/collector/source"
)

// Keeper receives the objects that a diagnosis of allocations needs: new ones,
// changed ones, and nil for those that are gone. Objects belong to the keeper.
// They have no managed fields, labels and annotations (but nodes have their
// labels), no driver configuration, and no device status. Names are valid UTF-8;
// the content of objects need not be. It is called for each object by one
// goroutine at a time and in order, for different kinds by several at once, and
// should return quickly.
type Keeper interface {
	Slice(name string, slice *resourcev1.ResourceSlice)
	Class(name string, class *resourcev1.DeviceClass)
	Rule(name string, rule *resourcev1.DeviceTaintRule)
	Node(name string, node *corev1.Node)
	Template(namespace, name string, template *resourcev1.ResourceClaimTemplate)
	Claim(namespace, name string, claim *resourcev1.ResourceClaim)
}

// watched is one collection of the cluster.
type watched struct {
	resource string
	ofDRA    bool // of resource.k8s.io/v1
	watcher  *watch.Watcher
}

// collection describes one to watch.
type collection[O watch.Object, V any] struct {
	resource   string
	selector   string // of fields; empty: all
	namespaced bool
	ofDRA      bool
	optional   bool // the API server may not serve it
	silent     bool // another collection of the same source logs
	versions   []watch.Version
	decoder    watch.Decoder[O, V] // without Flush
}

// addCollection adds a collection to those that Run watches.
func addCollection[O watch.Object, V any](c *Cluster, of collection[O, V]) (store *watch.Store[O, V], lock sync.Locker) {
	lock = &sync.Mutex{}
	of.decoder.Flush = func() { signal(c.log.changed) }
	store = watch.NewStore(lock, of.decoder)
	log, observe := c.options.Log, func(float64) {}
	if of.silent {
		log = slog.New(slog.DiscardHandler)
	}
	if c.options.Observe != nil {
		observe = c.options.Observe(of.resource)
	}
	from := &watch.Source{Client: c.client, Resource: of.resource, Selector: of.selector, Versions: of.versions}
	if of.namespaced {
		from.Namespace = c.options.Namespace
	}
	c.collections = append(c.collections, watched{resource: of.resource, ofDRA: of.ofDRA, watcher: watch.New(watch.Options{
		Clock: c.options.Clock, Tracker: source.NewTracker(of.resource, log, c.options.Clock, observe),
		Changed: func(bool) { signal(c.log.changed) }, Optional: of.optional,
	}, from, store)})
	return store, lock
}

// item is what is kept of an object: what it was decoded to, shared with the
// changes that were recorded, and its version.
type item[T any] struct {
	version string // resource version, or another text that is equal if nothing has changed
	value   *T     // nil: nothing but the version is kept
}

// sameVersion reports whether an object is as it was when it was decoded.
func sameVersion[O watch.Object, T any](before item[T], object O) bool {
	return before.version != "" && before.version == object.GetResourceVersion()
}

// valueOf is the value of an item; nil: there is no item.
func valueOf[T any](i *item[T]) *T {
	if i == nil {
		return nil
	}
	return i.value
}

// recording returns what applies the changes of items to the changelog.
func recording[O watch.Object, T any](r recorder[T]) func(watch.Event[O, item[T]]) {
	return func(event watch.Event[O, item[T]]) {
		kept := r.record(valueOf(event.Before), valueOf(event.After), event.Live)
		if event.After != nil {
			event.After.value = kept
		}
	}
}

// kept decodes nothing of the objects, and passes them to the keeper.
func kept[O watch.Object](keep func(namespace, name string, object O)) watch.Decoder[O, item[struct{}]] {
	return watch.Decoder[O, item[struct{}]]{
		Unchanged: sameVersion[O, struct{}],
		Decode: func(object O) (item[struct{}], bool) {
			return item[struct{}]{version: object.GetResourceVersion()}, true
		},
		Apply: func(event watch.Event[O, item[struct{}]]) {
			keep(decode.Text(event.Name.Namespace), decode.Text(event.Name.Name), event.Object)
		},
	}
}

// watchClaims records the changes of claims, and passes the claims to the keeper.
func (c *Cluster) watchClaims() *watch.Store[*resourcev1.ResourceClaim, item[dra.ClaimLife]] {
	strings := newInterner()
	apply := recording[*resourcev1.ResourceClaim](recorder[dra.ClaimLife]{
		log:    c.log,
		uid:    func(life *dra.ClaimLife) string { return life.UID },
		change: func(life *dra.ClaimLife) dra.Change { return dra.Change{Claim: life} },
	})
	store, _ := addCollection(c, collection[*resourcev1.ResourceClaim, item[dra.ClaimLife]]{
		resource: claimsSource, namespaced: true, ofDRA: true,
		versions: claimVersions(),
		decoder: watch.Decoder[*resourcev1.ResourceClaim, item[dra.ClaimLife]]{
			Unchanged: sameVersion[*resourcev1.ResourceClaim, dra.ClaimLife],
			Decode: func(claim *resourcev1.ResourceClaim) (item[dra.ClaimLife], bool) {
				life := decode.ClaimLife(claim)
				strings.claim(&life)
				return item[dra.ClaimLife]{version: claim.ResourceVersion, value: &life}, true
			},
			Apply: func(event watch.Event[*resourcev1.ResourceClaim, item[dra.ClaimLife]]) {
				apply(event)
				c.options.Keeper.Claim(decode.Text(event.Name.Namespace), decode.Text(event.Name.Name), decode.StripClaim(event.Object))
			},
		},
	})
	c.claims = c.collections[len(c.collections)-1].watcher
	return store
}

func (c *Cluster) watchSlices() {
	addCollection(c, collection[*resourcev1.ResourceSlice, item[struct{}]]{
		resource: "resourceslices", ofDRA: true,
		versions: sliceVersions(),
		decoder: kept(func(_, name string, slice *resourcev1.ResourceSlice) {
			c.options.Keeper.Slice(name, decode.StripSlice(slice))
		}),
	})
}

func (c *Cluster) watchTemplates() {
	addCollection(c, collection[*resourcev1.ResourceClaimTemplate, item[struct{}]]{
		resource: "resourceclaimtemplates", namespaced: true, ofDRA: true,
		versions: []watch.Version{{Group: resourcev1.SchemeGroupVersion, Empty: func() runtime.Object { return &resourcev1.ResourceClaimTemplateList{} }}},
		decoder: kept(func(namespace, name string, template *resourcev1.ResourceClaimTemplate) {
			c.options.Keeper.Template(namespace, name, decode.StripTemplate(template))
		}),
	})
}

// watchRules: DeviceTaintRule is v1 since Kubernetes 1.37, was v1beta2 in 1.36
// and v1alpha3 before. What is used here is the same in all of them.
func (c *Cluster) watchRules() {
	decoder := kept(func(_, name string, rule *resourcev1.DeviceTaintRule) {
		c.options.Keeper.Rule(name, decode.StripRule(rule))
	})
	decoder.Convert = decode.TaintRule
	addCollection(c, collection[*resourcev1.DeviceTaintRule, item[struct{}]]{
		resource: "devicetaintrules", ofDRA: true, optional: true,
		versions: []watch.Version{
			{Group: resourcev1.SchemeGroupVersion, Empty: func() runtime.Object { return &resourcev1.DeviceTaintRuleList{} }},
			{Group: resourcev1beta2.SchemeGroupVersion, Empty: func() runtime.Object { return &resourcev1beta2.DeviceTaintRuleList{} }},
			{Group: resourcev1alpha3.SchemeGroupVersion, Empty: func() runtime.Object { return &resourcev1alpha3.DeviceTaintRuleList{} }},
		},
		decoder: decoder,
	})
}

// watchGroups records the changes of the groups of pods that have claims.
// PodGroup is v1beta1 and v1alpha3 in Kubernetes 1.37, and both are disabled by
// default.
func (c *Cluster) watchGroups() {
	addCollection(c, collection[*schedulingv1beta1.PodGroup, item[dra.Group]]{
		resource: "podgroups", namespaced: true, optional: true,
		versions: []watch.Version{
			{Group: schedulingv1beta1.SchemeGroupVersion, Empty: func() runtime.Object { return &schedulingv1beta1.PodGroupList{} }},
			{Group: schedulingv1alpha3.SchemeGroupVersion, Empty: func() runtime.Object { return &schedulingv1alpha3.PodGroupList{} }},
		},
		decoder: watch.Decoder[*schedulingv1beta1.PodGroup, item[dra.Group]]{
			Convert:   decode.PodGroup,
			Unchanged: sameVersion[*schedulingv1beta1.PodGroup, dra.Group],
			Decode: func(group *schedulingv1beta1.PodGroup) (item[dra.Group], bool) {
				decoded := decode.Group(group)
				return item[dra.Group]{version: group.ResourceVersion, value: &decoded}, len(decoded.Claims) > 0
			},
			Apply: recording[*schedulingv1beta1.PodGroup](recorder[dra.Group]{
				log:    c.log,
				uid:    func(group *dra.Group) string { return group.UID },
				change: func(group *dra.Group) dra.Change { return dra.Change{Group: group} },
			}),
		},
	})
}

// watchEvents records the events with one reason. A field selector has only one.
func (c *Cluster) watchEvents(reason string, silent bool) {
	addCollection(c, collection[*corev1.Event, item[dra.Trouble]]{
		resource: "events", namespaced: true, silent: silent,
		selector: fields.OneTermEqualSelector("reason", reason).String(),
		versions: []watch.Version{{Group: corev1.SchemeGroupVersion, Empty: func() runtime.Object { return &corev1.EventList{} }}},
		decoder: watch.Decoder[*corev1.Event, item[dra.Trouble]]{
			Unchanged: sameVersion[*corev1.Event, dra.Trouble],
			Decode: func(event *corev1.Event) (item[dra.Trouble], bool) {
				trouble, ok := decode.Trouble(event)
				return item[dra.Trouble]{version: event.ResourceVersion, value: &trouble}, ok
			},
			Apply: recording[*corev1.Event](recorder[dra.Trouble]{
				log:    c.log,
				uid:    func(trouble *dra.Trouble) string { return trouble.Name },
				change: func(trouble *dra.Trouble) dra.Change { return dra.Change{Trouble: trouble} },
			}),
		},
	})
}

// watchNodes records the changes of nodes, and passes what selectors read to the
// keeper. The status of a node is written every few minutes without a relevant
// change, so the version is a hash of the relevant part.
func (c *Cluster) watchNodes() {
	seed := maphash.MakeSeed()
	apply := recording[*corev1.Node](recorder[dra.NodeLife]{
		log:    c.log,
		uid:    func(life *dra.NodeLife) string { return life.Name },
		change: func(life *dra.NodeLife) dra.Change { return dra.Change{Node: life} },
	})
	addCollection(c, collection[*corev1.Node, item[dra.NodeLife]]{
		resource: "nodes",
		versions: []watch.Version{{Group: corev1.SchemeGroupVersion, Empty: func() runtime.Object { return &corev1.NodeList{} }}},
		decoder: watch.Decoder[*corev1.Node, item[dra.NodeLife]]{
			Decode: func(node *corev1.Node) (item[dra.NodeLife], bool) {
				life := decode.NodeLife(node)
				return item[dra.NodeLife]{version: hashOf(seed, decode.StripNode(node)), value: &life}, true
			},
			Apply: func(event watch.Event[*corev1.Node, item[dra.NodeLife]]) {
				apply(event)
				c.options.Keeper.Node(decode.Text(event.Name.Name), decode.StripNode(event.Object))
			},
		},
	})
}

// hashOf is empty for a node that cannot be encoded.
func hashOf(seed maphash.Seed, node *corev1.Node) string {
	bytes, err := node.Marshal()
	if err != nil {
		return ""
	}
	return strconv.FormatUint(maphash.Bytes(seed, bytes), 36)
}

func podVersions() []watch.Version {
	return []watch.Version{{Group: corev1.SchemeGroupVersion, Empty: func() runtime.Object { return &corev1.PodList{} }}}
}

func claimVersions() []watch.Version {
	return []watch.Version{{Group: resourcev1.SchemeGroupVersion, Empty: func() runtime.Object { return &resourcev1.ResourceClaimList{} }}}
}

func sliceVersions() []watch.Version {
	return []watch.Version{{Group: resourcev1.SchemeGroupVersion, Empty: func() runtime.Object { return &resourcev1.ResourceSliceList{} }}}
}
