// Package upstream knows bugs of Kubernetes and of DRA drivers whose signs are in the
// objects of the API server. Bugs is the table: a row has the versions that are affected,
// a function that recognizes the sign, and a remedy. Find applies it to a cluster.
//
// A sign proves a bug only if the component has an affected version and the sign has no
// other cause. Otherwise a Finding is not certain.
package upstream

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/dra"
)

// ClusterObjects is what has been read of a cluster. What is missing hides signs and makes none,
// but all pods that use claims must be in it if PodsKnown is set.
type ClusterObjects struct {
	Now       time.Time
	Server    string      // version of the API server, as it writes it; empty: unknown
	Supply    *dra.Supply // nil: unknown
	Claims    map[dra.ClaimRef]*dra.ClaimLifecycle
	Pods      map[dra.PodRef]*dra.PodLifecycle
	Nodes     map[string]*dra.Node
	Warnings  map[string]*dra.Warning // by name
	PodsKnown bool                    // a pod that is not in Pods uses no claim, or does not exist
}

// NewClusterObjects returns a cluster without objects.
func NewClusterObjects(now time.Time, server string) *ClusterObjects {
	return &ClusterObjects{
		Now: now, Server: server,
		Claims: make(map[dra.ClaimRef]*dra.ClaimLifecycle), Pods: make(map[dra.PodRef]*dra.PodLifecycle),
		Nodes: make(map[string]*dra.Node), Warnings: make(map[string]*dra.Warning),
	}
}

// Apply applies a change of an object.
func (c *ClusterObjects) Apply(change dra.Change) {
	switch {
	case change.Claim != nil:
		set(c.Claims, change.Claim.Ref, change.Claim, change.Gone)
	case change.Pod != nil:
		set(c.Pods, change.Pod.Ref, change.Pod, change.Gone)
	case change.Node != nil:
		set(c.Nodes, change.Node.Name, change.Node, change.Gone)
	case change.Warning != nil:
		set(c.Warnings, change.Warning.Name, change.Warning, change.Gone)
	}
}

func set[K comparable, V any](all map[K]V, key K, value V, gone bool) {
	if gone {
		delete(all, key)
		return
	}
	all[key] = value
}

// pod returns the pod that a claim is reserved for; nil: it is unknown, or no pod.
func (c *ClusterObjects) pod(namespace string, consumer dra.Consumer) *dra.PodLifecycle {
	pod := c.Pods[dra.PodRef{Namespace: namespace, Name: consumer.Name}]
	if consumer.Resource != "pods" || pod == nil || pod.UID != consumer.UID {
		return nil
	}
	return pod
}

// Sign is a sign of a bug at one place.
type Sign struct {
	Text   string // what is seen; a clause: no capital, no full stop
	Pods   []dra.PodRef
	Claims []dra.ClaimRef
	Node   string // whose kubelet has the bug
}

// Concerns reports whether the sign is about the claim or the pod.
func (s Sign) Concerns(claims []dra.ClaimRef, pods []dra.PodRef) bool {
	return slices.ContainsFunc(claims, func(ref dra.ClaimRef) bool { return slices.Contains(s.Claims, ref) }) ||
		slices.ContainsFunc(pods, func(ref dra.PodRef) bool { return slices.Contains(s.Pods, ref) })
}

// Finding is a sign with the bug that it is a sign of.
type Finding struct {
	Bug *Bug
	Sign
	Certain bool
	Cause   string // which version of the component has the bug, or why that is not certain; a clause
}

// Explanation says in one sentence, without its full stop, whether it is the bug.
func (f Finding) Explanation() string {
	if f.Certain {
		return strings.ToUpper(f.Cause[:1]) + f.Cause[1:]
	}
	return "It may be this bug: " + f.Cause
}

// Find returns what has a sign of a known bug: by bugs in the order of the table, then by
// text. A sign that the version of the component excludes is left out.
func Find(c *ClusterObjects) []Finding {
	var found []Finding
	for _, bug := range Bugs() {
		signs := bug.find(c)
		slices.SortFunc(signs, func(a, b Sign) int { return cmp.Compare(a.Text, b.Text) })
		for _, sign := range signs {
			if finding, ok := bug.judge(c, sign); ok {
				found = append(found, finding)
			}
		}
	}
	return found
}

// judge compares the version of the component with those that have the bug. It returns
// false if the version has it not and the sign does not outlast an upgrade.
func (b *Bug) judge(c *ClusterObjects, sign Sign) (Finding, bool) {
	finding, version, component := Finding{Bug: b, Sign: sign}, "", ""
	switch b.Component {
	case ControlPlane:
		version, component = c.Server, "Kubernetes"
	case Kubelet:
		component = "the kubelet of " + sign.Node
		if node := c.Nodes[sign.Node]; node != nil {
			version = node.Kubelet
		}
	case Driver:
		finding.Cause = "no object has the driver's version (affected: " + b.Versions() + ")"
		return finding.orElse(b.Other), true
	}
	if len(b.Affected) == 0 {
		finding.Certain, finding.Cause = b.Other == "", "every version behaves like this"
		return finding.orElse(b.Other), true
	}
	switch affected, ok := isAffected(version, b.Affected); {
	case !ok:
		finding.Cause = fmt.Sprintf("the version of %s is unknown (affected: %s)", component, b.Versions())
	case affected:
		finding.Certain, finding.Cause = b.Other == "", fmt.Sprintf("%s %s has this bug", component, version)
	case b.Lasting:
		finding.Cause = fmt.Sprintf("%s %s does not have this bug, but the version before an upgrade may have had it", component, version)
	default:
		return Finding{}, false
	}
	return finding.orElse(b.Other), true
}

// orElse adds another cause of the sign.
func (f Finding) orElse(other string) Finding {
	if other != "" {
		f.Cause += "; or " + other
	}
	return f
}
