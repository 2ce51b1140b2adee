package hostfile

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/dra-exporter/dra-exporter/collector/source"
)

const limit = 10_000

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func write(t testing.TB, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	must(t, os.WriteFile(path, []byte(text), 0o644))
	return path
}

func TestRegularFiles(t *testing.T) {
	for _, size := range []int{0, 1, 4095, 4096, 4097, limit - 1, limit} {
		text := strings.Repeat("x", size)
		path := write(t, text)
		if got, err := Read(path, limit); string(got) != text || err != nil {
			t.Errorf("Read of %d bytes: %d (%v)", size, len(got), err)
		}
		if got, err := ReadKernel(path, limit); string(got) != text || err != nil {
			t.Errorf("ReadKernel of %d bytes: %d (%v)", size, len(got), err)
		}
		buffer := make([]byte, 4096)
		if n, err := ReadOnce(path, buffer); n != min(size, 4096) || err != nil {
			t.Errorf("ReadOnce of %d bytes: %d (%v)", size, n, err)
		}
	}
}

func TestTooLarge(t *testing.T) {
	path := write(t, strings.Repeat("x", limit+1))
	_, first := Read(path, limit)
	_, second := ReadKernel(path, limit)
	for _, err := range []error{first, second} {
		if source.ReasonOf(err) != source.ReasonInvalid || err.Error() != "read "+path+": it has more than 10000 bytes" {
			t.Errorf("the error is %v", err)
		}
	}
	must(t, os.Truncate(path, 1<<40))
	if _, err := Read(path, limit); source.ReasonOf(err) != source.ReasonInvalid {
		t.Errorf("a file of a tebibyte: %v", err)
	}
}

// TestIrregularFiles has what is no file, or has no end, in the place of a file. A
// terminal, and a pipe with and without a writer, are among them.
func TestIrregularFiles(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	must(t, syscall.Mkfifo(pipe, 0o644))
	written := filepath.Join(t.TempDir(), "written")
	must(t, syscall.Mkfifo(written, 0o644))
	writer, err := os.OpenFile(written, os.O_RDWR, 0)
	must(t, err)
	defer writer.Close()
	for _, target := range []string{pipe, written, "/dev/zero", "/dev/null", "/dev/ptmx", "/dev/tty", filepath.Dir(pipe)} {
		path := filepath.Join(t.TempDir(), "link")
		must(t, os.Symlink(target, path))
		_, first := Read(path, limit)
		_, second := ReadKernel(path, limit)
		_, third := ReadOnce(path, make([]byte, 10))
		for name, err := range map[string]error{"Read": first, "ReadKernel": second, "ReadOnce": third} {
			if errors.Is(err, syscall.ENXIO) || errors.Is(err, os.ErrNotExist) || errors.Is(err, os.ErrPermission) {
				continue // this machine has none
			}
			if source.ReasonOf(err) != source.ReasonInvalid || !strings.Contains(err.Error(), path) {
				t.Errorf("%s of a link to %s: %v", name, target, err)
			}
		}
		if _, err := Names(path, 10); target != filepath.Dir(pipe) && err == nil {
			t.Errorf("Names of a link to %s succeeds", target)
		}
	}
}

// TestKernelFiles has files of procfs that are regular by their type. A read of
// kmsg waits for the next message.
func TestKernelFiles(t *testing.T) {
	for _, path := range []string{"/proc/kmsg", "/proc/self/environ", "/proc/self/mountinfo", "/sys/kernel/tracing/trace_pipe"} {
		text, err := Read(path, limit)
		if len(text) > 0 || errors.Is(err, syscall.EAGAIN) {
			t.Errorf("%s is read: %d bytes (%v)", path, len(text), err)
		}
	}
	if text, err := ReadKernel("/proc/self/stat", limit); err != nil || !strings.HasPrefix(string(text), fmt.Sprint(os.Getpid())) {
		t.Errorf("/proc/self/stat: %q (%v)", text, err)
	}
	// Whether there is a message depends on the machine. None is waited for.
	_, _ = ReadKernel("/proc/kmsg", 0)
}

func TestMissing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "none")
	_, first := Read(path, limit)
	_, second := ReadKernel(path, limit)
	_, third := Names(path, limit)
	for _, err := range []error{first, second, third} {
		if source.ReasonOf(err) != source.ReasonNotFound || !strings.Contains(err.Error(), path) {
			t.Errorf("no file: %v", err)
		}
	}
}

func TestNames(t *testing.T) {
	folder := t.TempDir()
	if names, err := Names(folder, 3); len(names) != 0 || err != nil {
		t.Errorf("an empty folder: %v (%v)", names, err)
	}
	for _, name := range []string{"c", "a", "b"} {
		must(t, os.WriteFile(filepath.Join(folder, name), nil, 0o644))
	}
	if names, err := Names(folder, 3); strings.Join(names, "") != "abc" || err != nil {
		t.Errorf("three names: %v (%v)", names, err)
	}
	if _, err := Names(folder, 2); source.ReasonOf(err) != source.ReasonResourceExhausted || !strings.Contains(err.Error(), "the limit of 2") {
		t.Errorf("too many names: %v", err)
	}
}

func TestNothingStaysOpen(t *testing.T) {
	opened := func() int {
		names, err := Names("/proc/self/fd", 10_000)
		must(t, err)
		return len(names)
	}
	path, before := write(t, "text"), opened()
	for range 100 {
		_, _ = Read(path, 1)
		_, _ = Read(path, limit)
		_, _ = ReadKernel("/dev/null", limit)
		_, _ = ReadOnce(path, make([]byte, 1))
		_, _ = Names(path, 1)
	}
	if now := opened(); now > before {
		t.Errorf("%d files were open, and %d are", before, now)
	}
}
