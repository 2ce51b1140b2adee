package stubs

import (
	"cmp"
	"fmt"
	"maps"
	"strconv"
	"strings"
)

// ProcessKind is the list in which libnvidia-ml tells of a process.
type ProcessKind string

// The lists.
const (
	Compute  ProcessKind = "compute"
	Graphics ProcessKind = "graphics"
	MPS      ProcessKind = "mps" // of the clients of an MPS server
)

// Process uses a scripted GPU.
type Process struct {
	PID         int         // as those who will ask for it have it; a stub leaves out what its own process does not find in /proc
	Kind        ProcessKind // empty: Compute
	Memory      int64       // bytes; negative: the driver does not tell
	Utilization int         // percent of the time; 0: no sample is told of it
}

// SetProcesses says which processes use a GPU from now on, in place of all
// others: no stub ever sees half of them. One that is in several lists is
// given once for each. What the GPU as a whole uses and does is set apart.
func (n *Node) SetProcesses(gpu int, processes ...Process) {
	n.t.Helper()
	n.lock.Lock()
	defer n.lock.Unlock()
	prefix := fmt.Sprintf("gpu.%d.process.", gpu)
	maps.DeleteFunc(n.conf, func(key, _ string) bool { return strings.HasPrefix(key, prefix) })
	for i, p := range processes {
		memory := "-"
		if p.Memory >= 0 {
			memory = strconv.FormatInt(p.Memory, 10)
		}
		n.conf[prefix+strconv.Itoa(i)] = fmt.Sprintf("%s %d %s %d", cmp.Or(p.Kind, Compute), p.PID, memory, p.Utilization)
	}
	n.write()
}
