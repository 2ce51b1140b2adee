package kubeauth

import (
	"context"
	"fmt"
	"net/http"
	"sync/atomic"

	"golang.org/x/sync/errgroup"
)

const (
	// maxNamespaces is how many namespaces one request may ask about.
	maxNamespaces = 500
	// concurrentNamespaces is how many of them are asked about at once.
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

// Namespaces are those of the given ones in which the user of the request may get
// ResourceClaims; all reports that the user may do so in every namespace. The
// request has come through Handler.
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
	asking, ctx := errgroup.WithContext(r.Context())
	asking.SetLimit(concurrentNamespaces)
	for i, namespace := range given {
		asking.Go(func() error {
			may, err := g.mayGetClaims(ctx, user, namespace)
			allowed[i].Store(may)
			return err
		})
	}
	if err := asking.Wait(); err != nil {
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

func (g *Guard) decide(ctx context.Context, user *User, review, object string, ask func(context.Context) (bool, error)) (bool, error) {
	return g.decisions.get(ctx, user.key+"\x00"+review+"\x00"+object, func(ctx context.Context) (bool, error) {
		allowed, err := ask(ctx)
		g.observe(review, allowed, err)
		return allowed, err
	})
}
