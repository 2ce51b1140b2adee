package role

import (
	"slices"
	"sync/atomic"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/apiserver"
	"github.com/dra-exporter/dra-exporter/collector/cgroup"
	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/device"
	"github.com/dra-exporter/dra-exporter/collector/node"
	"github.com/dra-exporter/dra-exporter/collector/source"
	"github.com/dra-exporter/dra-exporter/kubelet"
)

// Gate enables lists of processes in sources. Whether they are needed is not known when
// the sources are opened. It is safe for concurrent use.
type Gate struct{ open atomic.Bool }

// Open reports whether processes are listed.
func (g *Gate) Open() bool { return g.open.Load() }

// processes finds the processes of devices, and the pods of the processes.
type processes struct {
	enabled  bool
	gate     *Gate
	clock    clock.Clock
	interval time.Duration // between two reads of a device

	sampler *device.Sampler
	kubelet *kubelet.Client
	cgroup  *cgroup.Reader       // nil: not enabled
	cluster *apiserver.NodeWatch // nil: without the API server

	// Only used by the runner, before the first step.
	listingSince clock.Instant // since when sources may list processes
	listed       func() bool   // reports whether all sources have been read since; nil: they may not
}

// state returns whether the pods of processes can be found now. Before the first
// connection to the kubelet, its process counts as not visible.
func (p *processes) state() node.ProcessState {
	switch {
	case !p.enabled:
		return node.ProcessesDisabled
	case !p.podsRead():
		return node.ProcessesNoPods
	}
	if visible, ok := p.kubelet.Visible(); !ok || !visible {
		return node.ProcessesPIDNamespace
	}
	if procfs := p.cgroup.Status(); !procfs.Up && procfs.Errors > 0 {
		return node.ProcessesNoProcfs
	}
	return node.ProcessesOK
}

// podsRead reports whether the pods have ever been read from the API server. Only
// it has their UIDs. They are used while it cannot be reached.
func (p *processes) podsRead() bool {
	return p.cluster != nil && slices.ContainsFunc(p.cluster.Statuses(), func(s source.Status) bool {
		return s.Name == node.SourcePods && !s.LastSuccess.IsZero()
	})
}

// update opens or closes the gate, and returns the processes and their owners.
func (p *processes) update() node.Processes {
	state := p.state()
	p.gate.open.Store(state == node.ProcessesOK)
	if state != node.ProcessesOK {
		return node.Processes{State: state}
	}
	return node.Processes{State: state, Owners: p.cgroup.Latest()}
}

// allListed reports whether the devices have been read since processes may be
// listed, and the listed processes have been looked up, or the time of two reads has
// passed. Before that, devices that are split later would be reported as shared in
// the first snapshot. Only the runner calls it.
func (p *processes) allListed() bool {
	if p.update().State != node.ProcessesOK {
		return true
	}
	if p.listed == nil {
		p.listingSince, p.listed = p.clock(), p.sampler.Refresh()
	}
	return p.listed() && p.lookedUp() || p.clock().Since(p.listingSince) > 2*p.interval
}

// lookedUp reports whether all processes of the newest samples were looked up.
func (p *processes) lookedUp() bool {
	owners := p.cgroup.Latest()
	for _, sample := range p.sampler.Latest() {
		for _, process := range sample.Processes {
			if _, ok := owners[process.PID]; !ok {
				return false
			}
		}
	}
	return true
}

// pids returns the processes of the newest samples, without lists that are stale: a
// device whose reads hang would keep pids that other processes may have now, and that
// would seem to have existed before.
func (p *processes) pids() []cgroup.Seen {
	var seen []cgroup.Seen
	now, limit := p.clock(), device.StaleAfter(p.interval)
	for _, sample := range p.sampler.Latest() {
		if now.Since(sample.ProcessesAt) > limit {
			continue
		}
		for _, process := range sample.Processes {
			seen = append(seen, cgroup.Seen{PID: process.PID, At: sample.ProcessesAt})
		}
	}
	return seen
}
