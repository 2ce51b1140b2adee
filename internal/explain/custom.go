package explain

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/dra-exporter/dra-exporter/internal/clusterread"

	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/internal/words"
)

// Queued is why a workload's queue has not admitted it.
type Queued struct {
	Workload string    `json:"kueueWorkload"` // name of Kueue's object
	Queue    string    `json:"queue,omitempty"`
	Pods     int32     `json:"pods,omitempty"` // that it is to have
	Reason   string    `json:"reason"`
	Message  string    `json:"message,omitempty"`
	Since    time.Time `json:"since"`
}

// text describes it in a sentence.
func (q *Queued) text() string {
	return fmt.Sprintf("waits in queue %s of Kueue: %s: %s", q.Queue, q.Reason, q.Message)
}

// help names the objects of Kueue that decide.
func (q *Queued) help(namespace string) []string {
	return []string{
		fmt.Sprintf("`kubectl describe workloads.kueue.x-k8s.io -n %s %s`", namespace, q.Workload),
		fmt.Sprintf("wait until other workloads of queue %s end, or raise the quota of its ClusterQueue", q.Queue),
	}
}

// ComputeDomain is a ComputeDomain that pods of the report use.
type ComputeDomain struct {
	Name           string              `json:"name"`
	Ready          bool                `json:"ready"`
	RequestedNodes int64               `json:"requestedNodes,omitempty"` // left out if it does not say
	Nodes          []ComputeDomainNode `json:"nodes"`                    // that have joined it
}

// ComputeDomainNode is a node of a ComputeDomain.
type ComputeDomainNode struct {
	Name   string `json:"name"`
	Clique string `json:"clique,omitempty"`
	Ready  bool   `json:"ready"`
}

// text says how many nodes are ready, and names those that are not.
func (d *ComputeDomain) text() string {
	var waiting []string
	cliques := make(map[string]bool)
	for _, node := range d.Nodes {
		if !node.Ready {
			waiting = append(waiting, node.Name)
		}
		if node.Clique != "" {
			cliques[node.Clique] = true
		}
	}
	text := fmt.Sprintf("nodes that are ready: %d", len(d.Nodes)-len(waiting))
	if d.RequestedNodes > 0 {
		text += fmt.Sprintf(" of %d", d.RequestedNodes)
	}
	if len(waiting) > 0 {
		text += "; not ready: " + words.List(waiting, 8)
	}
	if len(cliques) > 1 {
		text += fmt.Sprintf("; they are in %d NVLink cliques, and only GPUs of one clique exchange data over NVLink", len(cliques))
	}
	return text
}

// queued returns why a workload is not admitted, of its Workloads of Kueue the one
// that has waited longest; nil if none waits.
func queued(o *clusterread.Objects, kind, namespace, name string) *Queued {
	var longest *dra.KueueWorkload
	for ref, workload := range o.Kueue {
		if ref.Namespace != namespace || workload.Workload.Kind != kind || workload.Workload.Name != name || workload.Waiting == nil {
			continue
		}
		if longest == nil || cmp.Or(workload.Waiting.Since.Compare(longest.Waiting.Since), cmp.Compare(ref.Name, longest.Ref.Name)) < 0 {
			longest = workload
		}
	}
	if longest == nil {
		return nil
	}
	waiting := longest.Waiting
	return &Queued{longest.Ref.Name, longest.Workload.Queue, longest.Pods, waiting.Reason, waiting.Message, waiting.Since.UTC()}
}

// kueueWorkload returns the Workload of Kueue that holds a pod; nil if none is known to.
func kueueWorkload(o *clusterread.Objects, ref dra.PodRef) *dra.KueueWorkload {
	pod := o.Pods[ref]
	if pod == nil || pod.HeldBy == nil {
		return nil
	}
	if *pod.HeldBy != "" {
		return o.Kueue[dra.PodRef{Namespace: pod.Ref.Namespace, Name: *pod.HeldBy}]
	}
	for ref, workload := range o.Kueue {
		if ref.Namespace == pod.Ref.Namespace && workload.Pod.UID == pod.UID {
			return workload
		}
	}
	return nil
}

// queuedKinds returns the kinds of the workloads of a name that wait in a queue.
func queuedKinds(o *clusterread.Objects, subject clusterread.Subject) []string {
	var kinds []string
	for ref, workload := range o.Kueue {
		kind := workload.Workload.Kind
		if ref.Namespace == subject.Namespace && workload.Workload.Name == subject.Name && workload.Waiting != nil && !slices.Contains(kinds, kind) &&
			(subject.WorkloadKind == "" || strings.EqualFold(kind, subject.WorkloadKind)) {
			kinds = append(kinds, kind)
		}
	}
	slices.Sort(kinds)
	return kinds
}

// computeDomain returns the ComputeDomain that makes the template of a reference; nil if none
// is known to.
func computeDomain(o *clusterread.Objects, namespace, template string) *dra.ComputeDomain {
	if template == "" {
		return nil
	}
	for ref, domain := range o.Domains {
		if ref.Namespace == namespace && domain.Template == template {
			return domain
		}
	}
	return nil
}

// listDomains returns the ComputeDomains that pods use, by name.
func listDomains(o *clusterread.Objects, pods []*dra.PodLifecycle) []ComputeDomain {
	var all []ComputeDomain
	for _, pod := range pods {
		for _, reference := range pod.Claims {
			domain := computeDomain(o, pod.Ref.Namespace, reference.Template)
			if domain == nil || slices.ContainsFunc(all, func(known ComputeDomain) bool { return known.Name == domain.Ref.Name }) {
				continue
			}
			described := ComputeDomain{Name: domain.Ref.Name, Ready: domain.Ready, RequestedNodes: domain.NumNodes, Nodes: []ComputeDomainNode{}}
			for _, node := range domain.Nodes {
				described.Nodes = append(described.Nodes, ComputeDomainNode(node))
			}
			all = append(all, described)
		}
	}
	slices.SortFunc(all, func(a, b ComputeDomain) int { return cmp.Compare(a.Name, b.Name) })
	return all
}

// domainsText describes the ComputeDomains of a report.
func domainsText(p *printer, r *Report) {
	for i := range r.Domains {
		domain := &r.Domains[i]
		state := "not ready"
		if domain.Ready {
			state = "ready"
		}
		p.heading("ComputeDomain " + domain.Name + ": " + state)
		p.paragraph(2, domain.text())
	}
}
