package apiserver

import (
	"cmp"
	"context"
	"errors"
	"hash/maphash"
	"log/slog"
	"sync"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	resourcev1alpha3 "k8s.io/api/resource/v1alpha3"
	resourcev1beta2 "k8s.io/api/resource/v1beta2"
	schedulingv1alpha3 "k8s.io/api/scheduling/v1alpha3"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/dra-exporter/dra-exporter/collector/apiserver/customresource"
	"github.com/dra-exporter/dra-exporter/collector/apiserver/decode"
	"github.com/dra-exporter/dra-exporter/collector/apiserver/watch"
	"github.com/dra-exporter/dra-exporter/collector/clock"
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
	ApplySlice(name string, slice *resourcev1.ResourceSlice)
	ApplyClass(name string, class *resourcev1.DeviceClass)
	ApplyRule(name string, rule *resourcev1.DeviceTaintRule)
	ApplyNode(name string, node *corev1.Node)
	ApplyTemplate(namespace, name string, template *resourcev1.ResourceClaimTemplate)
	ApplyClaim(namespace, name string, claim *resourcev1.ResourceClaim)

	// ApplyPodRequests receives what a pod takes of its node: what was received last, and
	// what it is now; nil: nothing. They are shared and must not be changed.
	ApplyPodRequests(previous, updated *dra.PodRequests)
}

// ClusterWatchOptions are the options of a ClusterWatch. All but Namespace, Observe,
// Workloads and Limits are required.
type ClusterWatchOptions struct {
	Config    *rest.Config
	Namespace string // of pods, claims, templates, groups and events; empty: all
	Keeper    Keeper
	Log       *slog.Logger
	Clock     clock.Clock

	// Observe returns what observes the duration of each request of the named
	// source, in seconds.
	Observe func(source string) func(seconds float64)

	// Workloads determines the workloads of pods; nil: by the table of frameworks.
	Workloads *decode.Workloads
	// Topology determines the domains of nodes; nil: by the table of labels.
	Topology *decode.Topology

	Limits Limits
}

func (o ClusterWatchOptions) check() error {
	switch {
	case o.Config == nil:
		return errors.New("read from the API server: no configuration of the connection is given")
	case o.Keeper == nil:
		return errors.New("read from the API server: no keeper of the objects is given")
	case o.Log == nil:
		return errors.New("read from the API server: no logger is given")
	case o.Clock == nil:
		return errors.New("read from the API server: no clock is given")
	default:
		return nil
	}
}

// Change is one event of the API server.
type Change = dra.Change

// Synced holds which collections were known as a whole.
type Synced = dra.Synced

// ClusterWatch watches everything that concerns claims in the whole cluster, or in
// one namespace. Changes of pods, claims, groups, nodes, events and custom resources
// are recorded; the objects that a diagnosis of allocations needs are passed to the
// keeper and not kept here. All methods but Run may be called at any time from any
// goroutine; Run once.
//
// The changes that are not taken are kept without a limit.
type ClusterWatch struct {
	options     ClusterWatchOptions
	client      *watch.Client
	log         *changelog
	collections []watched
	claims      *watch.Watcher // reports the status of the whole API group
	pods        *clusterPods

	mu          sync.Mutex
	synced      Synced
	unsupported bool // the API server does not serve resource.k8s.io/v1
}

// NewClusterWatch returns a ClusterWatch that sends nothing before Run.
func NewClusterWatch(options ClusterWatchOptions) (*ClusterWatch, error) {
	if err := options.check(); err != nil {
		return nil, err
	}
	connection, err := watch.NewClient(options.Config, options.Limits)
	if err != nil {
		return nil, err
	}
	log := newChangelog(options.Clock)
	c := &ClusterWatch{options: options, client: connection, log: log, pods: newClusterPods(log, options.Keeper)}
	c.watchPods()
	c.watchClaims()
	c.watchSlices()
	c.watchNodes()
	c.watchClasses()
	c.watchRules()
	c.watchTemplates()
	c.watchGroups()
	c.watchSchedulerGroups(customresource.VolcanoV1beta1())
	c.watchSchedulerGroups(customresource.KAIV2alpha2())
	c.watchKueue()
	c.watchComputeDomains()
	c.watchEvents(decode.ReasonPreparation, false)
	c.watchEvents(decode.ReasonCreation, true)
	c.watchAutoscaling()
	return c, nil
}

// Run watches until ctx ends. Failures are reported by Statuses and retried.
func (c *ClusterWatch) Run(ctx context.Context) {
	defer c.client.Close()
	var running sync.WaitGroup
	defer running.Wait()
	begin := func(ofDRA bool) {
		for _, collection := range c.collections {
			if collection.ofDRA == ofDRA {
				running.Go(func() { collection.watcher.Run(ctx) })
			}
		}
	}
	begin(false)
	running.Go(func() {
		if c.awaitAPI(ctx) {
			begin(true)
		}
	})
}

// awaitAPI returns true when the API server serves resource.k8s.io/v1, or when
// that is not known; false when ctx has ended. That it is not served is reported
// once, and not by each collection of the group.
func (c *ClusterWatch) awaitAPI(ctx context.Context) bool {
	claims := watch.Collection{Group: resourcev1.SchemeGroupVersion, Namespace: c.options.Namespace, Resource: claimsSource}
	backoff := watch.NewBackoff(watch.Jitter)
	for ctx.Err() == nil {
		began := c.options.Clock()
		err := c.client.List(ctx, claims, metav1.ListOptions{Limit: 1}, &resourcev1.ResourceClaimList{})
		if !watch.IsUnsupported(err) {
			c.setUnsupported(false)
			return ctx.Err() == nil
		}
		c.claims.Fail(err)
		c.setUnsupported(true)
		watch.Sleep(ctx, backoff.Next(err, c.options.Clock().Since(began)))
	}
	return false
}

func (c *ClusterWatch) setUnsupported(unsupported bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.unsupported = unsupported
	signal(c.log.changed)
}

// Changed receives when there are changes to take, or the status of a source or
// what is synced has changed. Its capacity is one.
func (c *ClusterWatch) Changed() <-chan struct{} { return c.log.changed }

// Drain returns all changes since the last call, in the order in which they were
// received. They belong to the caller.
func (c *ClusterWatch) Drain() []Change {
	c.mu.Lock()
	defer c.mu.Unlock()
	// Read before the changes, so that it is not ahead of them.
	c.synced = Synced{
		Claims: c.listed(claimsSource), Pods: c.listed("pods"), Slices: c.listed("resourceslices"),
		Classes: c.listed("deviceclasses"), Nodes: c.listed("nodes"), Events: c.listed("events"),
	}
	return c.log.take()
}

// Synced returns which collections the changes that Drain has returned make known as
// a whole.
func (c *ClusterWatch) Synced() Synced {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.synced
}

func (c *ClusterWatch) listed(source string) bool {
	for _, collection := range c.collections {
		if collection.source == source && !collection.watcher.Listed() {
			return false
		}
	}
	return true
}

// Settled reports whether each collection was listed, failed to be, or is not
// served.
func (c *ClusterWatch) Settled() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, collection := range c.collections {
		if unsupported := collection.ofDRA && c.unsupported; !unsupported && !collection.watcher.Settled() {
			return false
		}
	}
	return true
}

// Statuses returns the status of each source: one for each resource, and none
// for an optional one that is not served. If resource.k8s.io/v1 as a whole is
// not served, the status of the claims has the message, and those of the other
// resources of the group only the reason.
func (c *ClusterWatch) Statuses() []source.Status {
	now, pending := c.options.Clock(), c.log.oldest()
	c.mu.Lock()
	unsupported := c.unsupported
	c.mu.Unlock()
	var all []source.Status
	for _, collection := range c.collections {
		status, served := collection.watcher.Status(now, pending)
		if collection.ofDRA && unsupported && status.Reason == source.ReasonNone {
			status.Reason = source.ReasonUnsupported
		}
		if status.Name == "pods" {
			status = c.pods.limit.status(status)
		}
		switch last := len(all) - 1; {
		case !served:
		case last >= 0 && all[last].Name == status.Name:
			all[last] = worse(all[last], status)
		default:
			all = append(all, status)
		}
	}
	return all
}

// worse returns the status of a source that is read in two parts.
func worse(a, b source.Status) source.Status {
	status, other := a, b
	if a.Up && a.Reason == source.ReasonNone {
		status, other = b, a
	}
	status.Errors += other.Errors
	status.Queue.Events += other.Queue.Events
	status.Queue.Lag = max(status.Queue.Lag, other.Queue.Lag)
	if other.LastSuccess.Elapsed < status.LastSuccess.Elapsed {
		status.LastSuccess = other.LastSuccess
	}
	return status
}

// watched is one collection of the cluster.
type watched struct {
	source  string
	ofDRA   bool // of resource.k8s.io/v1
	watcher *watch.Watcher
}

// collection describes one to watch.
type collection[O watch.Object, V any] struct {
	source     string // empty: it is called as the resource
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
func addCollection[O watch.Object, V any](c *ClusterWatch, added collection[O, V]) (store *watch.Store[O, V], lock sync.Locker) {
	lock = &sync.Mutex{}
	added.decoder.Flush = func() { signal(c.log.changed) }
	decoded := added.decoder.Decode
	added.decoder.Decode = func(object O) (V, bool) {
		decode.LimitQuantities(object) // it is of this decoder alone, and the keeper is passed the same
		return decoded(object)
	}
	store = watch.NewStore(lock, added.decoder)
	name := cmp.Or(added.source, added.resource)
	log, observe := c.options.Log, func(float64) {}
	if added.silent {
		log = slog.New(slog.DiscardHandler)
	}
	if c.options.Observe != nil {
		observe = c.options.Observe(name)
	}
	origin := &watch.CollectionReader{Client: c.client, Resource: added.resource, Selector: added.selector, Versions: added.versions, Optional: added.optional}
	if added.namespaced {
		origin.Namespace = c.options.Namespace
	}
	c.collections = append(c.collections, watched{source: name, ofDRA: added.ofDRA, watcher: watch.New(watch.Options{
		Clock: c.options.Clock, Tracker: source.NewTracker(name, log, c.options.Clock, observe),
		Changed: func(bool) { signal(c.log.changed) },
	}, origin, store)})
	return store, lock
}

// kept decodes nothing of the objects, and passes them to the keeper.
func kept[O watch.Object](keep func(namespace, name string, object O)) watch.Decoder[O, recordedObject[struct{}]] {
	return watch.Decoder[O, recordedObject[struct{}]]{
		Unchanged: sameVersion[O, struct{}],
		Decode: func(object O) (recordedObject[struct{}], bool) {
			return recordedObject[struct{}]{version: readVersion(object)}, true
		},
		Apply: func(event watch.Event[O, recordedObject[struct{}]]) {
			keep(decode.Text(event.Name.Namespace), decode.Text(event.Name.Name), event.Object)
		},
	}
}

// watchPods records the changes of the pods that clusterPods reports.
func (c *ClusterWatch) watchPods() {
	strings, workloads := newInterner(), c.options.Workloads
	if workloads == nil {
		workloads = decode.DefaultWorkloads()
	}
	c.pods.store, c.pods.lock = addCollection(c, collection[*corev1.Pod, podItem]{
		resource: "pods", namespaced: true,
		versions: podVersions(),
		decoder: watch.Decoder[*corev1.Pod, podItem]{
			Unchanged: func(previous podItem, pod *corev1.Pod) bool {
				return previous.version.matches(pod)
			},
			Decode: func(pod *corev1.Pod) (podItem, bool) {
				item := podItem{version: readVersion(pod), requests: decode.PodRequests(pod)}
				if item.requests != nil {
					strings.share(&item.requests.Node)
				}
				lifecycle := decode.PodLifecycle(pod, workloads)
				if len(lifecycle.Claims) > 0 || len(lifecycle.Extended) > 0 || lifecycle.Group != "" {
					strings.pod(&lifecycle)
					item.decoded = &lifecycle
				}
				return item, item.requests != nil || item.decoded != nil
			},
			Apply: func(event watch.Event[*corev1.Pod, podItem]) { c.pods.apply(event.Before, event.After, event.Live) },
		},
	})
}

// watchClasses passes classes to the keeper, and the extended resources that
// they stand for to the pods.
func (c *ClusterWatch) watchClasses() {
	addCollection(c, collection[*resourcev1.DeviceClass, classItem]{
		resource: "deviceclasses", ofDRA: true,
		versions: []watch.Version{{Group: resourcev1.SchemeGroupVersion, Empty: func() runtime.Object { return &resourcev1.DeviceClassList{} }}},
		decoder: watch.Decoder[*resourcev1.DeviceClass, classItem]{
			Unchanged: func(previous classItem, class *resourcev1.DeviceClass) bool {
				return previous.version.matches(class)
			},
			Decode: func(class *resourcev1.DeviceClass) (classItem, bool) {
				return classItem{version: readVersion(class), extended: decode.OptionalText(class.Spec.ExtendedResourceName)}, true
			},
			Apply: func(event watch.Event[*resourcev1.DeviceClass, classItem]) {
				if c.pods.applyClass(event.Before.name(), event.After.name()) {
					signal(c.log.changed)
				}
				c.options.Keeper.ApplyClass(decode.Text(event.Name.Name), decode.StripClass(event.Object))
			},
		},
	})
}

// watchClaims records the changes of claims, and passes the claims to the keeper.
func (c *ClusterWatch) watchClaims() *watch.Store[*resourcev1.ResourceClaim, recordedObject[dra.ClaimLifecycle]] {
	strings := newInterner()
	apply := recording[*resourcev1.ResourceClaim](changeRecorder[dra.ClaimLifecycle]{
		log:    c.log,
		uid:    func(lifecycle *dra.ClaimLifecycle) string { return lifecycle.UID },
		change: func(lifecycle *dra.ClaimLifecycle) dra.Change { return dra.Change{Claim: lifecycle} },
	})
	store, _ := addCollection(c, collection[*resourcev1.ResourceClaim, recordedObject[dra.ClaimLifecycle]]{
		resource: claimsSource, namespaced: true, ofDRA: true,
		versions: claimVersions(),
		decoder: watch.Decoder[*resourcev1.ResourceClaim, recordedObject[dra.ClaimLifecycle]]{
			Unchanged: sameVersion[*resourcev1.ResourceClaim, dra.ClaimLifecycle],
			Decode: func(claim *resourcev1.ResourceClaim) (recordedObject[dra.ClaimLifecycle], bool) {
				lifecycle := decode.ClaimLifecycle(claim)
				strings.claim(&lifecycle)
				return recordedObject[dra.ClaimLifecycle]{version: readVersion(claim), value: &lifecycle}, true
			},
			Apply: func(event watch.Event[*resourcev1.ResourceClaim, recordedObject[dra.ClaimLifecycle]]) {
				apply(event)
				c.options.Keeper.ApplyClaim(decode.Text(event.Name.Namespace), decode.Text(event.Name.Name), decode.StripClaim(event.Object))
			},
		},
	})
	c.claims = c.collections[len(c.collections)-1].watcher
	return store
}

func (c *ClusterWatch) watchSlices() {
	addCollection(c, collection[*resourcev1.ResourceSlice, recordedObject[struct{}]]{
		resource: "resourceslices", ofDRA: true,
		versions: sliceVersions(),
		decoder: kept(func(_, name string, slice *resourcev1.ResourceSlice) {
			c.options.Keeper.ApplySlice(name, decode.StripSlice(slice))
		}),
	})
}

func (c *ClusterWatch) watchTemplates() {
	addCollection(c, collection[*resourcev1.ResourceClaimTemplate, recordedObject[struct{}]]{
		resource: "resourceclaimtemplates", namespaced: true, ofDRA: true,
		versions: []watch.Version{{Group: resourcev1.SchemeGroupVersion, Empty: func() runtime.Object { return &resourcev1.ResourceClaimTemplateList{} }}},
		decoder: kept(func(namespace, name string, template *resourcev1.ResourceClaimTemplate) {
			c.options.Keeper.ApplyTemplate(namespace, name, decode.StripTemplate(template))
		}),
	})
}

// watchRules: DeviceTaintRule is v1 since Kubernetes 1.37, was v1beta2 in 1.36
// and v1alpha3 before. What is used here is the same in all of them.
func (c *ClusterWatch) watchRules() {
	decoder := kept(func(_, name string, rule *resourcev1.DeviceTaintRule) {
		c.options.Keeper.ApplyRule(name, decode.StripRule(rule))
	})
	decoder.Convert = decode.TaintRule
	addCollection(c, collection[*resourcev1.DeviceTaintRule, recordedObject[struct{}]]{
		resource: "devicetaintrules", ofDRA: true, optional: true,
		versions: []watch.Version{
			{Group: resourcev1.SchemeGroupVersion, Empty: func() runtime.Object { return &resourcev1.DeviceTaintRuleList{} }},
			{Group: resourcev1beta2.SchemeGroupVersion, Empty: func() runtime.Object { return &resourcev1beta2.DeviceTaintRuleList{} }},
			{Group: resourcev1alpha3.SchemeGroupVersion, Empty: func() runtime.Object { return &resourcev1alpha3.DeviceTaintRuleList{} }},
		},
		decoder: decoder,
	})
}

// watchGroups records the changes of the groups of pods that have claims, are
// gangs, or that the scheduler reports as unschedulable.
// PodGroup is v1beta1 and v1alpha3 in Kubernetes 1.37, and v1alpha2 in 1.36. All are
// disabled by default.
func (c *ClusterWatch) watchGroups() {
	decoder := recorded(func(group *schedulingv1beta1.PodGroup) (dra.Group, bool) {
		decoded := decode.Group(group)
		return decoded, len(decoded.Claims) > 0 || decoded.MinPods > 0 || decoded.Unschedulable != ""
	}, changeRecorder[dra.Group]{
		log:    c.log,
		uid:    func(group *dra.Group) string { return group.UID },
		change: func(group *dra.Group) dra.Change { return dra.Change{Group: group} },
	})
	decoder.Convert = decode.PodGroup
	addCollection(c, collection[*schedulingv1beta1.PodGroup, recordedObject[dra.Group]]{
		resource: "podgroups", namespaced: true, optional: true,
		versions: []watch.Version{
			{Group: schedulingv1beta1.SchemeGroupVersion, Empty: func() runtime.Object { return &schedulingv1beta1.PodGroupList{} }},
			{Group: schedulingv1alpha3.SchemeGroupVersion, Empty: func() runtime.Object { return &schedulingv1alpha3.PodGroupList{} }},
			{Group: watch.PodGroupV1alpha2(), Empty: func() runtime.Object { return &schedulingv1alpha3.PodGroupList{} }},
		},
		decoder: decoder,
	})
}

// watchSchedulerGroups records the changes of PodGroups of Volcano, or of KAI, that are
// gangs.
func (c *ClusterWatch) watchSchedulerGroups(version schema.GroupVersion) {
	addCollection(c, collection[*customresource.PodGroup, recordedObject[dra.Group]]{
		source: "podgroups." + version.Group, resource: "podgroups", namespaced: true, optional: true,
		versions: []watch.Version{{Group: version, Empty: func() runtime.Object { return &customresource.PodGroupList{} }}},
		decoder: recorded(func(object *customresource.PodGroup) (dra.Group, bool) {
			return decode.SchedulerGroup(version.Group, object)
		}, changeRecorder[dra.Group]{
			log:    c.log,
			uid:    func(group *dra.Group) string { return group.UID },
			change: func(group *dra.Group) dra.Change { return dra.Change{Group: group} },
		}),
	})
}

// watchKueue records the changes of Workloads of Kueue that have not finished.
func (c *ClusterWatch) watchKueue() {
	empty := func() runtime.Object { return &customresource.WorkloadList{} }
	addCollection(c, collection[*customresource.Workload, recordedObject[dra.KueueWorkload]]{
		resource: "workloads", namespaced: true, optional: true,
		versions: []watch.Version{{Group: customresource.KueueV1beta2(), Empty: empty}, {Group: customresource.KueueV1beta1(), Empty: empty}},
		decoder: recorded(decode.KueueWorkload, changeRecorder[dra.KueueWorkload]{
			log:    c.log,
			uid:    func(workload *dra.KueueWorkload) string { return workload.UID },
			change: func(workload *dra.KueueWorkload) dra.Change { return dra.Change{KueueWorkload: workload} },
		}),
	})
}

// watchComputeDomains records the changes of ComputeDomains of NVIDIA's DRA driver.
func (c *ClusterWatch) watchComputeDomains() {
	addCollection(c, collection[*customresource.ComputeDomain, recordedObject[dra.ComputeDomain]]{
		resource: "computedomains", namespaced: true, optional: true,
		versions: []watch.Version{{Group: customresource.NVIDIAV1beta1(), Empty: func() runtime.Object { return &customresource.ComputeDomainList{} }}},
		decoder: recorded(func(object *customresource.ComputeDomain) (dra.ComputeDomain, bool) {
			return decode.ComputeDomain(object), true
		}, changeRecorder[dra.ComputeDomain]{
			log:    c.log,
			uid:    func(domain *dra.ComputeDomain) string { return domain.UID },
			change: func(domain *dra.ComputeDomain) dra.Change { return dra.Change{ComputeDomain: domain} },
		}),
	})
}

// watchEvents records the events with one reason. A field selector has only one.
func (c *ClusterWatch) watchEvents(reason string, silent bool) {
	addCollection(c, collection[*corev1.Event, recordedObject[dra.Warning]]{
		resource: "events", namespaced: true, silent: silent,
		selector: fields.OneTermEqualSelector("reason", reason).String(),
		versions: []watch.Version{{Group: corev1.SchemeGroupVersion, Empty: func() runtime.Object { return &corev1.EventList{} }}},
		decoder: recorded(decode.Warning, changeRecorder[dra.Warning]{
			log:    c.log,
			uid:    func(warning *dra.Warning) string { return warning.Name },
			change: func(warning *dra.Warning) dra.Change { return dra.Change{Warning: warning} },
		}),
	})
}

// watchAutoscaling records the events of node autoscalers about pods: by their reasons,
// of which the scheduler has one as well.
func (c *ClusterWatch) watchAutoscaling() {
	var selectors []fields.Selector
	for _, reason := range []string{decode.ReasonScaleUp, decode.ReasonNoScaleUp, decode.ReasonNominated} {
		selectors = append(selectors, fields.OneTermEqualSelector("reason", reason))
	}
	for _, component := range decode.KarpenterSources() {
		selectors = append(selectors, fields.AndSelectors(
			fields.OneTermEqualSelector("reason", decode.ReasonFailedScheduling), fields.OneTermEqualSelector("source", component)))
	}
	for _, selector := range selectors {
		addCollection(c, collection[*corev1.Event, recordedObject[dra.Autoscaling]]{
			resource: "events", namespaced: true, silent: true, selector: selector.String(),
			versions: []watch.Version{{Group: corev1.SchemeGroupVersion, Empty: func() runtime.Object { return &corev1.EventList{} }}},
			decoder: recorded(decode.Autoscaling, changeRecorder[dra.Autoscaling]{
				log:    c.log,
				uid:    func(event *dra.Autoscaling) string { return event.Name },
				change: func(event *dra.Autoscaling) dra.Change { return dra.Change{Autoscaling: event} },
			}),
		})
	}
}

// watchNodes records the changes of nodes, and passes what selectors read to the
// keeper. The status of a node is written every few minutes without a relevant
// change, so the version is a hash of the relevant part.
func (c *ClusterWatch) watchNodes() {
	strings, seed, topology := newInterner(), maphash.MakeSeed(), c.options.Topology
	if topology == nil {
		topology = decode.DefaultTopology()
	}
	apply := recording[*corev1.Node](changeRecorder[dra.Node]{
		log:    c.log,
		uid:    func(node *dra.Node) string { return node.Name },
		change: func(node *dra.Node) dra.Change { return dra.Change{Node: node} },
	})
	addCollection(c, collection[*corev1.Node, recordedObject[dra.Node]]{
		resource: "nodes",
		versions: []watch.Version{{Group: corev1.SchemeGroupVersion, Empty: func() runtime.Object { return &corev1.NodeList{} }}},
		decoder: watch.Decoder[*corev1.Node, recordedObject[dra.Node]]{
			Decode: func(node *corev1.Node) (recordedObject[dra.Node], bool) {
				decoded := decode.Node(node, topology)
				strings.share(&decoded.Kubelet)
				return recordedObject[dra.Node]{version: hashNode(seed, decode.StripNode(node)), value: &decoded}, true
			},
			Apply: func(event watch.Event[*corev1.Node, recordedObject[dra.Node]]) {
				apply(event)
				c.options.Keeper.ApplyNode(decode.Text(event.Name.Name), decode.StripNode(event.Object))
			},
		},
	})
}

// hashNode returns 0 for a node that cannot be encoded.
func hashNode(seed maphash.Seed, node *corev1.Node) objectVersion {
	bytes, err := node.Marshal()
	if err != nil {
		return 0
	}
	return objectVersion(maphash.Bytes(seed, bytes))
}
