package cluster

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// unmountBeneath unmounts everything below a folder, the last mount first.
func unmountBeneath(dir string) error {
	points, err := mountPoints()
	if err != nil {
		return err
	}
	var errs []error
	for _, point := range slices.Backward(points) {
		if !strings.HasPrefix(point, dir+"/") {
			continue
		}
		if err := syscall.Unmount(point, syscall.MNT_DETACH); err != nil && !errors.Is(err, syscall.EINVAL) {
			errs = append(errs, fmt.Errorf("unmount %s: %w", point, err))
		}
	}
	return errors.Join(errs...)
}

// mountPoints lists this process's mounts in the order in which they were
// made.
func mountPoints() ([]string, error) {
	file, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return nil, fmt.Errorf("list mounts: %w", err)
	}
	defer file.Close()
	var points []string
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		if fields := strings.Fields(lines.Text()); len(fields) > 4 {
			points = append(points, fields[4])
		}
	}
	return points, lines.Err()
}

// removeLogLinks removes the links that a kubelet creates to its containers'
// logs in a folder of the machine.
func removeLogLinks(dir string) error {
	links, _ := filepath.Glob("/var/log/containers/*")
	var errs []error
	for _, link := range links {
		if target, err := os.Readlink(link); err == nil && strings.HasPrefix(target, dir+"/") {
			errs = append(errs, os.Remove(link))
		}
	}
	return errors.Join(errs...)
}
