package top

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/dra-exporter/dra-exporter/internal/words"
)

// ClusterAgents finds exporters by their pods and reaches them through the API
// server's proxy. It is safe for concurrent use.
type ClusterAgents struct {
	Client    *http.Client // with the user's credentials; it must not follow redirects
	Server    *url.URL     // the API server
	Namespace string       // of the exporters; empty: all namespaces are searched
	Selector  string       // labels of their pods
	Wanted    Wanted       // nodes whose agents are read
	Timeout   time.Duration
}

// Labels and ports of the manifests that are shipped.
const (
	DefaultSelector = "app.kubernetes.io/name=dra-exporter"

	componentLabel = "app.kubernetes.io/component"
	metricsPort    = "metrics"
)

// pod has the fields of a pod by which an exporter is reached.
type pod struct {
	Metadata struct {
		Name      string            `json:"name"`
		Namespace string            `json:"namespace"`
		Labels    map[string]string `json:"labels"`
	} `json:"metadata"`
	Spec struct {
		NodeName   string      `json:"nodeName"`
		Containers []container `json:"containers"`
	} `json:"spec"`
	Status struct {
		Phase string `json:"phase"`
	} `json:"status"`
}

type container struct {
	Ports []struct {
		Name          string `json:"name"`
		ContainerPort int    `json:"containerPort"`
	} `json:"ports"`
	ReadinessProbe struct {
		HTTPGet struct {
			Scheme string `json:"scheme"`
		} `json:"httpGet"`
	} `json:"readinessProbe"`
}

// List finds the exporters that run, or should.
func (c *ClusterAgents) List(ctx context.Context) (AgentList, error) {
	pods, err := c.pods(ctx)
	if err != nil {
		return AgentList{}, err
	}
	listing := AgentList{Err: errors.New("no cluster role found")}
	found := 0
	for i := range pods {
		p := &pods[i]
		if p.Status.Phase == "Succeeded" || p.Status.Phase == "Failed" { // evicted pods stay for long
			continue
		}
		switch p.Metadata.Labels[componentLabel] {
		case "node", "node-managed": // a DaemonSet for each: the chart's _release.tpl
			found++
			if c.Wanted.Node(p.Spec.NodeName) {
				listing.Agents = append(listing.Agents, c.agent(p, 9420))
			}
		case "cluster":
			if agent := c.agent(p, 9421); listing.Cluster == nil || listing.Cluster.Err != nil {
				listing.Cluster, listing.Err = &agent, nil
			}
		}
	}
	return listing, c.missing(found, listing)
}

func (c *ClusterAgents) missing(found int, listing AgentList) error {
	where := "any namespace"
	if c.Namespace != "" {
		where = "namespace " + c.Namespace
	}
	switch {
	case found == 0:
		return fmt.Errorf("%w: no pod in %s has the labels %s,%s=node", ErrNoAgents, where, c.Selector, componentLabel)
	case len(listing.Agents) == 0:
		return fmt.Errorf("%w on node %s: %s elsewhere", ErrNoAgents, strings.Join(c.Wanted.Nodes, ", "), words.Count(found, "agent", "agents"))
	}
	return nil
}

// agent is how a pod is reached: by the port and the scheme of its manifest.
func (c *ClusterAgents) agent(p *pod, port int) Agent {
	scheme := ""
	for _, container := range p.Spec.Containers {
		for _, p := range container.Ports {
			if p.Name != metricsPort {
				continue
			}
			port = p.ContainerPort
			if container.ReadinessProbe.HTTPGet.Scheme == "HTTPS" {
				scheme = "https:"
			}
		}
	}
	target := scheme + p.Metadata.Name + ":" + strconv.Itoa(port)
	agent := Agent{
		Name: p.Metadata.Namespace + "/" + p.Metadata.Name, Node: p.Spec.NodeName,
		Base: c.Server.JoinPath("api/v1/namespaces", p.Metadata.Namespace, "pods", target, "proxy"),
	}
	if p.Status.Phase != "Running" {
		agent.Err = fmt.Errorf("its pod is %s", cmp.Or(clean(p.Status.Phase), "of no phase"))
	}
	return agent
}

// pageSize is how many pods one answer of the API server has.
const pageSize = 500

// pods are all that the selector finds.
func (c *ClusterAgents) pods(ctx context.Context) ([]pod, error) {
	var all []pod
	for next := ""; ; {
		var list struct {
			Metadata struct {
				Continue string `json:"continue"`
			} `json:"metadata"`
			Items []pod `json:"items"`
		}
		if err := c.get(ctx, next, &list); err != nil {
			return nil, fmt.Errorf("list the exporters' pods: %w", err)
		}
		all = append(all, list.Items...)
		if next = list.Metadata.Continue; next == "" {
			return all, nil
		}
	}
}

// maxPods is the size of a page in bytes: much more than pods are.
const maxPods = 64 << 20

func (c *ClusterAgents) get(ctx context.Context, next string, list any) error {
	address := c.Server.JoinPath("api/v1/pods")
	if c.Namespace != "" {
		address = c.Server.JoinPath("api/v1/namespaces", c.Namespace, "pods")
	}
	query := url.Values{"labelSelector": {c.Selector}, "limit": {strconv.Itoa(pageSize)}}
	if next != "" {
		query.Set("continue", next)
	}
	address.RawQuery = query.Encode()
	body, _, err := request{c.Client, c.Timeout, maxPods}.get(ctx, address, "no address of an API server")
	if err != nil {
		return err
	}
	if err := json.Unmarshal(body, list); err != nil {
		return fmt.Errorf("the server at this address is not an API server: %w", err)
	}
	return nil
}
