package main

import (
	"slices"
	"sync/atomic"

	"github.com/dra-exporter/dra-exporter/collector/cgroup"
	"github.com/dra-exporter/dra-exporter/collector/device"
	"github.com/dra-exporter/dra-exporter/collector/node"
	"github.com/dra-exporter/dra-exporter/collector/source"
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
	case !a.podsRead():
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

// podsRead reports whether the API server has ever told of the pods: nobody
// else knows their UIDs. What it has told counts on while it is away.
func (a *agent) podsRead() bool {
	return a.cluster != nil && slices.ContainsFunc(a.cluster.Statuses(), func(s source.Status) bool {
		return s.Name == node.SourcePods && !s.LastSuccess.IsZero()
	})
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

// pids are the processes of the newest samples. Lists that are too old to
// count are left out: a device whose reads hang would keep up pids for ever
// that belong to others by now, and say that those were there before.
func (a *agent) pids() []cgroup.Seen {
	var seen []cgroup.Seen
	now, limit := a.clock(), device.StaleAfter(a.flags.interval)
	for _, sample := range a.sampler.Latest() {
		if now.Since(sample.ProcessesAt) > limit {
			continue
		}
		for _, process := range sample.Processes {
			seen = append(seen, cgroup.Seen{PID: process.PID, At: sample.ProcessesAt})
		}
	}
	return seen
}
