package apiserver

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
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

// client speaks to the API server of the two groups that are read here. It
// knows their types alone: a generated client would link and register the
// types of every group that Kubernetes has. It tries everything once: when to
// try again is for those to say who know what it is for.
type client struct {
	core, resource rest.Interface
	http           *http.Client
	parameters     runtime.ParameterCodec
}

func newClient(config *rest.Config) (*client, error) {
	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("register core/v1: %w", err)
	}
	if err := resourcev1.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("register resource.k8s.io/v1: %w", err)
	}
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"})

	shared := rest.CopyConfig(config)
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
	made := &client{http: transport, parameters: runtime.NewParameterCodec(scheme)}
	if made.core, err = groupClient(shared, transport, "/api", corev1.SchemeGroupVersion); err != nil {
		return nil, err
	}
	if made.resource, err = groupClient(shared, transport, "/apis", resourcev1.SchemeGroupVersion); err != nil {
		return nil, err
	}
	return made, nil
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

// list reads a collection into the given list.
func (c *client) list(ctx context.Context, group rest.Interface, resource string, options metav1.ListOptions, into runtime.Object) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	err := group.Get().MaxRetries(0).Resource(resource).VersionedParams(&options, c.parameters).Do(ctx).Into(into)
	if err != nil {
		return fmt.Errorf("list %s: %w", resource, err)
	}
	return nil
}

// watch opens a watch of a collection; ctx ends it.
func (c *client) watch(ctx context.Context, group rest.Interface, resource string, options metav1.ListOptions) (watch.Interface, error) {
	options.Watch = true
	return group.Get().MaxRetries(0).Resource(resource).VersionedParams(&options, c.parameters).Watch(ctx)
}

// claim reads one ResourceClaim, at least as new as the resource version
// says: "0" is whatever the API server has at hand, empty the newest.
func (c *client) claim(ctx context.Context, namespace, name, version string) (*resourcev1.ResourceClaim, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	claim := &resourcev1.ResourceClaim{}
	options := metav1.GetOptions{ResourceVersion: version}
	err := c.resource.Get().MaxRetries(0).Namespace(namespace).Resource("resourceclaims").Name(name).
		VersionedParams(&options, c.parameters).Do(ctx).Into(claim)
	if err != nil {
		return nil, fmt.Errorf("get resourceclaim %s/%s: %w", namespace, name, err)
	}
	return claim, nil
}
