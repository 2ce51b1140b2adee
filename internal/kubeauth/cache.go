package kubeauth

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
	"k8s.io/apimachinery/pkg/util/cache"

	"github.com/dra-exporter/dra-exporter/collector/clock"
)

const (
	// reviewTTL is how long the result of a review is used. One whose renewal fails
	// is used for outageTTL longer, so that an outage of the API server does not
	// end its monitoring.
	reviewTTL = time.Minute
	outageTTL = 10 * time.Minute
	// reviewTimeout bounds one review, with its wait for others to end, so that
	// a scrape's usual ten seconds are enough for both of its own.
	reviewTimeout = 3 * time.Second
	// retryAfter is how long a failed review is not retried if there is an older
	// result.
	retryAfter = 10 * time.Second
	// concurrentReviews bounds those in flight, separately for first reviews and
	// renewals: requests with invalid tokens delay only each other.
	concurrentReviews = 16
)

// reviewCache caches results of reviews, and requests those that it does not have:
// once for concurrent callers with the same key. It is bounded and safe for
// concurrent use. It stores keys only as a keyed digest.
type reviewCache[V any] struct {
	clock   clock.Clock
	timeout time.Duration // of a review
	accepts func(V) bool
	salt    [sha256.Size]byte

	accepted, denied *cache.LRUExpireCache
	inFlight         singleflight.Group
	first, renewals  chan struct{}

	mu       sync.Mutex
	maxBytes int         // of accepted values; 0: no limit
	size     func(V) int // bytes of a value
	sizes    map[string]int
}

// cachedReview is the result of a review.
type cachedReview[V any] struct {
	value  V
	at     clock.Instant
	failed clock.Instant // the newest failed renewal; zero: none
}

// newReviewCache returns a cache of size accepted results, and separately of denied
// ones, so that invalid tokens evict no valid ones.
func newReviewCache[V any](now clock.Clock, size, denied int, accepts func(V) bool) (*reviewCache[V], error) {
	c := &reviewCache[V]{
		clock: now, timeout: reviewTimeout, accepts: accepts,
		accepted: cache.NewLRUExpireCacheWithClock(size, wall{now}), denied: cache.NewLRUExpireCacheWithClock(denied, wall{now}),
		first: make(chan struct{}, concurrentReviews), renewals: make(chan struct{}, concurrentReviews),
	}
	if _, err := rand.Read(c.salt[:]); err != nil {
		return nil, fmt.Errorf("create a key for cached tokens: %w", err)
	}
	return c, nil
}

// limitBytes bounds the accepted values that are cached. Beyond the bound, the largest
// are evicted.
func (c *reviewCache[V]) limitBytes(most int, size func(V) int) {
	c.maxBytes, c.size, c.sizes = most, size, make(map[string]int)
}

// accept caches an accepted result.
func (c *reviewCache[V]) accept(digest string, result cachedReview[V], ttl time.Duration) {
	c.accepted.Add(digest, result, ttl)
	if c.maxBytes == 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sizes[digest] = c.size(result.value)
	if c.bytes() <= c.maxBytes {
		return
	}
	for known := range c.sizes {
		if _, ok := c.accepted.Get(known); !ok {
			delete(c.sizes, known) // it has expired, or was evicted
		}
	}
	for c.bytes() > c.maxBytes {
		largest := digest
		for known, size := range c.sizes {
			if size > c.sizes[largest] {
				largest = known
			}
		}
		delete(c.sizes, largest)
		c.accepted.Remove(largest)
	}
}

// bytes returns the size of all accepted values, and of some that are not cached any more.
func (c *reviewCache[V]) bytes() int {
	sum := 0
	for _, size := range c.sizes {
		sum += size + 256 // with the entry
	}
	return sum
}

// wall adapts the clock to the cache's library.
type wall struct{ clock clock.Clock }

// Now is monotonic; only differences of its times are used.
func (w wall) Now() time.Time { return time.Unix(0, 0).Add(w.clock().Elapsed) }

// get returns the result for the key, and calls review if there is none or it has
// expired.
func (c *reviewCache[V]) get(ctx context.Context, key string, review func(context.Context) (V, error)) (V, error) {
	digest := c.digest(key)
	old, ok := c.lookup(digest)
	if ok && c.usable(old) {
		return old.value, nil
	}
	result := c.inFlight.DoChan(digest, func() (any, error) {
		if current, found := c.lookup(digest); found && c.usable(current) {
			return current.value, nil // another request has just renewed it
		}
		return c.renew(digest, old, ok, review)
	})
	var none V
	select {
	case <-ctx.Done():
		return none, fmt.Errorf("%w: %w", ErrUnavailable, ctx.Err())
	case r := <-result:
		if r.Err != nil {
			return none, r.Err
		}
		return r.Val.(V), nil
	}
}

// lookup finds a result that can be used, at least in an outage.
func (c *reviewCache[V]) lookup(digest string) (cachedReview[V], bool) {
	for _, known := range []*cache.LRUExpireCache{c.accepted, c.denied} {
		if found, ok := known.Get(digest); ok {
			return found.(cachedReview[V]), true
		}
	}
	return cachedReview[V]{}, false
}

// usable reports whether a result needs no renewal now.
func (c *reviewCache[V]) usable(a cachedReview[V]) bool {
	now := c.clock()
	return now.Since(a.at) < reviewTTL || !a.failed.IsZero() && now.Since(a.failed) < retryAfter
}

// renew calls review. If that fails, an older accepted result stays in use.
func (c *reviewCache[V]) renew(digest string, old cachedReview[V], known bool, review func(context.Context) (V, error)) (V, error) {
	ctx, cancel := context.WithTimeout(context.Background(), c.timeout)
	defer cancel()
	slots := c.first
	if known {
		slots = c.renewals
	}
	value, err := inSlot(ctx, slots, review)
	now := c.clock()
	switch {
	case err == nil && c.accepts(value):
		c.denied.Remove(digest)
		c.accept(digest, cachedReview[V]{value: value, at: now}, reviewTTL+outageTTL)
	case err == nil:
		c.accepted.Remove(digest)
		c.denied.Add(digest, cachedReview[V]{value: value, at: now}, reviewTTL)
	case known && c.accepts(old.value):
		old.failed = now
		c.accept(digest, old, reviewTTL+outageTTL-now.Since(old.at))
		return old.value, nil
	default:
		return value, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	return value, nil
}

func inSlot[V any](ctx context.Context, slots chan struct{}, review func(context.Context) (V, error)) (V, error) {
	select {
	case slots <- struct{}{}:
		defer func() { <-slots }()
		return review(ctx)
	case <-ctx.Done():
		var none V
		return none, errBusy
	}
}

func (c *reviewCache[V]) digest(key string) string {
	mac := hmac.New(sha256.New, c.salt[:])
	mac.Write([]byte(key))
	return string(mac.Sum(nil))
}
