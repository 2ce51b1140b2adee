package amdgpu

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/dra-exporter/dra-exporter/collector/device"
	"github.com/dra-exporter/dra-exporter/collector/device/sysfs"
	"github.com/dra-exporter/dra-exporter/collector/source"
)

// driver is the kernel module's name.
const driver = "amdgpu"

// Source finds the cards that are bound to the driver.
type Source struct {
	root  string
	cards map[string]*card // by PCI address: those that the last call of Readers found
}

// New returns a source over the sysfs that is mounted at root: /sys, or where
// the node's is mounted in a container.
func New(root string) *Source {
	return &Source{root: root, cards: make(map[string]*card)}
}

// Name is "amdgpu".
func (s *Source) Name() string { return driver }

// Readers returns a reader for each card. If the driver is not loaded, it fails
// with source.ReasonLibraryMissing.
func (s *Source) Readers(context.Context) ([]device.Reader, error) {
	names, err := sysfs.Names(filepath.Join(s.root, "bus/pci/drivers", driver))
	if err != nil {
		return nil, failure(err)
	}
	there := make(map[string]*card)
	var readers []device.Reader
	for _, name := range names {
		address := device.PCIAddress(name)
		if address == "" {
			continue // the driver's own files
		}
		known := s.cards[address]
		if known == nil {
			known = newCard(s.root, name, address)
		}
		there[address] = known
		readers = append(readers, known)
	}
	s.cards = there
	return readers, nil
}

// Close does nothing: no file stays open between two reads.
func (s *Source) Close() error { return nil }

func failure(err error) error {
	err = fmt.Errorf("list the cards of the driver amdgpu: %w", err)
	if errors.Is(err, fs.ErrNotExist) {
		return &source.Failure{
			Reason: source.ReasonLibraryMissing,
			Err:    fmt.Errorf("%w: load the kernel's driver, or mount the node's /sys", err),
		}
	}
	return err
}
