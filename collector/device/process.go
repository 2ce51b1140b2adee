package device

import (
	"cmp"
	"math"
	"slices"
)

// Process is what one process does on a whole device. Processes of partitions
// are not told.
type Process struct {
	PID         int     // in this program's pid namespace
	Memory      float64 // device memory that it uses, bytes, or Unknown
	Utilization float64 // share of time with its work on the device since the list before, 0 to 1, or Unknown
	Proxied     bool    // it works through a server (MPS), which may be told to do its work
}

// unite makes one of all entries of a pid, since a process may be in several
// of a library's lists, and sorts by pid. Of two numbers the larger is kept:
// each of them is of the whole process, and Unknown is below all others. What
// is no pid is dropped. The list is used again.
func unite(processes []Process) []Process {
	processes = slices.DeleteFunc(processes, func(p Process) bool { return p.PID <= 0 })
	slices.SortFunc(processes, func(a, b Process) int { return cmp.Compare(a.PID, b.PID) })
	united := processes[:0]
	for _, p := range processes {
		p.Memory, p.Utilization = known(p.Memory), known(p.Utilization)
		last := len(united) - 1
		if last < 0 || united[last].PID != p.PID {
			united = append(united, p)
			continue
		}
		one := &united[last]
		one.Memory = max(one.Memory, p.Memory)
		one.Utilization = max(one.Utilization, p.Utilization)
		one.Proxied = one.Proxied || p.Proxied
	}
	return united
}

// known is a number that tells something, or Unknown.
func known(value float64) float64 {
	if value >= 0 && !math.IsInf(value, 1) {
		return value
	}
	return Unknown
}
