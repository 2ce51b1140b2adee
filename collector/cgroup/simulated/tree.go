// Package simulated writes a procfs for those who have none with the
// processes that they want: a demo, and tests.
package simulated

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// tick is the unit of the start times in procfs.
const tick = time.Second / 100

// What is not whole yet, or no more, has a name that is no pid.
const (
	making = ".new-"
	ending = ".ended-"
)

// Process is one process of the tree.
type Process struct {
	PID     int
	Command string        // its name for itself, which may hold anything; empty: process
	Start   time.Duration // since boot, written in ticks of 10 ms
	Cgroup  string        // its path in the hierarchy of version 2
}

// InContainer is the control group of a container in a burstable pod, as
// containerd and the kubelet name it with the systemd driver. Readers know
// the pod by a UUID and the container by 64 hexadecimal digits.
func InContainer(podUID, containerID string) string {
	return "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" +
		strings.ReplaceAll(podUID, "-", "_") + ".slice/cri-containerd-" + containerID + ".scope"
}

// Write makes dir the procfs of exactly these processes and of process 1,
// which every procfs has. Each process appears, moves to another control group
// or goes at once, for whoever reads meanwhile; one with another start or name
// replaces the one before it. Only one may write to a folder at a time.
func Write(dir string, processes []Process) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("make the folder of the processes: %w", err)
	}
	wanted := map[string]Process{"1": {PID: 1, Command: "init", Cgroup: "/init.scope"}}
	for _, p := range processes {
		wanted[strconv.Itoa(p.PID)] = p
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("list the processes that were written: %w", err)
	}
	for _, entry := range entries {
		if _, ok := wanted[entry.Name()]; !ok && ours(entry.Name()) {
			if err := end(dir, entry.Name()); err != nil {
				return err
			}
		}
	}
	for name, p := range wanted {
		if err := place(dir, name, p); err != nil {
			return fmt.Errorf("write process %d: %w", p.PID, err)
		}
	}
	return nil
}

// ours reports whether Write has made an entry of the folder, or another Write
// that was cut off.
func ours(name string) bool {
	_, err := strconv.Atoi(name)
	return err == nil || strings.HasPrefix(name, making) || strings.HasPrefix(name, ending)
}

// place makes one process be there as it should.
func place(dir, name string, p Process) error {
	folder := filepath.Join(dir, name)
	stat, cgroup := p.stat(), []byte("0::"+p.Cgroup+"\n")
	previous, err := os.ReadFile(filepath.Join(folder, "stat"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if bytes.Equal(previous, stat) {
		return replace(folder, "cgroup", cgroup)
	}
	if err == nil {
		if err := end(dir, name); err != nil {
			return err
		}
	}
	made, err := os.MkdirTemp(dir, making)
	if err != nil {
		return err
	}
	if err := os.Chmod(made, 0o755); err != nil { // as procfs has it, for other users too
		return err
	}
	if err := os.WriteFile(filepath.Join(made, "stat"), stat, 0o644); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(made, "cgroup"), cgroup, 0o644); err != nil {
		return err
	}
	return os.Rename(made, folder)
}

// replace rewrites a file if its content differs.
func replace(folder, name string, text []byte) error {
	path := filepath.Join(folder, name)
	if previous, err := os.ReadFile(path); err == nil && bytes.Equal(previous, text) {
		return nil
	}
	made := filepath.Join(folder, making+name)
	if err := os.WriteFile(made, text, 0o644); err != nil {
		return err
	}
	return os.Rename(made, path)
}

// end takes a process away in one step, and then its files.
func end(dir, name string) error {
	ended := filepath.Join(dir, ending+name)
	if strings.HasPrefix(name, ".") {
		ended = filepath.Join(dir, name) // left behind
	} else if err := os.Rename(filepath.Join(dir, name), ended); err != nil {
		return fmt.Errorf("end process %s: %w", name, err)
	}
	if err := os.RemoveAll(ended); err != nil {
		return fmt.Errorf("remove process %s: %w", name, err)
	}
	return nil
}

// stat is the process's stat file: 52 fields, of which the name, the state,
// the number of threads and the start say something.
func (p Process) stat() []byte {
	command := p.Command
	if command == "" {
		command = "process"
	}
	fields := strings.Fields("S 1 0 0 0 -1 4194304 0 0 0 0 0 0 0 0 20 0 1 0" + strings.Repeat(" 0", 31))
	fields[19] = strconv.FormatInt(int64(p.Start/tick), 10)
	return fmt.Appendf(nil, "%d (%s) %s\n", p.PID, command, strings.Join(fields, " "))
}
