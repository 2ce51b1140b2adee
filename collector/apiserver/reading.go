package apiserver

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"

	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/collector/source"
)

// wantClaims is called, under the lock, when pods have changed: the claims
// of those that have not ended are wanted. While the pods are not yet known
// to be fresh, all nodes may be starting at once, and the reads are spread.
func (n *Node) wantClaims() {
	wanted := make(map[dra.ClaimRef][]string)
	for _, record := range n.pods.items {
		if record.pod.Terminal {
			continue
		}
		for _, claim := range record.pod.Claims {
			ref := dra.ClaimRef{Namespace: record.pod.Ref.Namespace, Name: claim.Claim}
			if claim.Claim != "" && !slices.Contains(wanted[ref], record.pod.UID) {
				wanted[ref] = append(wanted[ref], record.pod.UID)
			}
		}
	}
	if n.fed != nil {
		n.fed.candidates(func(claim dra.ClaimRef, uid string) { wanted[claim] = append(wanted[claim], uid) })
		n.wantHidden()
	}
	for _, consumers := range wanted {
		slices.Sort(consumers)
	}
	within := time.Duration(0)
	if !n.facts.PodsFresh {
		within = min(startSpread, time.Duration(len(wanted))*n.claimReader.pace)
	}
	if n.book.want(n.now(), wanted, within) {
		n.touch()
	}
	signal(n.claimReader.wake)
	n.tellClaims(false)
	n.wantPools()
}

// tellClaims says, under the lock, how it goes with the claims as a whole:
// the source is down when none of those that were asked for could be read,
// and impaired when some could not. It says it again where nothing is
// different, if told to: so that times of success and failures count.
func (n *Node) tellClaims(again bool) {
	sum, before := n.book.outcome(), n.claims.Status()
	rest := len(n.book.known) == 0 && n.facts.PodsFresh
	failure := sum.failure
	if sum.failed > 1 {
		failure = fmt.Errorf("%d of %d claims cannot be read: %w", sum.failed, len(n.book.known), failure)
	}
	hidden := n.hiddenFailure()
	switch {
	case sum.failed > 0 && sum.succeeded == 0:
		if again || before.Up {
			n.claims.Report(failure)
		}
	case sum.failed > 0, hidden != nil:
		if again || !before.Up || before.Reason == source.ReasonNone {
			n.claims.Impair(cmp.Or(failure, hidden))
		}
	case sum.succeeded > 0 || rest:
		if again || !before.Up || before.Reason != source.ReasonNone {
			n.claims.Report(nil)
		}
	}
}

// nextClaim hands out the read of the claim that is due.
func (n *Node) nextClaim() (read func(context.Context), wait time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	ref, taken, wait := n.book.agenda.begin(n.now())
	if taken == nil {
		return nil, wait
	}
	version := n.book.version(ref)
	return func(ctx context.Context) { n.readClaim(ctx, ref, taken, version) }, 0
}

func (n *Node) readClaim(ctx context.Context, ref dra.ClaimRef, taken *appointment, version string) {
	began := n.now()
	claim, err := n.client.claim(ctx, ref.Namespace, ref.Name, version)
	n.mu.Lock()
	defer n.mu.Unlock()
	wanted := n.book.agenda.done(ref, taken)
	if ctx.Err() != nil {
		return
	}
	n.claimTook(n.now().Since(began).Seconds())
	if !wanted {
		return
	}
	if n.noteClaim(ref, claim, err) {
		n.touch()
	}
	failed := n.book.known[ref].failure != nil
	n.tellClaims(failed || n.book.outcome().failed == 0)
	n.wantPools()
	if n.fed != nil && err == nil {
		n.fed.learn(claim)
	}
}

// noteClaim reports whether the claim is another than was known.
func (n *Node) noteClaim(ref dra.ClaimRef, claim *resourcev1.ResourceClaim, err error) bool {
	switch {
	case apierrors.IsNotFound(err) && !isUnsupported(err):
		return n.book.missing(n.now(), ref)
	case err != nil:
		return n.book.broken(n.now(), ref, failure(err))
	default:
		return n.book.found(n.now(), ref, decodeClaim(claim), claim.ResourceVersion)
	}
}

// wantPools finds, under the lock, the devices that claims here were given
// though no slice of this node publishes their pool.
func (n *Node) wantPools() {
	if !n.slicesListed {
		return
	}
	wanted := make(map[poolID]map[string]bool)
	for _, record := range n.book.known {
		if record.claim == nil {
			continue
		}
		for _, result := range record.claim.Results {
			pool := poolOf(result.Device)
			if _, near := n.pools[pool]; near {
				continue
			}
			if wanted[pool] == nil {
				wanted[pool] = make(map[string]bool)
			}
			wanted[pool][result.Device.Name] = true
		}
	}
	if n.far.want(n.now(), wanted) {
		n.touch()
	}
	signal(n.poolReader.wake)
}

// nextPool hands out the list of the pool that is due.
func (n *Node) nextPool() (read func(context.Context), wait time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	pool, taken, wait := n.far.agenda.begin(n.now())
	if taken == nil {
		return nil, wait
	}
	return func(ctx context.Context) { n.readPool(ctx, pool, taken) }, 0
}

func (n *Node) readPool(ctx context.Context, pool poolID, taken *appointment) {
	present, err := n.listPool(ctx, pool)
	if ctx.Err() == nil {
		n.sliceWatch.aside(err)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.far.agenda.done(pool, taken) {
		return
	}
	if err != nil {
		n.far.broken(n.now(), pool)
		return
	}
	if n.far.listed(n.now(), pool, present) {
		n.touch()
	}
}

func (n *Node) listPool(ctx context.Context, pool poolID) ([]poolSlice, error) {
	options := metav1.ListOptions{
		ResourceVersion: "0",
		FieldSelector: fields.AndSelectors(
			fields.OneTermEqualSelector(resourcev1.ResourceSliceSelectorDriver, pool.driver),
			fields.OneTermEqualSelector(resourcev1.ResourceSliceSelectorPoolName, pool.name),
		).String(),
	}
	var present []poolSlice
	for {
		list := &resourcev1.ResourceSliceList{}
		if err := n.client.list(ctx, place{group: n.client.resource, resource: "resourceslices"}, options, list); err != nil {
			return nil, fmt.Errorf("read pool %s of %s: %w", pool.name, pool.driver, err)
		}
		for i := range list.Items {
			present = append(present, decodePoolSlice(&list.Items[i]))
		}
		if options.Continue = list.Continue; options.Continue == "" {
			return present, nil
		}
		options.ResourceVersion = ""
	}
}
