package web

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"log/slog"
	"net/http"
	"strconv"
	"sync"
	"time"
)

// passwords limits how often the toolkit checks passwords, which costs it a
// tenth of a second of processor time each, under one lock. The toolkit reads
// the users and decides; here is remembered which credentials it found to be
// right, and which clients sent wrong ones:
//
//   - right ones that are known do not wait for others to be checked
//   - others are checked one at a time
//   - a client that has sent wrong ones is refused with 429 for a while, without
//     a check, unless it sends ones that are known to be right
//
// Requests without credentials are not delayed: the toolkit answers them without
// a check.
type passwords struct {
	log   *slog.Logger
	key   [sha256.Size]byte // of digests, so that they mean nothing outside of this process
	check chan struct{}     // holds one while a check is running

	mu       sync.Mutex
	right    map[digest]time.Time // when they were last used
	waiting  map[string]int       // checks that wait or run, by client
	queued   int                  // the sum of waiting
	failures map[string]failure   // by client
}

type digest [sha256.Size]byte

// failure is of a client's attempts in a row that were wrong.
type failure struct {
	attempts int
	last     time.Time
	until    time.Time // it is refused
}

const (
	maxRight          = 100
	maxChecks         = 64 // that wait, of all clients
	maxChecksOfClient = 2
	checkWait         = 5 * time.Second
	maxFailures       = 1024
	freeAttempts      = 3 // wrong ones before the first delay
	firstDelay        = time.Second
	longestDelay      = time.Minute
	forgetFailures    = 10 * time.Minute
)

func newPasswords(log *slog.Logger) *passwords {
	p := &passwords{
		log: log, check: make(chan struct{}, 1),
		right: map[digest]time.Time{}, waiting: map[string]int{}, failures: map[string]failure{},
	}
	_, _ = rand.Read(p.key[:]) // never fails
	return p
}

// attempt is one request with credentials on its way through the toolkit.
type attempt struct {
	in  func()
	let bool
}

type attemptKey struct{}

// behind is the handler behind the toolkit: what comes here was let in.
func (p *passwords) behind(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if one, is := r.Context().Value(attemptKey{}).(*attempt); is {
			one.let = true
			one.in()
		}
		next.ServeHTTP(w, r)
	})
}

// before is the handler before the toolkit.
func (p *passwords) before(toolkit http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, password, are := r.BasicAuth()
		if !are {
			toolkit.ServeHTTP(w, r)
			return
		}
		credentials, client := p.digest(user, password), clientOf(r.RemoteAddr)
		if p.known(credentials) {
			p.pass(toolkit, w, r, credentials)
			return
		}
		wait, err := p.enter(r.Context(), client)
		switch {
		case err != nil:
			refuse(w, errBusy)
		case wait > 0:
			w.Header().Set("Retry-After", strconv.Itoa(int(wait.Round(time.Second)/time.Second)+1))
			http.Error(w, "too many wrong passwords from this address, try again later", http.StatusTooManyRequests)
		case p.known(credentials): // meanwhile
			p.leave(client)
			p.pass(toolkit, w, r, credentials)
		default:
			p.try(toolkit, w, r, credentials, client)
		}
	})
}

func (p *passwords) digest(user, password string) (d digest) {
	mac := hmac.New(sha256.New, p.key[:])
	var length [8]byte
	binary.BigEndian.PutUint64(length[:], uint64(len(user)))
	mac.Write(length[:])
	mac.Write([]byte(user))
	mac.Write([]byte(password))
	mac.Sum(d[:0])
	return d
}

// known reports whether the credentials were right when they were last used.
func (p *passwords) known(credentials digest) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, known := p.right[credentials]
	return known
}

// pass has the toolkit answer credentials that it knows, and forgets them where
// it does not let them in any more.
func (p *passwords) pass(toolkit http.Handler, w http.ResponseWriter, r *http.Request, credentials digest) {
	if p.ask(toolkit, w, r, func() { p.remember(credentials) }) == http.StatusUnauthorized {
		p.mu.Lock()
		delete(p.right, credentials)
		p.mu.Unlock()
	}
}

// try has the toolkit check credentials. The check ends where the toolkit lets
// the request in, before it is answered.
func (p *passwords) try(toolkit http.Handler, w http.ResponseWriter, r *http.Request, credentials digest, client string) {
	left := false
	defer func() {
		if !left {
			p.leave(client)
		}
	}()
	status := p.ask(toolkit, w, r, func() {
		p.remember(credentials)
		p.forgive(client)
		p.leave(client)
		left = true
	})
	if status == http.StatusUnauthorized {
		p.failed(client)
	}
}

// ask calls in when the toolkit has let the request in. It returns the status of
// an answer of the toolkit itself, and 0 where the request was let in.
func (p *passwords) ask(toolkit http.Handler, w http.ResponseWriter, r *http.Request, in func()) int {
	one, status := &attempt{in: in}, &statusWriter{ResponseWriter: w}
	toolkit.ServeHTTP(status, r.WithContext(context.WithValue(r.Context(), attemptKey{}, one)))
	if one.let {
		return 0
	}
	return status.status
}

// statusWriter keeps the status of an answer.
type statusWriter struct {
	http.ResponseWriter
	status int
}

func (s *statusWriter) WriteHeader(status int) {
	s.status = status
	s.ResponseWriter.WriteHeader(status)
}

// Unwrap is for http.ResponseController.
func (s *statusWriter) Unwrap() http.ResponseWriter { return s.ResponseWriter }

// enter waits for the client's turn to have credentials checked; it must leave
// then. A client that is refused is told for how long.
func (p *passwords) enter(ctx context.Context, client string) (refused time.Duration, err error) {
	if refused, err = p.join(client); refused > 0 || err != nil {
		return refused, err
	}
	ctx, cancel := context.WithTimeout(ctx, checkWait)
	defer cancel()
	select {
	case p.check <- struct{}{}:
	case <-ctx.Done():
		p.drop(client)
		return 0, ctx.Err()
	}
	if refused = p.refused(client); refused > 0 { // by the one before it
		p.leave(client)
	}
	return refused, nil
}

func (p *passwords) join(client string) (refused time.Duration, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if wait := p.failures[client].until.Sub(now()); wait > 0 {
		return wait, nil
	}
	if p.waiting[client] >= maxChecksOfClient && p.failures[client].attempts > 0 {
		return firstDelay, nil
	}
	if p.queued >= maxChecks {
		return 0, errBusy
	}
	p.queued++
	p.waiting[client]++
	return 0, nil
}

func (p *passwords) refused(client string) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.failures[client].until.Sub(now())
}

// leave ends the check of a client.
func (p *passwords) leave(client string) {
	<-p.check
	p.drop(client)
}

func (p *passwords) drop(client string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.queued--
	if p.waiting[client]--; p.waiting[client] == 0 {
		delete(p.waiting, client)
	}
}

func (p *passwords) remember(credentials digest) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.right[credentials] = now()
	if len(p.right) > maxRight {
		var oldest digest
		for one, used := range p.right {
			if oldest == (digest{}) || used.Before(p.right[oldest]) {
				oldest = one
			}
		}
		delete(p.right, oldest)
	}
}

func (p *passwords) forgive(client string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.failures, client)
}

// failed doubles the time for which the client is refused.
func (p *passwords) failed(client string) {
	p.mu.Lock()
	at := now()
	known := p.failures[client]
	if at.Sub(known.last) > forgetFailures {
		known = failure{}
	}
	known.attempts++
	known.last = at
	if doubled := known.attempts - freeAttempts; doubled >= 0 {
		known.until = at.Add(min(longestDelay, firstDelay<<min(doubled, 10)))
	}
	p.failures[client] = known
	if len(p.failures) > maxFailures {
		p.forgetOldest()
	}
	p.mu.Unlock()
	p.log.Warn("a client sent a wrong user or password", "client", client, "in_a_row", known.attempts)
}

func (p *passwords) forgetOldest() {
	oldest := ""
	for client, one := range p.failures {
		if oldest == "" || one.last.Before(p.failures[oldest].last) {
			oldest = client
		}
	}
	delete(p.failures, oldest)
}
