package sample

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"time"
)

// Usage is what a process has used.
type Usage struct {
	Time     time.Time
	CPU      float64 // seconds of processor time since its start
	Resident float64 // bytes of memory
}

// ticks is the unit of processor time in procfs: 1/100 s on all architectures.
const ticks = 100

// ReadUsage reads /proc/<pid>/stat (proc_pid_stat(5)).
func ReadUsage(pid int) (Usage, error) {
	began := time.Now()
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return Usage{}, fmt.Errorf("read the use of process %d: %w", pid, err)
	}
	u, err := decodeUsage(text)
	if err != nil {
		return Usage{}, fmt.Errorf("read the use of process %d: %w", pid, err)
	}
	u.Time = middle(began)
	return u, nil
}

func decodeUsage(stat []byte) (Usage, error) {
	// The name, in parentheses, may have spaces and parentheses itself.
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	const first = 3 // the number of the first field after the name
	number := func(field int) (float64, error) {
		if len(fields) <= field-first {
			return 0, fmt.Errorf("field %d is missing", field)
		}
		return strconv.ParseFloat(string(fields[field-first]), 64)
	}
	user, err := number(14)
	if err != nil {
		return Usage{}, err
	}
	system, err := number(15)
	if err != nil {
		return Usage{}, err
	}
	pages, err := number(24)
	return Usage{CPU: (user + system) / ticks, Resident: pages * float64(os.Getpagesize())}, err
}
