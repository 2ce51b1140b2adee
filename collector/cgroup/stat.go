package cgroup

import (
	"bytes"
	"errors"
	"math"
	"strconv"
	"time"
)

// tick is the unit of a process's start time. USER_HZ is 100 on every
// architecture that Kubernetes runs on.
const tick = time.Second / 100

// errCutShort says that a file is none of /proc/<pid>/stat, or only its
// beginning.
var errCutShort = errors.New("it has too few or unexpected fields")

// life is what /proc/<pid>/stat tells of a process.
type life struct {
	start time.Duration // since boot, rounded down to a tick; suspension counts
	ended bool          // it waits to be reaped, and none of its threads runs any more
}

// decodeLife reads /proc/<pid>/stat (proc_pid_stat(5)). The second field is
// the name that the process has given itself, in parentheses; it may hold
// spaces and parentheses too, so the fields are counted from the last one.
//
// The parser of github.com/prometheus/procfs converts all 52 fields by
// fmt.Fscan, in three times the time that the kernel takes to write them, and
// panics where the text ends with the name.
func decodeLife(file []byte) (life, error) {
	const state, threads, start = 3, 20, 22 // numbered as in the manual
	at := bytes.LastIndexByte(file, ')')
	if at < 0 {
		return life{}, errCutShort
	}
	var l life
	number, zombie := state, false
	for field := range bytes.FieldsSeq(file[at+1:]) {
		switch number {
		case state:
			zombie = string(field) == "Z" || string(field) == "X"
		case threads:
			// While other threads run, it is only the first that has ended.
			l.ended = zombie && (string(field) == "0" || string(field) == "1")
		case start:
			ticks, err := strconv.ParseUint(string(field), 10, 64)
			if err != nil || ticks > uint64(math.MaxInt64/tick) {
				return life{}, errCutShort
			}
			l.start = time.Duration(ticks) * tick
			return l, nil
		}
		number++
	}
	return life{}, errCutShort
}
