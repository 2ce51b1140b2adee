package top

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"
)

// apiServer serves pods in pages of two, and the agents behind its proxy.
type apiServer struct {
	t       testing.TB
	pods    []string // JSON
	proxied map[string]http.HandlerFunc
	status  int // of lists, if not 0
}

func (s *apiServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Authorization") != "Bearer secret" {
		s.t.Errorf("%s was asked with %q", r.URL, r.Header.Get("Authorization"))
	}
	if _, rest, is := strings.Cut(r.URL.Path, "/pods/"); is {
		pod, _, _ := strings.Cut(rest, "/proxy/")
		if handler := s.proxied[pod]; handler != nil {
			http.StripPrefix(strings.TrimSuffix(r.URL.Path, "/api/v1/claims"), handler).ServeHTTP(w, r)
			return
		}
		w.WriteHeader(http.StatusNotFound)
		fmt.Fprintf(w, `{"kind": "Status", "message": "pods \"%s\" not found"}`, pod)
		return
	}
	if s.status != 0 {
		w.WriteHeader(s.status)
		fmt.Fprint(w, `{"kind": "Status", "message": "pods is forbidden: User \"me\" cannot list resource \"pods\""}`)
		return
	}
	query, from, next := r.URL.Query(), 0, ""
	_, _ = fmt.Sscan(query.Get("continue"), &from)
	if query.Get("labelSelector") != DefaultSelector || query.Get("limit") == "" {
		s.t.Errorf("asked for %s", r.URL)
	}
	to := min(from+2, len(s.pods))
	if to < len(s.pods) {
		next = fmt.Sprint(to)
	}
	fmt.Fprintf(w, `{"metadata": {"continue": %q}, "items": [%s]}`, next, strings.Join(s.pods[from:to], ","))
}

// bearer adds the token to each request, as client-go's transport does.
type bearer struct{ transport *http.Transport }

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer secret")
	return b.transport.RoundTrip(r)
}

func podJSON(name, node, component, phase, extra string) string {
	return fmt.Sprintf(`{"metadata": {"name": %q, "namespace": "monitoring", "labels": {"app.kubernetes.io/component": %q}},
		"spec": {"nodeName": %q, "containers": [{"name": "other"}%s]}, "status": {"phase": %q}}`, name, component, node, extra, phase)
}

func cluster(t testing.TB, server *apiServer) *ClusterAgents {
	t.Helper()
	server.t = t
	listening := httptest.NewServer(server)
	t.Cleanup(listening.Close)
	address, err := url.Parse(listening.URL + "/k8s/clusters/c-1") // as Rancher has it
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	client := &http.Client{Transport: bearer{transport}, CheckRedirect: noRedirects}
	return &ClusterAgents{Client: client, Server: address, Selector: DefaultSelector, Timeout: 30 * time.Second}
}

// Exporters are found by their pods, and requested at the port and the scheme
// of their manifests.
func TestClusterFindsExporters(t *testing.T) {
	const tls = `, {"ports": [{"name": "metrics", "containerPort": 9999}], "readinessProbe": {"httpGet": {"scheme": "HTTPS"}}}`
	elsewhere := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("the token was sent to %s: %q", r.URL, r.Header.Get("Authorization"))
	}))
	t.Cleanup(elsewhere.Close)
	server := &apiServer{
		pods: []string{
			podJSON("node-1", "node-a", "node", "Running", ""),
			podJSON("node-2", "node-b", "node", "Running", tls),
			podJSON("node-evicted", "node-b", "node", "Failed", ""),
			podJSON("node-3", "node-c", "node", "Pending", ""),
			podJSON("node-4", "node-d", "node", "Running", ""),
			podJSON("node-5", "node-e", "node-managed", "Running", ""),
			podJSON("cluster-1", "node-a", "cluster", "Running", ""),
			podJSON("other", "node-a", "docs", "Running", ""),
		},
		proxied: map[string]http.HandlerFunc{
			"node-1:9420":       answers(withReplies(t, "claims.json")),
			"https:node-2:9999": answers(withReplies(t, "sharing.json")),
			"node-5:9420": func(w http.ResponseWriter, _ *http.Request) {
				http.Redirect(w, httptest.NewRequest("GET", "/", nil), elsewhere.URL, http.StatusFound)
			},
			"cluster-1:9421": nil,
		},
	}
	found := cluster(t, server)
	listing, err := found.List(t.Context())
	if err != nil || len(listing.Agents) != 5 || listing.Cluster == nil || !strings.HasSuffix(listing.Cluster.Base.Path, "/pods/cluster-1:9421/proxy") {
		t.Fatalf("%+v, %v", listing, err)
	}
	client := testClient(t)
	client.HTTP = found.Client
	reading := round(t, client, listing)
	if reading.Answered != 2 || len(reading.Rows) == 0 {
		t.Errorf("%d have answered", reading.Answered)
	}
	for i, want := range []string{"node-3: its pod is Pending", `node-4: 404 Not Found: pods "node-4:9420" not found`, "node-5: 302 Found: it redirects to " + elsewhere.URL + ", which is not followed"} {
		if got := reading.Failures[i]; "monitoring/"+want != got.Agent+": "+got.Error {
			t.Errorf("%s: %s, want %s", got.Agent, got.Error, want)
		}
	}
	found.Wanted = Wanted{Nodes: []string{"node-b"}}
	if listing, err = found.List(t.Context()); err != nil || len(listing.Agents) != 1 || listing.Agents[0].Node != "node-b" {
		t.Errorf("%+v, %v", listing, err)
	}
	found.Wanted = Wanted{Nodes: []string{"node-z"}}
	if _, err = found.List(t.Context()); !errors.Is(err, ErrNoAgents) || !strings.Contains(err.Error(), "node-z") {
		t.Errorf("%v", err)
	}
}

// A cluster that has no agents, or does not show them, is distinguished from
// one whose agents hold nothing.
func TestClusterWithoutAgents(t *testing.T) {
	if _, err := cluster(t, &apiServer{}).List(t.Context()); !errors.Is(err, ErrNoAgents) || !strings.Contains(err.Error(), DefaultSelector) {
		t.Errorf("%v", err)
	}
	_, err := cluster(t, &apiServer{status: http.StatusForbidden}).List(t.Context())
	var refused *StatusError
	if !errors.As(err, &refused) || refused.Code != http.StatusForbidden || !strings.Contains(err.Error(), `User "me" cannot list`) {
		t.Errorf("%v", err)
	}
	found := cluster(t, &apiServer{pods: []string{podJSON("cluster-1", "n", "cluster", "Running", "")}})
	found.Namespace = "monitoring"
	if _, err = found.List(t.Context()); !errors.Is(err, ErrNoAgents) || !strings.Contains(err.Error(), "monitoring") {
		t.Errorf("%v", err)
	}
	var syntax *json.SyntaxError
	if _, err = cluster(t, &apiServer{pods: []string{"<html>"}}).List(t.Context()); !errors.As(err, &syntax) {
		t.Errorf("%v", err)
	}
}
