package apiserver

import (
	"fmt"
	"net/http"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Request is one request, as Options.Intercept sees it.
type Request struct {
	Verb            string // get, list, watch
	Resource        string // pods, resourceclaims …
	Namespace, Name string
	FieldSelector   string
	ResourceVersion string // as requested
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

// single answers a get.
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
	accepted(r, s.encodings).write(w, http.StatusOK, found)
}

// collection answers a list or a watch.
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
	accepted(r, s.encodings).write(w, http.StatusOK, list)
}

// selection is the request's namespace and field selector as a function. A
// field that the kind does not select by is an error, as it is in Kubernetes.
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

// refused answers a request that the interceptor refuses.
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

// unserved returns the answer of a server that serves the group but not the
// collection: it names nothing.
func unserved() *apierrors.StatusError {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusNotFound, Reason: metav1.StatusReasonNotFound,
		Message: "the server could not find the requested resource", Details: &metav1.StatusDetails{},
	}}
}

func (s *Server) fail(w http.ResponseWriter, r *http.Request, err *apierrors.StatusError) {
	status := statusOf(err)
	accepted(r, s.encodings).write(w, int(status.Code), status)
}

func statusOf(err *apierrors.StatusError) *metav1.Status {
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
