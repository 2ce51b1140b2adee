package cluster

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// ownerName is the record of the process that started the cluster.
const ownerName = "owner"

func recordOwner(l layout) error { return recordProcess(l.pid(ownerName), os.Getpid()) }

// recordProcess writes a process's id and start time. Together they identify
// it until the machine restarts; the id alone may be reused.
func recordProcess(path string, pid int) error {
	started, err := startTime(pid)
	if err != nil {
		return fmt.Errorf("record process: %w", err)
	}
	return writeFile(path, fmt.Sprintf("%d %s", pid, started))
}

// recordedPID returns the id in a record if that process still runs.
func recordedPID(path string) (int, bool) {
	data, err := os.ReadFile(path)
	if err != nil {
		return 0, false
	}
	id, started, _ := strings.Cut(string(data), " ")
	pid, err := strconv.Atoi(id)
	if err != nil {
		return 0, false
	}
	now, err := startTime(pid)
	return pid, err == nil && now == started
}

// startTime returns field 22 of /proc/PID/stat, in ticks since the machine
// started.
func startTime(pid int) (string, error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return "", err
	}
	_, fields, found := strings.Cut(string(data), ") ")
	values := strings.Fields(fields)
	if !found || len(values) < 20 {
		return "", fmt.Errorf("parse /proc/%d/stat", pid)
	}
	return values[19], nil
}

// removeLeftovers removes clusters whose owner has ended. It logs errors and
// continues.
func removeLeftovers(parent string, logf func(string, ...any)) {
	folders, _ := filepath.Glob(filepath.Join(parent, folderPrefix+"*"))
	for _, folder := range folders {
		l := layout{dir: folder}
		if ownerRuns(l) {
			continue
		}
		logf("remove what an earlier run left in %s", folder)
		if err := removeRun(l); err != nil {
			logf("%v", err)
		}
	}
}

// ownerRuns reports whether a cluster's owner still runs, or has just created
// the folder and not yet written its record.
func ownerRuns(l layout) bool {
	if _, alive := recordedPID(l.pid(ownerName)); alive {
		return true
	}
	_, err := os.Stat(l.pid(ownerName))
	info, failed := os.Stat(l.dir)
	return err != nil && failed == nil && time.Since(info.ModTime()) < time.Minute
}

// removeRun kills the remaining processes of a run and removes its files,
// mounts and network.
func removeRun(l layout) error {
	killRecorded(l)
	killContainers(l)
	return errors.Join(
		unmountBeneath(l.dir),
		removeNetwork(l),
		removeCgroupRoot(l.cgroupRoot()),
		removeLogLinks(l.dir),
		os.RemoveAll(l.dir),
	)
}

func killRecorded(l layout) {
	records, _ := filepath.Glob(l.pid("*"))
	for _, record := range records {
		if pid, alive := recordedPID(record); alive && pid != os.Getpid() {
			syscall.Kill(pid, syscall.SIGKILL)
		}
	}
}

// killContainers kills the cluster's containers, which continue without
// containerd: the children of the shims that serve its socket, then the shims.
func killContainers(l layout) {
	parents := parentsOfAll()
	var doomed []int
	for pid := range parents {
		if isShimOf(pid, l.containerdSocket()) {
			doomed = append(doomed, pid)
		}
	}
	for i := 0; i < len(doomed); i++ { // grows, because children are appended after their parents
		for pid, parent := range parents {
			if parent == doomed[i] && !slices.Contains(doomed, pid) {
				doomed = append(doomed, pid)
			}
		}
	}
	for _, pid := range slices.Backward(doomed) {
		syscall.Kill(pid, syscall.SIGKILL)
	}
	waitGone(doomed)
}

func isShimOf(pid int, socket string) bool {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if err != nil {
		return false
	}
	args := strings.Split(string(data), "\x00")
	return filepath.Base(args[0]) == "containerd-shim-runc-v2" && slices.ContainsFunc(args, func(arg string) bool {
		return strings.HasPrefix(arg, socket)
	})
}

// parentsOfAll returns the parent of every process of the machine.
func parentsOfAll() map[int]int {
	parents := map[int]int{}
	folders, _ := filepath.Glob("/proc/[0-9]*")
	for _, folder := range folders {
		data, err := os.ReadFile(filepath.Join(folder, "stat"))
		_, fields, found := strings.Cut(string(data), ") ")
		if err != nil || !found {
			continue
		}
		pid, _ := strconv.Atoi(filepath.Base(folder))
		parents[pid], _ = strconv.Atoi(strings.Fields(fields)[1])
	}
	return parents
}

// waitGone waits up to five seconds until none of the processes runs. A zombie
// does not run.
func waitGone(pids []int) {
	deadline := time.Now().Add(5 * time.Second)
	for _, pid := range pids {
		for time.Now().Before(deadline) && runs(pid) {
			time.Sleep(20 * time.Millisecond)
		}
	}
}

func runs(pid int) bool {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && !strings.Contains(string(data), ") Z ")
}
