package apiserver

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	resourcev1alpha3 "k8s.io/api/resource/v1alpha3"
	resourcev1beta2 "k8s.io/api/resource/v1beta2"
	schedulingv1alpha3 "k8s.io/api/scheduling/v1alpha3"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
)

const (
	dialTimeout    = 5 * time.Second  // to open a connection
	requestTimeout = 15 * time.Second // for a get or a list; watches have none
)

// client speaks to the API server of the groups that are read here. It
// knows their types alone: a generated client would link and register the
// types of every group that Kubernetes has. It tries everything once: when to
// try again is for those to say who know what it is for.
type client struct {
	core, resource rest.Interface
	older          map[schema.GroupVersion]rest.Interface // what some API servers have in place of, or besides, these
	http           *http.Client
	parameters     runtime.ParameterCodec
	limits         Limits

	mu    sync.Mutex
	pages map[string]*pageSize // by resource
}

// place is where a collection is read: all of it, or of one namespace.
type place struct {
	group     rest.Interface
	namespace string // empty: all
	resource  string
}

func (p place) get() *rest.Request {
	return p.group.Get().MaxRetries(0).NamespaceIfScoped(p.namespace, p.namespace != "").Resource(p.resource)
}

// about finds out whether an answer says that there is no such place.
func (p place) about(err error) error { return about(p.group.APIVersion().String(), err) }

func newClient(config *rest.Config, limits Limits) (*client, error) {
	scheme, err := newScheme()
	if err != nil {
		return nil, err
	}
	shared := limited(config, limits)
	shared.ContentType = runtime.ContentTypeProtobuf
	shared.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	shared.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	shared.WarningHandler = rest.NoWarnings{}
	shared.QPS = -1 // requests are rationed by whoever asks, see reader
	if shared.Dial == nil {
		shared.Dial = (&net.Dialer{Timeout: dialTimeout, KeepAlive: 30 * time.Second}).DialContext
	}
	transport, err := rest.HTTPClientFor(shared)
	if err != nil {
		return nil, fmt.Errorf("prepare connections to the API server: %w", err)
	}
	made := &client{
		http: transport, parameters: runtime.NewParameterCodec(scheme), older: make(map[schema.GroupVersion]rest.Interface),
		pages: make(map[string]*pageSize), limits: limits,
	}
	if made.core, err = groupClient(shared, transport, "/api", corev1.SchemeGroupVersion); err != nil {
		return nil, err
	}
	if made.resource, err = groupClient(shared, transport, "/apis", resourcev1.SchemeGroupVersion); err != nil {
		return nil, err
	}
	for _, group := range olderGroups() {
		if made.older[group], err = groupClient(shared, transport, "/apis", group); err != nil {
			return nil, err
		}
	}
	return made, nil
}

// olderGroups are the versions of DeviceTaintRule before v1, and those of
// PodGroup, which has no v1 yet.
func olderGroups() []schema.GroupVersion {
	return []schema.GroupVersion{
		resourcev1beta2.SchemeGroupVersion, resourcev1alpha3.SchemeGroupVersion,
		schedulingv1beta1.SchemeGroupVersion, schedulingv1alpha3.SchemeGroupVersion,
	}
}

func newScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	for group, add := range map[string]func(*runtime.Scheme) error{
		"core/v1":                    corev1.AddToScheme,
		"resource.k8s.io/v1":         resourcev1.AddToScheme,
		"resource.k8s.io/v1beta2":    resourcev1beta2.AddToScheme,
		"resource.k8s.io/v1alpha3":   resourcev1alpha3.AddToScheme,
		"scheduling.k8s.io/v1beta1":  schedulingv1beta1.AddToScheme,
		"scheduling.k8s.io/v1alpha3": schedulingv1alpha3.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("register %s: %w", group, err)
		}
	}
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"})
	return scheme, nil
}

func groupClient(shared *rest.Config, transport *http.Client, path string, group schema.GroupVersion) (rest.Interface, error) {
	config := rest.CopyConfig(shared)
	config.APIPath, config.GroupVersion = path, &group
	made, err := rest.RESTClientForConfigAndClient(config, transport)
	if err != nil {
		return nil, fmt.Errorf("make client of %s: %w", group, err)
	}
	return made, nil
}

// close ends the connections that no request uses.
func (c *client) close() { utilnet.CloseIdleConnectionsFor(c.http.Transport) }

// list reads a collection, or a page of it, into the given list. Of a
// collection whose objects are large it reads a page of the newest state, and
// a smaller one than was asked for: whoever lists goes on where the list says.
func (c *client) list(ctx context.Context, from place, options metav1.ListOptions, into runtime.Object) error {
	pages := c.pageSize(from.resource)
	for {
		if page := pages.limit(); page < pageObjects && (options.Limit == 0 || options.Limit > page) {
			options.Limit = page
			options.ResourceVersion, options.ResourceVersionMatch = "", "" // of another state all may be sent
		}
		bytes, err := c.listOnce(ctx, from, options, into)
		switch asked := cmp.Or(options.Limit, pageObjects); {
		case err == nil && options.ResourceVersion == "":
			pages.learn(asked, int64(meta.LenList(into)), bytes, c.limits.List)
			return nil
		case !isBeyondLimit(err) || ctx.Err() != nil || !pages.shrink(asked):
			return err
		}
	}
}

// listOnce returns the number of bytes of the answer, too.
func (c *client) listOnce(ctx context.Context, from place, options metav1.ListOptions, into runtime.Object) (int64, error) {
	var bytes atomic.Int64
	ctx, cancel := context.WithTimeout(asking(ctx, request{kind: requestList, bytes: &bytes}), requestTimeout)
	defer cancel()
	err := from.get().VersionedParams(&options, c.parameters).Do(ctx).Into(into)
	if err != nil {
		return 0, from.about(err)
	}
	if meta.LenList(into) == 0 {
		if about, err := meta.ListAccessor(into); err != nil || about.GetResourceVersion() == "" {
			return 0, errNoList
		}
	}
	return bytes.Load(), nil
}

// pageSize is shared by all lists of a resource.
func (c *client) pageSize(resource string) *pageSize {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.pages[resource] == nil {
		c.pages[resource] = &pageSize{}
	}
	return c.pages[resource]
}

// watch opens a watch of a collection; ctx ends it.
func (c *client) watch(ctx context.Context, from place, options metav1.ListOptions) (watch.Interface, error) {
	options.Watch = true
	if _, told := ctx.Value(requestKey{}).(request); !told {
		ctx = asking(ctx, request{kind: requestWatch})
	}
	opened, err := from.get().VersionedParams(&options, c.parameters).Watch(ctx)
	return opened, from.about(err)
}

// probe asks for next to nothing of the claims: whether they are served.
func (c *client) probe(ctx context.Context, namespace string) error {
	claims := place{group: c.resource, namespace: namespace, resource: "resourceclaims"}
	return c.list(ctx, claims, metav1.ListOptions{Limit: 1}, &resourcev1.ResourceClaimList{})
}

// claim reads one ResourceClaim, at least as new as the resource version
// says: "0" is whatever the API server has at hand, empty the newest.
func (c *client) claim(ctx context.Context, namespace, name, version string) (*resourcev1.ResourceClaim, error) {
	ctx, cancel := context.WithTimeout(asking(ctx, request{kind: requestObject}), requestTimeout)
	defer cancel()
	claim := &resourcev1.ResourceClaim{}
	options := metav1.GetOptions{ResourceVersion: version}
	err := c.resource.Get().MaxRetries(0).Namespace(namespace).Resource("resourceclaims").Name(name).
		VersionedParams(&options, c.parameters).Do(ctx).Into(claim)
	if err != nil {
		return nil, fmt.Errorf("get resourceclaim %s/%s: %w", namespace, name, about(resourcev1.SchemeGroupVersion.String(), err))
	}
	return claim, nil
}
