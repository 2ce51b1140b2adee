package check

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/dra-exporter/dra-exporter/collector/hostfile"
)

// maxKernelFile is the size of a file of procfs or sysfs, in bytes. The list of mounts of
// a large node has some hundreds of KiB.
const maxKernelFile = 4 << 20

// ContainerCommand returns the command line of the process that started first in
// the cgroup of this process. In a container that is the container's command:
// process 1 of its pid namespace, unless it has the host's. It is nil where it
// cannot be read.
func ContainerCommand(procfs string) []string {
	text, err := hostfile.ReadKernel(filepath.Join(procfs, "self", "cgroup"), maxKernelFile)
	if err != nil {
		return nil
	}
	entries, err := os.ReadDir(procfs)
	if err != nil {
		return nil
	}
	first, earliest := "", uint64(0)
	for _, entry := range entries {
		if _, err := strconv.ParseUint(entry.Name(), 10, 32); err != nil {
			continue
		}
		folder := filepath.Join(procfs, entry.Name())
		if group, err := hostfile.ReadKernel(filepath.Join(folder, "cgroup"), maxKernelFile); err != nil || !bytes.Equal(group, text) {
			continue
		}
		if start, ok := processStart(folder); ok && (first == "" || start < earliest) {
			first, earliest = folder, start
		}
	}
	if first == "" {
		return nil
	}
	line, err := hostfile.ReadKernel(filepath.Join(first, "cmdline"), maxKernelFile)
	if err != nil {
		return nil
	}
	return strings.Split(strings.TrimSuffix(string(line), "\x00"), "\x00")
}

// processStart returns the start time of a process, in clock ticks since the boot: field
// 22 of its stat, the 20th after its name in parentheses (proc_pid_stat(5)).
func processStart(folder string) (uint64, bool) {
	stat, err := hostfile.ReadKernel(filepath.Join(folder, "stat"), maxKernelFile)
	if err != nil {
		return 0, false
	}
	return decodeStart(stat)
}

func decodeStart(stat []byte) (uint64, bool) {
	const field = 22 - 3
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) <= field {
		return 0, false
	}
	start, err := strconv.ParseUint(string(fields[field]), 10, 64)
	return start, err == nil
}
