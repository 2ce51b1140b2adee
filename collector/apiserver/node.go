package apiserver

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/source"
)

// Node gathers what the API server knows of one node. All methods but Run
// may be called at any time from any goroutine; Run once.
type Node struct {
	now    clock.Clock
	client *client
	claims *source.Tracker

	pods        *collection[*corev1.Pod, podRecord]
	slices      *collection[*resourcev1.ResourceSlice, poolSlice]
	podWatch    *watched
	sliceWatch  *watched
	claimReader *reader
	poolReader  *reader

	changed, podChanged chan struct{}

	// mu guards all below, and the items of both collections.
	mu           sync.Mutex
	book         *claimBook
	pools        pools
	far          *farPools
	slicesListed bool // at least once
	stale        bool // facts are behind what is known
	facts        Facts
}

// New prepares to read; nothing is sent before Run.
func New(options Options) (*Node, error) {
	if err := options.check(); err != nil {
		return nil, err
	}
	connection, err := newClient(options.Config)
	if err != nil {
		return nil, err
	}
	n := &Node{
		now:        options.Clock,
		client:     connection,
		claims:     options.tracker("resourceclaims"),
		changed:    make(chan struct{}, 1),
		podChanged: make(chan struct{}, 1),
		book:       newClaimBook(spread),
		pools:      make(pools),
		far:        newFarPools(spread),
	}
	n.watchPods(options)
	n.watchSlices(options)
	n.claimReader = &reader{parallel: 4, pace: 50 * time.Millisecond, wake: make(chan struct{}, 1), next: n.nextClaim}
	n.poolReader = &reader{parallel: 1, pace: time.Second, wake: make(chan struct{}, 1), next: n.nextPool}
	return n, nil
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

func (n *Node) watchPods(options Options) {
	selector := fields.OneTermEqualSelector("spec.nodeName", options.Node).String()
	n.podWatch = &watched{
		resource: "pods",
		tracker:  options.tracker("pods"),
		now:      options.Clock,
		turned:   n.podsTurned,
		list: func(ctx context.Context, query metav1.ListOptions) (runtime.Object, error) {
			query.FieldSelector = selector
			list := &corev1.PodList{}
			return list, n.client.list(ctx, n.client.core, "pods", query, list)
		},
		watch: func(ctx context.Context, query metav1.ListOptions) (watch.Interface, error) {
			query.FieldSelector = selector
			return n.client.watch(ctx, n.client.core, "pods", query)
		},
	}
	n.pods = &collection[*corev1.Pod, podRecord]{
		lock:     &n.mu,
		items:    make(map[string]podRecord),
		strip:    stripPod,
		decode:   recordPod,
		changed:  n.podDiffers,
		settled:  n.wantClaims,
		replaced: n.podWatch.replaced,
	}
}

func (n *Node) watchSlices(options Options) {
	selector := fields.OneTermEqualSelector(resourcev1.ResourceSliceSelectorNodeName, options.Node).String()
	n.sliceWatch = &watched{
		resource: "resourceslices",
		tracker:  options.tracker("resourceslices"),
		now:      options.Clock,
		turned:   n.slicesTurned,
		list: func(ctx context.Context, query metav1.ListOptions) (runtime.Object, error) {
			query.FieldSelector = selector
			list := &resourcev1.ResourceSliceList{}
			return list, n.client.list(ctx, n.client.resource, "resourceslices", query, list)
		},
		watch: func(ctx context.Context, query metav1.ListOptions) (watch.Interface, error) {
			query.FieldSelector = selector
			return n.client.watch(ctx, n.client.resource, "resourceslices", query)
		},
	}
	n.slices = &collection[*resourcev1.ResourceSlice, poolSlice]{
		lock:     &n.mu,
		items:    make(map[string]poolSlice),
		strip:    stripSlice,
		decode:   func(slice *resourcev1.ResourceSlice) (poolSlice, bool) { return decodePoolSlice(slice), true },
		changed:  func(_, _ *poolSlice) {},
		settled:  n.slicesDiffer,
		replaced: n.sliceWatch.replaced,
	}
}

// Run reads until ctx ends. It returns nil then: what fails meanwhile is
// told by Statuses, and tried again.
func (n *Node) Run(ctx context.Context) error {
	defer n.client.close()
	var running sync.WaitGroup
	defer running.Wait()
	running.Go(func() { n.podWatch.run(ctx, &corev1.Pod{}, n.pods) })
	running.Go(func() { n.sliceWatch.run(ctx, &resourcev1.ResourceSlice{}, n.slices) })
	running.Go(func() { n.claimReader.run(ctx) })
	running.Go(func() { n.poolReader.run(ctx) })
	return nil
}

// Changed receives after Latest has something new to tell. It never holds
// more than one word, however much has changed.
func (n *Node) Changed() <-chan struct{} { return n.changed }

// PodChanged receives after something happened to a pod of the node that may
// hold devices, by claims or by device plugins: reason to ask the kubelet.
func (n *Node) PodChanged() <-chan struct{} { return n.podChanged }

// Statuses says how each source is: pods, resourceclaims, resourceslices.
func (n *Node) Statuses() []source.Status {
	now := n.now()
	return []source.Status{n.podWatch.status(now), n.claims.Status(), n.sliceWatch.status(now)}
}
