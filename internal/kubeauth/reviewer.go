package kubeauth

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"
)

// Outcomes of a request that is refused.
var (
	// ErrUnauthenticated: there is no bearer token, or it is not valid.
	ErrUnauthenticated = errors.New("a valid bearer token is needed")
	// ErrForbidden: the user may not read this.
	ErrForbidden = errors.New("forbidden")
	// ErrUnavailable: the API server does not complete reviews and there is no
	// usable result, or there are too many requests with unknown tokens.
	ErrUnavailable = errors.New("the API server cannot review the token")
)

// errTooLarge: an answer exceeds its limit.
var errTooLarge = errors.New("the API server's answer is too large")

// errBusy: too many reviews are in flight.
var errBusy = errors.New("too many requests with unknown tokens")

// User is the user of a request, as reported by the API server.
type User struct {
	Name   string
	UID    string
	Groups []string
	Extra  map[string][]string

	key   string // differs for users whose permissions may differ
	large bool   // nothing is known of the user, because it would take too much memory
}

// size returns how many bytes of memory the user takes, about.
func (u *User) size() int {
	const ofText = 16
	size := len(u.Name) + len(u.UID) + len(u.key)
	for _, group := range u.Groups {
		size += ofText + len(group)
	}
	for key, values := range u.Extra {
		size += 4*ofText + len(key)
		for _, value := range values {
			size += ofText + len(value)
		}
	}
	return size
}

// Limits of answers. A user with 2,000 groups has some 100 KiB. The answer to an access
// review contains the user again.
const (
	maxTokenAnswer  = 128 << 10
	maxAccessAnswer = 2*maxTokenAnswer + 64<<10
)

// exceededKey is the key, in the context of a request, of the *atomic.Bool that is set if
// its answer exceeds the limit.
type exceededKey struct{}

// limitAnswers returns a transport whose answers end at the limit of their bytes. They do
// not fail, because client-go would log each failure.
func limitAnswers(next http.RoundTripper) http.RoundTripper { return &limiter{next} }

type limiter struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (l *limiter) RoundTrip(sent *http.Request) (*http.Response, error) {
	answer, err := l.next.RoundTrip(sent)
	if err != nil || answer.Body == nil {
		return answer, err
	}
	limit := int64(maxAccessAnswer)
	if strings.HasSuffix(sent.URL.Path, tokenPath) {
		limit = maxTokenAnswer
	}
	exceeded, _ := sent.Context().Value(exceededKey{}).(*atomic.Bool)
	answer.Body = &limitedBody{ReadCloser: answer.Body, left: limit, exceeded: exceeded}
	return answer, nil
}

// WrappedRoundTripper gives client-go access to the idle connections.
func (l *limiter) WrappedRoundTripper() http.RoundTripper { return l.next }

type limitedBody struct {
	io.ReadCloser
	left     int64
	exceeded *atomic.Bool // nil: it is not needed
}

func (b *limitedBody) Read(buffer []byte) (int, error) {
	n, err := b.ReadCloser.Read(buffer[:min(int64(len(buffer)), b.left+1)])
	if b.left -= int64(n); b.left >= 0 {
		return n, err
	}
	b.left = 0
	if b.exceeded != nil {
		b.exceeded.Store(true)
	}
	return 0, io.EOF
}

// reviewer creates reviews at the API server.
type reviewer struct {
	client    rest.Interface
	audiences []string
}

func newReviewer(config *rest.Config, audiences []string) (*reviewer, error) {
	copied := rest.CopyConfig(config)
	copied.GroupVersion, copied.APIPath = &schema.GroupVersion{}, "/"
	scheme := runtime.NewScheme()
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"}) // to decode errors
	copied.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	copied.WarningHandler = rest.NoWarnings{}
	copied.QPS = -1 // reviewCache bounds reviews in flight
	copied.Wrap(limitAnswers)
	client, err := rest.UnversionedRESTClientFor(copied)
	if err != nil {
		return nil, fmt.Errorf("prepare reviews by the API server: %w", err)
	}
	return &reviewer{client: client, audiences: audiences}, nil
}

const (
	tokenPath  = "/apis/authentication.k8s.io/v1/tokenreviews"
	accessPath = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
)

// token returns the user of a token, nil if the API server does not authenticate it.
func (r *reviewer) token(ctx context.Context, token string) (*User, error) {
	review := authenticationv1.TokenReview{
		TypeMeta: metav1.TypeMeta{APIVersion: "authentication.k8s.io/v1", Kind: "TokenReview"},
		Spec:     authenticationv1.TokenReviewSpec{Token: token, Audiences: r.audiences},
	}
	switch err := r.create(ctx, tokenPath, &review); {
	case errors.Is(err, errTooLarge):
		return &User{large: true}, nil
	case err != nil:
		return nil, err
	}
	if !review.Status.Authenticated || !r.isForExporter(review.Status.Audiences) {
		return nil, nil
	}
	info := review.Status.User
	user := &User{Name: info.Username, UID: info.UID, Groups: info.Groups, Extra: make(map[string][]string, len(info.Extra))}
	for key, values := range info.Extra {
		user.Extra[key] = values
	}
	identity, err := json.Marshal(info)
	if err != nil {
		return nil, fmt.Errorf("decode the user of a token: %w", err)
	}
	digest := sha256.Sum256(identity)
	user.key = string(digest[:])
	return user, nil
}

// isForExporter reports whether a token is for the exporter: an authenticator without
// support for audiences returns none, and then the token is for the API server.
func (r *reviewer) isForExporter(audiences []string) bool {
	if len(r.audiences) == 0 {
		return true
	}
	for _, audience := range audiences {
		for _, a := range r.audiences {
			if audience == a {
				return true
			}
		}
	}
	return false
}

// path reports whether the user may get a non-resource URL.
func (r *reviewer) path(ctx context.Context, user *User, path string) (bool, error) {
	return r.access(ctx, user, authorizationv1.SubjectAccessReviewSpec{
		NonResourceAttributes: &authorizationv1.NonResourceAttributes{Path: path, Verb: "get"},
	})
}

// claims reports whether the user may get ResourceClaims of a namespace; empty:
// of all.
func (r *reviewer) claims(ctx context.Context, user *User, namespace string) (bool, error) {
	return r.access(ctx, user, authorizationv1.SubjectAccessReviewSpec{
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Namespace: namespace, Verb: "get", Group: "resource.k8s.io", Version: "v1", Resource: "resourceclaims",
		},
	})
}

func (r *reviewer) access(ctx context.Context, user *User, spec authorizationv1.SubjectAccessReviewSpec) (bool, error) {
	spec.User, spec.UID, spec.Groups = user.Name, user.UID, user.Groups
	spec.Extra = make(map[string]authorizationv1.ExtraValue, len(user.Extra))
	for key, values := range user.Extra {
		spec.Extra[key] = values
	}
	review := authorizationv1.SubjectAccessReview{
		TypeMeta: metav1.TypeMeta{APIVersion: "authorization.k8s.io/v1", Kind: "SubjectAccessReview"},
		Spec:     spec,
	}
	if err := r.create(ctx, accessPath, &review); err != nil {
		return false, err
	}
	return review.Status.Allowed && !review.Status.Denied, nil
}

// create creates a review at the API server, which completes it.
func (r *reviewer) create(ctx context.Context, path string, review any) error {
	body, err := json.Marshal(review)
	if err != nil {
		return fmt.Errorf("write a review: %w", err)
	}
	exceeded := &atomic.Bool{}
	ctx = context.WithValue(ctx, exceededKey{}, exceeded)
	result := r.client.Verb(http.MethodPost).MaxRetries(0).AbsPath(path).
		SetHeader("Content-Type", runtime.ContentTypeJSON).SetHeader("Accept", runtime.ContentTypeJSON).Body(body).Do(ctx)
	if err := result.Error(); err != nil {
		return fmt.Errorf("create a review: %w", err)
	}
	answer, err := result.Raw()
	switch {
	case err != nil:
		return fmt.Errorf("create a review: %w", err)
	case exceeded.Load():
		return fmt.Errorf("create a review: %w", errTooLarge)
	}
	if err := json.Unmarshal(answer, review); err != nil {
		return fmt.Errorf("decode a review: %w", err)
	}
	return nil
}
