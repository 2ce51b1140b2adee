package apiserver

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"

	"github.com/dra-exporter/dra-exporter/collector/apiserver/decode"
	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/collector/source"
)

// Node gathers what the API server knows of one node. All methods but Run
// may be called at any time from any goroutine; Run once.
type Node struct {
	now       clock.Clock
	client    *client
	claims    *source.Tracker
	claimTook func(seconds float64) // one read

	pods        *collection[*corev1.Pod, decode.PodRecord]
	slices      *collection[*resourcev1.ResourceSlice, decode.SliceRecord]
	podWatch    *watched // nil: the pods are fed
	fed         *PodFeed // nil: the pods are watched
	sliceWatch  *watched
	claimReader *reader
	poolReader  *reader

	hiddenReader *reader // of claims that a feed's pods do not name

	changed, podChanged chan struct{}

	// mu guards all below, and the items of both collections.
	mu           sync.Mutex
	book         *claimBook
	demand       demand
	withClaims   map[objectName]dra.Pod // that have not ended
	withPlugins  map[objectName]dra.Pod
	pools        pools
	far          *farPools
	slicesListed bool // at least once
	stale        bool // facts are behind what is known
	stalePlugins bool // and so are those of pods with device plugins alone
	staleSince   clock.Instant
	facts        Facts
}

// claimsSource is the name of the source that claims are read from.
const claimsSource = "resourceclaims"

// New prepares to read; nothing is sent before Run.
func New(options Options) (*Node, error) {
	if err := options.check(); err != nil {
		return nil, err
	}
	connection, err := newClient(options.Config, options.Limits.orDefault())
	if err != nil {
		return nil, err
	}
	return newNode(options, connection), nil
}

// newNode is New with a client that may be that of several.
func newNode(options Options, connection *client) *Node {
	n := &Node{
		now:        options.Clock,
		client:     connection,
		claims:     source.NewTracker(claimsSource, options.Log, options.Clock, nil),
		claimTook:  options.observer(claimsSource),
		changed:    make(chan struct{}, 1),
		podChanged: make(chan struct{}, 1),
		book:       newClaimBook(spread),
		demand:     newDemand(),
		withClaims: make(map[objectName]dra.Pod), withPlugins: make(map[objectName]dra.Pod),
		pools: make(pools),
		far:   newFarPools(spread),
	}
	n.book.differs = n.claimDiffers
	n.follow(options)
	n.claimReader = &reader{parallel: 4, pace: 25 * time.Millisecond, wake: make(chan struct{}, 1), next: n.nextClaim}
	n.poolReader = &reader{parallel: 1, pace: time.Second, wake: make(chan struct{}, 1), next: n.nextPool}
	n.hiddenReader = &reader{parallel: 1, pace: time.Second, wake: make(chan struct{}, 1), next: n.nextHidden}
	return n
}

func (o Options) tracker(name string) *source.Tracker {
	return source.NewTracker(name, o.Log, o.Clock, o.observer(name))
}

// spread is a random time below the limit.
func spread(limit time.Duration) time.Duration {
	if limit <= 0 {
		return 0
	}
	return rand.N(limit)
}

// follow has pods and slices watched by the names of their node, but for pods
// that are fed.
func (n *Node) follow(options Options) {
	if options.PodsFed {
		n.fed = newPodFeed(n, options.PodLabels)
	} else {
		pods := fields.OneTermEqualSelector("spec.nodeName", options.Node)
		n.podWatch = n.newWatched(options, n.client.core, "pods", pods, func() runtime.Object { return &corev1.PodList{} })
		n.podWatch.list = light(n.podWatch.list, func(pod *corev1.Pod) *corev1.Pod { return decode.StripPod(pod, options.PodLabels...) })
		n.podWatch.turned = n.podsTurned
	}
	n.pods = newCollection[*corev1.Pod, decode.PodRecord](&n.mu, n.podWatch)
	n.pods.strip = func(pod *corev1.Pod) *corev1.Pod { return decode.StripPod(pod, options.PodLabels...) }
	n.pods.decode = func(pod *corev1.Pod) (decode.PodRecord, bool) { return decode.NewPodRecord(pod, options.PodLabels...) }
	n.pods.changed, n.pods.handed, n.pods.settled = n.podDiffers, n.podChangedTo, n.wantClaims

	ofNode := fields.OneTermEqualSelector(resourcev1.ResourceSliceSelectorNodeName, options.Node)
	n.sliceWatch = n.newWatched(options, n.client.resource, "resourceslices", ofNode, func() runtime.Object { return &resourcev1.ResourceSliceList{} })
	n.sliceWatch.list = light(n.sliceWatch.list, decode.StripNodeSlice)
	n.sliceWatch.turned = n.slicesTurned
	n.slices = newCollection[*resourcev1.ResourceSlice, decode.SliceRecord](&n.mu, n.sliceWatch)
	n.slices.strip, n.slices.decode = decode.StripNodeSlice, func(slice *resourcev1.ResourceSlice) (decode.SliceRecord, bool) {
		return decode.NewSliceRecord(slice), true
	}
	n.slices.changed, n.slices.settled = func(_, _ *decode.SliceRecord) {}, n.slicesDiffer
}

// newWatched is the part of a collection that the selector picks.
func (n *Node) newWatched(options Options, group rest.Interface, resource string, selector fields.Selector, empty func() runtime.Object) *watched {
	from := place{group: group, resource: resource}
	return &watched{
		resource: resource,
		tracker:  options.tracker(resource),
		now:      options.Clock,
		limits:   options.Limits.orDefault(),
		list: func(ctx context.Context, query metav1.ListOptions) (runtime.Object, error) {
			query.FieldSelector = selector.String()
			list := empty()
			return list, n.client.list(ctx, from, query, list)
		},
		watch: func(ctx context.Context, query metav1.ListOptions) (watch.Interface, error) {
			query.FieldSelector = selector.String()
			return n.client.watch(ctx, from, query)
		},
	}
}

// light is a list of which no page is held whole until the last has come.
func light[O runtime.Object](list lister, strip func(O) O) lister {
	return func(ctx context.Context, query metav1.ListOptions) (runtime.Object, error) {
		page, err := list(ctx, query)
		if err != nil {
			return nil, err
		}
		about, err := meta.ListAccessor(page)
		if err != nil {
			return nil, fmt.Errorf("understand a list: %w", err)
		}
		stripped := &metainternalversion.List{ListMeta: metav1.ListMeta{
			ResourceVersion: about.GetResourceVersion(), Continue: about.GetContinue(), RemainingItemCount: about.GetRemainingItemCount(),
		}}
		err = meta.EachListItem(page, func(object runtime.Object) error {
			if typed, ok := object.(O); ok {
				stripped.Items = append(stripped.Items, strip(typed))
			}
			return nil
		})
		return stripped, err
	}
}

// lister reads a list or a page of it.
type lister = func(context.Context, metav1.ListOptions) (runtime.Object, error)

// Run reads until ctx ends. What fails meanwhile is told by Statuses, and
// tried again.
func (n *Node) Run(ctx context.Context) {
	defer n.client.close()
	var running sync.WaitGroup
	defer running.Wait()
	if n.fed != nil {
		running.Go(func() { n.hiddenReader.run(ctx) })
	} else {
		running.Go(func() { n.podWatch.run(ctx, &corev1.Pod{}, n.pods) })
	}
	running.Go(func() { n.sliceWatch.run(ctx, &resourcev1.ResourceSlice{}, n.slices) })
	running.Go(func() { n.claimReader.run(ctx) })
	running.Go(func() { n.poolReader.run(ctx) })
}

// Changed receives after Latest has something new to tell. It never holds
// more than one word, however much has changed.
func (n *Node) Changed() <-chan struct{} { return n.changed }

// PodChanged receives after something happened to a pod of the node that may
// hold devices, by claims or by device plugins: reason to ask the kubelet.
func (n *Node) PodChanged() <-chan struct{} { return n.podChanged }

// PodFeed is where the pods of the node have to be told; nil unless the options
// say that they are.
func (n *Node) PodFeed() *PodFeed { return n.fed }

// Statuses says how each source is: pods unless they are fed, resourceclaims,
// resourceslices.
func (n *Node) Statuses() []source.Status {
	now := n.now()
	n.mu.Lock()
	pending := n.staleSince
	n.mu.Unlock()
	statuses := []source.Status{n.claims.Status(), n.sliceWatch.status(now, pending)}
	if n.podWatch != nil {
		statuses = slices.Insert(statuses, 0, n.podWatch.status(now, pending))
	}
	return statuses
}
