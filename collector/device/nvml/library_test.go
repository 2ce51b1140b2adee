//go:build cgo && linux

package nvml

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dra-exporter/dra-exporter/collector/device"
	"github.com/dra-exporter/dra-exporter/test/fakes/stubs"
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

// replacedLibrary names, for the process that reads it, a library that is
// replaced.
const replacedLibrary = "NVML_TEST_REPLACED_LIBRARY"

// A library that was closed and replaced by another file is still the one that is
// called: only a new process opens another. If this fails, connect can open the
// library of a driver that was replaced, and the liveness probe need not fail for
// it.
func TestLibraryIsNeverReplaced(t *testing.T) {
	if path := os.Getenv(replacedLibrary); path != "" {
		readReplacedLibrary(t, path)
		return
	}
	path := filepath.Join(t.TempDir(), "libnvidia-ml.so.1")
	copyFile(t, stubs.Build(t).NVML, path)
	process := exec.Command(os.Args[0], "-test.run=^TestLibraryIsNeverReplaced$")
	process.Env = append(append(os.Environ(), replacedLibrary+"="+path), stubs.NewNode(t, 1).Env()...)
	if out, err := process.CombinedOutput(); err != nil {
		t.Fatalf("read the library: %v\n%s", err, out)
	}
}

func readReplacedLibrary(t *testing.T, path string) {
	s := New(Options{Library: path})
	readers(t, s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	copyFile(t, path, path+".new")
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
	readers(t, s)
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		t.Fatal(err)
	}
	all, old := strings.Count(string(maps), path), strings.Count(string(maps), path+" (deleted)")
	if old == 0 || all != old {
		t.Errorf("of %d mappings of the library, %d are of the old one", all, old)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	content, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(to, content, 0o755); err != nil {
		t.Fatal(err)
	}
}
