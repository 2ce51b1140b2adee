package node

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/cgroup"
	procfs "github.com/dra-exporter/dra-exporter/collector/cgroup/simulated"
)

// placement makes processes members of containers, as the agent sees it. It is
// not safe for concurrent use.
type placement interface {
	// place makes a process one of a container of a pod; with an empty pod, one
	// of the host.
	place(pid int, podUID, container string) error
	// remove forgets a process that has ended.
	remove(pid int) error
	describe() string
	procfs() string // the mount point that the agent reads
	close() error
}

// newPlacement returns real cgroups below one of a name where this process may
// make them, and otherwise a procfs in a folder.
func newPlacement(folder, name string, simulate bool) (placement, error) {
	why := errors.New("as requested")
	if !simulate {
		var made *cgroups
		if made, why = newCgroups(hierarchies(), name); why == nil {
			return made, nil
		}
	}
	tree := &simulatedProcfs{folder: folder, why: why, processes: make(map[int]procfs.Process)}
	return tree, tree.write()
}

// hierarchies are the places where a hierarchy of cgroups may be mounted:
// version 2, version 2 beside version 1, and some of version 1.
func hierarchies() []string {
	const root = "/sys/fs/cgroup"
	var found []string
	for _, at := range []string{root, root + "/unified"} {
		if _, err := os.Stat(filepath.Join(at, "cgroup.controllers")); err == nil {
			found = append(found, at)
		}
	}
	return append(found, root+"/systemd", root+"/pids", root+"/memory")
}

// cgroups are real ones, below one of their own so that a kubelet of this
// machine does not take them for its own.
type cgroups struct {
	root string
}

// newCgroups uses the first hierarchy in which a process can be moved.
func newCgroups(hierarchies []string, name string) (*cgroups, error) {
	var failures []error
	for _, at := range hierarchies {
		c := &cgroups{root: filepath.Join(at, name)}
		err := c.probe()
		if err == nil {
			return c, nil
		}
		failures = append(failures, err, c.close())
	}
	return nil, errors.Join(failures...)
}

// probe moves a process that does nothing.
func (c *cgroups) probe() error {
	program, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program: %w", err)
	}
	probe := exec.Command(program, "--help")
	if err := probe.Start(); err != nil {
		return fmt.Errorf("start a process to move: %w", err)
	}
	// Until Wait the process exists, although it may have ended.
	err = c.place(probe.Process.Pid, "6b1d0000-0000-4000-8000-000000000000", "probe")
	_ = probe.Wait()
	return err
}

// place moves a process to the cgroup that the kubelet and the runtime make for
// a container of a pod of the class Burstable.
func (c *cgroups) place(pid int, podUID, container string) error {
	if podUID == "" {
		return nil
	}
	folder := filepath.Join(c.root, "kubepods", "burstable", "pod"+podUID, container)
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return fmt.Errorf("make a cgroup: %w", err)
	}
	if err := os.WriteFile(filepath.Join(folder, "cgroup.procs"), []byte(strconv.Itoa(pid)), 0); err != nil {
		return fmt.Errorf("move process %d: %w", pid, err)
	}
	return nil
}

func (c *cgroups) remove(int) error { return nil }

func (c *cgroups) describe() string { return "real cgroups in " + c.root }

func (c *cgroups) procfs() string { return cgroup.DefaultProcfs }

// close removes the cgroups. The kernel may need a moment until those of
// processes that have ended are empty.
func (c *cgroups) close() error {
	var err error
	for range 50 {
		if err = c.removeAll(); err == nil {
			return nil
		}
		time.Sleep(20 * time.Millisecond)
	}
	return fmt.Errorf("remove the cgroups: %w", err)
}

func (c *cgroups) removeAll() error {
	var folders []string
	err := filepath.WalkDir(c.root, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() {
			folders = append(folders, path)
		}
		return err
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	slices.Reverse(folders)
	for _, folder := range folders {
		err = errors.Join(err, os.Remove(folder))
	}
	return err
}

// simulatedProcfs is a folder with the placed processes alone.
type simulatedProcfs struct {
	folder    string
	why       error // there are no cgroups
	processes map[int]procfs.Process
}

func (s *simulatedProcfs) place(pid int, podUID, container string) error {
	placed := procfs.Process{PID: pid, Command: "gpukit", Cgroup: "/user.slice"}
	if podUID != "" {
		placed.Cgroup = "/kubepods/burstable/pod" + podUID + "/" + container
	}
	s.processes[pid] = placed
	return s.write()
}

func (s *simulatedProcfs) remove(pid int) error {
	delete(s.processes, pid)
	return s.write()
}

func (s *simulatedProcfs) write() error {
	return procfs.Write(s.folder, slices.Collect(maps.Values(s.processes)))
}

func (s *simulatedProcfs) describe() string {
	first, _, _ := strings.Cut(s.why.Error(), "\n")
	return "a simulated procfs, without cgroups: " + first
}

func (s *simulatedProcfs) procfs() string { return s.folder }

func (s *simulatedProcfs) close() error { return nil }
