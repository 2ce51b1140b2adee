package intelgpu

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

// The names of the kernel modules. A card is bound to one of them.
const (
	xe   = "xe"
	i915 = "i915"
)

// Source finds the cards that are bound to either driver.
type Source struct {
	root  string
	cards map[cardKey]*card // those that the last call of Readers found
}

type cardKey struct{ driver, address string }

// New returns a source over the sysfs that is mounted at root: /sys, or where
// the node's is mounted in a container.
func New(root string) *Source {
	return &Source{root: root, cards: make(map[cardKey]*card)}
}

// Name is "intel".
func (s *Source) Name() string { return "intel" }

// Readers returns a reader for each card. If neither driver is loaded, it fails
// with source.ReasonLibraryMissing.
func (s *Source) Readers(context.Context) ([]device.Reader, error) {
	there := make(map[cardKey]*card)
	var readers []device.Reader
	loaded := 0
	for _, driver := range []string{xe, i915} {
		names, err := sysfs.Names(filepath.Join(s.root, "bus/pci/drivers", driver))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("list the cards of the driver %s: %w", driver, err)
		}
		loaded++
		for _, name := range names {
			key := cardKey{driver, device.PCIAddress(name)}
			if key.address == "" {
				continue // the driver's own files
			}
			known := s.cards[key]
			if known == nil {
				known = newCard(s.root, name, key)
			}
			there[key] = known
			readers = append(readers, known)
		}
	}
	if loaded == 0 {
		return nil, &source.Failure{
			Reason: source.ReasonLibraryMissing,
			Err:    errors.New("neither of the kernel's drivers xe and i915 is there: load one, or mount the node's /sys"),
		}
	}
	s.cards = there
	return readers, nil
}

// Close does nothing: no file stays open between two reads.
func (s *Source) Close() error { return nil }
