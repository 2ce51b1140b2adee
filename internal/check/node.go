package check

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/collector/node"
	"github.com/dra-exporter/dra-exporter/collector/source"
	"github.com/dra-exporter/dra-exporter/internal/words"
)

// NodeParts is the state of the parts of the node role after each has been read
// once.
type NodeParts struct {
	Host  Host
	Facts node.Facts // of the newest step

	Socket string // of the kubelet's PodResources API
	Listed bool   // the kubelet has answered

	PodsSocket string // of the kubelet's Pods API
	CDIDirs    []string

	Kubelet, CDI source.Status
	PodsAPI      *source.Status // nil: the Pods API is not used
	Devices      []source.Status

	Optional  map[string]bool // device sources whose library may be missing
	OpenError error           // a device source named by flags cannot be opened
	Profiling bool            // --device.profiling
	Withheld  bool            // profiling was enabled and not tried

	PodName string // of the pod in which the check runs; empty: it is none

	Sharing string // reason of dra_exporter_process_attribution; empty: unknown

	API  API
	Name *NodeName // nil: without an API server to compare it with
}

// FolderMissing reports whether the folder of the kubelet's socket does not exist:
// no kubelet runs here.
func FolderMissing(socket string) bool {
	_, err := os.Stat(filepath.Dir(socket))
	return errors.Is(err, fs.ErrNotExist)
}

// NodeFindings reports on what the node role reads. It stats the kubelet's socket
// and the CDI folders, and reads nothing else.
func NodeFindings(n NodeParts) []Finding {
	findings := kubeletFindings(n.kubelet())
	if n.PodsAPI != nil {
		findings = append(findings, podsAPIFindings(n.PodsSocket, *n.PodsAPI)...)
	}
	findings = append(findings, cdiFindings(n.cdi())...)
	findings = append(findings, APIFindings(n.API, NodeRole)...)
	if n.Name != nil {
		name := *n.Name
		if n.Listed {
			name.KubeletPods = len(n.Facts.Listing.Pods)
		}
		findings = append(findings, nodeNameFindings(name)...)
	}
	findings = append(findings, sourceFindings(sources{
		Statuses: n.Devices, Optional: n.Optional, OpenError: n.OpenError, Samples: n.Facts.Samples,
		PCI: n.Host.PCI, Published: n.Facts.Cluster.Published, Profiling: n.Profiling, Withheld: n.Withheld,
	})...)
	if reason := n.Facts.Access.Reason; reason != "" {
		findings = append(findings, released(area{"devices", "docs/release.md"}, "GPUs", reason)...)
	}
	findings = append(findings, matchingFindings(newMatching(n.Facts))...)
	findings = append(findings, ownClaimFindings(n.PodName, n.Facts.Cluster)...)
	return append(findings, sharingFindings(n.Sharing)...)
}

// ownClaimFindings reports claims by which the agent's own pod has devices. NVIDIA's driver
// manager counts such a pod as one that holds GPUs, admin access or not.
func ownClaimFindings(name string, cluster node.APIFacts) []Finding {
	var findings []Finding
	for _, pod := range cluster.Pods {
		if name == "" || pod.Ref.Name != name {
			continue
		}
		for _, claim := range cluster.Claims {
			admin := slices.ContainsFunc(claim.Results, func(result dra.Result) bool { return result.AdminAccess })
			if admin && claim.ReservedForPod(pod.UID) {
				findings = append(findings, area{"own claim", "docs/access.md#let-go-of-gpus"}.warning(
					"Use another access mode, or remove the agent before the driver of the node is replaced.",
					claim.Ref.Namespace+"/"+claim.Ref.Name, "this pod has %s by admin access: NVIDIA's driver manager does not reload the driver of a node with such a pod", words.Count(len(claim.Results), "device", "devices")))
			}
		}
	}
	return findings
}

func (n NodeParts) kubelet() kubelet {
	k := kubelet{
		Socket: n.Socket, UID: n.Host.UID, Container: n.Host.Container, Status: n.Kubelet,
		Answered: n.Listed, Listing: n.Facts.Listing, Using: podsUsingClaims(n.Facts.Cluster),
	}
	_, err := os.Stat(filepath.Dir(n.Socket))
	k.FolderError = withoutPath(err)
	info, err := os.Stat(n.Socket)
	k.SocketError = withoutPath(err)
	k.IsSocket = err == nil && info.Mode()&os.ModeSocket != 0
	return k
}

// podsUsingClaims returns pods that have a container that uses a claim, and for
// which an allocated claim is reserved.
func podsUsingClaims(cluster node.APIFacts) []dra.PodRef {
	var using []dra.PodRef
	for _, pod := range cluster.Pods {
		created := slices.ContainsFunc(pod.Containers, func(c dra.Container) bool { return c.ID != "" && len(c.Uses) > 0 })
		holds := slices.ContainsFunc(cluster.Claims, func(c dra.Claim) bool { return c.Allocated && c.ReservedForPod(pod.UID) })
		if created && holds && !pod.Terminal {
			using = append(using, pod.Ref)
		}
	}
	return using
}

func (n NodeParts) cdi() cdi {
	c := cdi{Status: n.CDI, Devices: len(n.Facts.CDI)}
	for _, dir := range n.CDIDirs {
		_, err := os.ReadDir(dir)
		c.Folders = append(c.Folders, cdiFolder{Path: dir, Error: withoutPath(err)})
	}
	specified := make(map[string]bool, len(n.Facts.CDI))
	for _, device := range n.Facts.CDI {
		specified[device.Name] = true
	}
	for _, assignment := range n.Facts.Listing.Assignments {
		if len(assignment.CDIDevices) == 0 {
			continue
		}
		c.Held++
		if slices.ContainsFunc(assignment.CDIDevices, func(name string) bool { return specified[name] }) {
			c.Known++
		}
	}
	return c
}

// newMatching returns the devices that are published or allocated on the node, and
// the matches that the rules of the node role find for them.
func newMatching(facts node.Facts) matching {
	matching := matching{Published: facts.Cluster.Published, Samples: facts.Samples, SlicesKnown: facts.Cluster.SlicesFresh}
	allocated := map[dra.DeviceID]bool{}
	for _, claim := range facts.Cluster.Claims {
		for _, result := range claim.Results {
			allocated[result.Device] = true
		}
	}
	for _, assignment := range facts.Listing.Assignments {
		allocated[assignment.Device] = true
	}
	for id := range allocated {
		matching.Allocated = append(matching.Allocated, id)
	}
	for _, match := range node.Matches(facts) {
		matching.Matches = append(matching.Matches, deviceMatch{Device: match.Device, Rule: match.Rule, UUID: match.Hardware.UUID, PCI: match.Hardware.PCIBusID, Part: match.Hardware.IsPartition()})
	}
	return matching
}
