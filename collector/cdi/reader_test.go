package cdi

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/collector/source"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func render(devices []dra.CDIDevice) string {
	var page strings.Builder
	for _, device := range devices {
		fmt.Fprintln(&page, strings.Join(append([]string{device.Name}, device.Nodes...), " "))
	}
	return page.String()
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// spec is a specification of one device with one node.
func spec(name, node string) string {
	return fmt.Sprintf(`{"cdiVersion":"0.6.0","kind":"nvidia.com/gpu","devices":[{"name":%q,"containerEdits":{"deviceNodes":[{"path":%q}]}}]}`, name, node)
}

func write(t *testing.T, folder, name, text string) string {
	t.Helper()
	path := filepath.Join(folder, name)
	must(t, os.WriteFile(path, []byte(text), 0o644))
	return path
}

// newLoggedReader returns a reader whose scan method the test calls, and its log.
func newLoggedReader(dirs ...string) (*Reader, *bytes.Buffer) {
	log := &bytes.Buffer{}
	return New(Options{Dirs: dirs, Log: slog.New(slog.NewTextHandler(log, nil))}), log
}

// expect checks the devices and the status.
func (r *Reader) expect(t *testing.T, devices string, up bool, reason source.Reason) {
	t.Helper()
	if got := render(r.Latest()); got != devices {
		t.Errorf("got %q, want %q", got, devices)
	}
	if status := r.Status(); status.Up != up || status.Reason != reason {
		t.Errorf("got %+v, want up %v, reason %q", status, up, reason)
	}
}

const good = "nvidia.com/gpu=good /dev/nvidia0\n"

// TestFilesThatCannotBeUsed has each beside a good one, and then repairs it.
func TestFilesThatCannotBeUsed(t *testing.T) {
	for name, spoil := range map[string]func(path string) error{
		"garbage": func(path string) error { return os.WriteFile(path, []byte("{ \x00"), 0o644) },
		"empty":   func(path string) error { return os.WriteFile(path, nil, 0o644) },
		"no spec": func(path string) error { return os.WriteFile(path, []byte("hello: world"), 0o644) },
		"too large": func(path string) error {
			return os.WriteFile(path, []byte(spec("large", "/dev/x")+strings.Repeat(" ", maxFile)), 0o644)
		},
		"a pipe":      func(path string) error { return syscall.Mkfifo(path, 0o644) },
		"a directory": func(path string) error { return os.Mkdir(path, 0o755) },
	} {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			write(t, folder, "good.json", spec("good", "/dev/nvidia0"))
			path := filepath.Join(folder, "bad.yaml")
			must(t, spoil(path))
			reader, log := newLoggedReader(folder)
			for range 3 {
				reader.scan(t.Context())
				reader.expect(t, good, true, source.ReasonInvalid)
			}
			if got := strings.Count(log.String(), path); got != 1 || !strings.Contains(reader.Status().Message, path) {
				t.Errorf("the file is named %d times in the log:\n%s\nand the message is %q", got, log, reader.Status().Message)
			}
			must(t, os.Remove(path))
			write(t, folder, "bad.yaml", spec("repaired", "/dev/nvidia1"))
			reader.scan(t.Context())
			reader.expect(t, good+"nvidia.com/gpu=repaired /dev/nvidia1\n", true, source.ReasonNone)
			if !strings.Contains(log.String(), "up again") {
				t.Errorf("the repair is not in the log:\n%s", log)
			}
		})
	}
}

// TestScanThatHangs has a file whose read does not return for a while: the source is
// down, keeps its devices, and comes back. Then one that never returns does not
// prevent the end of Run.
func TestScanThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		folder := t.TempDir()
		write(t, folder, "good.json", spec("good", "/dev/nvidia0"))
		reader, log := newLoggedReader(folder)
		var hanging atomic.Bool
		release := make(chan struct{})
		reader.read = func() scanResult {
			if hanging.Load() {
				<-release
			}
			return reader.scanner.scan()
		}
		ctx, stop := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { reader.Run(ctx) })
		synctest.Wait()
		reader.expect(t, good, true, source.ReasonNone)

		hanging.Store(true)
		time.Sleep(reader.interval + timeout + time.Second)
		reader.expect(t, good, false, source.ReasonTimeout)
		if status := reader.Status(); status.HungFor(reader.now()) < timeout || !strings.Contains(status.Message, folder) {
			t.Errorf("the status of a scan that hangs is %+v", status)
		}
		if <-reader.Changed(); strings.Count(log.String(), "source is down") != 1 {
			t.Errorf("the log is\n%s", log)
		}

		hanging.Store(false)
		release <- struct{}{}
		synctest.Wait()
		reader.expect(t, good, true, source.ReasonNone)
		if status := reader.Status(); !status.HungSince.IsZero() {
			t.Errorf("the status after it is %+v", status)
		}

		hanging.Store(true)
		time.Sleep(reader.interval + timeout + time.Second)
		stop()
		running.Wait()
		close(release)
	})
}

// TestSecondFailureIsLogged has a file go bad while another already is.
func TestSecondFailureIsLogged(t *testing.T) {
	folder := t.TempDir()
	reader, log := newLoggedReader(folder)
	first := write(t, folder, "first.json", "{")
	reader.scan(t.Context())
	second := write(t, folder, "second.json", "{")
	reader.scan(t.Context())
	reader.scan(t.Context())
	for _, path := range []string{first, second} {
		if got := strings.Count(log.String(), path); got == 0 || got > 2 {
			t.Errorf("%s is named %d times:\n%s", path, got, log)
		}
	}
	if got := strings.Count(log.String(), "\n"); got != 2 {
		t.Errorf("%d lines:\n%s", got, log)
	}
}

func TestUnchangedFilesAreNotRead(t *testing.T) {
	folder := t.TempDir()
	reader, _ := newLoggedReader(folder)
	path := write(t, folder, "gpu.json", spec("a", "/dev/nvidia0"))
	reader.scan(t.Context())
	info, err := os.Stat(path)
	must(t, err)
	write(t, folder, "gpu.json", spec("b", "/dev/nvidia0"))
	must(t, os.Chtimes(path, time.Time{}, info.ModTime()))
	reader.scan(t.Context())
	reader.expect(t, "nvidia.com/gpu=a /dev/nvidia0\n", true, source.ReasonNone)
	must(t, os.Chtimes(path, time.Time{}, info.ModTime().Add(time.Second)))
	reader.scan(t.Context())
	reader.expect(t, "nvidia.com/gpu=b /dev/nvidia0\n", true, source.ReasonNone)
	write(t, folder, "gpu.json", spec("bb", "/dev/nvidia0"))
	must(t, os.Chtimes(path, time.Time{}, info.ModTime().Add(time.Second)))
	reader.scan(t.Context())
	reader.expect(t, "nvidia.com/gpu=bb /dev/nvidia0\n", true, source.ReasonNone)
	must(t, os.Remove(path))
	reader.scan(t.Context())
	reader.expect(t, "", true, source.ReasonNone)
}

func TestLaterDirectoryWins(t *testing.T) {
	static, dynamic := t.TempDir(), t.TempDir()
	write(t, static, "gpu.json", spec("0", "/dev/static"))
	write(t, dynamic, "gpu.json", spec("0", "/dev/dynamic"))
	write(t, dynamic, "README.md", "not a specification")
	reader, _ := newLoggedReader(static, dynamic)
	reader.scan(t.Context())
	reader.expect(t, "nvidia.com/gpu=0 /dev/dynamic\n", true, source.ReasonNone)
	reader, _ = newLoggedReader(dynamic, static)
	reader.scan(t.Context())
	reader.expect(t, "nvidia.com/gpu=0 /dev/static\n", true, source.ReasonNone)
}

func TestAmbiguousNameIsIgnored(t *testing.T) {
	folder := t.TempDir()
	write(t, folder, "a.json", spec("0", "/dev/one"))
	write(t, folder, "b.json", spec("0", "/dev/two"))
	write(t, folder, "c.json", spec("0", "/dev/one"))
	write(t, folder, "d.json", spec("good", "/dev/nvidia0"))
	reader, _ := newLoggedReader(folder)
	reader.scan(t.Context())
	reader.expect(t, good, true, source.ReasonInvalid)
	must(t, os.Remove(filepath.Join(folder, "b.json")))
	reader.scan(t.Context())
	reader.expect(t, "nvidia.com/gpu=0 /dev/one\n"+good, true, source.ReasonNone)
}

// TestDirectories: a missing directory is no error, one that cannot be listed is.
func TestDirectories(t *testing.T) {
	folder := t.TempDir()
	dir, missing := filepath.Join(folder, "cdi"), filepath.Join(folder, "missing")
	reader, _ := newLoggedReader(dir, missing)
	reader.scan(t.Context())
	reader.expect(t, "", true, source.ReasonNone)
	must(t, os.Mkdir(dir, 0o755))
	write(t, dir, "gpu.json", spec("good", "/dev/nvidia0"))
	reader.scan(t.Context())
	reader.expect(t, good, true, source.ReasonNone)
	must(t, os.Rename(dir, missing))
	write(t, folder, "cdi", "no directory")
	reader.scan(t.Context())
	reader.expect(t, good, true, source.ReasonOther)
	must(t, os.RemoveAll(missing))
	reader.scan(t.Context())
	reader.expect(t, good, false, source.ReasonOther) // the last that is known
	must(t, os.Remove(dir))
	reader.scan(t.Context())
	reader.expect(t, "", true, source.ReasonNone)
}

func TestFileGoesBetweenListingAndReading(t *testing.T) {
	folder := t.TempDir()
	must(t, os.Symlink(filepath.Join(folder, "gone"), filepath.Join(folder, "gpu.json")))
	reader, _ := newLoggedReader(folder)
	reader.scan(t.Context())
	reader.expect(t, "", true, source.ReasonNone)
}

func TestRun(t *testing.T) {
	folder := t.TempDir()
	var mu sync.Mutex
	observed := 0
	reader := New(Options{Dirs: []string{folder}, Interval: time.Hour, Observe: func(float64) {
		mu.Lock()
		defer mu.Unlock()
		observed++
	}})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); reader.Run(ctx) }()
	<-reader.Changed()
	write(t, folder, "gpu.json", spec("good", "/dev/nvidia0"))
	reader.Refresh()
	<-reader.Changed()
	reader.expect(t, good, true, source.ReasonNone)
	reader.Refresh()
	cancel()
	<-done
	mu.Lock()
	defer mu.Unlock()
	if observed < 2 {
		t.Errorf("%d scans observed", observed)
	}
}

// TestRunScansByItself needs neither a poke nor a change of what is there.
func TestRunScansByItself(t *testing.T) {
	folder := t.TempDir()
	reader := New(Options{Dirs: []string{folder}, Interval: time.Millisecond})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); reader.Run(ctx) }()
	<-reader.Changed()
	write(t, folder, "gpu.json", spec("good", "/dev/nvidia0"))
	for len(reader.Latest()) == 0 {
		<-reader.Changed()
	}
	cancel()
	<-done
	if name := reader.Status().Name; name != "cdi" {
		t.Errorf("called %q", name)
	}
}
