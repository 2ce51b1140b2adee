package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// Of NVIDIA's driver, v0.5.0 (cmd/gpu-kubelet-plugin/vfio-device.go).
const (
	freeTimeout = 60 * time.Second
	freePeriod  = time.Second
	hostDriver  = "nvidia"
	guestDriver = "vfio-pci"
)

// passthrough is a device that is bound to another driver for a virtual machine
// before its claim is prepared, and back afterwards.
type passthrough struct {
	Device  string `json:"device"`  // its published name
	File    string `json:"file"`    // its device file, which no process may have open
	Drivers string `json:"drivers"` // bus/pci/drivers of a sysfs
	Address string `json:"address"` // on the PCI bus
}

// configure waits until no process has the device file open, and binds the device to
// the driver for virtual machines. Like NVIDIA's driver it waits before it unbinds,
// so that no program learns of the unbinding in time.
func (p passthrough) configure(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, freeTimeout)
	defer cancel()
	for {
		users, err := users(p.File)
		if err != nil {
			return err
		}
		if len(users) == 0 {
			return p.bind(hostDriver, guestDriver)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("timed out waiting for gpu device %q to be free: it has open fds by process(es): %s", p.Address, strings.Join(users, " "))
		case <-time.After(freePeriod):
		}
	}
}

// bind moves the device from one driver to another.
func (p passthrough) bind(before, after string) error {
	err := os.Rename(filepath.Join(p.Drivers, before, p.Address), filepath.Join(p.Drivers, after, p.Address))
	if errors.Is(err, os.ErrNotExist) {
		_, err = os.Lstat(filepath.Join(p.Drivers, after, p.Address)) // it may be there already
	}
	return err
}

// users returns the pids of the processes that have a file open, as fuser does.
func users(file string) ([]string, error) {
	wanted, err := os.Stat(file)
	if err != nil {
		return nil, err
	}
	folders, err := filepath.Glob("/proc/[0-9]*/fd")
	if err != nil {
		return nil, err
	}
	var pids []string
	for _, folder := range folders {
		if holds(folder, wanted) {
			pids = append(pids, filepath.Base(filepath.Dir(folder)))
		}
	}
	return pids, nil
}

// holds reports whether one of a process's files is the wanted one. A process that
// has ended holds nothing.
func holds(folder string, wanted os.FileInfo) bool {
	entries, _ := os.ReadDir(folder)
	for _, entry := range entries {
		if _, err := strconv.Atoi(entry.Name()); err != nil {
			continue
		}
		if info, err := os.Stat(filepath.Join(folder, entry.Name())); err == nil && os.SameFile(info, wanted) {
			return true
		}
	}
	return false
}
