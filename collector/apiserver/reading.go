package apiserver

import (
	"cmp"
	"context"
	"fmt"
	"time"

	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"

	"github.com/dra-exporter/dra-exporter/collector/apiserver/decode"
	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/collector/source"
)

// tellClaims says, under the lock, how it goes with the claims as a whole:
// the source is down when none of those that were asked for could be read,
// and impaired when some could not. It says it again where nothing is
// different, if told to: so that times of success and failures count.
func (n *Node) tellClaims(again bool) {
	sum, before := &n.book.sum, n.claims.Status()
	rest := len(n.book.known) == 0 && n.facts.PodsFresh
	failure, failed := sum.failure(), len(sum.failed)
	if failed > 1 {
		failure = fmt.Errorf("%d of %d claims cannot be read: %w", failed, len(n.book.known), failure)
	}
	hidden := n.hiddenFailure()
	switch {
	case failed > 0 && len(sum.succeeded) == 0:
		if again || before.Up {
			n.claims.Report(failure)
		}
	case failed > 0, hidden != nil:
		if again || !before.Up || before.Reason == source.ReasonNone {
			n.claims.Impair(cmp.Or(failure, hidden))
		}
	case len(sum.succeeded) > 0 || rest:
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
	n.tellClaims(failed || len(n.book.sum.failed) == 0)
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
		return n.book.found(n.now(), ref, decode.Claim(claim), claim.ResourceVersion)
	}
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

func (n *Node) readPool(ctx context.Context, pool decode.PoolID, taken *appointment) {
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

func (n *Node) listPool(ctx context.Context, pool decode.PoolID) ([]decode.SliceRecord, error) {
	options := metav1.ListOptions{
		ResourceVersion: "0",
		FieldSelector: fields.AndSelectors(
			fields.OneTermEqualSelector(resourcev1.ResourceSliceSelectorDriver, pool.Driver),
			fields.OneTermEqualSelector(resourcev1.ResourceSliceSelectorPoolName, pool.Name),
		).String(),
	}
	var present []decode.SliceRecord
	for {
		list := &resourcev1.ResourceSliceList{}
		if err := n.client.list(ctx, place{group: n.client.resource, resource: "resourceslices"}, options, list); err != nil {
			return nil, fmt.Errorf("read pool %s of %s: %w", pool.Name, pool.Driver, err)
		}
		for i := range list.Items {
			present = append(present, decode.NewSliceRecord(&list.Items[i]))
		}
		if options.Continue = list.Continue; options.Continue == "" {
			return present, nil
		}
		options.ResourceVersion = ""
	}
}
