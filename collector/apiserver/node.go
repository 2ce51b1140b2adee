package apiserver

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"

	"github.com/dra-exporter/dra-exporter/collector/apiserver/decode"
	"github.com/dra-exporter/dra-exporter/collector/apiserver/watch"
	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/collector/source"
)

// NodeWatch watches and reads what the API server has of one node. All methods but
// Run may be called at any time from any goroutine; Run once.
type NodeWatch struct {
	now           clock.Clock
	client        *watch.Client
	claimTracker  *source.Tracker
	claimDuration func(seconds float64) // of one read

	podWatch     *watch.Watcher // nil: the pods come from the feed
	feed         *PodFeed       // nil: the pods are watched
	sliceWatch   *watch.Watcher
	nodeWatch    *watch.Watcher // nil: no label of the node is read
	claimReader  *worker
	poolReader   *worker
	unlistedRead *worker // lists claims that a feed's pods do not name

	changed, podChanged chan struct{}

	// mu guards all below, and both stores.
	mu              sync.Mutex
	pods            *watch.Store[*corev1.Pod, decode.PodRecord]
	slices          *watch.Store[*resourcev1.ResourceSlice, decode.SliceRecord]
	index           *podIndex
	claims          *claimCache
	devices         *devicePools
	outdated        bool // facts are older than what is known
	outdatedPlugins bool // and so are those of pods with device plugins alone
	outdatedSince   clock.Instant
	facts           NodeFacts
	labels          map[string]string // of the node
	outage          bool              // the last attempt to watch pods has failed
}

// New returns a NodeWatch that sends nothing before Run.
func New(options Options) (*NodeWatch, error) {
	if err := options.check(); err != nil {
		return nil, err
	}
	client, err := watch.NewClient(options.Config, options.Limits)
	if err != nil {
		return nil, err
	}
	return newNodeWatch(options, client), nil
}

// newNodeWatch is New with a client that several nodes may share.
func newNodeWatch(options Options, client *watch.Client) *NodeWatch {
	if options.Workloads == nil {
		options.Workloads = decode.DefaultWorkloads()
	}
	reads := options.podFields()
	n := &NodeWatch{
		now:           options.Clock,
		client:        client,
		claimTracker:  source.NewTracker(claimsSource, options.Log, options.Clock, nil),
		claimDuration: options.observer(claimsSource),
		changed:       make(chan struct{}, 1),
		podChanged:    make(chan struct{}, 1),
		index:         newPodIndex(),
		claims:        newClaimCache(watch.Jitter),
		devices:       newDevicePools(watch.Jitter),
	}
	n.claimReader = newWorker(n.now, newReadPace(parallelReads, 0, watch.Jitter), n.nextClaim)
	n.poolReader = newWorker(n.now, newReadPace(1, time.Second, watch.Jitter), n.nextPool)
	n.unlistedRead = newWorker(n.now, newReadPace(1, time.Second, watch.Jitter), n.nextUnlisted)
	strip := func(pod *corev1.Pod) *corev1.Pod { return decode.StripPod(pod, reads) }
	n.pods = watch.NewStore(&n.mu, watch.Decoder[*corev1.Pod, decode.PodRecord]{
		Strip:  strip,
		Decode: func(pod *corev1.Pod) (decode.PodRecord, bool) { return decode.NewPodRecord(pod, reads) },
		Apply:  n.applyPod,
		Flush:  n.resolveReferences,
	})
	n.slices = watch.NewStore(&n.mu, watch.Decoder[*resourcev1.ResourceSlice, decode.SliceRecord]{
		Strip: decode.StripNodeSlice,
		Decode: func(slice *resourcev1.ResourceSlice) (decode.SliceRecord, bool) {
			return decode.NewSliceRecord(slice), true
		},
		Apply: func(watch.Event[*resourcev1.ResourceSlice, decode.SliceRecord]) {},
		Flush: n.applySlices,
	})
	if options.PodsFed {
		n.feed = &PodFeed{node: n, pods: newFedPods(reads), unlisted: newUnlistedClaims()}
	} else {
		n.podWatch = watch.New(options.watching("pods", n.setPodsFresh), &watch.CollectionReader{
			Client: client, Resource: "pods", Versions: podVersions(),
			Selector: fields.OneTermEqualSelector("spec.nodeName", options.Node).String(),
		}, n.pods)
	}
	if len(options.NodeLabels) > 0 {
		n.watchNode(options)
	}
	n.sliceWatch = watch.New(options.watching("resourceslices", n.setSlicesFresh), &watch.CollectionReader{
		Client: client, Resource: "resourceslices", Versions: sliceVersions(),
		Selector: fields.OneTermEqualSelector(resourcev1.ResourceSliceSelectorNodeName, options.Node).String(),
	}, n.slices)
	return n
}

// watchNode prepares the watch of the node itself. Nothing but the labels of the options
// is kept of it.
func (n *NodeWatch) watchNode(options Options) {
	decode := func(node *corev1.Node) (map[string]string, bool) {
		labels := make(map[string]string)
		for _, key := range options.NodeLabels {
			if value, ok := node.Labels[key]; ok {
				labels[key] = value
			}
		}
		return labels, true
	}
	store := watch.NewStore(&n.mu, watch.Decoder[*corev1.Node, map[string]string]{
		Decode: decode,
		Apply: func(event watch.Event[*corev1.Node, map[string]string]) {
			n.labels = nil
			if event.After != nil {
				n.labels = *event.After
			}
		},
		Flush: func() {},
	})
	n.nodeWatch = watch.New(options.watching(nodesSource, func(bool) {}), &watch.CollectionReader{
		Client: n.client, Resource: "nodes", Versions: nodeVersions(),
		Selector: fields.OneTermEqualSelector(metav1.ObjectNameField, options.Node).String(),
	}, store)
}

// Run watches and reads until ctx ends. Failures are reported by Statuses and
// retried.
func (n *NodeWatch) Run(ctx context.Context) {
	defer n.client.Close()
	var running sync.WaitGroup
	defer running.Wait()
	if n.feed != nil {
		running.Go(func() { n.unlistedRead.run(ctx) })
	} else {
		running.Go(func() { n.podWatch.Run(ctx) })
	}
	running.Go(func() { n.sliceWatch.Run(ctx) })
	if n.nodeWatch != nil {
		running.Go(func() { n.nodeWatch.Run(ctx) })
	}
	running.Go(func() { n.claimReader.run(ctx) })
	running.Go(func() { n.poolReader.run(ctx) })
}

// Changed receives when Latest has changed. Its capacity is one.
func (n *NodeWatch) Changed() <-chan struct{} { return n.changed }

// PodChanged receives when a pod of the node that may hold devices, by claims or
// by device plugins, has changed: a reason to query the kubelet.
func (n *NodeWatch) PodChanged() <-chan struct{} { return n.podChanged }

// PodFeed receives the pods of the node; nil unless the options say so.
func (n *NodeWatch) PodFeed() *PodFeed { return n.feed }

// Statuses returns the status of each source: pods unless they are fed,
// resourceclaims, resourceslices, nodes if labels of the node are read.
func (n *NodeWatch) Statuses() []source.Status {
	now := n.now()
	n.mu.Lock()
	pending := n.outdatedSince
	n.mu.Unlock()
	ofSlices, _ := n.sliceWatch.Status(now, pending)
	statuses := []source.Status{n.claimTracker.Status(), ofSlices}
	if n.podWatch != nil {
		ofPods, _ := n.podWatch.Status(now, pending)
		statuses = slices.Insert(statuses, 0, ofPods)
	}
	if n.nodeWatch != nil {
		ofNode, _ := n.nodeWatch.Status(now, clock.Instant{})
		statuses = append(statuses, ofNode)
	}
	return statuses
}

// ClaimsTried reports whether every claim that pods reference has been read, or a
// read of it has failed, and every namespace has been listed once in which a
// claim's name is to be found.
func (n *NodeWatch) ClaimsTried() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.claims.tried() && (n.feed == nil || n.feed.unlisted.tried())
}

// Labels returns the labels of the node that are read, and whether they have been read
// once, or could not be.
func (n *NodeWatch) Labels() (labels map[string]string, tried bool) {
	if n.nodeWatch == nil {
		return nil, true
	}
	status, _ := n.nodeWatch.Status(n.now(), clock.Instant{})
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.labels, status.Tried()
}

// Latest returns what is known now.
func (n *NodeWatch) Latest() NodeFacts {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.outdatedSince = clock.Instant{}
	if n.outdated {
		n.outdated = false
		n.facts.Pods = sortedPods(n.index.withClaims)
		n.facts.Claims = n.claims.claims()
		n.facts.Unread = n.claims.unread()
		n.facts.Published = n.devices.devices()
	}
	if n.outdatedPlugins {
		n.outdatedPlugins = false
		n.facts.PluginPods = sortedPods(n.index.withPlugins)
	}
	return n.facts
}

// outdate notes, under the lock, that what is known has changed.
func (n *NodeWatch) outdate() {
	n.outdated = true
	n.signalOutdated()
}

func (n *NodeWatch) signalOutdated() {
	if n.outdatedSince.IsZero() {
		n.outdatedSince = n.now()
	}
	signal(n.changed)
}

// applyPod applies, under the lock, the change of a pod. The kubelet need not be
// queried about what it has itself reported. Pods with device plugins alone have
// facts of their own: those of all others stay the same slices, so that they are
// not compared again.
func (n *NodeWatch) applyPod(event watch.Event[*corev1.Pod, decode.PodRecord]) {
	previous, updated := event.Before, event.After
	if !decode.SameToKubelet(previous, updated) {
		signal(n.podChanged)
	}
	if !reflect.DeepEqual(previous.UsingClaims(), updated.UsingClaims()) {
		n.outdate()
	}
	if !reflect.DeepEqual(previous.UsingPlugins(), updated.UsingPlugins()) {
		n.outdatedPlugins = true
		n.signalOutdated()
	}
	n.index.apply(event.Name, updated)
}

// resolveReferences resolves, under the lock, the claims that pods reference
// which have changed. After an outage all nodes list their pods at once: the reads
// of claims that are new then are spread over a time. After a start the pace of
// the reads is enough, see docs/decisions/0017.
func (n *NodeWatch) resolveReferences() {
	changed := make(map[dra.ClaimRef]bool)
	for name := range n.index.takeChanged() {
		updated := n.podReferences(name)
		previous := n.index.setReferences(name, updated, changed)
		if n.feed != nil {
			n.feed.unlisted.want(n.now(), name.Namespace, previous.unlisted, updated.unlisted)
		}
	}
	limit := time.Duration(0)
	if n.outage {
		limit = min(outageSpread, time.Duration(len(n.index.consumers))*outageInterval)
	}
	for ref := range changed {
		if n.claims.setConsumers(n.now(), ref, n.index.listConsumers(ref), limit) {
			n.outdate()
		}
	}
	n.applyClaimChanges()
	signal(n.claimReader.wake)
	if n.feed != nil {
		signal(n.unlistedRead.wake)
	}
	n.reportClaims(false)
}

// podReferences returns the references that a pod has now.
func (n *NodeWatch) podReferences(name watch.ObjectName) references {
	record, ok := n.pods.Get(name)
	if !ok || record.Pod.Terminal {
		return references{}
	}
	found := references{uid: record.Pod.UID}
	for _, claim := range record.Pod.Claims {
		if claim.Claim != "" {
			found.claims = append(found.claims, dra.ClaimRef{Namespace: record.Pod.Ref.Namespace, Name: claim.Claim})
		}
	}
	if n.feed != nil {
		found.claims = append(found.claims, n.feed.pods.candidates(&record.Pod)...)
		found.unlisted = n.feed.pods.withUnlisted(name)
	}
	return found
}

// applyClaimChanges applies, under the lock, the allocations of claims that have
// changed.
func (n *NodeWatch) applyClaimChanges() {
	for _, change := range n.claims.takeChanges() {
		if n.devices.applyClaim(n.now(), change) {
			n.outdate()
		}
		signal(n.poolReader.wake)
	}
}

// reportClaims reports, under the lock, the status of the claims as a whole.
func (n *NodeWatch) reportClaims(always bool) {
	var unlisted error
	if n.feed != nil {
		unlisted = n.feed.unlisted.failure()
	}
	n.claims.report(n.claimTracker, n.facts.PodsFresh, unlisted, always)
}

// applySlices applies, under the lock, slices that have changed.
func (n *NodeWatch) applySlices() {
	if n.devices.applySlices(n.now(), slices.Collect(n.slices.Values())) {
		n.outdate()
	}
	signal(n.poolReader.wake)
}

// setPodsFresh records whether the watch of pods, or the feed, works.
func (n *NodeWatch) setPodsFresh(fresh bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.outage = !fresh
	if fresh == n.facts.PodsFresh {
		return
	}
	n.facts.PodsFresh = fresh
	n.outdate()
	if fresh {
		n.claims.retryFailed(n.now())
		n.claimReader.resume()
		n.reportClaims(false)
	}
}

// setSlicesFresh records whether the watch of slices works.
func (n *NodeWatch) setSlicesFresh(fresh bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if fresh != n.facts.SlicesFresh {
		n.facts.SlicesFresh = fresh
		n.outdate()
		if fresh && n.feed != nil { // otherwise the watch of pods shows that the API server can be reached again
			n.claims.retryFailed(n.now())
			n.claimReader.resume()
			n.feed.unlisted.retryFailed(n.now())
			n.unlistedRead.resume()
		}
	}
	if fresh {
		if n.devices.setListed(n.now()) {
			n.outdate()
		}
		signal(n.poolReader.wake)
	}
}

// nextClaim returns the read of the claim that is due.
func (n *NodeWatch) nextClaim() (read func(context.Context) error, wait time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	ref, item, wait := n.claims.queue.begin(n.now())
	if item == nil {
		return nil, wait
	}
	version := n.claims.version(ref)
	return func(ctx context.Context) error { return n.readClaim(ctx, ref, item, version) }, 0
}

func (n *NodeWatch) readClaim(ctx context.Context, ref dra.ClaimRef, item *queuedItem, version string) error {
	began := n.now()
	claim := &resourcev1.ResourceClaim{}
	collection := watch.Collection{Group: resourcev1.SchemeGroupVersion, Namespace: ref.Namespace, Resource: claimsSource}
	err := n.client.Get(ctx, collection, ref.Name, version, claim)
	if err != nil {
		err = fmt.Errorf("get resourceclaim %s/%s: %w", ref.Namespace, ref.Name, err)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	wanted := n.claims.queue.done(ref, item)
	if ctx.Err() != nil {
		return err
	}
	n.claimDuration(n.now().Since(began).Seconds())
	if !wanted {
		return err
	}
	if n.claims.apply(n.now(), ref, claim, err) {
		n.outdate()
	}
	n.applyClaimChanges()
	n.reportClaims(n.claims.records[ref].failure != nil || len(n.claims.outcomes.failed) == 0)
	if n.feed != nil && err == nil {
		n.feed.learn(claim)
	}
	return err
}

// nextPool returns the list of the pool that is due.
func (n *NodeWatch) nextPool() (read func(context.Context) error, wait time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	pool, item, wait := n.devices.remote.queue.begin(n.now())
	if item == nil {
		return nil, wait
	}
	return func(ctx context.Context) error { return n.readPool(ctx, pool, item) }, 0
}

func (n *NodeWatch) readPool(ctx context.Context, pool decode.PoolID, item *queuedItem) error {
	present, err := listPool(ctx, n.client, pool)
	if ctx.Err() == nil {
		n.sliceWatch.Aside(err)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	switch {
	case !n.devices.remote.queue.done(pool, item):
	case err != nil:
		n.devices.remote.retry(n.now(), pool)
	case n.devices.remote.apply(n.now(), pool, present):
		n.outdate()
	}
	return err
}

func listPool(ctx context.Context, client *watch.Client, pool decode.PoolID) (present []decode.SliceRecord, err error) {
	collection := watch.Collection{Group: resourcev1.SchemeGroupVersion, Resource: "resourceslices"}
	options := metav1.ListOptions{
		ResourceVersion: "0",
		FieldSelector: fields.AndSelectors(
			fields.OneTermEqualSelector(resourcev1.ResourceSliceSelectorDriver, pool.Driver),
			fields.OneTermEqualSelector(resourcev1.ResourceSliceSelectorPoolName, pool.Name),
		).String(),
	}
	empty := func() *resourcev1.ResourceSliceList { return &resourcev1.ResourceSliceList{} }
	err = watch.ListPages(ctx, client, collection, options, empty, func(page *resourcev1.ResourceSliceList) {
		for i := range page.Items {
			present = append(present, decode.NewSliceRecord(&page.Items[i]))
		}
	})
	if err != nil {
		return nil, fmt.Errorf("read pool %s of %s: %w", pool.Name, pool.Driver, err)
	}
	return present, nil
}

// nextUnlisted returns the list of the claims of the namespace that is due.
func (n *NodeWatch) nextUnlisted() (read func(context.Context) error, wait time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	namespace, item, wait := n.feed.unlisted.queue.begin(n.now())
	if item == nil {
		return nil, wait
	}
	return func(ctx context.Context) error { return n.readUnlisted(ctx, namespace, item) }, 0
}

// readUnlisted has the feed learn from all claims of a namespace.
func (n *NodeWatch) readUnlisted(ctx context.Context, namespace string, item *queuedItem) error {
	collection := watch.Collection{Group: resourcev1.SchemeGroupVersion, Namespace: namespace, Resource: claimsSource}
	empty := func() *resourcev1.ResourceClaimList { return &resourcev1.ResourceClaimList{} }
	err := watch.ListPages(ctx, n.client, collection, metav1.ListOptions{Limit: watch.PageObjects}, empty, func(page *resourcev1.ResourceClaimList) {
		n.mu.Lock()
		defer n.mu.Unlock()
		for i := range page.Items {
			n.feed.learn(&page.Items[i])
		}
	})
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.feed.unlisted.queue.done(namespace, item) && ctx.Err() == nil {
		n.feed.unlisted.listed(n.now(), namespace, err)
		n.reportClaims(false)
	}
	return err
}
