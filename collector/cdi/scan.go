package cdi

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/collector/hostfile"
	"github.com/dra-exporter/dra-exporter/collector/source"
)

// maxFile is how much of a file is read, in bytes. A specification of a whole
// node has some tens of KiB.
const maxFile = 4 << 20

// maxNamed is how many files one message names.
const maxNamed = 3

// bounds are the limits for one directory, whose files are read in the order of
// their names. There is at most one file for each claim, and one for each of its
// requests if its driver provides device metadata. Files beyond the limits are
// ignored and reported as problems.
type bounds struct {
	names int // of any kind: a directory with more is not read
	files int
	bytes int64 // of all of them together
}

// scanner reads directories of specifications, each file only when it has
// changed. It is not safe for concurrent use.
type scanner struct {
	dirs   []string
	bounds bounds
	files  map[string]map[string]file // by directory and name
}

// file is the cached content of a specification. It is valid until its size or
// its modification time changes.
type file struct {
	size    int64
	changed time.Time
	devices []dra.CDIDevice
	err     error
}

// problem is a file, a directory or a device that is ignored.
type problem struct {
	path string
	err  error
}

// scanResult is the result of one scan.
type scanResult struct {
	devices    []dra.CDIDevice // sorted by name
	problems   []problem
	unreadable bool // there are directories, and none could be listed
}

func newScanner(dirs []string) *scanner {
	return &scanner{dirs: slices.Clone(dirs), bounds: bounds{names: 100_000, files: 10_000, bytes: 64 << 20}, files: make(map[string]map[string]file)}
}

func (s *scanner) scan() scanResult {
	var found scanResult
	listed, failed := 0, 0
	merged := make(map[string]dra.CDIDevice)
	for _, dir := range s.dirs {
		switch err := s.update(dir); {
		case errors.Is(err, fs.ErrNotExist):
			delete(s.files, dir)
		case err != nil:
			// Keep what was read earlier.
			failed++
			found.problems = append(found.problems, problem{path: dir, err: err})
		default:
			listed++
		}
		devices, problems := s.collect(dir)
		maps.Copy(merged, devices)
		found.problems = append(found.problems, problems...)
	}
	found.unreadable = failed > 0 && listed == 0
	found.devices = slices.SortedFunc(maps.Values(merged), func(a, b dra.CDIDevice) int { return strings.Compare(a.Name, b.Name) })
	return found
}

// update updates the cached files of a directory.
func (s *scanner) update(dir string) error {
	names, err := hostfile.Names(dir, s.bounds.names)
	if err != nil {
		return fmt.Errorf("list CDI specifications: %w", err)
	}
	previous, now, room := s.files[dir], make(map[string]file), s.bounds.bytes
	for _, name := range names {
		if extension := filepath.Ext(name); extension != ".json" && extension != ".yaml" {
			continue
		}
		if len(now) == s.bounds.files {
			now[name] = file{err: invalid(fmt.Errorf("read the CDI specifications in %s: it has more than %d files; the files after this one are ignored", dir, s.bounds.files))}
			break
		}
		read, err := refresh(filepath.Join(dir, name), previous[name], room)
		if errors.Is(err, fs.ErrNotExist) {
			continue // it was removed between listing and reading
		}
		room -= min(read.size, maxFile)
		read.err = err
		now[name] = read
	}
	s.files[dir] = now
	return nil
}

// refresh returns the content of a file, from before if it has not changed. A
// file that could not be opened, or that exceeded the room, is tried again each
// time. room is in bytes.
func refresh(path string, previous file, room int64) (file, error) {
	info, err := os.Stat(path)
	if err != nil {
		return file{}, fmt.Errorf("stat a CDI specification: %w", err)
	}
	if !previous.changed.IsZero() && info.Size() == previous.size && info.ModTime().Equal(previous.changed) {
		return previous, previous.err
	}
	if size := info.Size(); info.Mode().IsRegular() && size > room && size <= maxFile {
		return file{}, invalid(fmt.Errorf("read the CDI specification %s: the files before it in its directory use the size limit", path))
	}
	data, err := hostfile.Read(path, maxFile)
	if err != nil {
		return file{}, fmt.Errorf("read a CDI specification: %w", err)
	}
	now := file{size: info.Size(), changed: info.ModTime()}
	if now.devices, err = Decode(data, path); err != nil {
		return now, invalid(err)
	}
	return now, nil
}

// collect returns a directory's devices by name, and the problems of its files.
// A name that two files of one directory give to different devices is ambiguous
// and ignored, as container runtimes do.
func (s *scanner) collect(dir string) (map[string]dra.CDIDevice, []problem) {
	devices, ambiguous := make(map[string]dra.CDIDevice), make(map[string]bool)
	var problems []problem
	for _, name := range slices.Sorted(maps.Keys(s.files[dir])) {
		read, path := s.files[dir][name], filepath.Join(dir, name)
		if read.err != nil {
			problems = append(problems, problem{path: path, err: read.err})
		}
		for _, device := range read.devices {
			if other, ok := devices[device.Name]; ok && !equal(other, device) && !ambiguous[device.Name] {
				ambiguous[device.Name] = true
				problems = append(problems, problem{path: path, err: invalid(fmt.Errorf(
					"read the CDI specification %s: another file in %s also has a device %s", path, dir, device.Name))})
			}
			devices[device.Name] = device
		}
	}
	maps.DeleteFunc(devices, func(name string, _ dra.CDIDevice) bool { return ambiguous[name] })
	return devices, problems
}

func invalid(err error) error { return &source.Failure{Reason: source.ReasonInvalid, Err: err} }

// joinErrors makes one error of several, with the reason of the first.
func joinErrors(problems []problem) error {
	var all []error
	for _, p := range problems[:min(len(problems), maxNamed)] {
		all = append(all, p.err)
	}
	if more := len(problems) - len(all); more > 0 {
		all = append(all, fmt.Errorf("and %d more that cannot be used", more))
	}
	return errors.Join(all...)
}
