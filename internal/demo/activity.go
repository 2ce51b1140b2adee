package demo

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"sync"

	procfs "github.com/dra-exporter/dra-exporter/collector/cgroup/simulated"
	"github.com/dra-exporter/dra-exporter/collector/device/simulated"
)

// activity is the processes that run on the node, with the load of each device.
// It is safe for concurrent use.
type activity struct {
	source   *simulated.Source
	hardware hardware
	procfs   string // directory with the simulated procfs

	mu      sync.Mutex
	last    int // pid
	running map[int]process
	of      map[*instance][]int // the pids of an instance's processes
}

// firstPID is less than the pid of every process: a node that has been up for
// a while starts none with a small one.
const firstPID = 21_407

func newActivity(source *simulated.Source, h hardware, folder string) *activity {
	return &activity{
		source: source, hardware: h, procfs: folder,
		last: firstPID, running: make(map[int]process), of: make(map[*instance][]int),
	}
}

// set ends the processes that an instance has and starts others in their
// place. They have pids that no process had before.
func (a *activity) set(user *instance, processes []process) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	touched := make(map[string]bool)
	for _, pid := range a.of[user] {
		a.running[pid].touch(touched)
		delete(a.running, pid)
	}
	delete(a.of, user)
	for _, p := range processes {
		a.of[user] = append(a.of[user], a.start(p))
		p.touch(touched)
	}
	return a.publish(touched)
}

// begin starts processes that run until the end.
func (a *activity) begin(processes []process) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	touched := make(map[string]bool)
	for _, name := range a.hardware.withProcesses() {
		touched[name] = true
	}
	for _, p := range processes {
		a.start(p)
		p.touch(touched)
	}
	return a.publish(touched)
}

func (a *activity) start(p process) int {
	a.last++
	a.running[a.last] = p
	return a.last
}

func (p process) touch(devices map[string]bool) {
	for _, u := range p.uses {
		devices[u.device] = true
	}
}

// publish lets procfs, and then the devices that were touched, publish what runs. A
// process that procfs does not have yet would be taken for one that has ended.
func (a *activity) publish(touched map[string]bool) error {
	if err := a.writeProcfs(); err != nil {
		return err
	}
	for name := range touched {
		device, ok := a.hardware.byName(name)
		if !ok {
			continue
		}
		a.source.SetLoad(cmp.Or(device.UUID, device.PCIBusID), a.load(name))
		if !slices.Contains(a.hardware.withProcesses(), name) {
			continue
		}
		if _, err := a.source.SetProcesses(device.UUID, a.processesOn(name)); err != nil {
			return fmt.Errorf("list the processes of %s: %w", name, err)
		}
	}
	a.updateParents()
	return nil
}

func (a *activity) writeProcfs() error {
	var all []procfs.Process
	for _, pid := range slices.Sorted(maps.Keys(a.running)) {
		p := a.running[pid]
		all = append(all, procfs.Process{PID: pid, Command: p.command, Cgroup: p.cgroup})
	}
	if err := procfs.Write(a.procfs, all); err != nil {
		return fmt.Errorf("show the node's processes: %w", err)
	}
	return nil
}

// accounted is the part of a device's use that its driver attributes to
// processes: it samples the two at different times.
const accounted = 0.98

// processesOn returns the processes that use a whole device, each with its
// share of the device's own use. It is never nil: none is known to be none.
func (a *activity) processesOn(name string) []simulated.Process {
	listed := []simulated.Process{}
	load, memory := 0.0, 0.0
	for _, pid := range slices.Sorted(maps.Keys(a.running)) {
		for _, u := range a.running[pid].uses {
			if u.device == name {
				listed = append(listed, simulated.Process{PID: pid, Utilization: u.load, Memory: u.memory})
				load, memory = load+u.load, memory+u.memory
			}
		}
	}
	for i := range listed {
		listed[i].Utilization = accounted * fraction(listed[i].Utilization, load)
		listed[i].Memory = accounted * fraction(listed[i].Memory, memory)
	}
	return listed
}

// fraction is how much of a whole something is; nothing of nothing.
func fraction(part, whole float64) float64 {
	if whole == 0 {
		return 0
	}
	return part / whole
}

// load returns the load of one device by all of its users.
func (a *activity) load(name string) float64 {
	sum := 0.0
	for _, pid := range slices.Sorted(maps.Keys(a.running)) { // sums of floats depend on their order
		for _, u := range a.running[pid].uses {
			if u.device == name {
				sum += u.load
			}
		}
	}
	return min(sum, 1)
}

// updateParents gives each partitioned GPU the load that its partitions add up to.
func (a *activity) updateParents() {
	sums := make(map[string]float64)
	for _, p := range a.hardware.migDevices {
		share := float64(profiles()[p.Profile].computeParts) / computeSlices
		sums[p.ParentUUID] += share * a.load(partitionName(p.parent, p.Profile, p.Placement))
	}
	for parent, sum := range sums {
		a.source.SetLoad(parent, sum)
	}
}
