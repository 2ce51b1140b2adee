package check

import (
	"fmt"
	"slices"
	"strings"

	"github.com/dra-exporter/dra-exporter/collector/source"
	"github.com/dra-exporter/dra-exporter/internal/words"
)

// API is the findings about the API server.
type API struct {
	Disabled    bool  // disabled by a flag
	ConfigError error // no connection is configured

	Host         string
	VersionError error
	Version      string // v1.37.1
	Major, Minor int
	Groups       []string // versions of resource.k8s.io that are served
	GroupsError  error

	Access   []Permission
	Statuses []source.Status // of what is read, once it was tried
}

// Permission is one permission and whether it is granted.
type Permission struct {
	Verb, Group, Resource string
	For                   string // what is lost without it
	Optional              bool   // it is not a loss worth a warning
	Allowed               bool
	Error                 error // it could not be found out
}

func (a Permission) String() string {
	if a.Group == "" {
		return a.Verb + " " + a.Resource
	}
	return a.Verb + " " + a.Resource + "." + a.Group
}

// The first minor version of Kubernetes with resource.k8s.io/v1.
const (
	oldestMajor, oldestMinor = 1, 34
	apiPage                  = "docs/check.md#api-server"
	apiRole                  = "API server"
)

// APIFindings reports on the connection to the API server, its version, and what may
// be read. role is the ClusterRole that should allow it.
func APIFindings(a API, role string) []Finding {
	section := area{apiRole, apiPage}
	switch {
	case a.Disabled:
		return []Finding{section.skipped("connection", "--kubernetes.disable: claims have no class, no request and no UIDs of pods, and only the kubelet reports holders")}
	case a.ConfigError != nil:
		return []Finding{section.failure("In a pod: give it a service account and automountServiceAccountToken: true. Elsewhere: --kubeconfig. To run the node role without it: --kubernetes.disable.", "connection", "%v", a.ConfigError)}
	case a.VersionError != nil:
		return []Finding{a.unreachable(section)}
	}
	findings := []Finding{a.version(section)}
	findings = append(findings, a.group(section)...)
	findings = append(findings, a.access(section, role)...)
	return append(findings, a.readFailures(section)...)
}

func (a API) unreachable(section area) Finding {
	text, remedy := a.VersionError.Error(), "Check the address, and that this pod can reach it. A NetworkPolicy that limits egress must allow the API server."
	for _, known := range []struct{ word, remedy string }{
		{"x509", "The certificate is not trusted: the kubeconfig, or the service account's ca.crt, belongs to another cluster or is out of date."},
		{"nauthorized", "The token is not accepted: it has expired, or belongs to another cluster."},
		{"orbidden", "The identity has no permission to read the version: check the binding of system:public-info-viewer."},
		{"no such host", "The name cannot be resolved: check the cluster's DNS, and the server's name in the kubeconfig."},
	} {
		if strings.Contains(text, known.word) {
			remedy = known.remedy
		}
	}
	return section.failure(remedy, "connection", "the request to %s failed: %s", a.Host, text)
}

func (a API) version(section area) Finding {
	if known := a.Major > 0 || a.Minor > 0; known && (a.Major < oldestMajor || a.Major == oldestMajor && a.Minor < oldestMinor) {
		return section.failure(fmt.Sprintf("Upgrade the cluster: Kubernetes %d.%d is the first with resource.k8s.io/v1.", oldestMajor, oldestMinor), "version", "%s at %s is too old", a.Version, a.Host)
	}
	return section.ok("version", "%s at %s", a.Version, a.Host)
}

// group reports on the API group of claims.
func (a API) group(section area) []Finding {
	switch {
	case a.GroupsError != nil:
		return []Finding{section.warning("Check whether other clients can read /apis.", "resource.k8s.io", "cannot be read: %v", a.GroupsError)}
	case a.Groups == nil:
		return []Finding{section.failure("Enable dynamic resource allocation: Kubernetes 1.34 or newer enables it by default; check the API server's --runtime-config and feature gates.", "resource.k8s.io", "is not served")}
	}
	if slices.Contains(a.Groups, "v1") {
		return []Finding{section.ok("resource.k8s.io", "served as %s", strings.Join(a.Groups, ", "))}
	}
	return []Finding{section.failure("Kubernetes 1.34 or newer serves v1; check the API server's --runtime-config.", "resource.k8s.io", "served as %s, and not as v1", strings.Join(a.Groups, ", "))}
}

// access returns one finding for the permissions that are granted, and one for each
// that is missing.
func (a API) access(section area, role string) []Finding {
	var findings []Finding
	allowed, unknown := 0, error(nil)
	for _, access := range a.Access {
		switch {
		case access.Error != nil:
			unknown = access.Error
		case access.Allowed:
			allowed++
		case access.Optional:
			findings = append(findings, section.skipped(access.String(), "is not allowed, and not needed: %s", access.For))
		default:
			findings = append(findings, section.failure(fmt.Sprintf("Bind the ClusterRole %s to the requesting account, in a pod its service account (rbac.create in the chart, deploy/kustomize/base).", role),
				access.String(), "is not allowed: %s", access.For))
		}
	}
	if unknown != nil {
		findings = append(findings, section.skipped("permissions", "the permissions cannot be read from the API server: %v", unknown))
	} else if allowed > 0 {
		findings = append([]Finding{section.ok("permissions", "%d of %d are granted", allowed, len(a.Access))}, findings...)
	}
	return findings
}

// readFailures returns the failed reads that no earlier finding has reported.
func (a API) readFailures(section area) []Finding {
	var findings []Finding
	for _, status := range a.Statuses {
		switch {
		case status.Reason == source.ReasonNone && status.Up:
		case status.Reason == source.ReasonPermission && a.denied(status.Name):
		case status.Reason == source.ReasonUnsupported:
		case status.Reason == source.ReasonNone && status.Errors == 0 && status.LastSuccess.IsZero() && a.lacks():
			findings = append(findings, section.skipped(status.Name, "not read: the missing permissions are needed first"))
		case status.Reason == source.ReasonNone && status.Errors == 0 && status.LastSuccess.IsZero():
			findings = append(findings, section.failure("Run the check again with a longer --timeout; check the load of the API server.", status.Name, "could not be read in the time of the check"))
		case status.Up:
			findings = append(findings, section.warning("The exporter retries; check its log.", status.Name, "%s", status.Message))
		default:
			findings = append(findings, section.failure("The exporter retries; check its log.", status.Name, "%s", status.Message))
		}
	}
	return findings
}

// lacks reports whether a needed permission is missing. Some of what is read
// depends on something else, as claims do on the pods that use them.
func (a API) lacks() bool {
	return slices.ContainsFunc(a.Access, func(access Permission) bool { return access.Error == nil && !access.Allowed && !access.Optional })
}

// denied reports whether a finding has reported a permission for the resource.
func (a API) denied(resource string) bool {
	return slices.ContainsFunc(a.Access, func(access Permission) bool {
		return access.Resource == resource && access.Error == nil && !access.Allowed
	})
}

// NodeName is what is known about the name of this node.
type NodeName struct {
	Name    string
	Missing error // --node.name was not given, and why it cannot be guessed
	Guessed bool  // it is the host's name, because no name was set

	Exists, Known bool // the API server has a Node of the name
	APIPods       int  // pods that are bound to it at the API server; -1: unknown
	KubeletPods   int  // pods that the kubelet here lists; -1: unknown
	Slices        int  // published devices of the node; -1: unknown
}

// nodeNameFindings reports whether the name is this node's.
func nodeNameFindings(n NodeName) []Finding {
	section := area{apiRole, "docs/check.md#node-name"}
	remedy := "Set --node.name, or NODE_NAME from the pod's spec.nodeName, as the shipped DaemonSet does."
	switch {
	case n.Missing != nil:
		return []Finding{section.failure(remedy, "node name", "%v", n.Missing)}
	case n.Known && !n.Exists:
		return []Finding{section.failure(remedy, "node name", "the API server has no node %q", n.Name)}
	case n.APIPods == 0 && n.KubeletPods > 0:
		return []Finding{section.failure(remedy, "node name", "the API server has no pod on a node %q, and the kubelet here runs %s", n.Name, words.Count(n.KubeletPods, "pod", "pods"))}
	case n.Guessed:
		return []Finding{section.warning(remedy, "node name", "%q is this host's name, because no other name is set", n.Name)}
	case n.APIPods < 0 && !n.Known:
		return []Finding{section.skipped("node name", "%q could not be compared with the names at the API server", n.Name)}
	default:
		return []Finding{section.ok("node name", "%q", n.Name)}
	}
}
