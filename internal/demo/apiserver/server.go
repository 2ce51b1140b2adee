// Package apiserver is a small API server over objects in memory, for the demo
// and for tests. It implements the protocol of Kubernetes as far as readers of
// pods, nodes, events and resource.k8s.io/v1 need it: get, list and watch, with
// field selectors, resource versions, bookmarks, streamed lists and the error for
// a resource version that is too old, in JSON and in protobuf. Objects are added
// and removed by Put and Delete of the package; nothing can be changed over the
// network. It has no authentication, and therefore listens on the loopback
// interface alone.
package apiserver

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
)

// Options of a server; all may be zero.
type Options struct {
	Port          int           // 0: any that is free
	History       int           // changes that are kept for watches; 0: 1000
	BookmarkEvery time.Duration // 0: a minute, as in Kubernetes
	Gangs         bool          // serve PodGroups, and custom resources of Kueue and NVIDIA's driver

	// Intercept is called before each request and may refuse it with an HTTP
	// status; 0 accepts it. 404 is the response of a server that does not serve the
	// resource at all. It is called concurrently.
	Intercept func(Request) int
}

// Server serves until it is stopped, or the context of Start ends. All
// methods may be called at any time from any goroutine.
type Server struct {
	options   Options
	kinds     []kind
	store     *store
	encodings []encoding
	address   string

	mu       sync.Mutex
	serving  *http.Server // nil while stopped
	finished chan struct{}
	watches  context.Context // ends with all present watches
	end      context.CancelFunc
}

// Start serves on the loopback interface.
func Start(ctx context.Context, options Options) (*Server, error) {
	if options.History == 0 {
		options.History = 1000
	}
	if options.BookmarkEvery == 0 {
		options.BookmarkEvery = time.Minute
	}
	kinds := allKinds()
	if options.Gangs {
		kinds = append(kinds, gangKinds()...)
	}
	bodies, err := encodings()
	if err != nil {
		return nil, err
	}
	s := &Server{
		options:   options,
		kinds:     kinds,
		store:     newStore(options.History),
		encodings: bodies,
		address:   fmt.Sprintf("127.0.0.1:%d", options.Port),
	}
	if err := s.Restart(); err != nil {
		return nil, err
	}
	context.AfterFunc(ctx, s.Stop)
	return s, nil
}

// Config returns how to connect to the server, running or not.
func (s *Server) Config() *rest.Config {
	s.mu.Lock()
	defer s.mu.Unlock()
	return &rest.Config{Host: "http://" + s.address}
}

// Put adds objects, or replaces those of the same kind and name. The server keeps
// copies.
func (s *Server) Put(objects ...Object) error {
	for _, given := range objects {
		k, err := s.findKind(given)
		if err != nil {
			return err
		}
		if err := s.store.put(k, given); err != nil {
			return err
		}
	}
	return nil
}

// Delete removes objects by kind and name; it ignores those that do not exist.
func (s *Server) Delete(objects ...Object) error {
	for _, given := range objects {
		k, err := s.findKind(given)
		if err != nil {
			return err
		}
		s.store.delete(k, given.GetNamespace(), given.GetName())
	}
	return nil
}

func (s *Server) findKind(given Object) (kind, error) {
	for _, k := range s.kinds {
		if k.holds(given) {
			return k, nil
		}
	}
	return kind{}, fmt.Errorf("find the collection of %T: there is none", given)
}

// Expire clears the history, so that watches and lists of earlier versions fail
// with 410 Gone.
func (s *Server) Expire() { s.store.expire() }

// EndWatches ends all watches as their timeout would.
func (s *Server) EndWatches() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.end != nil {
		s.end()
		s.watches, s.end = context.WithCancel(context.Background())
	}
}

func (s *Server) watchesEnd() context.Context {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.watches
}

// Stop ends all connections and frees the address; the objects stay. It does
// nothing on a server that is stopped.
func (s *Server) Stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.serving == nil {
		return
	}
	s.end()
	_ = s.serving.Close() // nothing to save
	<-s.finished
	s.serving = nil
}

// Restart serves again after Stop, on the same address.
func (s *Server) Restart() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.serving != nil {
		return errors.New("start the simulated API server: it is running")
	}
	listener, err := net.Listen("tcp4", s.address)
	if err != nil {
		return fmt.Errorf("start the simulated API server: %w", err)
	}
	s.address = listener.Addr().String()
	mux := http.NewServeMux()
	discover(mux, s.kinds)
	for _, k := range s.kinds {
		s.routes(mux, k)
	}
	s.watches, s.end = context.WithCancel(context.Background())
	serving := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	finished := make(chan struct{})
	go func() {
		defer close(finished)
		_ = serving.Serve(listener) // always ends with ErrServerClosed
	}()
	s.serving, s.finished = serving, finished
	return nil
}

// Request is one request, as Options.Intercept sees it.
type Request struct {
	Verb            string // get, list, watch
	Resource        string // pods, resourceclaims …
	Namespace, Name string
	FieldSelector   string
	ResourceVersion string // of the query
}

// routes adds the paths of one kind.
func (s *Server) routes(mux *http.ServeMux, k kind) {
	base := "GET " + prefix(k.group)
	mux.HandleFunc(base+"/"+k.resource, func(w http.ResponseWriter, r *http.Request) { s.collection(w, r, k, "") })
	if !k.namespaced {
		mux.HandleFunc(base+"/"+k.resource+"/{name}", func(w http.ResponseWriter, r *http.Request) { s.single(w, r, k) })
		return
	}
	base += "/namespaces/{namespace}/" + k.resource
	mux.HandleFunc(base, func(w http.ResponseWriter, r *http.Request) { s.collection(w, r, k, r.PathValue("namespace")) })
	mux.HandleFunc(base+"/{name}", func(w http.ResponseWriter, r *http.Request) { s.single(w, r, k) })
}

// single handles a get.
func (s *Server) single(w http.ResponseWriter, r *http.Request, k kind) {
	request := Request{
		Verb: "get", Resource: k.resource, Namespace: r.PathValue("namespace"), Name: r.PathValue("name"),
		ResourceVersion: r.URL.Query().Get("resourceVersion"),
	}
	if s.refused(w, r, request, k) {
		return
	}
	found, ok := s.store.get(k, request.Namespace, request.Name)
	if !ok {
		s.fail(w, r, apierrors.NewNotFound(groupResource(k), request.Name))
		return
	}
	s.chooseEncoding(r, k).write(w, http.StatusOK, found)
}

// collection handles a list or a watch.
func (s *Server) collection(w http.ResponseWriter, r *http.Request, k kind, namespace string) {
	query := r.URL.Query()
	request := Request{
		Verb: "list", Resource: k.resource, Namespace: namespace,
		FieldSelector: query.Get("fieldSelector"), ResourceVersion: query.Get("resourceVersion"),
	}
	if watching, _ := strconv.ParseBool(query.Get("watch")); watching {
		request.Verb = "watch"
	}
	if s.refused(w, r, request, k) {
		return
	}
	fits, err := selection(k, request)
	if err != nil {
		s.fail(w, r, apierrors.NewBadRequest(err.Error()))
		return
	}
	if request.Verb == "watch" {
		s.watch(w, r, k, fits)
		return
	}
	s.list(w, r, k, fits)
}

func (s *Server) list(w http.ResponseWriter, r *http.Request, k kind, fits func(Object) bool) {
	found, version := s.store.list(k, fits)
	items := make([]runtime.Object, len(found))
	for i := range found {
		items[i] = found[i]
	}
	list := k.list()
	list.GetObjectKind().SetGroupVersionKind(k.group.WithKind(k.name + "List"))
	access, err := meta.ListAccessor(list)
	if err == nil {
		access.SetResourceVersion(strconv.FormatUint(version, 10))
		err = meta.SetList(list, items)
	}
	if err != nil {
		s.fail(w, r, apierrors.NewInternalError(err))
		return
	}
	s.chooseEncoding(r, k).write(w, http.StatusOK, list)
}

// chooseEncoding is the encoding of an answer with objects of the kind.
func (s *Server) chooseEncoding(r *http.Request, k kind) encoding {
	if k.custom {
		return s.encodings[0]
	}
	return accepted(r, s.encodings)
}

// selection is the request's namespace and field selector as a function. A field
// that the kind cannot be selected by is an error, as in Kubernetes.
func selection(k kind, request Request) (func(Object) bool, error) {
	selector, err := fields.ParseSelector(request.FieldSelector)
	if err != nil {
		return nil, fmt.Errorf("parse field selector: %w", err)
	}
	known := k.selectable(k.empty())
	for _, requirement := range selector.Requirements() {
		if !known.Has(requirement.Field) {
			return nil, fmt.Errorf("select %s by %q: no such field", k.resource, requirement.Field)
		}
	}
	return func(o Object) bool {
		return (request.Namespace == "" || o.GetNamespace() == request.Namespace) && selector.Matches(k.selectable(o))
	}, nil
}

// refused responds to a request that the interceptor refuses.
func (s *Server) refused(w http.ResponseWriter, r *http.Request, request Request, k kind) bool {
	status := 0
	if s.options.Intercept != nil {
		status = s.options.Intercept(request)
	}
	switch status {
	case 0:
		return false
	case http.StatusNotFound:
		s.fail(w, r, unserved())
	case http.StatusForbidden:
		s.fail(w, r, apierrors.NewForbidden(groupResource(k), request.Name, fmt.Errorf("cannot %s resource %q", request.Verb, k.resource)))
	case http.StatusGone:
		s.fail(w, r, expired())
	default:
		s.fail(w, r, apierrors.NewGenericServerResponse(status, request.Verb, groupResource(k), request.Name, "as the test asked", 0, false))
	}
	return true
}

// unserved is the response of a server that serves the group and not the
// collection: it has no details.
func unserved() *apierrors.StatusError {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusNotFound, Reason: metav1.StatusReasonNotFound,
		Message: "the server could not find the requested resource", Details: &metav1.StatusDetails{},
	}}
}

func (s *Server) fail(w http.ResponseWriter, r *http.Request, err *apierrors.StatusError) {
	status := newStatus(err)
	accepted(r, s.encodings).write(w, int(status.Code), status)
}

func newStatus(err *apierrors.StatusError) *metav1.Status {
	status := err.Status()
	status.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
	return &status
}

func expired() *apierrors.StatusError {
	return apierrors.NewResourceExpired("too old resource version")
}

func groupResource(k kind) schema.GroupResource {
	return schema.GroupResource{Group: k.group.Group, Resource: k.resource}
}

// watching is a running watch.
type watching struct {
	kind    kind
	fits    func(Object) bool
	version uint64 // of the newest event
	out     http.ResponseWriter
	as      encoding
}

// watch sends events until the timeout, the client leaves, or the server ends all
// watches. They are the changes after the requested version; without one, or with 0
// or sendInitialEvents, they begin with all objects.
func (s *Server) watch(w http.ResponseWriter, r *http.Request, k kind, fits func(Object) bool) {
	query := r.URL.Query()
	version, initial, err := beginning(query)
	if err != nil {
		s.fail(w, r, apierrors.NewBadRequest(err.Error()))
		return
	}
	if _, _, _, known := s.store.since(k, version, fits); !known && !initial {
		s.fail(w, r, expired())
		return
	}
	ctx, cancel := s.watchContext(r.Context(), query)
	defer cancel()
	watch := &watching{kind: k, fits: fits, version: version, out: w, as: s.chooseEncoding(r, k)}
	w.Header().Set("Content-Type", watch.as.info.MediaType+streamed(watch.as))
	w.WriteHeader(http.StatusOK)
	if initial && s.sendAll(watch, query.Get("sendInitialEvents") == "true") != nil {
		return
	}
	s.follow(ctx, watch)
}

func streamed(as encoding) string {
	if as.info.MediaType == runtime.ContentTypeProtobuf {
		return ";stream=watch"
	}
	return ""
}

func beginning(query url.Values) (version uint64, initial bool, err error) {
	text := query.Get("resourceVersion")
	if text != "" {
		if version, err = strconv.ParseUint(text, 10, 64); err != nil {
			return 0, false, fmt.Errorf("parse resource version: %w", err)
		}
	}
	return version, version == 0 || query.Get("sendInitialEvents") == "true", nil
}

// watchContext ends with the request, the client's timeout, the server, or the next
// call of EndWatches.
func (s *Server) watchContext(ctx context.Context, query url.Values) (context.Context, context.CancelFunc) {
	ended := s.watchesEnd()
	limit := time.Hour
	if seconds, err := strconv.Atoi(query.Get("timeoutSeconds")); err == nil && seconds > 0 {
		limit = time.Duration(seconds) * time.Second
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	stop := context.AfterFunc(ended, cancel)
	return ctx, func() { stop(); cancel() }
}

// sendAll sends all objects as added, and then, if requested, the bookmark that ends
// the initial events.
func (s *Server) sendAll(stream *watching, marked bool) error {
	found, version := s.store.list(stream.kind, stream.fits)
	for _, o := range found {
		if err := stream.send(event{watch.Added, o}); err != nil {
			return err
		}
	}
	stream.version = version
	if !marked {
		return flush(stream.out)
	}
	return stream.bookmark(true)
}

func (s *Server) follow(ctx context.Context, stream *watching) {
	bookmarks := time.NewTicker(s.options.BookmarkEvery)
	defer bookmarks.Stop()
	for {
		events, reached, more, ok := s.store.since(stream.kind, stream.version, stream.fits)
		if !ok {
			_ = stream.send(event{watch.Error, newStatus(expired())}) // the watch is over either way
			return
		}
		for _, next := range events {
			if stream.send(next) != nil {
				return
			}
		}
		stream.version = reached
		if flush(stream.out) != nil {
			return
		}
		select {
		case <-more:
		case <-bookmarks.C:
			if stream.bookmark(false) != nil {
				return
			}
		case <-ctx.Done():
			return
		}
	}
}

func (stream *watching) send(next event) error { return stream.as.frame(stream.out, next) }

// bookmark sends the version in an otherwise empty object.
func (stream *watching) bookmark(initialEnd bool) error {
	empty := stream.kind.empty()
	empty.GetObjectKind().SetGroupVersionKind(stream.kind.group.WithKind(stream.kind.name))
	empty.SetResourceVersion(strconv.FormatUint(stream.version, 10))
	if initialEnd {
		empty.SetAnnotations(map[string]string{metav1.InitialEventsAnnotationKey: "true"})
	}
	if err := stream.send(event{watch.Bookmark, empty}); err != nil {
		return err
	}
	return flush(stream.out)
}

func flush(w http.ResponseWriter) error { return http.NewResponseController(w).Flush() }
