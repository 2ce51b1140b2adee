//go:build cgo && linux

package nvml

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dra-exporter/dra-exporter/collector/device"
)

// A library that is opened at run time and lacks most functions is read as
// far as it goes. This is the only test in which the calls really go to C: it
// would not survive one that the library lacks.
func TestLibraryOpenedAtRunTime(t *testing.T) {
	compiler := os.Getenv("CC")
	if compiler == "" {
		compiler = "cc"
	}
	path := filepath.Join(t.TempDir(), "libnvidia-ml.so.1")
	if out, err := exec.Command(compiler, "-shared", "-fPIC", "-o", path, "testdata/library.c").CombinedOutput(); err != nil {
		t.Fatalf("compile the library: %v\n%s", err, out)
	}
	s := New(Options{Library: path})
	var text strings.Builder
	for range 2 { // it can be closed and opened again
		text.Reset()
		for _, r := range readers(t, s) {
			text.WriteString(written(r.Read(t.Context(), device.Slow)))
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	golden(t, "library.txt", text.String())
}
