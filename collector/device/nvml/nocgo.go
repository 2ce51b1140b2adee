//go:build !cgo

package nvml

import (
	"context"
	"errors"

	"github.com/dra-exporter/dra-exporter/collector/device"
	"github.com/dra-exporter/dra-exporter/collector/source"
)

// Source stands for NVIDIA's library in a binary that cannot open it.
type Source struct{}

// New returns a source that says that this binary was built without cgo.
func New(Options) *Source { return &Source{} }

// Name is "nvml".
func (*Source) Name() string { return "nvml" }

// Readers fails.
func (*Source) Readers(context.Context) ([]device.Reader, error) {
	return nil, &source.Failure{
		Reason: source.ReasonLibraryMissing,
		Err:    errors.New("this binary was built without cgo and cannot open libnvidia-ml.so.1: use one built with CGO_ENABLED=1"),
	}
}

// Close does nothing.
func (*Source) Close() error { return nil }
