// Package stubs builds stubs of vendor libraries for tests: libnvidia-ml.so.1
// and libdcgm.so.4 in C, over the real headers, a host engine, and the part of
// libcuda.so.1 that test/suites/gpukit calls, so that the real bindings run without
// hardware. All of them report the same scripted GPUs, those of a Node. Two more
// libraries record the answers of a real libnvidia-ml and play them back. It is
// for Linux, and needs gcc.
package stubs

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// Libraries are the compiled stubs. They lie in a cache that outlives the
// test and must not be changed.
type Libraries struct {
	Dir        string // holds the libraries under their sonames: can be LD_LIBRARY_PATH
	NVML       string // libnvidia-ml.so.1
	DCGM       string // libdcgm.so.4
	CUDA       string // libcuda.so.1
	HostEngine string // the program that Node.StartHostEngine starts
	Recorder   string // libnvidia-ml-recorder.so, see recording/README.md
	Player     string // libnvidia-ml-player.so
	migTool    string
}

// Build compiles the stubs with gcc, unless the same sources have been
// compiled before on this machine. A test that cannot have them fails.
func Build(t testing.TB) Libraries {
	t.Helper()
	libraries, err := builtOnce()
	if err != nil {
		t.Fatalf("build the stub libraries: %v", err)
	}
	return libraries
}

var builtOnce = sync.OnceValues(build)

// artifact is one library or program, made of C files of this folder.
type artifact struct {
	name    string
	sources []string // patterns
	without []string // the same, taken away
	flags   []string
}

const (
	nvmlHeaders = "github.com/NVIDIA/go-nvml"
	dcgmHeaders = "github.com/NVIDIA/go-dcgm"
)

// artifacts returns what is built. $NVML and $DCGM are the directories of the
// vendor's headers.
func artifacts() []artifact {
	shared := func(soname string) []string {
		return []string{"-shared", "-fPIC", "-Wl,-soname," + soname, "-Wl,-z,defs"}
	}
	return []artifact{
		{
			name: "libnvidia-ml.so.1", sources: []string{"nvml/*.c", "hardware/*.c"}, without: []string{"hardware/migtool.c"},
			flags: append(shared("libnvidia-ml.so.1"), "-isystem", "$NVML"),
		},
		{
			name: "libdcgm.so.4", sources: []string{"dcgm/*.c", "hardware/*.c"}, without: []string{"hardware/migtool.c", "dcgm/hostengine.c"},
			flags: append(shared("libdcgm.so.4"), "-isystem", "$DCGM"),
		},
		{
			name: "stub-hostengine", sources: []string{"dcgm/*.c", "hardware/*.c"}, without: []string{"hardware/migtool.c", "dcgm/library.c", "dcgm/library_devices.c", "dcgm/library_values.c", "dcgm/session.c"},
			flags: []string{"-isystem", "$DCGM"},
		},
		{
			name: "libcuda.so.1", sources: []string{"cuda/*.c", "hardware/*.c"}, without: []string{"hardware/migtool.c"},
			flags: shared("libcuda.so.1"),
		},
		{name: "stub-mig", sources: []string{"hardware/*.c"}},
		{
			name: "libnvidia-ml-recorder.so", sources: []string{"recording/*.c"}, without: []string{"recording/player.c", "recording/recording.c"},
			flags: append(shared("libnvidia-ml-recorder.so"), "-Wl,-z,nodelete", "-Wl,-Bsymbolic", "-isystem", "$NVML"),
		},
		{
			name: "libnvidia-ml-player.so", sources: []string{"recording/*.c"}, without: []string{"recording/recorder.c"},
			flags: append(shared("libnvidia-ml-player.so"), "-Wl,-z,nodelete", "-Wl,-Bsymbolic", "-isystem", "$NVML"),
		},
	}
}

// build returns the stubs of the sources as they are now.
func build() (Libraries, error) {
	_, self, _, _ := runtime.Caller(0)
	sources := filepath.Dir(self)
	if _, err := os.Stat(sources); err != nil {
		return Libraries{}, fmt.Errorf("find the sources, which -trimpath hides: %w", err)
	}
	headers, err := headerFolders(sources)
	if err != nil {
		return Libraries{}, err
	}
	sum, err := fingerprint(sources, headers)
	if err != nil {
		return Libraries{}, err
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		cache = os.TempDir()
	}
	dir := filepath.Join(cache, "dra-exporter", "stubs", sum)
	if err := compileInto(dir, sources, headers); err != nil {
		return Libraries{}, err
	}
	return Libraries{
		Dir:        dir,
		NVML:       filepath.Join(dir, "libnvidia-ml.so.1"),
		DCGM:       filepath.Join(dir, "libdcgm.so.4"),
		CUDA:       filepath.Join(dir, "libcuda.so.1"),
		HostEngine: filepath.Join(dir, "stub-hostengine"),
		Recorder:   filepath.Join(dir, "libnvidia-ml-recorder.so"),
		Player:     filepath.Join(dir, "libnvidia-ml-player.so"),
		migTool:    filepath.Join(dir, "stub-mig"),
	}, nil
}

// headerFolders finds the vendor's headers inside the modules of the bindings,
// and returns what replaces $NVML and $DCGM.
func headerFolders(sources string) (*strings.Replacer, error) {
	list := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", nvmlHeaders, dcgmHeaders)
	list.Dir = sources
	out, err := list.Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			err = fmt.Errorf("%w: %s", err, exit.Stderr)
		}
		return nil, fmt.Errorf("find the modules of the headers: %w", err)
	}
	dirs := strings.Fields(string(out))
	if len(dirs) != 2 {
		return nil, fmt.Errorf("find the modules of the headers: %q: run go mod download", out)
	}
	return strings.NewReplacer(
		"$NVML", filepath.Join(dirs[0], "pkg", "nvml"),
		"$DCGM", filepath.Join(dirs[1], "pkg", "dcgm"),
	), nil
}

// fingerprint changes whenever something else would be compiled.
func fingerprint(sources string, headers *strings.Replacer) (string, error) {
	sum := sha256.New()
	for _, a := range artifacts() {
		fmt.Fprintln(sum, headers.Replace(fmt.Sprint(a)))
	}
	err := filepath.WalkDir(sources, func(path string, _ fs.DirEntry, err error) error {
		if extension := filepath.Ext(path); err != nil || extension != ".c" && extension != ".h" && extension != ".def" {
			return err
		}
		text, err := os.ReadFile(path)
		fmt.Fprintln(sum, path, len(text))
		sum.Write(text)
		return err
	})
	if err != nil {
		return "", fmt.Errorf("read the sources: %w", err)
	}
	return hex.EncodeToString(sum.Sum(nil)[:8]), nil
}

// compileInto makes dir with all artifacts in it, or finds it there. Of
// several processes one compiles, and the others wait for it.
func compileInto(dir, sources string, headers *strings.Replacer) error {
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return fmt.Errorf("make a cache: %w", err)
	}
	lock, err := os.OpenFile(dir+".lock", os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return fmt.Errorf("lock the cache: %w", err)
	}
	defer lock.Close()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return fmt.Errorf("lock the cache: %w", err)
	}
	if _, err := os.Stat(dir); err == nil {
		return nil
	}
	draft, err := os.MkdirTemp(filepath.Dir(dir), "draft-")
	if err != nil {
		return fmt.Errorf("make a folder: %w", err)
	}
	defer os.RemoveAll(draft)
	for _, a := range artifacts() {
		if err := a.compile(draft, sources, headers); err != nil {
			return err
		}
	}
	if err := os.Chmod(draft, 0o755); err != nil {
		return fmt.Errorf("open the folder to all: %w", err)
	}
	if err := os.Rename(draft, dir); err != nil {
		return fmt.Errorf("put the stubs in their place: %w", err)
	}
	return nil
}

// compile makes the artifact in dir.
func (a artifact) compile(dir, sources string, headers *strings.Replacer) error {
	arguments := []string{
		"-std=c11", "-D_GNU_SOURCE", "-O1", "-g", "-Wall", "-Wextra", "-Werror", "-pthread", "-fvisibility=hidden",
		"-I", "hardware", "-o", filepath.Join(dir, a.name),
	}
	for _, flag := range a.flags {
		arguments = append(arguments, headers.Replace(flag))
	}
	files, err := a.files(sources)
	if err != nil {
		return err
	}
	gcc := exec.Command("gcc", append(append(arguments, files...), "-lm", "-ldl")...)
	gcc.Dir = sources
	var complaint bytes.Buffer
	gcc.Stderr = &complaint
	if err := gcc.Run(); err != nil {
		return fmt.Errorf("compile %s: %w\n%s", a.name, err, complaint.String())
	}
	return nil
}

// files are the artifact's C files, relative to the folder of the sources.
func (a artifact) files(sources string) ([]string, error) {
	left := make(map[string]bool)
	for _, pattern := range a.without {
		left[pattern] = true
	}
	var files []string
	for _, pattern := range a.sources {
		found, err := fs.Glob(os.DirFS(sources), pattern)
		if err != nil {
			return nil, fmt.Errorf("list the sources of %s: %w", a.name, err)
		}
		for _, file := range found {
			if !left[file] {
				files = append(files, file)
			}
		}
	}
	return files, nil
}
