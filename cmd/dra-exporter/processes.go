package main

import (
	"sync/atomic"

	"github.com/dra-exporter/dra-exporter/collector/cgroup"
	"github.com/dra-exporter/dra-exporter/collector/node"
)

// gate says whether sources are to list processes. They are opened before
// anybody knows, so they ask it at every read.
type gate struct{ open atomic.Bool }

// processState says whether processes can be told apart by pod now. A kubelet
// that has not been reached is not known to be visible.
func (a *agent) processState() node.ProcessState {
	switch {
	case !a.flags.processes:
		return node.ProcessesDisabled
	case a.cluster == nil:
		return node.ProcessesNoPods
	}
	if visible, known := a.kubelet.Visible(); !known || !visible {
		return node.ProcessesPIDNamespace
	}
	if procfs := a.cgroup.Status(); !procfs.Up && procfs.Errors > 0 {
		return node.ProcessesNoProcfs
	}
	return node.ProcessesOK
}

// processes is what is known of them now. Sources list them from now on, or
// do not.
func (a *agent) processes() node.Processes {
	state := a.processState()
	a.around.processes.open.Store(state == node.ProcessesOK)
	if state != node.ProcessesOK {
		return node.Processes{State: state}
	}
	return node.Processes{State: state, Owners: a.cgroup.Latest()}
}

// processesSettled reports whether processes have been listed and looked up
// once, or would have been within two reads: before that, what is split later
// would be shared for a moment.
func (a *agent) processesSettled() bool {
	if a.processes().State != node.ProcessesOK {
		return true
	}
	if a.listingSince.IsZero() {
		a.listingSince = a.clock()
	}
	return a.lookedUp() || a.clock().Since(a.listingSince) > 2*a.flags.interval
}

// lookedUp reports whether processes have been listed, and all of them looked
// up.
func (a *agent) lookedUp() bool {
	owners, listed := a.cgroup.Latest(), false
	for _, sample := range a.sampler.Latest() {
		listed = listed || !sample.ProcessesAt.IsZero()
		for _, process := range sample.Processes {
			if _, known := owners[process.PID]; !known {
				return false
			}
		}
	}
	return listed
}

// pids are the processes of the newest samples.
func (a *agent) pids() []cgroup.Seen {
	var seen []cgroup.Seen
	for _, sample := range a.sampler.Latest() {
		for _, process := range sample.Processes {
			seen = append(seen, cgroup.Seen{PID: process.PID, At: sample.ProcessesAt})
		}
	}
	return seen
}
