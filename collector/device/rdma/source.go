package rdma

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/dra-exporter/dra-exporter/collector/device"
	"github.com/dra-exporter/dra-exporter/collector/device/sysfs"
	"github.com/dra-exporter/dra-exporter/collector/source"
)

// Source finds the PCI functions that have RDMA devices.
type Source struct {
	root     string
	adapters map[string]*adapter // by PCI address: those that the last call of Readers found
}

// New returns a source over the sysfs that is mounted at root: /sys, or where
// the node's is mounted in a container.
func New(root string) *Source {
	return &Source{root: root, adapters: make(map[string]*adapter)}
}

// Name is "rdma".
func (s *Source) Name() string { return "rdma" }

// Readers returns a reader for each function. If the kernel has no RDMA, it
// fails with source.ReasonLibraryMissing.
func (s *Source) Readers(context.Context) ([]device.Reader, error) {
	class := filepath.Join(s.root, "class/infiniband")
	names, err := sysfs.Names(class)
	if err != nil {
		return nil, failure(err)
	}
	there := make(map[string]*adapter)
	var errs []error
	for _, name := range names {
		function, err := sysfs.Link(filepath.Join(class, name, "device"))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, fmt.Errorf("find the PCI function of %s: %w", name, err))
		}
		address := device.PCIAddress(function)
		if address == "" {
			continue
		}
		if there[address] = s.adapters[address]; there[address] == nil {
			there[address] = newAdapter(s.root, function, address)
		}
	}
	if len(errs) == 0 {
		s.adapters = there
	}
	return inOrder(there), errors.Join(errs...)
}

func inOrder(adapters map[string]*adapter) []device.Reader {
	readers := make([]device.Reader, 0, len(adapters))
	for _, a := range adapters {
		readers = append(readers, a)
	}
	slices.SortFunc(readers, func(a, b device.Reader) int { return strings.Compare(a.Key(), b.Key()) })
	return readers
}

// Close does nothing: no file stays open between two reads.
func (s *Source) Close() error { return nil }

func failure(err error) error {
	err = fmt.Errorf("list the RDMA devices: %w", err)
	if errors.Is(err, fs.ErrNotExist) {
		return &source.Failure{
			Reason: source.ReasonLibraryMissing,
			Err:    fmt.Errorf("%w: load an adapter's RDMA driver, or mount the node's /sys", err),
		}
	}
	return err
}
