package web

import (
	"context"
	"net/http"
	"sync"
)

// renderLimiter bounds how many pages are rendered at a time. Requests wait for a slot
// for renderWait at most.
type renderLimiter struct {
	free chan struct{}

	max, maxOfClient int // requests that wait or are rendered

	mu       sync.Mutex
	requests int
	ofClient map[string]int
}

func newRenderLimiter(slotCount, most, mostOfClient int) *renderLimiter {
	return &renderLimiter{free: make(chan struct{}, slotCount), max: most, maxOfClient: mostOfClient, ofClient: map[string]int{}}
}

// enter counts a request of the client if it is within the bounds, and reports whether
// it is. The caller must then call leave.
func (s *renderLimiter) enter(client string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.requests >= s.max || s.ofClient[client] >= clientLimit(client, s.max, s.maxOfClient) {
		return false
	}
	s.requests++
	s.ofClient[client]++
	return true
}

func (s *renderLimiter) leave(client string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests--
	if s.ofClient[client]--; s.ofClient[client] == 0 {
		delete(s.ofClient, client)
	}
}

// acquire waits for a slot, which must be released.
func (s *renderLimiter) acquire(ctx context.Context) error {
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

func (s *renderLimiter) release() { <-s.free }

// buffered renders each response of a handler into memory while it has a slot, and
// sends it afterwards.
func (s *renderLimiter) buffered(list *writes, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		page, err := s.rendered(next, r)
		if err != nil {
			refuse(w, err)
			return
		}
		list.send(w, r, page)
	})
}

func (s *renderLimiter) rendered(next http.Handler, r *http.Request) (*rendered, error) {
	client := peerAddress(r.RemoteAddr)
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
func (s *renderLimiter) direct(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		client := peerAddress(r.RemoteAddr)
		if !s.enter(client) {
			refuse(w, errBusy)
			return
		}
		defer s.leave(client)
		next.ServeHTTP(w, r)
	})
}
