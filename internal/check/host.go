package check

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Host is where the check runs, as the agent would.
type Host struct {
	Version      string // of this program
	Vendors      bool   // built with cgo: vendor libraries can be opened
	Kernel       string // empty: unknown
	UID          int
	Capabilities []string // effective ones; nil with CapabilitiesUnknown
	CapsUnknown  bool
	Container    bool // in one, as far as can be told
	Pod          bool // of Kubernetes, by its environment
	Node         bool // there is the folder of the kubelet's socket

	Procfs      string // where it should be
	ProcfsError error
	Sysfs       string
	SysfsError  error
	PCI         []PCIFunction
	Nodes       []DeviceNode

	// Inherited are the flags that were taken over from the agent that this
	// container runs; nil: none runs.
	Inherited []string
	// InheritError is why its flags could not be taken over.
	InheritError error
}

// PCIFunction is a display, compute or InfiniBand function, as sysfs shows it.
type PCIFunction struct {
	Address string // 0000:1a:00.0
	Vendor  string // nvidia, amd, intel, mellanox, or the number
	Driver  string // kernel driver that has it; empty: none
	GPU     bool   // else an adapter
}

// DeviceNode is a file in /dev through which a vendor's library works.
type DeviceNode struct {
	Path  string
	Error error // why it cannot be opened
}

const hostPage = "docs/check.md#this-host"

// HostFindings judges the place.
func HostFindings(h Host) []Finding {
	in := area{"this host", hostPage}
	findings := InheritedFindings(h.Inherited, h.InheritError)
	if !h.Pod && !h.Node {
		findings = append(findings, in.warning(
			"Check in the agent's pod: `kubectl exec -n dra-exporter daemonset/dra-exporter-node -- /dra-exporter check`. From here, `dra-exporter check cluster` asks the cluster of your kubeconfig, and `dra-exporter demo` needs none.",
			"place", "this is no pod of Kubernetes, and no node with a kubelet"))
	}
	findings = append(findings, in.ok("program", "%s", h.program()))
	if h.Kernel != "" {
		findings = append(findings, in.ok("kernel", "%s", h.Kernel))
	}
	if h.ProcfsError != nil {
		findings = append(findings, in.warning("Mount procfs there, or say where it is by --path.procfs.", "procfs", "%s cannot be read: %v; processes cannot be told apart", h.Procfs, h.ProcfsError))
	}
	if h.SysfsError != nil {
		return append(findings, in.warning("Mount sysfs there, or say where it is by --path.sysfs.", "sysfs", "%s cannot be read: %v; AMD GPUs and RDMA adapters cannot be seen", h.Sysfs, h.SysfsError))
	}
	findings = append(findings, h.hardware(in))
	return append(findings, h.nodes(in)...)
}

// InheritedFindings tells which flags were taken over from the exporter that
// this container runs; flags is nil where it runs none.
func InheritedFindings(flags []string, err error) []Finding {
	in := area{"this host", hostPage}
	switch {
	case err != nil:
		return []Finding{in.warning("Give the same flags to check.", "flags", "those of the exporter that this container runs could not be taken over: %v", err)}
	case flags == nil:
		return nil
	case len(flags) == 0:
		return []Finding{in.ok("flags", "none, like the exporter that this container runs")}
	default:
		return []Finding{in.ok("flags", "those of the exporter that this container runs: %s", withoutPasswords(strings.Join(flags, " ")))}
	}
}

// withoutPasswords hides who somebody is in a URL: reports are shown to others.
func withoutPasswords(text string) string {
	return regexp.MustCompile(`://[^/\s]*@`).ReplaceAllString(text, "://xxxxx@")
}

// program says who asks.
func (h Host) program() string {
	where := "on the host"
	if h.Container {
		where = "in a container"
	}
	with := "without capabilities"
	switch {
	case h.CapsUnknown:
		with = "with unknown capabilities"
	case len(h.Capabilities) > 8:
		with = fmt.Sprintf("with %d capabilities", len(h.Capabilities))
	case len(h.Capabilities) > 0:
		with = "with " + strings.Join(h.Capabilities, ", ")
	}
	libraries := ""
	if !h.Vendors {
		libraries = "; built without cgo, so that no vendor's library can be opened"
	}
	return fmt.Sprintf("dra-exporter %s, %s, as uid %d, %s%s", h.Version, where, h.UID, with, libraries)
}

// hardware says what the PCI bus has, which any container sees.
func (h Host) hardware(in area) Finding {
	if len(h.PCI) == 0 {
		return in.ok("PCI bus", "no GPU and no RDMA-capable adapter of a known vendor")
	}
	kinds := map[string]int{}
	var order []string
	for _, function := range h.PCI {
		kind := function.kind()
		if kinds[kind]++; kinds[kind] == 1 {
			order = append(order, kind)
		}
	}
	slices.Sort(order)
	for i, kind := range order {
		order[i] = fmt.Sprintf("%d × %s", kinds[kind], kind)
	}
	return in.ok("PCI bus", "%s", strings.Join(order, ", "))
}

func (f PCIFunction) kind() string {
	what := "adapter"
	if f.GPU {
		what = "GPU"
	}
	if f.Driver == "" {
		return f.Vendor + " " + what + " without a kernel driver"
	}
	return f.Vendor + " " + what + " (" + f.Driver + ")"
}

// nodes tells of device nodes that are there and cannot be opened.
func (h Host) nodes(in area) []Finding {
	var open []string
	var findings []Finding
	for _, node := range h.Nodes {
		if node.Error == nil {
			open = append(open, node.Path)
			continue
		}
		findings = append(findings, about(accessPage, in.warning(
			"A file in /dev that cannot be opened was mounted and not given: use the RuntimeClass, CDI or a claim, not a hostPath volume.",
			node.Path, "cannot be opened: %v", node.Error)))
	}
	if len(open) > 0 {
		findings = append([]Finding{in.ok("device nodes", "%s can be opened", strings.Join(open, ", "))}, findings...)
	}
	return findings
}
