package apiserver

import (
	"context"
	"errors"
	"log/slog"
	"sync"

	"k8s.io/client-go/rest"

	"github.com/dra-exporter/dra-exporter/collector/apiserver/decode"
	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/source"
)

// ClusterOptions say what to read and whom to tell. All but Namespace,
// Observe and Limits are needed.
type ClusterOptions struct {
	Config    *rest.Config
	Namespace string // pods, claims, templates, groups and events of this one alone; empty: of all
	Keeper    Keeper
	Log       *slog.Logger
	Clock     clock.Clock

	// Observe returns what is told how long each request of the named
	// source took, in seconds.
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

// Cluster follows what the API server knows of claims in the whole cluster,
// or in one namespace. What a claim's life consists of is told as changes;
// the objects by which allocation is judged are handed to the keeper and not
// held here. All methods but Run may be called at any time from any goroutine;
// Run once.
//
// What has not been taken is kept without a limit: whoever makes a Cluster
// takes the changes.
type Cluster struct {
	options ClusterOptions
	client  *client
	journal *journal
	kinds   []*followed
	claims  *followed // speaks for the whole API group
	asking  *extendedNames
	pending *pendingReferences

	mu     sync.Mutex
	synced Synced
	barred bool // the API server has no resource.k8s.io/v1
}

// Synced says of which collections everything is known. What has been known
// once stays so while its watch is interrupted; a collection that cannot be
// read (for want of permission, or because it is not served) never is.
type Synced struct {
	Claims, Pods, Slices, Classes, Nodes, Events bool
}

// NewCluster prepares to read; nothing is sent before Run.
func NewCluster(options ClusterOptions) (*Cluster, error) {
	if err := options.check(); err != nil {
		return nil, err
	}
	connection, err := newClient(options.Config, options.Limits.orDefault())
	if err != nil {
		return nil, err
	}
	c := &Cluster{
		options: options,
		client:  connection,
		journal: newJournal(options.Clock),
		asking:  newExtendedNames(),
		pending: newPendingReferences(),
	}
	c.followPods()
	c.followClaims()
	c.followSlices()
	c.followNodes()
	c.followClasses()
	c.followRules()
	c.followTemplates()
	c.followGroups()
	c.followEvents(decode.ReasonPreparation, false)
	c.followEvents(decode.ReasonCreation, true)
	return c, nil
}

// Run reads until ctx ends. What fails meanwhile is told by Statuses, and
// tried again.
func (c *Cluster) Run(ctx context.Context) {
	defer c.client.close()
	var running sync.WaitGroup
	defer running.Wait()
	begin := func(ofDRA bool) {
		for _, kind := range c.kinds {
			if kind.ofDRA == ofDRA {
				running.Go(func() { kind.watched.run(ctx, nil, kind.store) })
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

// awaitAPI returns when the API server has resource.k8s.io/v1, or does not
// say; false when ctx has ended. That it has not is told once, rather than by
// each collection of the group.
func (c *Cluster) awaitAPI(ctx context.Context) bool {
	pauses := newPauses(spread)
	for ctx.Err() == nil {
		began := c.options.Clock()
		err := c.client.probe(ctx, c.options.Namespace)
		if !isUnsupported(err) {
			c.bar(false)
			return ctx.Err() == nil
		}
		c.claims.watched.fail(err)
		c.bar(true)
		sleep(ctx, pauses.after(err, c.options.Clock().Since(began)))
	}
	return false
}

func (c *Cluster) bar(barred bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.barred = barred
	signal(c.journal.changed)
}

// Changed receives after there is something to take, or a source or what is
// synced is different. It never holds more than one word, however much has
// changed.
func (c *Cluster) Changed() <-chan struct{} { return c.journal.changed }

// Take returns all changes since the last call, in the order in which they
// were told. They are the caller's.
func (c *Cluster) Take() []Change {
	c.mu.Lock()
	defer c.mu.Unlock()
	// Asked before, what is synced cannot be ahead of what is taken.
	c.synced = Synced{
		Claims: c.known("resourceclaims"), Pods: c.known("pods"), Slices: c.known("resourceslices"),
		Classes: c.known("deviceclasses"), Nodes: c.known("nodes"), Events: c.known("events"),
	}
	return c.journal.take()
}

// Synced says what is known as a whole to those who have been given all that
// Take has returned so far.
func (c *Cluster) Synced() Synced {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.synced
}

func (c *Cluster) known(name string) bool {
	for _, kind := range c.kinds {
		if kind.watched.resource == name && !kind.watched.isListed() {
			return false
		}
	}
	return true
}

// Settled reports whether each collection has been listed once, or has failed
// to be, or is not served: whether there is nothing to wait for.
func (c *Cluster) Settled() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, kind := range c.kinds {
		if barred := kind.ofDRA && c.barred; !barred && !kind.watched.isSettled() {
			return false
		}
	}
	return true
}

// Statuses says how each source is: one per resource, by its name, and none
// for those that an API server may well not serve while it does not. Where
// resource.k8s.io/v1 as a whole is not served, the claims say so in words and
// the group's other resources by their reason alone.
func (c *Cluster) Statuses() []source.Status {
	now, pending := c.options.Clock(), c.journal.oldest()
	c.mu.Lock()
	barred := c.barred
	c.mu.Unlock()
	var all []source.Status
	for _, kind := range c.kinds {
		status, served := kind.watched.statusIfServed(now, pending)
		if kind.ofDRA && barred && status.Reason == source.ReasonNone {
			status.Reason = source.ReasonUnsupported
		}
		if status.Name == "pods" {
			status = c.pending.note(status)
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

// worse is the status of a source that is read in two parts.
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
