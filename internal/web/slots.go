package web

import (
	"context"
	"net/http"
	"sync"
)

// slots bounds how many pages are rendered at a time. Requests wait for a slot
// for renderWait at most.
type slots struct {
	free chan struct{}

	max, maxOfClient int // requests that wait or are rendered

	mu       sync.Mutex
	requests int
	ofClient map[string]int
}

func newSlots(slotCount, most, mostOfClient int) *slots {
	return &slots{free: make(chan struct{}, slotCount), max: most, maxOfClient: mostOfClient, ofClient: map[string]int{}}
}

// enter counts a request of the client if it is within the bounds, and reports whether
// it is. The caller must then call leave.
func (s *slots) enter(client string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.requests >= s.max || s.ofClient[client] >= limitOf(client, s.max, s.maxOfClient) {
		return false
	}
	s.requests++
	s.ofClient[client]++
	return true
}

func (s *slots) leave(client string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests--
	if s.ofClient[client]--; s.ofClient[client] == 0 {
		delete(s.ofClient, client)
	}
}

// acquire waits for a slot, which must be released.
func (s *slots) acquire(ctx context.Context) error {
	select {
	case s.free <- struct{}{}:
		return nil
	default:
	}
	ctx, cancel := context.WithTimeout(ctx, renderWait)
	defer cancel()
	select {
	case s.free <- struct{}{}:
		return nil
	case <-ctx.Done():
		return errBusy
	}
}

func (s *slots) release() { <-s.free }

// buffered renders each response of a handler into memory while it has a slot, and
// sends it afterwards.
func (s *slots) buffered(to *writes, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		page, err := s.rendered(next, r)
		if err != nil {
			refuse(w, err)
			return
		}
		to.send(w, r, page)
	})
}

func (s *slots) rendered(next http.Handler, r *http.Request) (*rendered, error) {
	client := addressOf(r.RemoteAddr)
	if !s.enter(client) {
		return nil, errBusy
	}
	defer s.leave(client)
	if err := s.acquire(r.Context()); err != nil {
		return nil, err
	}
	defer s.release()
	return render(next, r), nil
}

// direct bounds the requests of a handler that writes its response itself.
func (s *slots) direct(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		client := addressOf(r.RemoteAddr)
		if !s.enter(client) {
			refuse(w, errBusy)
			return
		}
		defer s.leave(client)
		next.ServeHTTP(w, r)
	})
}

// batches renders one page for all requests with the same key that wait for a slot at
// the same time. A request never gets a page whose rendering began before it arrived.
type batches struct {
	slots *slots

	mu      sync.Mutex
	waiting map[string]*batch // by the key of their requests
}

type batch struct {
	done chan struct{}
	page *rendered // once done; nil if there was no slot
}

func newBatches(s *slots) *batches { return &batches{slots: s, waiting: map[string]*batch{}} }

// buffered is slots.buffered for a handler whose response is the same for requests with
// the same key. A request without a key does not share its response.
func (b *batches) buffered(to *writes, key func(*http.Request) string, next http.Handler) http.Handler {
	alone := b.slots.buffered(to, next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		common := key(r)
		if common == "" {
			alone.ServeHTTP(w, r)
			return
		}
		page, err := b.rendered(common, next, r)
		if err != nil {
			refuse(w, err)
			return
		}
		to.send(w, r, page)
	})
}

func (b *batches) rendered(key string, next http.Handler, r *http.Request) (*rendered, error) {
	client := addressOf(r.RemoteAddr)
	if !b.slots.enter(client) {
		return nil, errBusy
	}
	defer b.slots.leave(client)
	b.mu.Lock()
	joined, others := b.waiting[key]
	if !others {
		joined = &batch{done: make(chan struct{})}
		b.waiting[key] = joined
	}
	b.mu.Unlock()
	if !others {
		b.render(key, joined, next, r)
	}
	select {
	case <-joined.done:
	case <-r.Context().Done():
		return nil, errBusy
	}
	if joined.page == nil {
		return nil, errBusy
	}
	return joined.page, nil
}

// render renders the page of a batch for its first request. It does not stop if the
// client of that request disconnects, because other requests wait for the page.
func (b *batches) render(key string, mine *batch, next http.Handler, r *http.Request) {
	defer close(mine.done)
	ctx := context.WithoutCancel(r.Context())
	err := b.slots.acquire(ctx)
	b.mu.Lock()
	delete(b.waiting, key)
	b.mu.Unlock()
	if err != nil {
		return
	}
	defer b.slots.release()
	mine.page = render(next, r.WithContext(ctx))
}
