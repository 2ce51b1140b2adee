package stubs

import (
	"cmp"
	"fmt"
	"maps"
	"strconv"
	"strings"
)

// ProcessKind is the list in which libnvidia-ml reports a process.
type ProcessKind string

// The lists.
const (
	Compute  ProcessKind = "compute"
	Graphics ProcessKind = "graphics"
	MPS      ProcessKind = "mps" // of the clients of an MPS server
)

// Process uses a scripted GPU.
type Process struct {
	PID         int         // in the pid namespace of the readers; a stub leaves out
	Kind        ProcessKind // empty: Compute
	Memory      int64       // bytes; negative: not reported
	Utilization int         // percent of the time; 0: no sample
}

// SetProcesses atomically replaces the processes that use a GPU. One that is in
// several lists is given once for each. What the GPU as a whole uses and does
// is set apart.
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
