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

// errIncomplete means that a file is not a /proc/<pid>/stat, or only its
// beginning.
var errIncomplete = errors.New("it has too few or unexpected fields")

// lifetime is what /proc/<pid>/stat says about the start and the end of a
// process.
type lifetime struct {
	start time.Duration // since boot, rounded down to a tick; suspension counts
	ended bool          // it waits to be reaped, and none of its threads runs
}

// decodeStat decodes /proc/<pid>/stat (proc_pid_stat(5)). The second field is
// the name that the process has set, in parentheses. It may contain spaces and
// parentheses, so the fields are counted from the last parenthesis.
//
// The parser of github.com/prometheus/procfs converts all 52 fields by
// fmt.Fscan, which takes three times as long as the kernel takes to write them,
// and it panics if the text ends with the name.
func decodeStat(file []byte) (lifetime, error) {
	const state, threads, start = 3, 20, 22 // numbered as in the manual
	at := bytes.LastIndexByte(file, ')')
	if at < 0 {
		return lifetime{}, errIncomplete
	}
	var l lifetime
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
				return lifetime{}, errIncomplete
			}
			l.start = time.Duration(ticks) * tick
			return l, nil
		}
		number++
	}
	return lifetime{}, errIncomplete
}
