// Package kubeauth authenticates and authorizes readers of the exporter's pages as
// Kubernetes' own components do. The API server reviews the bearer token of a request
// (TokenReview) and the permissions of its user (SubjectAccessReview). The package is
// independent of roles and pages.
//
// The generic libraries for this (k8s.io/apiserver's delegating authenticator and
// authorizer) would link 124 more packages, the types of every API group among
// them, so the two requests are made here.
package kubeauth

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/rest"

	"github.com/dra-exporter/dra-exporter/collector/clock"
)

// Options configure a Guard.
type Options struct {
	Config    *rest.Config           // of the API server; its identity may create both kinds of reviews
	Audiences []string               // that tokens must be for; empty: those of the API server
	Page      func(path string) bool // reports whether every user may read it, see Namespaces
	Clock     clock.Clock
	Log       *slog.Logger

	// Observe counts reviews: review is token, path or namespace, outcome is
	// allowed, denied or error. It may be nil and is called concurrently.
	Observe func(review, outcome string)
}

// Guard admits requests. It is safe for concurrent use.
type Guard struct {
	options  Options
	reviewer *reviewer

	tokens    *reviewCache[*User]
	decisions *reviewCache[bool]
	failing   atomic.Bool // the last review failed
	large     atomic.Bool // a user who takes too much memory was logged
}

// Sizes of the caches.
const (
	maxTokens    = 1024
	maxDecisions = 16384
	maxUsers     = 8 << 20 // bytes of users; those that take the most are evicted first
)

// New returns a Guard with empty caches.
func New(options Options) (*Guard, error) {
	reviewer, err := newReviewer(options.Config, options.Audiences)
	if err != nil {
		return nil, err
	}
	if options.Observe == nil {
		options.Observe = func(string, string) {}
	}
	g := &Guard{options: options, reviewer: reviewer}
	if g.tokens, err = newReviewCache[*User](options.Clock, maxTokens, maxTokens, func(u *User) bool { return u != nil && !u.large }); err != nil {
		return nil, err
	}
	g.tokens.limitBytes(maxUsers, (*User).size)
	g.decisions, err = newReviewCache[bool](options.Clock, maxDecisions, maxDecisions, func(allowed bool) bool { return allowed })
	return g, err
}

// Handler admits requests of users that may get the non-resource URL of the path. To
// pages it admits all users that the API server authenticates: Namespaces returns what
// they may see there.
func (g *Guard) Handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, err := g.user(r)
		if err == nil && !g.options.Page(r.URL.Path) {
			err = g.mayGet(r.Context(), user, r.URL.Path)
		}
		if err != nil {
			refuse(w, err)
			return
		}
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), userKey{}, user)))
	})
}

type userKey struct{}

// refuse responds as Kubernetes' components do: 401 without a valid token, 403
// without the permission, 503 if that is unknown.
func refuse(w http.ResponseWriter, err error) {
	status, message := Answer(err)
	switch status {
	case http.StatusUnauthorized:
		w.Header().Set("WWW-Authenticate", `Bearer realm="dra-exporter"`)
	case http.StatusServiceUnavailable:
		w.Header().Set("Retry-After", "5")
	}
	http.Error(w, message, status)
}

// Answer returns the HTTP status of an error of this package and the message for the
// client. Failures of the API server are in the log, not in the message.
func Answer(err error) (status int, message string) {
	switch {
	case errors.Is(err, ErrUnauthenticated):
		return http.StatusUnauthorized, err.Error()
	case errors.Is(err, ErrForbidden):
		return http.StatusForbidden, err.Error()
	default:
		return http.StatusServiceUnavailable, ErrUnavailable.Error()
	}
}

// maxTokenBytes is more than the length of any token of Kubernetes.
const maxTokenBytes = 16 << 10

// bearer returns the token of a request, empty if there is none.
func bearer(r *http.Request) string {
	scheme, token, found := strings.Cut(r.Header.Get("Authorization"), " ")
	token = strings.TrimSpace(token)
	if !found || !strings.EqualFold(scheme, "Bearer") || len(token) > maxTokenBytes {
		return ""
	}
	return token
}

func (g *Guard) user(r *http.Request) (*User, error) {
	token := bearer(r)
	if token == "" {
		return nil, ErrUnauthenticated
	}
	user, err := g.tokens.get(r.Context(), token, func(ctx context.Context) (*User, error) {
		user, err := g.reviewer.token(ctx, token)
		g.observe("token", user != nil && !user.large, err)
		return user, err
	})
	switch {
	case err != nil:
		return nil, err
	case user == nil:
		return nil, ErrUnauthenticated
	case user.large:
		if !g.large.Swap(true) {
			g.options.Log.Warn("users whose groups and other attributes have too many bytes are not admitted; this is logged once", "limit", maxTokenAnswer)
		}
		return nil, fmt.Errorf("%w: the user's groups and other attributes have more than %d KiB", ErrForbidden, maxTokenAnswer>>10)
	}
	return user, nil
}

// observe counts a review, and logs when reviews begin to fail and succeed again.
func (g *Guard) observe(review string, allowed bool, err error) {
	outcome := "denied"
	switch {
	case err != nil:
		outcome = "error"
	case allowed:
		outcome = "allowed"
	}
	g.options.Observe(review, outcome)
	switch failed := g.failing.Swap(err != nil); {
	case err != nil && !failed:
		g.options.Log.Warn("the API server does not answer access reviews", "review", review, "error", err.Error())
	case err == nil && failed:
		g.options.Log.Info("the API server answers access reviews again")
	}
}

const (
	// maxNamespaces is the most namespaces that one request may need reviews of.
	maxNamespaces = 500
	// concurrentNamespaces is how many of them are reviewed concurrently.
	concurrentNamespaces = 8
)

// mayGet returns ErrForbidden unless the user may get the non-resource URL.
func (g *Guard) mayGet(ctx context.Context, user *User, path string) error {
	allowed, err := g.decide(ctx, user, "path", path, func(ctx context.Context) (bool, error) {
		return g.reviewer.path(ctx, user, path)
	})
	if err == nil && !allowed {
		err = fmt.Errorf("%w: user %q may not get the path %s", ErrForbidden, user.Name, path)
	}
	return err
}

// Namespaces returns those of the given ones in which the user of the request may
// get ResourceClaims; all reports that the user may do so in every namespace. The
// request must have passed Handler.
func (g *Guard) Namespaces(r *http.Request, given []string) (visible map[string]bool, all bool, err error) {
	user, _ := r.Context().Value(userKey{}).(*User)
	if user == nil {
		return nil, false, ErrUnauthenticated
	}
	if all, err = g.mayGetClaims(r.Context(), user, ""); err != nil || all {
		return nil, all, err
	}
	if len(given) > maxNamespaces {
		return nil, false, fmt.Errorf("%w: user %q may not get resourceclaims of all namespaces, and there are %d: select yours in the query, as in ?namespace=NAME", ErrForbidden, user.Name, len(given))
	}
	allowed := make([]atomic.Bool, len(given))
	reviews, ctx := errgroup.WithContext(r.Context())
	reviews.SetLimit(concurrentNamespaces)
	for i, namespace := range given {
		reviews.Go(func() error {
			may, err := g.mayGetClaims(ctx, user, namespace)
			allowed[i].Store(may)
			return err
		})
	}
	if err := reviews.Wait(); err != nil {
		return nil, false, err
	}
	visible = make(map[string]bool, len(given))
	for i, namespace := range given {
		if allowed[i].Load() {
			visible[namespace] = true
		}
	}
	return visible, false, nil
}

// mayGetClaims reports whether the user may get ResourceClaims of the namespace,
// empty: of all.
func (g *Guard) mayGetClaims(ctx context.Context, user *User, namespace string) (bool, error) {
	return g.decide(ctx, user, "namespace", namespace, func(ctx context.Context) (bool, error) {
		return g.reviewer.claims(ctx, user, namespace)
	})
}

func (g *Guard) decide(ctx context.Context, user *User, review, object string, create func(context.Context) (bool, error)) (bool, error) {
	return g.decisions.get(ctx, user.key+"\x00"+review+"\x00"+object, func(ctx context.Context) (bool, error) {
		allowed, err := create(ctx)
		g.observe(review, allowed, err)
		return allowed, err
	})
}
