package clusterread

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/client-go/rest"

	"github.com/dra-exporter/dra-exporter/collector/apiserver"
	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/cluster"
	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/collector/inventory"
	"github.com/dra-exporter/dra-exporter/collector/source"
)

// Reader reads a cluster once.
type Reader struct {
	Config  *rest.Config
	Clock   clock.Clock
	Log     *slog.Logger
	Stderr  io.Writer     // for the progress
	Timeout time.Duration // for reading, and again for the diagnoses
	Server  string        // version of the API server; empty: unknown
}

// readAllowed reads all namespaces, or the subject's alone if this identity may not
// list all.
func (r Reader) readAllowed(ctx context.Context, subject Subject) (*objectsRead, Gaps, error) {
	read, err := r.read(ctx, subject, "")
	if err != nil {
		return nil, nil, err
	}
	var everywhere []source.Status
	if confined(read.statuses) {
		everywhere = read.statuses
		if read, err = r.read(ctx, subject, subject.Namespace); err != nil {
			return nil, nil, err
		}
	}
	if err := reachable(r.Config.Host, read.statuses); err != nil {
		return nil, nil, err
	}
	return read, NewGaps(read.statuses, everywhere, subject.Namespace), nil
}

// objectsRead is what one read of the cluster returned.
type objectsRead struct {
	changes   []cluster.Change
	synced    cluster.Synced
	statuses  []source.Status
	inventory *inventory.Inventory
	specs     *specKeeper
}

// progressAfter is the delay of the first progress message.
const progressAfter = 2 * time.Second

// read lists the collections of the cluster, or of one namespace. What could
// not be read is in the statuses; it fails only when ctx ends.
func (r Reader) read(ctx context.Context, subject Subject, namespace string) (*objectsRead, error) {
	kept := inventory.New()
	specs := newSpecKeeper(kept, subject.Namespace)
	reader, err := apiserver.NewClusterWatch(apiserver.ClusterWatchOptions{
		Config: r.Config, Namespace: namespace, Keeper: specs, Log: r.Log, Clock: r.Clock,
	})
	if err != nil {
		return nil, fmt.Errorf("prepare to read the API server: %w", err)
	}
	running, stop := context.WithCancel(ctx)
	var run sync.WaitGroup
	run.Go(func() { reader.Run(running) })
	r.awaitLists(ctx, reader)
	read := &objectsRead{statuses: reader.Statuses(), inventory: kept, specs: specs}
	stop()
	run.Wait()
	read.changes = reader.Drain()
	read.synced = reader.Synced() // of what has been taken
	return read, ctx.Err()
}

// awaitLists returns when each collection has been listed or has failed, or after the
// timeout. A collection whose list took too long is tried again until then, unless
// nothing has answered.
func (r Reader) awaitLists(ctx context.Context, reader *apiserver.ClusterWatch) {
	const pause = 10 * time.Millisecond
	began, reported := r.Clock(), false
	for !reader.Settled() || slow(reader.Statuses()) {
		waited := r.Clock().Since(began)
		if waited > r.Timeout {
			return
		}
		if waited > progressAfter && !reported {
			reported = true
			fmt.Fprintf(r.Stderr, "still reading: %s\n", strings.Join(source.Unread(reader.Statuses()), ", "))
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
	}
}

// slow reports whether some collection was not listed in time, and another one was
// listed.
func slow(statuses []source.Status) bool {
	late := func(status source.Status) bool {
		return status.Reason == source.ReasonTimeout && status.LastSuccess.IsZero()
	}
	answered := func(status source.Status) bool { return !status.LastSuccess.IsZero() }
	return slices.ContainsFunc(statuses, late) && slices.ContainsFunc(statuses, answered)
}

// reachable returns an error if nothing could be read: there is no API server, its
// version is too old, or this identity may read nothing.
func reachable(host string, statuses []source.Status) error {
	up := false
	for _, status := range statuses {
		up = up || status.Up || !status.LastSuccess.IsZero()
		if status.Reason == source.ReasonUnsupported && status.Name == SourceClaims {
			return errors.New(status.Message)
		}
	}
	if up || len(statuses) == 0 {
		return nil
	}
	for _, status := range statuses {
		if status.Message != "" {
			return fmt.Errorf("nothing can be read from the API server %s: %s", host, status.Message)
		}
	}
	return fmt.Errorf("the API server %s does not answer", host)
}

// confined reports whether objects of namespaces may not be listed in all
// namespaces, so that one namespace is read instead.
func confined(statuses []source.Status) bool {
	return slices.ContainsFunc(statuses, func(status source.Status) bool {
		return status.Reason == source.ReasonPermission && status.LastSuccess.IsZero() && namespaced(status.Name) && !custom(status.Name)
	})
}

// specKeeper passes objects on to another keeper, and keeps the specifications of
// one namespace and the names of device classes. It is safe for concurrent use.
type specKeeper struct {
	apiserver.Keeper
	namespace string

	mu            sync.Mutex
	claimSpecs    map[dra.ClaimRef]Spec
	templateSpecs map[Template]Spec
	classes       map[string]bool
}

func newSpecKeeper(next apiserver.Keeper, namespace string) *specKeeper {
	return &specKeeper{
		Keeper: next, namespace: namespace,
		claimSpecs: make(map[dra.ClaimRef]Spec), templateSpecs: make(map[Template]Spec), classes: make(map[string]bool),
	}
}

// ApplyClaim keeps the specification before the other keeper owns the claim.
func (k *specKeeper) ApplyClaim(namespace, name string, claim *resourcev1.ResourceClaim) {
	if namespace == k.namespace {
		ref := dra.ClaimRef{Namespace: namespace, Name: name}
		k.mu.Lock()
		if delete(k.claimSpecs, ref); claim != nil {
			k.claimSpecs[ref] = NewSpec(&claim.Spec)
		}
		k.mu.Unlock()
	}
	k.Keeper.ApplyClaim(namespace, name, claim)
}

// ApplyTemplate keeps the specification of a template.
func (k *specKeeper) ApplyTemplate(namespace, name string, template *resourcev1.ResourceClaimTemplate) {
	if namespace == k.namespace {
		ref := Template{Namespace: namespace, Name: name}
		k.mu.Lock()
		if delete(k.templateSpecs, ref); template != nil {
			k.templateSpecs[ref] = NewSpec(&template.Spec.Spec)
		}
		k.mu.Unlock()
	}
	k.Keeper.ApplyTemplate(namespace, name, template)
}

// ApplyClass keeps the name of a device class.
func (k *specKeeper) ApplyClass(name string, class *resourcev1.DeviceClass) {
	k.mu.Lock()
	if delete(k.classes, name); class != nil {
		k.classes[name] = true
	}
	k.mu.Unlock()
	k.Keeper.ApplyClass(name, class)
}

// addTo adds what was kept.
func (k *specKeeper) addTo(facts *Facts) {
	k.mu.Lock()
	defer k.mu.Unlock()
	facts.Claims, facts.Templates = maps.Clone(k.claimSpecs), maps.Clone(k.templateSpecs)
	facts.Classes = slices.Sorted(maps.Keys(k.classes))
}
