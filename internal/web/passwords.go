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

// Each address may try a password at once ten times, then one a second.
const (
	passwordBurst    = 10
	passwordInterval = time.Second
	passwordPatience = 2 * time.Second // of an attempt, for others to end
)

// passwords stands before and behind the toolkit, which checks passwords one
// after the other, each for about as long as it takes to render twenty pages.
// Credentials that were good before go straight to it, and it remembers them too.
// Others are bounded: those of each address, and those that are checked at once.
// It is safe for concurrent use.
type passwords struct {
	log      *slog.Logger
	key      [sha256.Size]byte
	checking chan struct{}

	mu       sync.Mutex
	known    map[[sha256.Size]byte]bool
	attempts map[string]*rate.Limiter // by address
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

// before is what stands before the toolkit's handler.
func (p *passwords) before(toolkit http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, password, ok := r.BasicAuth()
		if !ok {
			toolkit.ServeHTTP(w, r)
			return
		}
		digest := p.digest(user, password)
		known := p.isKnown(digest)
		if address := addressOf(r.RemoteAddr); !known && !p.mayTry(address) {
			p.log.Warn("an address tries too many unknown passwords", "address", address)
			w.Header().Set("Retry-After", "10")
			http.Error(w, "too many attempts with wrong passwords, try again later", http.StatusTooManyRequests)
			return
		}
		leave := func() {}
		if !known {
			if !p.enter(r.Context()) {
				refuse(w, errBusy)
				return
			}
			leave = sync.OnceFunc(func() { <-p.checking })
			defer leave()
		}
		good := false
		passed := func() { good = true; leave() }
		toolkit.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), attemptKey{}, passed)))
		p.remember(digest, good)
	})
}

// behind is what stands behind the toolkit's handler: who comes here has been let
// in.
func (p *passwords) behind(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if passed, ok := r.Context().Value(attemptKey{}).(func()); ok {
			passed()
		}
		next.ServeHTTP(w, r)
	})
}

func (p *passwords) enter(ctx context.Context) bool {
	timer := time.NewTimer(passwordPatience)
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

// remember keeps good credentials, and forgets those that are good no longer.
func (p *passwords) remember(digest [sha256.Size]byte, good bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case !good:
		delete(p.known, digest)
	case len(p.known) < maxKnownCredentials:
		p.known[digest] = true
	case !p.known[digest]:
		clear(p.known)
		p.known[digest] = true
	}
}

// mayTry counts an attempt of an address. Where there are too many addresses to
// count, all begin again: what is checked at once stays bounded.
func (p *passwords) mayTry(address string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	attempts := p.attempts[address]
	if attempts == nil {
		if len(p.attempts) >= maxPasswordAddresses {
			clear(p.attempts)
		}
		attempts = rate.NewLimiter(rate.Every(passwordInterval), passwordBurst)
		p.attempts[address] = attempts
	}
	return attempts.Allow()
}
