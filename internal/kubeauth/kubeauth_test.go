package kubeauth

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/client-go/rest"

	"github.com/dra-exporter/dra-exporter/collector/clock"
)

// fakeAPI creates reviews from tables, over a real socket.
type fakeAPI struct {
	users  map[string]authenticationv1.UserInfo // by token
	paths  map[string][]string                  // by user
	claims map[string][]string                  // namespaces by user; "" means all

	requests     atomic.Int64
	failing      atomic.Bool
	hanging      chan struct{} // not nil: token reviews wait for it to be closed
	inFlight     atomic.Int64
	mostInFlight atomic.Int64
}

func (f *fakeAPI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.requests.Add(1)
	if f.failing.Load() {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusForbidden)
		fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","reason":"Forbidden","code":403,"message":"cannot create resource tokenreviews"}`)
		return
	}
	var answer any
	switch r.URL.Path {
	case "/apis/authentication.k8s.io/v1/tokenreviews":
		now := f.inFlight.Add(1)
		defer f.inFlight.Add(-1)
		f.mostInFlight.Store(max(f.mostInFlight.Load(), now))
		if f.hanging != nil {
			select {
			case <-f.hanging:
			case <-r.Context().Done():
				return
			}
		}
		var review authenticationv1.TokenReview
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		review.Status.User, review.Status.Authenticated = f.users[review.Spec.Token], f.users[review.Spec.Token].Username != ""
		if strings.HasPrefix(review.Spec.Token, "for-") && len(review.Spec.Audiences) > 0 {
			review.Status.Audiences = []string{strings.TrimPrefix(review.Spec.Token, "for-")}
		}
		answer = review
	case "/apis/authorization.k8s.io/v1/subjectaccessreviews":
		var review authorizationv1.SubjectAccessReview
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		if path := review.Spec.NonResourceAttributes; path != nil {
			review.Status.Allowed = path.Verb == "get" && slices.Contains(f.paths[review.Spec.User], path.Path)
		}
		if claims := review.Spec.ResourceAttributes; claims != nil {
			fits := claims.Verb == "get" && claims.Group == "resource.k8s.io" && claims.Resource == "resourceclaims"
			review.Status.Allowed = fits && slices.Contains(f.claims[review.Spec.User], claims.Namespace)
		}
		answer = review
	default:
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusCreated)
	_ = json.NewEncoder(w).Encode(answer) // it fails where the guard reads no further
}

// fakeClock is a clock that a test advances.
type fakeClock struct{ elapsed atomic.Int64 }

func (t *fakeClock) now() clock.Instant {
	return clock.Instant{Elapsed: time.Hour + time.Duration(t.elapsed.Load())}
}

func (t *fakeClock) advance(d time.Duration) { t.elapsed.Add(int64(d)) }

// guardFixture is a guard with its API server and its handler.
type guardFixture struct {
	*fakeAPI
	guard    *Guard
	clock    *fakeClock
	served   http.Handler
	log      *strings.Builder
	observed sync.Map
}

func newGuardFixture(t *testing.T, api *fakeAPI, audiences ...string) *guardFixture {
	t.Helper()
	server := httptest.NewServer(api)
	t.Cleanup(server.Close)
	g := &guardFixture{fakeAPI: api, clock: &fakeClock{}, log: &strings.Builder{}}
	var err error
	g.guard, err = New(Options{
		Config: &rest.Config{Host: server.URL}, Audiences: audiences, Page: func(path string) bool { return path == "/" || path == "/api/v1/claims" },
		Clock: g.clock.now, Log: slog.New(slog.NewTextHandler(g.log, nil)),
		Observe: func(review, outcome string) {
			count, _ := g.observed.LoadOrStore(review+" "+outcome, new(atomic.Int64))
			count.(*atomic.Int64).Add(1)
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	g.guard.tokens.timeout, g.guard.decisions.timeout = time.Minute, time.Minute // on a busy machine
	g.served = g.guard.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		visible, all, err := g.guard.Namespaces(r, []string{"a", "b", "c"})
		if err != nil {
			status, message := Answer(err)
			http.Error(w, message, status)
			return
		}
		fmt.Fprint(w, visible, all)
	}))
	return g
}

// get returns the response to a request with this Authorization header.
func (g *guardFixture) get(path, authorization string) *httptest.ResponseRecorder {
	request, answer := httptest.NewRequest(http.MethodGet, path, nil), httptest.NewRecorder()
	if authorization != "" {
		request.Header.Set("Authorization", authorization)
	}
	g.served.ServeHTTP(answer, request)
	return answer
}

func exampleAPI() *fakeAPI {
	return &fakeAPI{
		users: map[string]authenticationv1.UserInfo{
			"prom": {Username: "prometheus"}, "team": {Username: "team-a"}, "admin": {Username: "admin"}, "for-us": {Username: "admin"}, "for-others": {Username: "admin"},
		},
		paths:  map[string][]string{"prometheus": {"/metrics"}, "admin": {"/metrics"}},
		claims: map[string][]string{"team-a": {"a", "c"}, "admin": {""}},
	}
}

func TestPermissions(t *testing.T) {
	g := newGuardFixture(t, exampleAPI())
	for _, request := range []struct {
		path, authorization string
		status              int
		body                string
	}{
		{"/metrics", "", 401, "a valid bearer token is needed\n"},
		{"/metrics", "Basic cHJvbTpwcm9t", 401, "a valid bearer token is needed\n"},
		{"/metrics", "Bearer ", 401, "a valid bearer token is needed\n"},
		{"/metrics", "Bearer unknown", 401, "a valid bearer token is needed\n"},
		{"/metrics", "Bearer " + strings.Repeat("x", maxTokenBytes+1), 401, "a valid bearer token is needed\n"},
		{"/metrics", "Bearer team", 403, "forbidden: user \"team-a\" may not get the path /metrics\n"},
		{"/debug/pprof/heap", "Bearer prom", 403, "forbidden: user \"prometheus\" may not get the path /debug/pprof/heap\n"},
		{"/metrics", "Bearer prom", 200, "map[] false"},
		{"/metrics", "bearer   prom", 200, "map[] false"},
		{"/", "Bearer team", 200, "map[a:true c:true] false"},
		{"/api/v1/claims", "Bearer prom", 200, "map[] false"},
		{"/api/v1/claims", "Bearer admin", 200, "map[] true"},
	} {
		answer := g.get(request.path, request.authorization)
		if answer.Code != request.status || answer.Body.String() != request.body {
			t.Errorf("%s with %.20q gives %d %s, not %d %s", request.path, request.authorization, answer.Code, answer.Body, request.status, request.body)
		}
		if challenge := answer.Header().Get("WWW-Authenticate"); (challenge != "") != (request.status == 401) {
			t.Errorf("%s with %.20q has the challenge %q", request.path, request.authorization, challenge)
		}
	}
	for _, seen := range []string{"token allowed", "token denied", "path allowed", "path denied", "namespace allowed", "namespace denied"} {
		if _, counted := g.observed.Load(seen); !counted {
			t.Errorf("%s was not counted", seen)
		}
	}
}

func TestAudiences(t *testing.T) {
	g := newGuardFixture(t, exampleAPI(), "us")
	for authorization, status := range map[string]int{"Bearer for-us": 200, "Bearer for-others": 401, "Bearer admin": 401} {
		if answer := g.get("/metrics", authorization); answer.Code != status {
			t.Errorf("%s gives %d %s", authorization, answer.Code, answer.Body)
		}
	}
}

// TestReviewsAreCachedForAMinute checks that a revoked permission or token is used no
// longer than the results of reviews are cached.
func TestReviewsAreCachedForAMinute(t *testing.T) {
	api := exampleAPI()
	g := newGuardFixture(t, api)
	for range 50 {
		if answer := g.get("/metrics", "Bearer prom"); answer.Code != 200 {
			t.Fatal(answer.Code, answer.Body)
		}
	}
	if reviews := api.requests.Load(); reviews != 6 { // token, path, all namespaces, a, b, c
		t.Errorf("%d reviews for 50 requests", reviews)
	}
	api.paths = nil
	g.clock.advance(reviewTTL - time.Second)
	if answer := g.get("/metrics", "Bearer prom"); answer.Code != 200 {
		t.Error("a result is not cached", answer.Code)
	}
	g.clock.advance(2 * time.Second)
	if answer := g.get("/metrics", "Bearer prom"); answer.Code != 403 {
		t.Error("a permission was revoked, and the status is", answer.Code)
	}
	api.users = nil
	g.clock.advance(reviewTTL)
	if answer := g.get("/metrics", "Bearer prom"); answer.Code != 401 {
		t.Error("the token has expired, and the status is", answer.Code)
	}
}

// TestOutageOfTheAPIServer checks that the users of cached reviews are admitted for ten
// minutes of an outage, that other users are refused, and that not every request causes
// a review.
func TestOutageOfTheAPIServer(t *testing.T) {
	api := exampleAPI()
	g := newGuardFixture(t, api)
	g.get("/metrics", "Bearer prom")
	api.failing.Store(true)
	g.clock.advance(reviewTTL)
	before := api.requests.Load()
	for range 20 {
		if answer := g.get("/metrics", "Bearer prom"); answer.Code == 401 || answer.Code == 403 {
			t.Fatal(answer.Code, answer.Body)
		}
	}
	if reviews := api.requests.Load() - before; reviews > 4+3*20 { // denied reviews are not used in an outage, and are created again
		t.Errorf("%d reviews for 20 requests", reviews)
	}
	if user, err := g.guard.tokens.get(t.Context(), "prom", nil); err != nil || user.Name != "prometheus" {
		t.Errorf("the token is %v, %v", user, err)
	}
	answer := g.get("/metrics", "Bearer admin")
	if answer.Code != 503 || answer.Header().Get("Retry-After") == "" || strings.Contains(answer.Body.String(), "tokenreviews") {
		t.Errorf("an unknown token gives %d %s", answer.Code, answer.Body)
	}
	g.clock.advance(outageTTL)
	if answer := g.get("/metrics", "Bearer prom"); answer.Code != 503 {
		t.Errorf("after %s of outage the status is %d", outageTTL, answer.Code)
	}
	if lines := strings.Count(g.log.String(), "\n"); lines != 1 || !strings.Contains(g.log.String(), "cannot create resource tokenreviews") {
		t.Errorf("the log has %d lines:\n%s", lines, g.log)
	}
	api.failing.Store(false)
	if answer := g.get("/metrics", "Bearer prom"); answer.Code != 200 {
		t.Error("after the outage", answer.Code, answer.Body)
	}
	if !strings.Contains(g.log.String(), "answers access reviews again") {
		t.Errorf("the log does not have the end of the outage:\n%s", g.log)
	}
}

// TestInvalidTokens checks the bounds of concurrent reviews and of memory, and that
// invalid tokens do not delay users with a cached token.
func TestInvalidTokens(t *testing.T) {
	api := exampleAPI()
	g := newGuardFixture(t, api)
	g.get("/metrics", "Bearer prom")
	api.hanging = make(chan struct{})
	var guessing sync.WaitGroup
	for i := range 200 {
		guessing.Go(func() { g.get("/metrics", fmt.Sprintf("Bearer guess-%d", i)) })
	}
	for api.inFlight.Load() < concurrentReviews {
		time.Sleep(time.Millisecond)
	}
	for range 10 {
		if answer := g.get("/metrics", "Bearer prom"); answer.Code != 200 {
			t.Errorf("with concurrent guesses a valid token gives %d %s", answer.Code, answer.Body)
		}
	}
	close(api.hanging)
	guessing.Wait()
	if most := api.mostInFlight.Load(); most > concurrentReviews {
		t.Errorf("%d concurrent reviews of guesses", most)
	}
	for i := range 2 * maxTokens {
		g.guard.tokens.denied.Add(fmt.Sprint(i), cachedReview[*User]{}, time.Minute)
	}
	if kept := len(g.guard.tokens.denied.Keys()); kept > maxTokens {
		t.Errorf("%d denied tokens are cached", kept)
	}
	before := api.requests.Load()
	if answer := g.get("/metrics", "Bearer prom"); answer.Code != 200 || api.requests.Load() != before {
		t.Errorf("guesses evicted a valid token: %d", answer.Code)
	}
}

// TestLargeUsers checks that a user whose groups are too large is not admitted, and not
// reviewed again at each request, and that others are.
func TestLargeUsers(t *testing.T) {
	api := exampleAPI()
	api.users["huge"] = authenticationv1.UserInfo{Username: "admin", Groups: []string{strings.Repeat("g", 6<<20)}}
	api.users["many"] = authenticationv1.UserInfo{Username: "admin", Groups: slices.Repeat([]string{"", "g"}, 1<<17)}
	api.users["extra"] = authenticationv1.UserInfo{Username: "admin", Extra: map[string]authenticationv1.ExtraValue{"e": {strings.Repeat("e", maxTokenAnswer)}}}
	api.users["fits"] = authenticationv1.UserInfo{Username: "admin", Groups: slices.Repeat([]string{strings.Repeat("g", 60)}, 1900)}
	g := newGuardFixture(t, api)
	for range 3 {
		for _, token := range []string{"huge", "many", "extra"} {
			if answer := g.get("/metrics", "Bearer "+token); answer.Code != 403 || !strings.Contains(answer.Body.String(), "groups and other attributes have more than 128 KiB") {
				t.Errorf("%s gets %d %s", token, answer.Code, answer.Body)
			}
		}
		for _, token := range []string{"fits", "admin"} {
			if answer := g.get("/metrics", "Bearer "+token); answer.Code != 200 {
				t.Errorf("%s gets %d %s", token, answer.Code, answer.Body)
			}
		}
	}
	if reviews := api.requests.Load(); reviews != 5+2*2 { // tokens; the path and all namespaces of two users
		t.Errorf("%d reviews", reviews)
	}
	if lines := strings.Count(g.log.String(), "\n"); lines != 1 {
		t.Errorf("the log has %d lines:\n%s", lines, g.log)
	}
	if denied, _ := g.observed.Load("token denied"); denied == nil || denied.(*atomic.Int64).Load() != 3 {
		t.Errorf("they are counted as %v", denied)
	}
}

// TestMemoryOfUsers checks that all cached users together are bounded, and that those
// with the most are evicted first.
func TestMemoryOfUsers(t *testing.T) {
	api := exampleAPI()
	const large = 200
	for i := range large {
		api.users[fmt.Sprint("large-", i)] = authenticationv1.UserInfo{Username: fmt.Sprint("large-", i), Groups: []string{strings.Repeat("g", maxTokenAnswer/2)}}
	}
	g := newGuardFixture(t, api)
	g.get("/metrics", "Bearer prom")
	for range 2 {
		for i := range large {
			g.get("/metrics", fmt.Sprint("Bearer large-", i))
		}
		g.clock.advance(reviewTTL + outageTTL/20)
	}
	sum := 0
	for _, key := range g.guard.tokens.accepted.Keys() {
		if found, ok := g.guard.tokens.accepted.Get(key); ok {
			sum += found.(cachedReview[*User]).value.size()
		}
	}
	if sum > maxUsers || sum < maxUsers/2 || g.guard.tokens.bytes() > maxUsers {
		t.Errorf("%d bytes of users are cached, %d are counted", sum, g.guard.tokens.bytes())
	}
	api.failing.Store(true)
	if user, err := g.guard.tokens.get(t.Context(), "prom", func(context.Context) (*User, error) { return nil, errBusy }); err != nil || user.Name != "prometheus" {
		t.Errorf("the small user is %v, %v", user, err)
	}
}

// TestRequestsShareAReview checks that concurrent requests with the same key cause one
// review.
func TestRequestsShareAReview(t *testing.T) {
	api := exampleAPI()
	api.hanging = make(chan struct{})
	g := newGuardFixture(t, api)
	var requests sync.WaitGroup
	for range 50 {
		requests.Go(func() {
			if answer := g.get("/metrics", "Bearer admin"); answer.Code != 200 {
				t.Error(answer.Code, answer.Body)
			}
		})
	}
	for api.inFlight.Load() < 1 {
		time.Sleep(time.Millisecond)
	}
	close(api.hanging)
	requests.Wait()
	if most := api.mostInFlight.Load(); most != 1 {
		t.Errorf("%d concurrent token reviews", most)
	}
}

func TestTooManyNamespaces(t *testing.T) {
	g := newGuardFixture(t, exampleAPI())
	request := httptest.NewRequest(http.MethodGet, "/", nil)
	many := make([]string, maxNamespaces+1)
	for user, forbidden := range map[string]bool{"team-a": true, "admin": false} {
		as := request.WithContext(context.WithValue(t.Context(), userKey{}, &User{Name: user, key: user}))
		_, all, err := g.guard.Namespaces(as, many)
		if status, _ := Answer(err); (err != nil) != forbidden || all == forbidden || forbidden && status != 403 {
			t.Errorf("%s: %v, %v", user, all, err)
		}
	}
	if _, _, err := g.guard.Namespaces(request, nil); err == nil {
		t.Error("a request that has not passed the handler gets namespaces")
	}
}
