package cdi

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/collector/source"
)

// maxFile bounds how much of a file is read, in bytes. A specification of a
// whole node has some tens of KiB.
const maxFile = 4 << 20

// scanner reads directories of specifications, each file only when it has
// changed. It is not safe for concurrent use.
type scanner struct {
	dirs  []string
	files map[string]map[string]file // by directory and name
}

// file is what is known of one specification as long as its size and time of
// change stay as they are.
type file struct {
	size    int64
	changed time.Time
	devices []dra.CDIDevice
	err     error
}

// problem is a file, a directory or a device that is left out.
type problem struct {
	path string
	err  error
}

// findings are the outcome of one scan.
type findings struct {
	devices  []dra.CDIDevice // sorted by name
	problems []problem
	blind    bool // there are directories, and none could be listed
}

func newScanner(dirs []string) *scanner {
	return &scanner{dirs: slices.Clone(dirs), files: make(map[string]map[string]file)}
}

func (s *scanner) scan() findings {
	var found findings
	listed, failed := 0, 0
	merged := make(map[string]dra.CDIDevice)
	for _, dir := range s.dirs {
		switch err := s.update(dir); {
		case errors.Is(err, fs.ErrNotExist):
			delete(s.files, dir)
		case err != nil:
			// What was read of it earlier is still the best that is known.
			failed++
			found.problems = append(found.problems, problem{path: dir, err: err})
		default:
			listed++
		}
		devices, problems := s.collect(dir)
		maps.Copy(merged, devices)
		found.problems = append(found.problems, problems...)
	}
	found.blind = failed > 0 && listed == 0
	found.devices = slices.SortedFunc(maps.Values(merged), func(a, b dra.CDIDevice) int { return strings.Compare(a.Name, b.Name) })
	return found
}

// update brings what is known of a directory's files up to date.
func (s *scanner) update(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("list CDI specifications: %w", err)
	}
	before, now := s.files[dir], make(map[string]file)
	for _, entry := range entries {
		name := entry.Name()
		if extension := filepath.Ext(name); extension != ".json" && extension != ".yaml" {
			continue
		}
		read, err := refresh(filepath.Join(dir, name), before[name])
		if errors.Is(err, fs.ErrNotExist) {
			continue // it went between listing and reading
		}
		read.err = err
		now[name] = read
	}
	s.files[dir] = now
	return nil
}

// refresh returns what a file holds, from before if it has not changed. A
// file that could not be opened is tried again each time.
func refresh(path string, before file) (file, error) {
	info, err := os.Stat(path)
	if err != nil {
		return file{}, fmt.Errorf("look at a CDI specification: %w", err)
	}
	if !before.changed.IsZero() && info.Size() == before.size && info.ModTime().Equal(before.changed) {
		return before, before.err
	}
	if !info.Mode().IsRegular() {
		return file{}, invalid(fmt.Errorf("read the CDI specification %s: it is no regular file", path))
	}
	data, err := read(path)
	if err != nil {
		return file{}, err
	}
	now := file{size: info.Size(), changed: info.ModTime()}
	if len(data) > maxFile {
		return now, invalid(fmt.Errorf("read the CDI specification %s: it has more than %d MiB", path, maxFile>>20))
	}
	if now.devices, err = Decode(data, path); err != nil {
		return now, invalid(err)
	}
	return now, nil
}

// read reads a file, up to one byte more than it may have. It does not block
// on a pipe that has taken the file's place a moment ago.
func read(path string) ([]byte, error) {
	opened, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("open a CDI specification: %w", err)
	}
	// Closing a file that was only read loses nothing.
	defer func() { _ = opened.Close() }()
	data, err := io.ReadAll(io.LimitReader(opened, maxFile+1))
	if err != nil {
		return nil, fmt.Errorf("read a CDI specification: %w", err)
	}
	return data, nil
}

// collect returns a directory's devices by name, and what is amiss with its
// files. A name that two files of one directory give to different devices
// means neither, as for container runtimes.
func (s *scanner) collect(dir string) (map[string]dra.CDIDevice, []problem) {
	devices, disputed := make(map[string]dra.CDIDevice), make(map[string]bool)
	var problems []problem
	for _, name := range slices.Sorted(maps.Keys(s.files[dir])) {
		read, path := s.files[dir][name], filepath.Join(dir, name)
		if read.err != nil {
			problems = append(problems, problem{path: path, err: read.err})
		}
		for _, device := range read.devices {
			if other, taken := devices[device.Name]; taken && !equal(other, device) && !disputed[device.Name] {
				disputed[device.Name] = true
				problems = append(problems, problem{path: path, err: invalid(fmt.Errorf(
					"read the CDI specification %s: another file in %s also has a device %s", path, dir, device.Name))})
			}
			devices[device.Name] = device
		}
	}
	maps.DeleteFunc(devices, func(name string, _ dra.CDIDevice) bool { return disputed[name] })
	return devices, problems
}

func invalid(err error) error { return &source.Failure{Reason: source.ReasonInvalid, Err: err} }

// joined makes one error of several, with the reason of the first.
func joined(problems []problem) error {
	var all []error
	for _, p := range problems {
		all = append(all, p.err)
	}
	return errors.Join(all...)
}
