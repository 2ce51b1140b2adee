package check

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
)

// Probe reads from an API server what the exporter needs of it. Each request is
// sent once and has 10 seconds.
type Probe struct {
	host   string
	client *rest.RESTClient
}

// NewProbe prepares the connection and sends nothing.
func NewProbe(config *rest.Config) (*Probe, error) {
	shared := rest.CopyConfig(config)
	scheme := runtime.NewScheme()
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"})
	shared.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	shared.ContentType, shared.AcceptContentTypes = runtime.ContentTypeJSON, runtime.ContentTypeJSON
	shared.WarningHandler, shared.QPS, shared.Timeout = rest.NoWarnings{}, -1, ProbeTimeout
	if shared.Dial == nil {
		shared.Dial = (&net.Dialer{Timeout: DialTimeout}).DialContext
	}
	transport, err := rest.HTTPClientFor(apiserver.LimitAnswers(shared))
	if err != nil {
		return nil, fmt.Errorf("prepare connections to the API server: %w", err)
	}
	client, err := rest.UnversionedRESTClientForConfigAndClient(shared, transport)
	if err != nil {
		return nil, fmt.Errorf("prepare requests to the API server: %w", err)
	}
	server, _, err := rest.DefaultServerUrlFor(shared)
	if err != nil {
		return nil, fmt.Errorf("read the API server's address: %w", err)
	}
	server.User = nil // reports are shown to others
	return &Probe{host: strings.TrimSuffix(server.String(), "/"), client: client}, nil
}

// ProbeTimeout bounds one request to a server that is checked.
const ProbeTimeout = 10 * time.Second

// Close closes idle connections.
func (p *Probe) Close() { p.client.Client.CloseIdleConnections() }

// get decodes the JSON at a path.
func (p *Probe) get(ctx context.Context, path string, query url.Values, target any) error {
	request := p.client.Get().MaxRetries(0).AbsPath(path)
	for name := range query {
		request = request.Param(name, query.Get(name))
	}
	return decodeResult(request.Do(ctx), target)
}

// decodeResult decodes an answer of JSON. Errors are without the URL, for which
// reports have a line of their own.
func decodeResult(result rest.Result, target any) error {
	body, err := result.Raw()
	if wrapped := (*url.Error)(nil); errors.As(err, &wrapped) {
		err = wrapped.Err
	}
	if err != nil {
		return err
	}
	if err := json.Unmarshal(body, target); err != nil {
		return fmt.Errorf("the answer is not JSON of an API server: %w", err)
	}
	return nil
}

// Version reads the server's version, as it writes it; empty: it is unknown.
func (p *Probe) Version(ctx context.Context) string {
	info, err := p.version(ctx)
	if err != nil {
		return ""
	}
	return info.GitVersion
}

func (p *Probe) version(ctx context.Context) (version.Info, error) {
	var info version.Info
	err := p.get(ctx, "/version", nil, &info)
	if err == nil && info.GitVersion == "" {
		err = errors.New("the server at this address is not an API server")
	}
	return info, err
}

// API reads the server's version and the versions of resource.k8s.io, and reviews
// the wanted permissions.
func (p *Probe) API(ctx context.Context, wanted []Permission) API {
	api := API{Host: p.host}
	info, err := p.version(ctx)
	if err != nil {
		api.VersionError = err
		return api
	}
	api.Version, api.Major, api.Minor = info.GitVersion, leadingNumber(info.Major), leadingNumber(info.Minor)
	api.Groups, api.GroupsError = p.groups(ctx)
	for _, access := range wanted {
		access.Allowed, access.Error = p.allowed(ctx, access)
		api.Access = append(api.Access, access)
		if access.Error != nil {
			break // the next review would fail, too
		}
	}
	return api
}

// leadingNumber decodes the digits at the beginning of a version's part: some
// vendors write 34+.
func leadingNumber(part string) int {
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

// groups returns the versions of resource.k8s.io; nil: it is not served.
func (p *Probe) groups(ctx context.Context) ([]string, error) {
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

// allowed reviews whether this identity has the permission, in all namespaces.
func (p *Probe) allowed(ctx context.Context, access Permission) (bool, error) {
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
	if err := decodeResult(request.SetHeader("Content-Type", runtime.ContentTypeJSON).Body(body).Do(ctx), &review); err != nil {
		return false, err
	}
	return review.Status.Allowed, nil
}

// Node reports whether the node exists, and whether the answer is known: this
// identity may lack the permission.
func (p *Probe) Node(ctx context.Context, name string) (exists, known bool) {
	err := p.get(ctx, "/api/v1/nodes/"+url.PathEscape(name), nil, &struct{}{})
	return err == nil, err == nil || apierrors.IsNotFound(err)
}

// pod has the fields of a pod that are read.
type pod struct {
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

// pods counts pods that match and have not ended, of the first 20 that the selector
// selects. -1: unknown.
func (p *Probe) pods(ctx context.Context, selector, expression string, matches func(pod) bool) int {
	var list struct {
		Kind  string `json:"kind"`
		Items []pod  `json:"items"`
	}
	query := url.Values{selector: {expression}, "limit": {"20"}}
	if err := p.get(ctx, "/api/v1/pods", query, &list); err != nil || list.Kind != "PodList" {
		return -1
	}
	count := 0
	for _, p := range list.Items {
		if matches(p) && p.Metadata.DeletionTimestamp == "" && p.Status.Phase != "Succeeded" && p.Status.Phase != "Failed" {
			count++
		}
	}
	return count
}

// PodsOnNode counts pods that are bound to the node, up to 20. -1: unknown.
func (p *Probe) PodsOnNode(ctx context.Context, node string) int {
	return p.pods(ctx, "fieldSelector", "spec.nodeName="+node, func(p pod) bool { return p.Spec.NodeName == node })
}

// Instances counts pods of the cluster role, up to 20. -1: unknown.
func (p *Probe) Instances(ctx context.Context) int {
	const name, component = "app.kubernetes.io/name", "app.kubernetes.io/component"
	return p.pods(ctx, "labelSelector", name+"=dra-exporter,"+component+"=cluster", func(p pod) bool {
		return p.Metadata.Labels[name] == "dra-exporter" && p.Metadata.Labels[component] == "cluster"
	})
}

// The ClusterRoles of the shipped manifests.
const (
	NodeRole    = "dra-exporter-node"
	ClusterRole = "dra-exporter-cluster"
)

// NodeAccess returns the permissions that the node role needs. With the kubelet's
// Pods API it lists no pods at the API server.
func NodeAccess(podsAPI bool) []Permission {
	const dra = "resource.k8s.io"
	wanted := []Permission{
		{Verb: "get", Group: dra, Resource: "resourceclaims", For: "classes, requests and configurations of claims are unknown"},
		{Verb: "list", Group: dra, Resource: "resourceslices", For: "published devices are unknown, and with them most of the hardware of claims"},
		{Verb: "watch", Group: dra, Resource: "resourceslices", For: "published devices are read only once"},
		{Verb: "list", Resource: "nodes", For: "labels that ask the agent to let go of GPUs are unknown"},
		{Verb: "watch", Resource: "nodes", For: "labels that ask the agent to let go of GPUs are seen late"},
	}
	if podsAPI {
		return wanted
	}
	return append(wanted,
		Permission{Verb: "list", Resource: "pods", For: "pods of claims are known from the kubelet only; labels and owners are unknown"},
		Permission{Verb: "watch", Resource: "pods", For: "changes of pods are detected late"})
}

// ReviewAccess returns the permissions that --web.kubernetes-auth needs.
func ReviewAccess() []Permission {
	return []Permission{
		{Verb: "create", Group: "authentication.k8s.io", Resource: "tokenreviews", For: "with --web.kubernetes-auth, no client can read the pages"},
		{Verb: "create", Group: "authorization.k8s.io", Resource: "subjectaccessreviews", For: "with --web.kubernetes-auth, no client can read the pages"},
	}
}

// ClusterAccess returns the permissions that the cluster role needs.
func ClusterAccess() []Permission {
	const dra = "resource.k8s.io"
	var wanted []Permission
	for _, row := range []Permission{
		{Group: dra, Resource: "resourceclaims", For: "all claims are unknown"},
		{Group: dra, Resource: "resourceclaimtemplates", For: "the reason for which a claim was not created from its template is unknown"},
		{Group: dra, Resource: "resourceslices", For: "the published devices are unknown"},
		{Group: dra, Resource: "deviceclasses", For: "the reasons of pending claims cannot be diagnosed"},
		{Group: dra, Resource: "devicetaintrules", For: "taints of rules are unknown"},
		{Resource: "pods", For: "pending claims and their age are unknown"},
		{Resource: "nodes", For: "the nodes that can use a device are unknown"},
		{Resource: "events", For: "claims that a quota refuses, and failed preparations, are not reported"},
		{Group: "scheduling.k8s.io", Resource: "podgroups", For: "claims of PodGroups are not observed", Optional: true},
		{Group: "scheduling.volcano.sh", Resource: "podgroups", For: "gangs of Volcano are unknown", Optional: true},
		{Group: "scheduling.run.ai", Resource: "podgroups", For: "gangs of KAI are unknown", Optional: true},
		{Group: "kueue.x-k8s.io", Resource: "workloads", For: "what waits in queues of Kueue is unknown", Optional: true},
		{Group: "resource.nvidia.com", Resource: "computedomains", For: "the ComputeDomains of NVIDIA's driver are unknown", Optional: true},
	} {
		for _, verb := range []string{"list", "watch"} {
			row.Verb = verb
			wanted = append(wanted, row)
		}
	}
	return wanted
}
