package check

import (
	"errors"
	"io/fs"

	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/collector/source"
	"github.com/dra-exporter/dra-exporter/internal/words"
)

// kubelet is the state of the kubelet's PodResources API.
type kubelet struct {
	Socket      string
	FolderError error // of the socket's folder
	SocketError error
	IsSocket    bool // the path is a socket
	UID         int
	Container   bool

	Status   source.Status
	Answered bool
	Listing  dra.PodResources

	// Using are the running pods of this node with allocated claims, by the API
	// server; empty if unknown.
	Using []dra.PodRef
}

const kubeletPage = "docs/check.md#kubelet"

// kubeletFindings reports on the kubelet's socket and its answer.
func kubeletFindings(k kubelet) []Finding {
	section := area{"kubelet", kubeletPage}
	if finding, wrong := k.socket(section); wrong {
		return []Finding{finding}
	}
	if !k.Answered {
		return []Finding{k.noAnswer(section)}
	}
	claims, devices := map[dra.ClaimRef]bool{}, map[dra.DeviceID]bool{}
	for _, assignment := range k.Listing.Assignments {
		claims[assignment.Claim], devices[assignment.Device] = true, true
	}
	findings := []Finding{section.ok("PodResources", "%s, %s with %s, %s of device plugins",
		words.Count(len(k.Listing.Pods), "pod", "pods"), words.Count(len(claims), "claim", "claims"),
		words.Count(len(devices), "device", "devices"), words.Count(len(k.Listing.Plugins), "assignment", "assignments"))}
	if k.Status.Reason != source.ReasonNone {
		findings = append(findings, section.warning("Check the kubelet's log: it answers intermittently.", "PodResources", "%s", k.Status.Message))
	}
	if count := len(k.Listing.WithoutDevices); count > 0 {
		findings = append(findings, section.ok("claims", "%s without devices: not prepared yet, or their drivers need no preparation (skipNodeOperations)", words.Count(count, "claim", "claims")))
	}
	if len(k.Using) > 0 && len(claims) == 0 && len(k.Listing.WithoutDevices) == 0 {
		findings = append(findings, section.warning(
			"Kubernetes 1.34 or newer is needed, with the kubelet's feature gate KubeletPodResourcesDynamicResources enabled, which is the default.",
			"claims", "the kubelet lists no claim, although pods that use claims run here (%s): it is too old, or a feature gate is disabled", k.Using[0]))
	}
	return findings
}

// socket reports whether there is no socket, or one that cannot be reached.
func (k kubelet) socket(section area) (Finding, bool) {
	mount := "No kubelet runs here, or it has another root folder: set --kubelet.pod-resources-socket."
	if k.Container {
		mount = "Mount the node's /var/lib/kubelet/pod-resources read-only at that path, as the shipped DaemonSet does; if the kubelet has another root folder, change the volume's path (the chart's node.kubeletDir)."
	}
	root := "Run as root: only root can open the kubelet's socket. No capability is needed."
	switch {
	case errors.Is(k.FolderError, fs.ErrPermission) || errors.Is(k.SocketError, fs.ErrPermission) || k.Status.Reason == source.ReasonPermission:
		if k.UID == 0 {
			root = "A security module may deny it: check the node's audit log (SELinux, AppArmor), and on OpenShift the SecurityContextConstraints."
		}
		return section.failure(root, "socket", "uid %[2]d has no permission to open %[1]s", k.Socket, k.UID), true
	case errors.Is(k.FolderError, fs.ErrNotExist):
		return section.failure(mount, "socket", "the folder of %s does not exist", k.Socket), true
	case errors.Is(k.SocketError, fs.ErrNotExist):
		return section.failure("Check that the kubelet runs, and that this is its root folder. A volume with a path that does not exist on the node becomes an empty folder. "+mount, "socket", "the folder exists, and %s is not in it", k.Socket), true
	case k.SocketError != nil:
		return section.failure(mount, "socket", "%s: %v", k.Socket, k.SocketError), true
	case !k.IsSocket:
		return section.failure(mount, "socket", "%s is not a socket", k.Socket), true
	default:
		return Finding{}, false
	}
}

// noAnswer reports on a socket without a good answer.
func (k kubelet) noAnswer(section area) Finding {
	switch {
	case k.Status.Reason == source.ReasonTimeout || !k.Status.HungSince.IsZero() || k.Status.Message == "":
		return section.failure("Check the kubelet's log on the node; the agent retries, and exports the previous state.", "PodResources", "the kubelet accepts the call and does not answer")
	case k.Status.Reason == source.ReasonUnavailable:
		return section.failure("The socket refuses connections. Check that the kubelet runs, and mount the folder, not the socket: a restart of the kubelet replaces it.", "PodResources", "%s", k.Status.Message)
	default:
		return section.failure("Check the kubelet's log on the node.", "PodResources", "%s", k.Status.Message)
	}
}

// cdi is the state of the directories of CDI specifications.
type cdi struct {
	Folders []cdiFolder
	Status  source.Status
	Devices int // of all specifications
	Held    int // allocated devices that the kubelet names with a CDI device
	Known   int // of them, those that a specification here has
}

// cdiFolder is a folder that was looked into.
type cdiFolder struct {
	Path  string
	Error error
}

const cdiPage = "docs/check.md#cdi"

// cdiFindings reports on the specifications. They are one way of several to find
// the hardware of a device, and so never a failure.
func cdiFindings(c cdi) []Finding {
	section := area{"CDI", cdiPage}
	mount := "Mount the node's folder read-only, as the shipped DaemonSet does; --cdi.dir sets other folders (chart: node.cdiDirs)."
	var findings []Finding
	missing := 0
	for _, folder := range c.Folders {
		switch {
		case errors.Is(folder.Error, fs.ErrNotExist):
			missing++
		case folder.Error != nil:
			findings = append(findings, section.warning("Run as root, or make it readable.", folder.Path, "cannot be read: %v", folder.Error))
		}
	}
	if missing == len(c.Folders) {
		return append(findings, section.skipped("specifications", "none of the folders exists; they are needed only for drivers that publish neither UUID nor PCI address"))
	}
	if c.Status.Reason != source.ReasonNone {
		findings = append(findings, section.warning("Find the program that wrote the file; a container runtime cannot use it either.", "specifications", "%s", c.Status.Message))
	}
	findings = append(findings, section.ok("specifications", "%s", words.Count(c.Devices, "device", "devices")))
	if c.Held > 0 && c.Known == 0 {
		findings = append(findings, section.warning(mount, "allocated devices", "no specification here has any of the %s that the kubelet lists with CDI ids: the folder that the driver writes to is not mounted", words.Count(c.Held, "device", "devices")))
	}
	return findings
}

// podsAPIFindings reports on the kubelet's Pods API, which a flag names.
func podsAPIFindings(socket string, status source.Status) []Finding {
	section := area{"kubelet", "docs/check.md#pods-api"}
	switch {
	case status.Up && status.Reason == source.ReasonNone:
		return []Finding{section.ok("Pods API", "pods are watched through %s", socket)}
	case status.Up:
		return []Finding{section.warning("Check the kubelet's log on the node.", "Pods API", "%s", status.Message)}
	case status.Message == "":
		return []Finding{section.failure("Check the kubelet's log on the node.", "Pods API", "%s does not answer", socket)}
	default:
		return []Finding{section.failure("The kubelet serves it from Kubernetes 1.37, with its feature gate enabled; mount its folder, or remove --kubelet.pods-api to watch pods at the API server.", "Pods API", "%s", status.Message)}
	}
}
