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

// sparseLibrary names, for the process that reads it, a library that lacks
// most functions. That process cannot be the one that has read another: a
// function stays bound to the library in which it was found first.
const sparseLibrary = "NVML_TEST_SPARSE_LIBRARY"

// A library that is opened at run time and lacks most functions is read as
// far as it goes. The calls really go to C: the process would not survive one
// that the library lacks.
func TestLibraryOpenedAtRunTime(t *testing.T) {
	if path := os.Getenv(sparseLibrary); path != "" {
		readSparseLibrary(t, path)
		return
	}
	compiler := os.Getenv("CC")
	if compiler == "" {
		compiler = "cc"
	}
	path := filepath.Join(t.TempDir(), "libnvidia-ml.so.1")
	if out, err := exec.Command(compiler, "-shared", "-fPIC", "-o", path, "testdata/library.c").CombinedOutput(); err != nil {
		t.Fatalf("compile the library: %v\n%s", err, out)
	}
	process := exec.Command(os.Args[0], "-test.run=^TestLibraryOpenedAtRunTime$")
	process.Env = append(os.Environ(), sparseLibrary+"="+path)
	if out, err := process.CombinedOutput(); err != nil {
		t.Fatalf("read the library: %v\n%s", err, out)
	}
	text, err := os.ReadFile(path + ".txt")
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "library.txt", string(text))
}

// readSparseLibrary leaves what it has read beside the library.
func readSparseLibrary(t *testing.T, path string) {
	s := New(Options{Library: path, Profiling: true, Links: true, Processes: always})
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
	if err := os.WriteFile(path+".txt", []byte(text.String()), 0o644); err != nil {
		t.Fatal(err)
	}
}
