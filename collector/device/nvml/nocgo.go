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
		Err:    errors.New("this build of dra-exporter is the static one and cannot open libnvidia-ml.so.1: use the image whose tag does not end in -static, or a build with CGO_ENABLED=1"),
	}
}

// Close does nothing.
func (*Source) Close() error { return nil }
