package cluster

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

const cgroupMount = "/sys/fs/cgroup"

// cgroupHierarchies returns the roots of all cgroup trees: the one of version
// 2, or those of version 1 (of which some may be links to others).
func cgroupHierarchies() ([]string, error) {
	if _, err := os.Stat(filepath.Join(cgroupMount, "cgroup.controllers")); err == nil {
		return []string{cgroupMount}, nil
	}
	entries, err := os.ReadDir(cgroupMount)
	if err != nil {
		return nil, fmt.Errorf("list cgroup hierarchies: %w", err)
	}
	var roots []string
	for _, entry := range entries {
		if entry.IsDir() {
			roots = append(roots, filepath.Join(cgroupMount, entry.Name()))
		}
	}
	return roots, nil
}

// makeCgroupRoot creates the cgroup below which the kubelet works. The kubelet
// requires that its root exists.
func makeCgroupRoot(name string) error {
	roots, err := cgroupHierarchies()
	if err != nil {
		return err
	}
	for _, root := range roots {
		if root == cgroupMount {
			delegateControllers(root)
		}
		if err := os.Mkdir(filepath.Join(root, name), 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("make cgroup root: %w", err)
		}
	}
	return nil
}

// delegateControllers lets children of a version 2 cgroup use its controllers.
// It writes them one by one, because one that cannot be delegated makes a
// write of several fail.
func delegateControllers(cgroup string) {
	for _, controller := range []string{"cpu", "cpuset", "memory", "pids", "io", "hugetlb"} {
		os.WriteFile(filepath.Join(cgroup, "cgroup.subtree_control"), []byte("+"+controller), 0o644)
	}
}

// removeCgroupRoot removes the cgroup and those below it. They must not
// contain a process.
func removeCgroupRoot(name string) error {
	roots, err := cgroupHierarchies()
	if err != nil {
		return err
	}
	var errs []error
	for _, root := range roots {
		errs = append(errs, removeCgroups(filepath.Join(root, name)))
	}
	return errors.Join(errs...)
}

func removeCgroups(top string) error {
	var folders []string
	filepath.WalkDir(top, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() {
			folders = append(folders, path)
		}
		return nil
	})
	for _, folder := range slices.Backward(folders) {
		if err := os.Remove(folder); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("remove cgroup: %w", err)
		}
	}
	return nil
}
