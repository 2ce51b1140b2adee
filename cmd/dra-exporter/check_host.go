package main

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

	"github.com/dra-exporter/dra-exporter/internal/check"
)

// readHost looks at the place where this program runs. What cannot be found
// out is unknown.
func readHost(procfs, sysfs string) check.Host {
	host := check.Host{
		Version: buildVersion().Version, Vendors: builtWithCgo(), UID: os.Getuid(),
		Container: inContainer(), Pod: os.Getenv("KUBERNETES_SERVICE_HOST") != "", Procfs: procfs, Sysfs: sysfs,
	}
	host.Kernel = runtime.GOOS + "/" + runtime.GOARCH
	if release, err := os.ReadFile("/proc/sys/kernel/osrelease"); err == nil {
		host.Kernel += " " + strings.TrimSpace(string(release))
	}
	host.Capabilities, host.CapsUnknown = capabilities()
	_, host.ProcfsError = os.ReadFile(filepath.Join(procfs, "self", "stat"))
	host.ProcfsError = withoutPath(host.ProcfsError)
	_, host.SysfsError = os.ReadDir(filepath.Join(sysfs, "class"))
	host.SysfsError = withoutPath(host.SysfsError)
	host.PCI = pciFunctions(sysfs)
	host.Nodes = deviceNodes()
	return host
}

// withoutPath is what is wrong with a file that the reader has been told of.
func withoutPath(err error) error {
	if wrong, isPath := err.(*os.PathError); isPath { //nolint:errorlint // os returns it as it is
		return wrong.Err
	}
	return err
}

// builtWithCgo reports whether vendor libraries can be opened at all.
func builtWithCgo() bool {
	info, ok := debug.ReadBuildInfo()
	return ok && slices.ContainsFunc(info.Settings, func(s debug.BuildSetting) bool { return s.Key == "CGO_ENABLED" && s.Value == "1" })
}

// inContainer reports whether anything says so: Kubernetes, a runtime's mark,
// or a root of layers.
func inContainer() bool {
	if os.Getenv("KUBERNETES_SERVICE_HOST") != "" {
		return true
	}
	for _, mark := range []string{"/.dockerenv", "/run/.containerenv"} {
		if _, err := os.Stat(mark); err == nil {
			return true
		}
	}
	mounts, err := os.ReadFile("/proc/self/mounts")
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

// capabilities are the effective ones, by capabilities(7).
func capabilities() (names []string, unknown bool) {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return nil, true
	}
	for line := range strings.Lines(string(status)) {
		mask, found := strings.CutPrefix(line, "CapEff:")
		if !found {
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

// pciFunctions are those that could be devices of DRA drivers. Display chips
// of boards (BMCs) have other vendors; virtual functions are parts of others.
func pciFunctions(sysfs string) []check.PCIFunction {
	folders, err := filepath.Glob(filepath.Join(sysfs, "bus/pci/devices/*"))
	if err != nil {
		return nil
	}
	var functions []check.PCIFunction
	for _, folder := range folders {
		class, vendor := pciNumber(folder, "class"), pciNumber(folder, "vendor")
		function := check.PCIFunction{Address: filepath.Base(folder), Vendor: pciVendor(vendor)}
		if _, err := os.Lstat(filepath.Join(folder, "physfn")); err == nil {
			continue // a virtual function of one that is listed
		}
		const display, accelerator, infiniband, network = 0x03, 0x12, 0x0207, 0x02
		switch {
		case function.Vendor != "" && (class>>16 == display || class>>16 == accelerator):
			function.GPU = true
		case class>>8 == infiniband || function.Vendor == "mellanox" && class>>16 == network:
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
	text, err := os.ReadFile(filepath.Join(folder, file))
	if err != nil {
		return 0
	}
	number, err := strconv.ParseUint(strings.TrimPrefix(strings.TrimSpace(string(text)), "0x"), 16, 32)
	if err != nil {
		return 0
	}
	return number
}

// pciVendor names the vendors that DRA drivers exist for, by their numbers in
// the PCI ID repository.
func pciVendor(number uint64) string {
	switch number {
	case 0x10de:
		return "nvidia"
	case 0x1002:
		return "amd"
	case 0x8086:
		return "intel"
	case 0x15b3:
		return "mellanox"
	default:
		return ""
	}
}

// deviceNodes tries the file through which NVIDIA's library works. The files of
// single GPUs are left alone: to open one can wake the GPU.
func deviceNodes() []check.DeviceNode {
	const control = "/dev/nvidiactl"
	if _, err := os.Stat(control); err != nil {
		return nil
	}
	file, err := os.OpenFile(control, os.O_RDWR, 0)
	if err == nil {
		err = file.Close()
	}
	return []check.DeviceNode{{Path: control, Error: withoutPath(err)}}
}
