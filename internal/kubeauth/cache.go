package kubeauth

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"time"

	"golang.org/x/sync/singleflight"
	"k8s.io/apimachinery/pkg/util/cache"

	"github.com/dra-exporter/dra-exporter/collector/clock"
)

// How long an answer of the API server holds. An answer whose renewal fails is
// used for outage longer, so that an outage of the API server does not end the
// monitoring of it.
const (
	answerTTL = time.Minute
	outage    = 10 * time.Minute
)

const (
	// reviewTimeout bounds one review, with its wait for others to end, so that
	// a scrape's usual ten seconds are enough for both of its own.
	reviewTimeout = 3 * time.Second
	// retryAfter is how long a failed review is not tried again, where there
	// is an older answer.
	retryAfter = 10 * time.Second
	// concurrentReviews bounds those in flight, once for what was never
	// answered and once for what was answered before: requests with made-up
	// tokens wait for each other, and for nobody else.
	concurrentReviews = 16
)

// memory holds answers of the API server, and asks for those that it does not
// have: once for all that want the same one. It is bounded and safe for
// concurrent use. Keys are kept as a keyed digest alone.
type memory[V any] struct {
	clock clock.Clock
	good  func(V) bool
	salt  [sha256.Size]byte

	known, refused *cache.LRUExpireCache
	asking         singleflight.Group
	first, renewed chan struct{}
}

// answer is what the API server has said, and since when asking again fails.
type answer[V any] struct {
	value  V
	at     clock.Instant
	failed clock.Instant // zero: it does not
}

// newMemory makes one that holds size good answers, and as many others as refused
// says: made-up tokens evict none that are good.
func newMemory[V any](now clock.Clock, size, refused int, good func(V) bool) (*memory[V], error) {
	m := &memory[V]{
		clock: now, good: good,
		known: cache.NewLRUExpireCacheWithClock(size, wall{now}), refused: cache.NewLRUExpireCacheWithClock(refused, wall{now}),
		first: make(chan struct{}, concurrentReviews), renewed: make(chan struct{}, concurrentReviews),
	}
	if _, err := rand.Read(m.salt[:]); err != nil {
		return nil, fmt.Errorf("make a key for remembered tokens: %w", err)
	}
	return m, nil
}

// wall is a clock in the form of the cache's library.
type wall struct{ clock clock.Clock }

// Now returns a time that only differences are taken of: the wall clock may jump.
func (w wall) Now() time.Time { return time.Unix(0, 0).Add(w.clock().Elapsed) }

// get returns the answer for the key, asked for with ask where none is known or
// it has become too old.
func (m *memory[V]) get(ctx context.Context, key string, ask func(context.Context) (V, error)) (V, error) {
	digest := m.digest(key)
	old, known := m.lookUp(digest)
	if known && m.usable(old) {
		return old.value, nil
	}
	result := m.asking.DoChan(digest, func() (any, error) {
		if current, found := m.lookUp(digest); found && m.usable(current) {
			return current.value, nil // another request has just asked
		}
		return m.ask(digest, old, known, ask)
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

// lookUp finds an answer that is young enough to be used, if only in an outage.
func (m *memory[V]) lookUp(digest string) (answer[V], bool) {
	for _, cache := range []*cache.LRUExpireCache{m.known, m.refused} {
		if found, ok := cache.Get(digest); ok {
			return found.(answer[V]), true
		}
	}
	return answer[V]{}, false
}

// usable reports whether an answer needs no renewal now.
func (m *memory[V]) usable(a answer[V]) bool {
	now := m.clock()
	return now.Since(a.at) < answerTTL || !a.failed.IsZero() && now.Since(a.failed) < retryAfter
}

// ask asks the API server. Where it does not answer, a good answer of before
// stays in use.
func (m *memory[V]) ask(digest string, old answer[V], known bool, ask func(context.Context) (V, error)) (V, error) {
	ctx, cancel := context.WithTimeout(context.Background(), reviewTimeout)
	defer cancel()
	slots := m.first
	if known {
		slots = m.renewed
	}
	value, err := inSlot(ctx, slots, ask)
	now := m.clock()
	switch {
	case err == nil && m.good(value):
		m.refused.Remove(digest)
		m.known.Add(digest, answer[V]{value: value, at: now}, answerTTL+outage)
	case err == nil:
		m.known.Remove(digest)
		m.refused.Add(digest, answer[V]{value: value, at: now}, answerTTL)
	case known && m.good(old.value):
		old.failed = now
		m.known.Add(digest, old, answerTTL+outage-now.Since(old.at))
		return old.value, nil
	default:
		return value, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	return value, nil
}

func inSlot[V any](ctx context.Context, slots chan struct{}, ask func(context.Context) (V, error)) (V, error) {
	select {
	case slots <- struct{}{}:
		defer func() { <-slots }()
		return ask(ctx)
	case <-ctx.Done():
		var none V
		return none, errBusy
	}
}

func (m *memory[V]) digest(key string) string {
	mac := hmac.New(sha256.New, m.salt[:])
	mac.Write([]byte(key))
	return string(mac.Sum(nil))
}
