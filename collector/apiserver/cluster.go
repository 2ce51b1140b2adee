package apiserver

import (
	"context"
	"errors"
	"log/slog"
	"sync"

	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/dra-exporter/dra-exporter/collector/apiserver/decode"
	"github.com/dra-exporter/dra-exporter/collector/apiserver/watch"
	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/collector/source"
)

// ClusterOptions are the options of a Cluster. All but Namespace, Observe and
// Limits are required.
type ClusterOptions struct {
	Config    *rest.Config
	Namespace string // of pods, claims, templates, groups and events; empty: all
	Keeper    Keeper
	Log       *slog.Logger
	Clock     clock.Clock

	// Observe returns what observes the duration of each request of the named
	// source, in seconds.
	Observe func(source string) func(seconds float64)

	Limits Limits
}

func (o ClusterOptions) check() error {
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

// Synced says which collections were known as a whole.
type Synced = dra.Synced

// Cluster watches everything that concerns claims in the whole cluster, or in
// one namespace. Changes of pods, claims, groups, nodes and events are recorded;
// the objects that a diagnosis of allocations needs are passed to the keeper and
// not kept here. All methods but Run may be called at any time from any
// goroutine; Run once.
//
// The changes that are not taken are kept without a limit.
type Cluster struct {
	options     ClusterOptions
	client      *watch.Client
	log         *changelog
	collections []watched
	claims      *watch.Watcher // reports the status of the whole API group
	pods        *clusterPods

	mu          sync.Mutex
	synced      Synced
	unsupported bool // the API server does not serve resource.k8s.io/v1
}

// NewCluster returns a Cluster that sends nothing before Run.
func NewCluster(options ClusterOptions) (*Cluster, error) {
	if err := options.check(); err != nil {
		return nil, err
	}
	connection, err := watch.NewClient(options.Config, options.Limits)
	if err != nil {
		return nil, err
	}
	log := newChangelog(options.Clock)
	c := &Cluster{options: options, client: connection, log: log, pods: newClusterPods(log)}
	c.watchPods()
	c.watchClaims()
	c.watchSlices()
	c.watchNodes()
	c.watchClasses()
	c.watchRules()
	c.watchTemplates()
	c.watchGroups()
	c.watchEvents(decode.ReasonPreparation, false)
	c.watchEvents(decode.ReasonCreation, true)
	return c, nil
}

// Run watches until ctx ends. Failures are reported by Statuses and retried.
func (c *Cluster) Run(ctx context.Context) {
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
func (c *Cluster) awaitAPI(ctx context.Context) bool {
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

func (c *Cluster) setUnsupported(unsupported bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.unsupported = unsupported
	signal(c.log.changed)
}

// Changed receives when there are changes to take, or the status of a source or
// what is synced has changed. Its capacity is one.
func (c *Cluster) Changed() <-chan struct{} { return c.log.changed }

// Take returns all changes since the last call, in the order in which they were
// received. They belong to the caller.
func (c *Cluster) Take() []Change {
	c.mu.Lock()
	defer c.mu.Unlock()
	// Read before the changes, so that it is not ahead of them.
	c.synced = Synced{
		Claims: c.listed(claimsSource), Pods: c.listed("pods"), Slices: c.listed("resourceslices"),
		Classes: c.listed("deviceclasses"), Nodes: c.listed("nodes"), Events: c.listed("events"),
	}
	return c.log.take()
}

// Synced says which collections the changes that Take has returned make known as
// a whole.
func (c *Cluster) Synced() Synced {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.synced
}

func (c *Cluster) listed(resource string) bool {
	for _, collection := range c.collections {
		if collection.resource == resource && !collection.watcher.Listed() {
			return false
		}
	}
	return true
}

// Settled reports whether each collection was listed, failed to be, or is not
// served.
func (c *Cluster) Settled() bool {
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
func (c *Cluster) Statuses() []source.Status {
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
	one, other := a, b
	if a.Up && a.Reason == source.ReasonNone {
		one, other = b, a
	}
	one.Errors += other.Errors
	one.Queue.Events += other.Queue.Events
	one.Queue.Lag = max(one.Queue.Lag, other.Queue.Lag)
	if other.LastSuccess.Elapsed < one.LastSuccess.Elapsed {
		one.LastSuccess = other.LastSuccess
	}
	return one
}
