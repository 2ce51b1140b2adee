//go:build !cgo

package nvml

import (
	"testing"

	"github.com/dra-exporter/dra-exporter/collector/device"
	"github.com/dra-exporter/dra-exporter/collector/source"
)

func TestErrorWithoutCgo(t *testing.T) {
	var s device.Source = New(Options{})
	if _, err := s.Readers(t.Context()); source.ReasonOf(err) != source.ReasonLibraryMissing {
		t.Errorf("without cgo there is %v", err)
	}
}
