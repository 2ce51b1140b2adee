package cdi

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/dra-exporter/dra-exporter/collector/source"
)

// A folder with things in it that are no files, and links to what is none or
// is endless, neither blocks a scan nor hides the good file beside them.
func TestIrregularFiles(t *testing.T) {
	for name, plant := range map[string]func(folder, path string) error{
		"an endless device":      func(_, path string) error { return os.Symlink("/dev/zero", path) },
		"a pipe behind a link":   func(folder, path string) error { return pipeBehind(folder, path) },
		"the folder itself":      func(folder, path string) error { return os.Symlink(folder, path) },
		"a link to itself":       func(_, path string) error { return os.Symlink(path, path) },
		"a file of another kind": func(_, path string) error { return os.Symlink("/etc/passwd", path) },
		"a file of the kernel's": func(_, path string) error { return os.Symlink("/proc/self/environ", path) },
		"a file without an end":  func(_, path string) error { return os.Symlink("/proc/kmsg", path) },
		"a terminal":             func(_, path string) error { return os.Symlink("/dev/tty", path) },
		"holes of a tebibyte":    func(_, path string) error { return sparseFile(path, 1<<40) },
		"aliases of aliases":     func(_, path string) error { return os.WriteFile(path, []byte(manyAliases()), 0o644) },
		"a thousand brackets":    func(_, path string) error { return os.WriteFile(path, []byte(strings.Repeat("[", 1<<20)), 0o644) },
	} {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			write(t, folder, "good.json", spec("good", "/dev/nvidia0"))
			path := filepath.Join(folder, "bad.yaml")
			must(t, plant(folder, path))
			t.Setenv("DRA_EXPORTER_TEST_SECRET", "environ-marker")
			reader, log := newLoggedReader(folder)
			for range 3 {
				reader.scan(t.Context())
				if got := render(reader.Latest()); got != good {
					t.Errorf("got %q", got)
				}
			}
			if reader.Status().Reason == source.ReasonNone {
				t.Error("no error is reported")
			}
			if special := name == "an endless device" || name == "a pipe behind a link"; special && !strings.Contains(reader.Status().Message, "not a regular file") {
				t.Errorf("it was opened: %s", reader.Status().Message)
			}
			for _, content := range []string{"root:", "environ-marker"} {
				if strings.Contains(log.String()+reader.Status().Message, content) {
					t.Errorf("the log has what the file says:\n%s", log)
				}
			}
		})
	}
}

func pipeBehind(folder, path string) error {
	pipe := filepath.Join(folder, "pipe")
	if err := syscall.Mkfifo(pipe, 0o644); err != nil {
		return err
	}
	return os.Symlink(pipe, path)
}

// sparseFile creates a file of a size that takes no room on the disk.
func sparseFile(path string, size int64) error {
	if err := os.WriteFile(path, []byte("{"), 0o644); err != nil {
		return err
	}
	return os.Truncate(path, size)
}

// manyAliases is YAML of a few hundred bytes that means 9^12 strings.
func manyAliases() string {
	var text strings.Builder
	text.WriteString("a0: &a0 [x,x,x,x,x,x,x,x,x]\n")
	for i := 1; i < 12; i++ {
		fmt.Fprintf(&text, "a%d: &a%d [%s]\n", i, i, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d,", i-1), 9), ","))
	}
	return text.String()
}

// Of more files than a folder may have, the first by name are read. The message
// about the rest is short.
func TestTooManyFiles(t *testing.T) {
	folder := t.TempDir()
	const most = 100
	for i := range most + 20 {
		write(t, folder, fmt.Sprintf("%06d.json", i), spec(fmt.Sprint(i), "/dev/x"))
	}
	reader, log := newLoggedReader(folder)
	reader.scanner.bounds.files = most
	reader.scan(t.Context())
	if got := len(reader.Latest()); got != most {
		t.Errorf("%d devices, want %d", got, most)
	}
	if status := reader.Status(); !status.Up || !strings.Contains(status.Message, "100 files") {
		t.Errorf("the status is %+v", status)
	}
	for i := range most + 20 {
		write(t, folder, fmt.Sprintf("%06d.json", i), "{ broken")
	}
	reader.scan(t.Context())
	if got := reader.Status().Message; len(got) > 20_000 || !strings.Contains(got, "more that cannot be used") {
		t.Errorf("the message has %d bytes", len(got))
	}
	if got := strings.Count(log.String(), "\n"); got > 20 {
		t.Errorf("%d lines in the log", got)
	}
}

// Of files that are too large together, the first by name are read.
func TestTotalSizeLimit(t *testing.T) {
	folder := t.TempDir()
	const files, large, together = 20, 10_000, 64_000
	for i := range files {
		text := spec(fmt.Sprint(i), "/dev/x")
		write(t, folder, fmt.Sprintf("%02d.json", i), text+strings.Repeat(" ", large-len(text)))
	}
	reader, _ := newLoggedReader(folder)
	reader.scanner.bounds.bytes = together
	reader.scan(t.Context())
	if got := len(reader.Latest()); got != together/large {
		t.Errorf("%d devices, want %d", got, together/large)
	}
	reader.expect(t, render(reader.Latest()), true, source.ReasonInvalid)
	for i := range files - 1 {
		must(t, os.Remove(filepath.Join(folder, fmt.Sprintf("%02d.json", i))))
	}
	reader.scan(t.Context())
	reader.expect(t, fmt.Sprintf("nvidia.com/gpu=%d /dev/x\n", files-1), true, source.ReasonNone)
}

// A pipe in the place of the folder does not hold the scan up, and the folder is
// read once it is there.
func TestPipeInPlaceOfTheFolder(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "cdi")
	must(t, syscall.Mkfifo(folder, 0o644))
	reader, _ := newLoggedReader(folder)
	reader.scan(t.Context())
	if status := reader.Status(); status.Up || !strings.Contains(status.Message, "not a directory") {
		t.Errorf("%+v", status)
	}
	must(t, os.Remove(folder))
	must(t, os.Mkdir(folder, 0o755))
	write(t, folder, "good.json", spec("good", "/dev/nvidia0"))
	reader.scan(t.Context())
	reader.expect(t, good, true, source.ReasonNone)
}

// A folder with a flood of names is not read, whatever they are, and what was
// read before stays.
func TestTooManyNames(t *testing.T) {
	folder := t.TempDir()
	write(t, folder, "good.json", spec("good", "/dev/nvidia0"))
	reader, _ := newLoggedReader(folder)
	reader.scanner.bounds.names = 50
	reader.scan(t.Context())
	for i := range 50 {
		must(t, syscall.Mkfifo(filepath.Join(folder, fmt.Sprintf("%02d", i)), 0o644))
	}
	reader.scan(t.Context())
	reader.expect(t, good, false, source.ReasonResourceExhausted)
	if message := reader.Status().Message; !strings.Contains(message, "more names than the limit of 50") {
		t.Errorf("the status says %q", message)
	}
	for i := range 50 {
		must(t, os.Remove(filepath.Join(folder, fmt.Sprintf("%02d", i))))
	}
	reader.scan(t.Context())
	reader.expect(t, good, true, source.ReasonNone)
}

// A link that leads back to itself in the place of the folder is an error of
// that folder alone.
func TestLoopInPlaceOfTheFolder(t *testing.T) {
	folder, loop := t.TempDir(), filepath.Join(t.TempDir(), "cdi")
	must(t, os.Symlink(loop, loop))
	write(t, folder, "good.json", spec("good", "/dev/nvidia0"))
	reader, _ := newLoggedReader(loop, folder)
	reader.scan(t.Context())
	if got := render(reader.Latest()); got != good {
		t.Errorf("got %q", got)
	}
	if status := reader.Status(); !status.Up || status.Reason == source.ReasonNone || !strings.Contains(status.Message, "symbolic links") {
		t.Errorf("%+v", status)
	}
}

// Pipes, loops, folders and broken files, all of them under names that are read
// and as many as are listed at most, neither block a scan nor hide the good file
// among them, and leave nothing open. The message about them is short.
func TestManyIrregularFiles(t *testing.T) {
	folder := t.TempDir()
	reader, log := newLoggedReader(folder)
	const each = 500
	reader.scanner.bounds.names = 5*each + 1
	for i := range each {
		path := func(kind string) string { return filepath.Join(folder, fmt.Sprintf("%03d-%s.json", i, kind)) }
		must(t, syscall.Mkfifo(path("pipe"), 0o644))
		must(t, os.Symlink(path("loop"), path("pool")))
		must(t, os.Symlink(path("pool"), path("loop")))
		must(t, os.Symlink(folder, path("folder")))
		must(t, os.WriteFile(path("broken"), []byte("{ broken"), 0o644))
	}
	write(t, folder, "zzz.json", spec("good", "/dev/nvidia0"))
	opened := func() int {
		list, err := os.ReadDir("/dev/fd")
		must(t, err)
		return len(list)
	}
	reader.scan(t.Context())
	before := opened()
	for range 3 {
		reader.scan(t.Context())
		reader.expect(t, good, true, source.ReasonInvalid)
	}
	if now := opened(); now > before {
		t.Errorf("%d files are open, before it were %d", now, before)
	}
	if message := reader.Status().Message; len(message) > 2_000 || !strings.Contains(message, fmt.Sprintf("%d more that cannot be used", 5*each-maxNamed)) {
		t.Errorf("the status says %q", message)
	}
	if lines := strings.Count(log.String(), "\n"); lines > 3 {
		t.Errorf("%d lines in the log", lines)
	}
}
