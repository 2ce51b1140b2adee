package watch

import (
	"cmp"
	"context"
	"fmt"
	"maps"
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
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"

	"github.com/dra-exporter/dra-exporter/collector/apiserver/customresource"
)

const (
	dialTimeout    = 5 * time.Second  // to open a connection
	requestTimeout = 15 * time.Second // of a get or a list; watches have none
)

// Client sends requests for the API groups that are read here. It registers
// only the types of these groups: a generated client would link the types of
// every group of Kubernetes. It sends every request once: its callers decide
// when to retry. It is safe for concurrent use.
type Client struct {
	groups     map[schema.GroupVersion]rest.Interface
	http       *http.Client
	parameters runtime.ParameterCodec
	limits     Limits

	mu    sync.Mutex
	pages map[string]*pageSize // by resource
}

// Collection names what is listed and watched: all objects of a resource, or
// those of one namespace.
type Collection struct {
	Group     schema.GroupVersion
	Namespace string // empty: all
	Resource  string
}

// NewClient returns a client with these limits. It sends nothing.
func NewClient(config *rest.Config, limits Limits) (*Client, error) {
	limits = limits.orDefault()
	scheme, err := newScheme()
	if err != nil {
		return nil, err
	}
	shared := limited(config, limits)
	shared.ContentType = runtime.ContentTypeProtobuf
	shared.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	shared.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	shared.WarningHandler = rest.NoWarnings{}
	shared.QPS = -1 // the callers limit the rate of their requests
	if shared.Dial == nil {
		shared.Dial = (&net.Dialer{Timeout: dialTimeout, KeepAlive: 30 * time.Second}).DialContext
	}
	transport, err := rest.HTTPClientFor(shared)
	if err != nil {
		return nil, fmt.Errorf("prepare connections to the API server: %w", err)
	}
	c := &Client{
		groups: make(map[schema.GroupVersion]rest.Interface), http: transport,
		parameters: runtime.NewParameterCodec(scheme), pages: make(map[string]*pageSize), limits: limits,
	}
	for group := range groups() {
		config := rest.CopyConfig(shared)
		config.APIPath, config.GroupVersion = "/apis", &group
		if group.Group == "" {
			config.APIPath = "/api"
		}
		if group == PodGroupV1alpha2() {
			config.AcceptContentTypes = runtime.ContentTypeJSON
		}
		if c.groups[group], err = rest.RESTClientForConfigAndClient(config, transport); err != nil {
			return nil, fmt.Errorf("make client of %s: %w", group, err)
		}
	}
	return c, nil
}

// PodGroupV1alpha2 is the version of PodGroups that only Kubernetes 1.36 has. It is
// decoded as v1alpha3: the fields that are read have the same names in JSON, but
// other numbers in protobuf.
func PodGroupV1alpha2() schema.GroupVersion {
	return schema.GroupVersion{Group: schedulingv1alpha3.GroupName, Version: "v1alpha2"}
}

func addPodGroupV1alpha2(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(PodGroupV1alpha2(), &schedulingv1alpha3.PodGroup{}, &schedulingv1alpha3.PodGroupList{})
	metav1.AddToGroupVersion(scheme, PodGroupV1alpha2())
	return nil
}

// groups are the API groups that are read, each with the function that
// registers its types. The older versions are those of DeviceTaintRule and of
// PodGroup.
func groups() map[schema.GroupVersion]func(*runtime.Scheme) error {
	all := map[schema.GroupVersion]func(*runtime.Scheme) error{
		corev1.SchemeGroupVersion:             corev1.AddToScheme,
		resourcev1.SchemeGroupVersion:         resourcev1.AddToScheme,
		resourcev1beta2.SchemeGroupVersion:    resourcev1beta2.AddToScheme,
		resourcev1alpha3.SchemeGroupVersion:   resourcev1alpha3.AddToScheme,
		schedulingv1beta1.SchemeGroupVersion:  schedulingv1beta1.AddToScheme,
		schedulingv1alpha3.SchemeGroupVersion: schedulingv1alpha3.AddToScheme,
		PodGroupV1alpha2():                    addPodGroupV1alpha2,
	}
	maps.Copy(all, customresource.Groups())
	return all
}

func newScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	for group, add := range groups() {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("register %s: %w", group, err)
		}
	}
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"})
	return scheme, nil
}

// Close closes the connections that no request uses.
func (c *Client) Close() { utilnet.CloseIdleConnectionsFor(c.http.Transport) }

func (c *Client) get(collection Collection) *rest.Request {
	return c.groups[collection.Group].Get().MaxRetries(0).NamespaceIfScoped(collection.Namespace, collection.Namespace != "").Resource(collection.Resource)
}

// Get reads one object that is at least as new as the resource version: "0"
// stands for the object in the API server's cache, "" for the newest one.
func (c *Client) Get(ctx context.Context, collection Collection, name, version string, object runtime.Object) error {
	ctx, cancel := context.WithTimeout(withRequest(ctx, request{kind: requestObject}), requestTimeout)
	defer cancel()
	options := metav1.GetOptions{ResourceVersion: version}
	return checkServed(collection.Group, c.get(collection).Name(name).VersionedParams(&options, c.parameters).Do(ctx).Into(object))
}

// List reads a collection, or a page of it, into the given list. If the objects
// of a collection are large, it reads a page of the newest state that is
// smaller than requested: the caller continues where the list says.
func (c *Client) List(ctx context.Context, collection Collection, options metav1.ListOptions, object runtime.Object) error {
	pages := c.pageSize(collection.Resource)
	for {
		if page := pages.limit(); page < PageObjects && (options.Limit == 0 || options.Limit > page) {
			options.Limit = page
			options.ResourceVersion, options.ResourceVersionMatch = "", "" // from its cache the API server may send all
		}
		bytes, err := c.listOnce(ctx, collection, options, object)
		switch asked := cmp.Or(options.Limit, PageObjects); {
		case err == nil && options.ResourceVersion == "":
			pages.learn(asked, int64(meta.LenList(object)), bytes, c.limits.List)
			return nil
		case !isLimitExceeded(err) || ctx.Err() != nil || !pages.shrink(asked):
			return err
		}
	}
}

// listOnce returns the number of bytes of the answer, too.
func (c *Client) listOnce(ctx context.Context, collection Collection, options metav1.ListOptions, object runtime.Object) (int64, error) {
	var bytes atomic.Int64
	ctx, cancel := context.WithTimeout(withRequest(ctx, request{kind: requestList, bytes: &bytes}), requestTimeout)
	defer cancel()
	err := c.get(collection).VersionedParams(&options, c.parameters).Do(ctx).Into(object)
	if err != nil {
		return 0, checkServed(collection.Group, err)
	}
	if meta.LenList(object) == 0 {
		if list, err := meta.ListAccessor(object); err != nil || list.GetResourceVersion() == "" {
			return 0, errNoList
		}
	}
	return bytes.Load(), nil
}

// List is a list of a typed API.
type List interface {
	runtime.Object
	metav1.ListInterface
}

// ListPages calls a function with each page of a collection. Later pages have
// the same state of the collection as the first.
func ListPages[L List](ctx context.Context, c *Client, collection Collection, options metav1.ListOptions, empty func() L, visit func(L)) error {
	for {
		page := empty()
		if err := c.List(ctx, collection, options, page); err != nil {
			return err
		}
		visit(page)
		if options.Continue = page.GetContinue(); options.Continue == "" {
			return nil
		}
		options.ResourceVersion = ""
	}
}

// pageSize is shared by all lists of a resource.
func (c *Client) pageSize(resource string) *pageSize {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.pages[resource] == nil {
		c.pages[resource] = &pageSize{}
	}
	return c.pages[resource]
}

// watch opens a watch of a collection; the end of ctx ends it.
func (c *Client) watch(ctx context.Context, collection Collection, options metav1.ListOptions) (apiwatch.Interface, error) {
	options.Watch = true
	opened, err := c.get(collection).VersionedParams(&options, c.parameters).Watch(ctx)
	return opened, checkServed(collection.Group, err)
}
