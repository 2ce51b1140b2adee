package cgroup

import (
	"errors"
	"fmt"
	"maps"
	"strconv"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/collector/source"
)

// A process is looked at anew after this long, because it may have been moved
// to another cgroup. The pid decides about the rest of the time, so that
// processes which were first seen together are not all looked at together.
const (
	leastAge = 15 * time.Second
	moreAge  = 10 * time.Second
)

// resolver finds out whose processes are and remembers it. It is used by one
// goroutine at a time.
type resolver struct {
	procfs string
	now    clock.Clock
	uptime func() (time.Duration, error)
	files  *files
	known  map[int]process // of those that were on the last list
}

// process is what is remembered of one.
type process struct {
	sighting
	until time.Duration // elapsed time at which it is to be looked at anew
}

// findings is what a list of processes has come to.
type findings struct {
	owners map[int]dra.Owner // without those that could not be looked up
	err    error             // why some could not, or all
	blind  bool              // nothing is known: owners means nothing
}

func newResolver(procfs string, now clock.Clock) *resolver {
	return &resolver{procfs: procfs, now: now, uptime: uptime, files: newFiles(), known: make(map[int]process)}
}

// resolve looks up each process of the list.
func (r *resolver) resolve(list []Seen) findings {
	now := r.now() // before the uptime: should the thread wait in between, processes only look older
	up, err := r.uptime()
	if err == nil {
		err = r.sees()
	}
	if err != nil {
		return findings{err: err, blind: true}
	}
	first := earliest(list)
	found := findings{owners: make(map[int]dra.Owner, len(first))}
	var failures failures
	for pid, at := range first {
		owner, err := r.owner(pid, now, at.Elapsed+up-now.Elapsed)
		if err != nil {
			failures.add(pid, err)
			continue
		}
		found.owners[pid] = owner
	}
	maps.DeleteFunc(r.known, func(pid int, _ process) bool { _, asked := first[pid]; return !asked })
	found.err = failures.err()
	return found
}

// earliest is when each process was first seen by one of the lists that name
// it: was it there then, it is the same in all of them.
func earliest(list []Seen) map[int]clock.Instant {
	first := make(map[int]clock.Instant, len(list))
	for _, seen := range list {
		if at, again := first[seen.PID]; !again || seen.At.Elapsed < at.Elapsed {
			first[seen.PID] = seen.At
		}
	}
	return first
}

// sees reports why procfs cannot be believed when it shows no process: one
// that does not show the first process hides others as well, and one that
// shows it but not its files (hidepid=1) tells of none whose it is.
func (r *resolver) sees() error {
	_, err := r.files.look(r.folder(1))
	if errors.Is(err, errGone) {
		return &source.Failure{Reason: source.ReasonNotFound, Err: fmt.Errorf(
			"%s does not show process 1: mount a procfs there that shows all processes, without hidepid", r.procfs)}
	}
	if err != nil {
		return fmt.Errorf("read process 1, which shows whether processes can be read: %w", err)
	}
	return nil
}

// owner looks up a process that was seen at a time since boot.
func (r *resolver) owner(pid int, now clock.Instant, seen time.Duration) (dra.Owner, error) {
	if pid <= 0 {
		return dra.Owner{}, nil // no process of this pid namespace, and so of no pod that can be told
	}
	p, err := r.process(pid, now)
	if errors.Is(err, errGone) {
		return dra.Owner{Gone: true}, nil
	}
	if err != nil {
		return dra.Owner{}, err
	}
	// The start is rounded down to a tick, and the instant is as exact as
	// the moment at which two clocks were read.
	if p.ended || p.start > seen+tick {
		return dra.Owner{Gone: true}, nil
	}
	return p.sighting.owner, nil
}

// process is what was known of a process, if it still is that, or what one
// look tells, which is remembered.
func (r *resolver) process(pid int, now clock.Instant) (process, error) {
	folder := r.folder(pid)
	if known, ok := r.known[pid]; ok && now.Elapsed < known.until {
		present, err := identify(folder)
		if err != nil {
			return process{}, err
		}
		if present == known.identity {
			return known, nil
		}
	}
	seen, err := r.files.look(folder)
	if err != nil {
		return process{}, err
	}
	p := process{seen, now.Elapsed + leastAge + time.Duration(pid)*time.Second%moreAge}
	r.known[pid] = p
	return p, nil
}

func (r *resolver) folder(pid int) string { return r.procfs + "/" + strconv.Itoa(pid) }

// failures are processes that could not be looked up.
type failures struct {
	count int
	pid   int // the least of them, which the message names
	first error
}

func (f *failures) add(pid int, err error) {
	if f.count == 0 || pid < f.pid {
		f.pid, f.first = pid, err
	}
	f.count++
}

func (f *failures) err() error {
	switch f.count {
	case 0:
		return nil
	case 1:
		return fmt.Errorf("look up process %d: %w", f.pid, f.first)
	default:
		return fmt.Errorf("look up process %d, and %d more: %w", f.pid, f.count-1, f.first)
	}
}
