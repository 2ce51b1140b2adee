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

// A process is read again after this time, because it may have been moved to
// another cgroup. The part from ageSpread depends on the pid, so that processes
// that were first seen together are not all read again together.
const (
	minAge    = 15 * time.Second
	ageSpread = 10 * time.Second
)

// resolver resolves the owners of processes and caches them. It is not safe for
// concurrent use.
type resolver struct {
	procfs string
	now    clock.Clock
	uptime func() (time.Duration, error)
	files  *files
	known  map[int]cachedProcess // processes of the last list, by pid
}

// cachedProcess is a cached process.
type cachedProcess struct {
	procInfo
	until time.Duration // elapsed time at which it must be read again
}

// ownersResult is the result of looking up a list of processes.
type ownersResult struct {
	owners     map[int]dra.Owner // without those that could not be looked up
	err        error             // why some could not, or all
	unreadable bool              // procfs could not be read: owners is not valid
}

func newResolver(procfs string, now clock.Clock) *resolver {
	return &resolver{procfs: procfs, now: now, uptime: uptime, files: newFiles(), known: make(map[int]cachedProcess)}
}

// resolve looks up each process of the list.
func (r *resolver) resolve(list []Seen) ownersResult {
	now := r.now() // before the uptime: if the thread waits in between, processes only seem older
	up, err := r.uptime()
	if err == nil {
		err = r.checkVisible()
	}
	if err != nil {
		return ownersResult{err: err, unreadable: true}
	}
	first := earliest(list)
	found := ownersResult{owners: make(map[int]dra.Owner, len(first))}
	var failures failures
	for pid, at := range first {
		owner, err := r.owner(pid, now, at.Elapsed+up-now.Elapsed)
		if err != nil {
			failures.add(pid, err)
			continue
		}
		found.owners[pid] = owner
	}
	maps.DeleteFunc(r.known, func(pid int, _ cachedProcess) bool { _, ok := first[pid]; return !ok })
	found.err = failures.err()
	return found
}

// earliest returns when each process was first seen by one of the lists that
// name it. If it existed then, it is the same process in all of them.
func earliest(list []Seen) map[int]clock.Instant {
	first := make(map[int]clock.Instant, len(list))
	for _, seen := range list {
		if at, ok := first[seen.PID]; !ok || seen.At.Elapsed < at.Elapsed {
			first[seen.PID] = seen.At
		}
	}
	return first
}

// checkVisible returns an error if procfs cannot be trusted when it shows no
// process. A procfs that does not show process 1 hides others as well. One that
// shows it but not its files (hidepid=1) shows no owners.
func (r *resolver) checkVisible() error {
	_, err := r.files.readProcess(r.folder(1))
	if errors.Is(err, errGone) {
		return &source.Failure{Reason: source.ReasonNotFound, Err: fmt.Errorf(
			"%s does not show process 1: mount a procfs there that shows all processes, without hidepid", r.procfs)}
	}
	if err != nil {
		return fmt.Errorf("read process 1, which shows whether processes can be read: %w", err)
	}
	return nil
}

// owner returns the owner of a process that was seen at a time since boot.
func (r *resolver) owner(pid int, now clock.Instant, seen time.Duration) (dra.Owner, error) {
	if pid <= 0 {
		return dra.Owner{}, nil // no process of this pid namespace: its pod cannot be resolved
	}
	p, err := r.process(pid, now)
	if errors.Is(err, errGone) {
		return dra.Owner{Gone: true}, nil
	}
	if err != nil {
		return dra.Owner{}, err
	}
	// The start is rounded down to a tick, and the instant is as precise as
	// the reading of two clocks.
	if p.ended || p.start > seen+tick {
		return dra.Owner{Gone: true}, nil
	}
	return p.procInfo.owner, nil
}

// process returns a process from the cache if its identity is unchanged;
// otherwise it reads the process and caches it.
func (r *resolver) process(pid int, now clock.Instant) (cachedProcess, error) {
	folder := r.folder(pid)
	if known, ok := r.known[pid]; ok && now.Elapsed < known.until {
		present, err := identify(folder)
		if err != nil {
			return cachedProcess{}, err
		}
		if present == known.processIdentity {
			return known, nil
		}
	}
	info, err := r.files.readProcess(folder)
	if err != nil {
		return cachedProcess{}, err
	}
	p := cachedProcess{info, now.Elapsed + minAge + time.Duration(pid)*time.Second%ageSpread}
	r.known[pid] = p
	return p, nil
}

func (r *resolver) folder(pid int) string { return r.procfs + "/" + strconv.Itoa(pid) }

// failures collects the processes that could not be looked up.
type failures struct {
	count int
	pid   int // the smallest, which the message names
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
