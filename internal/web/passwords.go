package web

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// Each address, and all of an IPv6 network of 64 bits together, may try ten passwords
// immediately, then one a second.
const (
	passwordBurst    = 10
	passwordInterval = time.Second
	passwordTimeout  = 2 * time.Second // for which an attempt waits for others
)

// passwords has middlewares before and behind the toolkit's handler, which checks
// passwords one after the other; a check takes as long as rendering twenty pages.
// Credentials that were valid before are passed to the toolkit, which caches them
// too. Attempts with others are bounded, for each address and in concurrency. It is
// safe for concurrent use.
type passwords struct {
	log      *slog.Logger
	key      [sha256.Size]byte
	checking chan struct{}

	mu       sync.Mutex
	known    map[[sha256.Size]byte]bool
	attempts map[string]*rate.Limiter // by network
}

func newPasswords(log *slog.Logger) (*passwords, error) {
	p := &passwords{
		log:      log,
		checking: make(chan struct{}, concurrentCredentials),
		known:    make(map[[sha256.Size]byte]bool),
		attempts: make(map[string]*rate.Limiter),
	}
	if _, err := rand.Read(p.key[:]); err != nil {
		return nil, fmt.Errorf("create a key for cached passwords: %w", err)
	}
	return p, nil
}

type attemptKey struct{}

// before returns the middleware before the toolkit's handler.
func (p *passwords) before(toolkit http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, password, ok := r.BasicAuth()
		if !ok {
			toolkit.ServeHTTP(w, r)
			return
		}
		digest := p.digest(user, password)
		known := p.isKnown(digest)
		if address := peerAddress(r.RemoteAddr); !known && !p.allowAttempt(network(address)) {
			p.log.Warn("an address tries too many unknown passwords", "address", address)
			w.Header().Set("Retry-After", "10")
			http.Error(w, "too many attempts with wrong passwords, try again later", http.StatusTooManyRequests)
			return
		}
		leave := func() {}
		if !known {
			if !p.acquire(r.Context()) {
				refuse(w, errBusy)
				return
			}
			leave = sync.OnceFunc(func() { <-p.checking })
			defer leave()
		}
		valid := false
		passed := func() { valid = true; leave() }
		toolkit.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), attemptKey{}, passed)))
		p.record(digest, valid)
	})
}

// behind returns the middleware behind the toolkit's handler. Requests that reach it
// have valid credentials.
func (p *passwords) behind(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if passed, ok := r.Context().Value(attemptKey{}).(func()); ok {
			passed()
		}
		next.ServeHTTP(w, r)
	})
}

func (p *passwords) acquire(ctx context.Context) bool {
	timer := time.NewTimer(passwordTimeout)
	defer timer.Stop()
	select {
	case p.checking <- struct{}{}:
		return true
	case <-timer.C:
	case <-ctx.Done():
	}
	return false
}

func (p *passwords) digest(user, password string) (digest [sha256.Size]byte) {
	mac := hmac.New(sha256.New, p.key[:])
	fmt.Fprintf(mac, "%q %q", user, password)
	mac.Sum(digest[:0])
	return digest
}

func (p *passwords) isKnown(digest [sha256.Size]byte) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.known[digest]
}

// record stores valid credentials, and removes those that are not valid any more.
func (p *passwords) record(digest [sha256.Size]byte, valid bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case !valid:
		delete(p.known, digest)
	case len(p.known) < maxKnownCredentials:
		p.known[digest] = true
	case !p.known[digest]:
		clear(p.known)
		p.known[digest] = true
	}
}

// allowAttempt counts an attempt of a network, and reports whether it is within the
// rate. With too many networks all counts are reset; the concurrency of checks is
// bounded nevertheless.
func (p *passwords) allowAttempt(network string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	attempts := p.attempts[network]
	if attempts == nil {
		if len(p.attempts) >= maxPasswordAddresses {
			clear(p.attempts)
		}
		attempts = rate.NewLimiter(rate.Every(passwordInterval), passwordBurst)
		p.attempts[network] = attempts
	}
	return attempts.Allow()
}
