package check

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"

	"github.com/dra-exporter/dra-exporter/collector/hostfile"
	"github.com/dra-exporter/dra-exporter/collector/hostport"
	"github.com/dra-exporter/dra-exporter/collector/vendors"
	"github.com/dra-exporter/dra-exporter/internal/words"
)

// Host is the environment in which the check runs, which is that of the agent.
type Host struct {
	Version      string // of this program
	Vendors      bool   // built with cgo: vendor libraries can be opened
	Kernel       string // empty: unknown
	UID          int
	Capabilities []string // effective ones; nil with CapabilitiesUnknown
	CapsUnknown  bool
	Container    bool // as far as the process can determine
	Pod          bool // of Kubernetes, by its environment
	Node         bool // the folder of the kubelet's socket exists

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

// ReadHost reads procfs, sysfs and the environment of this process. What cannot be
// read is left unknown. version is that of this program.
func ReadHost(version, procfs, sysfs string) Host {
	host := Host{
		Version: version, Vendors: builtWithCgo(), UID: os.Getuid(),
		Container: inContainer(), Pod: os.Getenv("KUBERNETES_SERVICE_HOST") != "", Procfs: procfs, Sysfs: sysfs,
	}
	host.Kernel = runtime.GOOS + "/" + runtime.GOARCH
	if release, err := hostfile.ReadKernel("/proc/sys/kernel/osrelease", maxKernelFile); err == nil {
		host.Kernel += " " + strings.TrimSpace(string(release))
	}
	host.Capabilities, host.CapsUnknown = capabilities()
	_, host.ProcfsError = hostfile.ReadKernel(filepath.Join(procfs, "self", "stat"), maxKernelFile)
	host.ProcfsError = withoutPath(host.ProcfsError)
	_, host.SysfsError = os.ReadDir(filepath.Join(sysfs, "class"))
	host.SysfsError = withoutPath(host.SysfsError)
	host.PCI = pciFunctions(sysfs)
	host.Nodes = deviceNodes()
	return host
}

// withoutPath is the error of a file whose path the finding has already.
func withoutPath(err error) error {
	if wrong, ok := err.(*os.PathError); ok { //nolint:errorlint // os returns it as it is
		return wrong.Err
	}
	return err
}

// builtWithCgo reports whether vendor libraries can be opened at all.
func builtWithCgo() bool {
	info, ok := debug.ReadBuildInfo()
	return ok && slices.ContainsFunc(info.Settings, func(s debug.BuildSetting) bool { return s.Key == "CGO_ENABLED" && s.Value == "1" })
}

// inContainer reports whether this process runs in a container: in a pod, where a
// runtime has left its file, or on an overlay file system.
func inContainer() bool {
	if os.Getenv("KUBERNETES_SERVICE_HOST") != "" {
		return true
	}
	for _, file := range []string{"/.dockerenv", "/run/.containerenv"} {
		if _, err := os.Stat(file); err == nil {
			return true
		}
	}
	mounts, err := hostfile.ReadKernel("/proc/self/mounts", maxKernelFile)
	if err != nil {
		return false
	}
	for line := range strings.Lines(string(mounts)) {
		if fields := strings.Fields(line); len(fields) > 2 && fields[1] == "/" && fields[2] == "overlay" {
			return true
		}
	}
	return false
}

// capabilities returns the effective ones of this process, by capabilities(7).
func capabilities() (names []string, unknown bool) {
	status, err := hostfile.ReadKernel("/proc/self/status", maxKernelFile)
	if err != nil {
		return nil, true
	}
	for line := range strings.Lines(string(status)) {
		mask, ok := strings.CutPrefix(line, "CapEff:")
		if !ok {
			continue
		}
		bits, err := strconv.ParseUint(strings.TrimSpace(mask), 16, 64)
		if err != nil {
			return nil, true
		}
		return capabilityNames(bits), false
	}
	return nil, true
}

func capabilityNames(bits uint64) []string {
	all := []string{
		"CHOWN", "DAC_OVERRIDE", "DAC_READ_SEARCH", "FOWNER", "FSETID", "KILL", "SETGID", "SETUID", "SETPCAP",
		"LINUX_IMMUTABLE", "NET_BIND_SERVICE", "NET_BROADCAST", "NET_ADMIN", "NET_RAW", "IPC_LOCK", "IPC_OWNER",
		"SYS_MODULE", "SYS_RAWIO", "SYS_CHROOT", "SYS_PTRACE", "SYS_PACCT", "SYS_ADMIN", "SYS_BOOT", "SYS_NICE",
		"SYS_RESOURCE", "SYS_TIME", "SYS_TTY_CONFIG", "MKNOD", "LEASE", "AUDIT_WRITE", "AUDIT_CONTROL", "SETFCAP",
		"MAC_OVERRIDE", "MAC_ADMIN", "SYSLOG", "WAKE_ALARM", "BLOCK_SUSPEND", "AUDIT_READ", "PERFMON", "BPF",
		"CHECKPOINT_RESTORE",
	}
	var names []string
	for bit := range 64 {
		switch {
		case bits>>bit&1 == 0:
		case bit < len(all):
			names = append(names, "CAP_"+all[bit])
		default:
			names = append(names, fmt.Sprintf("capability %d", bit))
		}
	}
	return names
}

// pciFunctions lists the functions that can be devices of DRA drivers. Display
// chips of boards (BMCs) have other vendors. Virtual functions are left out:
// their physical function is in the list.
func pciFunctions(sysfs string) []PCIFunction {
	folders, err := filepath.Glob(filepath.Join(sysfs, "bus/pci/devices/*"))
	if err != nil {
		return nil
	}
	var functions []PCIFunction
	for _, folder := range folders {
		class, vendor := pciNumber(folder, "class"), pciNumber(folder, "vendor")
		function := PCIFunction{Address: filepath.Base(folder), Vendor: vendors.ByPCI(vendor)}
		if _, err := os.Lstat(filepath.Join(folder, "physfn")); err == nil {
			continue // a virtual function
		}
		const display, accelerator, infiniband, network = 0x03, 0x12, 0x0207, 0x02
		switch {
		case function.Vendor != "" && (class>>16 == display || class>>16 == accelerator):
			function.GPU = true
		case class>>8 == infiniband || function.Vendor == vendors.Mellanox && class>>16 == network:
			function.Vendor = cmp.Or(function.Vendor, fmt.Sprintf("vendor %04x", vendor))
		default:
			continue
		}
		if driver, err := os.Readlink(filepath.Join(folder, "driver")); err == nil {
			function.Driver = filepath.Base(driver)
		}
		functions = append(functions, function)
	}
	return functions
}

func pciNumber(folder, file string) uint64 {
	text, err := hostfile.ReadKernel(filepath.Join(folder, file), maxKernelFile)
	if err != nil {
		return 0
	}
	number, err := strconv.ParseUint(strings.TrimPrefix(strings.TrimSpace(string(text)), "0x"), 16, 32)
	if err != nil {
		return 0
	}
	return number
}

// deviceNodes opens the control file of NVIDIA's library, and none of the files of
// single GPUs: opening one can wake the GPU.
func deviceNodes() []DeviceNode {
	const control = "/dev/nvidiactl"
	if _, err := os.Stat(control); err != nil {
		return nil
	}
	file, err := os.OpenFile(control, os.O_RDWR, 0)
	if err == nil {
		err = file.Close()
	}
	return []DeviceNode{{Path: control, Error: withoutPath(err)}}
}

// HostFindings reports on the environment.
func HostFindings(h Host) []Finding {
	section := area{"this host", hostPage}
	findings := InheritedFindings(h.Inherited, h.InheritError)
	if !h.Pod && !h.Node {
		findings = append(findings, section.warning(
			"Check in the agent's pod: `kubectl exec -n dra-exporter daemonset/dra-exporter-node -- /dra-exporter check`. From here, `dra-exporter check cluster` checks the cluster of your kubeconfig, and `dra-exporter demo` needs no cluster.",
			"place", "this is neither a Kubernetes pod nor a node with a kubelet"))
	}
	findings = append(findings, section.ok("program", "%s", h.program()))
	if h.Kernel != "" {
		findings = append(findings, section.ok("kernel", "%s", h.Kernel))
	}
	if h.ProcfsError != nil {
		findings = append(findings, section.warning("Mount procfs there, or set --path.procfs.", "procfs", "%s cannot be read: %v; use cannot be split by process", h.Procfs, h.ProcfsError))
	}
	if h.SysfsError != nil {
		return append(findings, section.warning("Mount sysfs there, or set --path.sysfs.", "sysfs", "%s cannot be read: %v; AMD GPUs and RDMA adapters cannot be found", h.Sysfs, h.SysfsError))
	}
	findings = append(findings, h.hardware(section))
	return append(findings, h.nodes(section)...)
}

// InheritedFindings reports which flags were taken over from the exporter that
// this container runs; flags is nil where it runs none.
func InheritedFindings(flags []string, err error) []Finding {
	section := area{"this host", hostPage}
	switch {
	case err != nil:
		return []Finding{section.warning("Run check with the same flags.", "flags", "those of the exporter in this container could not be read: %v", err)}
	case flags == nil:
		return nil
	case len(flags) == 0:
		return []Finding{section.ok("flags", "none, like the exporter in this container")}
	default:
		return []Finding{section.ok("flags", "those of the exporter in this container: %s", hostport.RedactedText(strings.Join(flags, " ")))}
	}
}

// program describes this process.
func (h Host) program() string {
	where := "on the host"
	if h.Container {
		where = "in a container"
	}
	text := "without capabilities"
	switch {
	case h.CapsUnknown:
		text = "with unknown capabilities"
	case len(h.Capabilities) > 8:
		text = fmt.Sprintf("with %d capabilities", len(h.Capabilities))
	case len(h.Capabilities) > 0:
		text = "with " + strings.Join(h.Capabilities, ", ")
	}
	libraries := ""
	if !h.Vendors {
		libraries = "; built without cgo, so no vendor library can be opened"
	}
	return fmt.Sprintf("dra-exporter %s, %s, as uid %d, %s%s", h.Version, where, h.UID, text, libraries)
}

// hardware counts the functions of the PCI bus, which every container sees.
func (h Host) hardware(section area) Finding {
	if len(h.PCI) == 0 {
		return section.ok("PCI bus", "no GPU and no RDMA-capable adapter of a known vendor")
	}
	return section.ok("PCI bus", "%s", tally(words.Names(h.PCI, PCIFunction.kind)))
}

func (f PCIFunction) kind() string {
	noun := "adapter"
	if f.GPU {
		noun = "GPU"
	}
	if f.Driver == "" {
		return f.Vendor + " " + noun + " without a kernel driver"
	}
	return f.Vendor + " " + noun + " (" + f.Driver + ")"
}

// nodes reports device nodes that exist and cannot be opened.
func (h Host) nodes(section area) []Finding {
	var open []string
	var findings []Finding
	for _, node := range h.Nodes {
		if node.Error == nil {
			open = append(open, node.Path)
			continue
		}
		findings = append(findings, about(accessPage, section.warning(
			"A file in /dev cannot be opened if it is only mounted: use the RuntimeClass, CDI or a claim, not a hostPath volume.",
			node.Path, "cannot be opened: %v", node.Error)))
	}
	if len(open) > 0 {
		findings = append([]Finding{section.ok("device nodes", "%s can be opened", strings.Join(open, ", "))}, findings...)
	}
	return findings
}
