package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/rest"

	"github.com/dra-exporter/dra-exporter/collector/apiserver"
	"github.com/dra-exporter/dra-exporter/internal/check"
)

// probe asks an API server about itself, once each.
type probe struct {
	host   string
	client *rest.RESTClient
}

func newProbe(config *rest.Config) (*probe, error) {
	shared := rest.CopyConfig(config)
	scheme := runtime.NewScheme()
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"})
	shared.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	shared.ContentType, shared.AcceptContentTypes = runtime.ContentTypeJSON, runtime.ContentTypeJSON
	shared.WarningHandler, shared.QPS, shared.Timeout = rest.NoWarnings{}, -1, probeTimeout
	if shared.Dial == nil {
		shared.Dial = (&net.Dialer{Timeout: dialTimeout}).DialContext
	}
	transport, err := rest.HTTPClientFor(apiserver.LimitAnswers(shared))
	if err != nil {
		return nil, fmt.Errorf("prepare connections to the API server: %w", err)
	}
	client, err := rest.UnversionedRESTClientForConfigAndClient(shared, transport)
	if err != nil {
		return nil, fmt.Errorf("prepare to ask the API server: %w", err)
	}
	server, _, err := rest.DefaultServerUrlFor(shared)
	if err != nil {
		return nil, fmt.Errorf("read the API server's address: %w", err)
	}
	server.User = nil // reports are shown to others
	return &probe{host: strings.TrimSuffix(server.String(), "/"), client: client}, nil
}

const probeTimeout = 10 * time.Second

func (p *probe) close() { p.client.Client.CloseIdleConnections() }

// get reads JSON at a path.
func (p *probe) get(ctx context.Context, path string, query url.Values, into any) error {
	request := p.client.Get().MaxRetries(0).AbsPath(path)
	for name := range query {
		request = request.Param(name, query.Get(name))
	}
	return decode(request.Do(ctx), into)
}

// decode reads an answer. The URL is left out of errors: reports have a line
// for it.
func decode(result rest.Result, into any) error {
	body, err := result.Raw()
	if wrapped := (*url.Error)(nil); errors.As(err, &wrapped) {
		err = wrapped.Err
	}
	if err != nil {
		return err
	}
	if err := json.Unmarshal(body, into); err != nil {
		return fmt.Errorf("the answer is no JSON of an API server: %w", err)
	}
	return nil
}

// look finds out all that can be asked before anything is read.
func (p *probe) look(ctx context.Context, wanted []check.Access) check.API {
	api := check.API{Host: p.host}
	var told version.Info
	if api.VersionError = p.get(ctx, "/version", nil, &told); api.VersionError == nil && told.GitVersion == "" {
		api.VersionError = errors.New("what answers there is no API server")
	}
	if api.VersionError != nil {
		return api
	}
	api.Version, api.Major, api.Minor = told.GitVersion, number(told.Major), number(told.Minor)
	api.Groups, api.GroupsError = p.groups(ctx)
	for _, access := range wanted {
		access.Allowed, access.Error = p.may(ctx, access)
		api.Access = append(api.Access, access)
		if access.Error != nil {
			break // the next would fare no better
		}
	}
	return api
}

// number reads the digits that a version's part begins with: some vendors write 34+.
func number(part string) int {
	end := strings.IndexFunc(part, func(r rune) bool { return r < '0' || r > '9' })
	if end < 0 {
		end = len(part)
	}
	n, err := strconv.Atoi(part[:end])
	if err != nil {
		return 0
	}
	return n
}

// groups are the versions of resource.k8s.io; nil: it is not served.
func (p *probe) groups(ctx context.Context) ([]string, error) {
	var group metav1.APIGroup
	err := p.get(ctx, "/apis/resource.k8s.io", nil, &group)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var versions []string
	for _, served := range group.Versions {
		versions = append(versions, served.Version)
	}
	return versions, nil
}

// may asks whether this identity has the permission, in all namespaces.
func (p *probe) may(ctx context.Context, access check.Access) (bool, error) {
	review := authorizationv1.SelfSubjectAccessReview{
		TypeMeta: metav1.TypeMeta{APIVersion: "authorization.k8s.io/v1", Kind: "SelfSubjectAccessReview"},
		Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &authorizationv1.ResourceAttributes{
			Verb: access.Verb, Group: access.Group, Resource: access.Resource,
		}},
	}
	body, err := json.Marshal(review)
	if err != nil {
		return false, fmt.Errorf("write a review: %w", err)
	}
	request := p.client.Post().MaxRetries(0).AbsPath("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews")
	if err := decode(request.SetHeader("Content-Type", runtime.ContentTypeJSON).Body(body).Do(ctx), &review); err != nil {
		return false, err
	}
	return review.Status.Allowed, nil
}

// node reports whether there is a node of the name, where that may be asked.
func (p *probe) node(ctx context.Context, name string) (exists, known bool) {
	err := p.get(ctx, "/api/v1/nodes/"+url.PathEscape(name), nil, &struct{}{})
	return err == nil, err == nil || apierrors.IsNotFound(err)
}

// livingPod is what is looked at of a pod.
type livingPod struct {
	Metadata struct {
		DeletionTimestamp string            `json:"deletionTimestamp"`
		Labels            map[string]string `json:"labels"`
	} `json:"metadata"`
	Spec struct {
		NodeName string `json:"nodeName"`
	} `json:"spec"`
	Status struct {
		Phase string `json:"phase"`
	} `json:"status"`
}

// pods counts pods that have not ended, of those that the selector picks and
// that fit; up to a few. -1: it is not known.
func (p *probe) pods(ctx context.Context, selector, expression string, fits func(livingPod) bool) int {
	var list struct {
		Kind  string      `json:"kind"`
		Items []livingPod `json:"items"`
	}
	query := url.Values{selector: {expression}, "limit": {"20"}}
	if err := p.get(ctx, "/api/v1/pods", query, &list); err != nil || list.Kind != "PodList" {
		return -1
	}
	count := 0
	for _, pod := range list.Items {
		if fits(pod) && pod.Metadata.DeletionTimestamp == "" && pod.Status.Phase != "Succeeded" && pod.Status.Phase != "Failed" {
			count++
		}
	}
	return count
}

// onNode counts pods that are bound to the node, instances those of the
// cluster role.
func (p *probe) onNode(ctx context.Context, node string) int {
	return p.pods(ctx, "fieldSelector", "spec.nodeName="+node, func(pod livingPod) bool { return pod.Spec.NodeName == node })
}

func (p *probe) instances(ctx context.Context) int {
	const name, component = "app.kubernetes.io/name", "app.kubernetes.io/component"
	return p.pods(ctx, "labelSelector", name+"=dra-exporter,"+component+"=cluster", func(pod livingPod) bool {
		return pod.Metadata.Labels[name] == "dra-exporter" && pod.Metadata.Labels[component] == "cluster"
	})
}

// nodeAccess is what the node role reads. Without the watch of pods the
// kubelet tells of them.
func nodeAccess(podsAPI bool) []check.Access {
	const dra = "resource.k8s.io"
	wanted := []check.Access{
		{Verb: "get", Group: dra, Resource: "resourceclaims", For: "classes, requests and configurations of claims are unknown"},
		{Verb: "list", Group: dra, Resource: "resourceslices", For: "what drivers publish is unknown, and with it most of the hardware of claims"},
		{Verb: "watch", Group: dra, Resource: "resourceslices", For: "what drivers publish is read only once"},
	}
	if podsAPI {
		return wanted
	}
	return append(wanted,
		check.Access{Verb: "list", Resource: "pods", For: "which pod uses which claim is told by the kubelet alone, and labels and owners are unknown"},
		check.Access{Verb: "watch", Resource: "pods", For: "changes of pods are seen late"})
}

// reviewAccess is what --web.kubernetes-auth needs.
func reviewAccess(web *webFlags) []check.Access {
	if !web.access.kubernetes {
		return nil
	}
	return []check.Access{
		{Verb: "create", Group: "authentication.k8s.io", Resource: "tokenreviews", For: "--web.kubernetes-auth lets nobody read the pages"},
		{Verb: "create", Group: "authorization.k8s.io", Resource: "subjectaccessreviews", For: "--web.kubernetes-auth lets nobody read the pages"},
	}
}

// clusterAccess is what the cluster role reads.
func clusterAccess() []check.Access {
	const dra = "resource.k8s.io"
	var wanted []check.Access
	for _, row := range []check.Access{
		{Group: dra, Resource: "resourceclaims", For: "nothing is known of any claim"},
		{Group: dra, Resource: "resourceclaimtemplates", For: "why a claim of a template was not made is unknown"},
		{Group: dra, Resource: "resourceslices", For: "what there is to allocate is unknown"},
		{Group: dra, Resource: "deviceclasses", For: "why claims wait cannot be judged"},
		{Group: dra, Resource: "devicetaintrules", For: "taints by rules are not seen"},
		{Resource: "pods", For: "who waits, and for how long, is unknown"},
		{Resource: "nodes", For: "which devices suit which nodes is unknown"},
		{Resource: "events", For: "claims that a quota refuses, and devices that could not be prepared, are not told"},
		{Group: "scheduling.k8s.io", Resource: "podgroups", For: "claims of groups of pods are not followed, where an API server serves them", Optional: true},
	} {
		for _, verb := range []string{"list", "watch"} {
			row.Verb = verb
			wanted = append(wanted, row)
		}
	}
	return wanted
}
