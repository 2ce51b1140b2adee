package simulated

import (
	"fmt"
	"math"
	"slices"

	"github.com/dra-exporter/dra-exporter/collector/device"
)

// Process uses a simulated device. What it uses are shares of what the device
// as a whole shows, 0 to 1.
type Process struct {
	PID         int     `json:"pid"`
	Memory      float64 `json:"memory"`      // of memory_used
	Utilization float64 `json:"utilization"` // of utilization
	Proxied     bool    `json:"proxied"`     // it works through a server
}

// checkProcesses says what is wrong with the processes of one device.
func checkProcesses(processes []Process) error {
	var memory, utilization float64
	seen := make(map[int]bool, len(processes))
	for _, p := range processes {
		switch {
		case p.PID <= 0 || p.PID > math.MaxInt32:
			return fmt.Errorf("processes: %d is not a pid", p.PID)
		case seen[p.PID]:
			return fmt.Errorf("processes: pid %d is there twice", p.PID)
		case !share(p.Memory) || !share(p.Utilization):
			return fmt.Errorf("processes: pid %d: memory and utilization are shares of the device's, from 0 to 1", p.PID)
		}
		seen[p.PID] = true
		memory, utilization = memory+p.Memory, utilization+p.Utilization
	}
	const rounding = 1e-9 // ten times 0.1 is a little more than 1
	if memory > 1+rounding || utilization > 1+rounding {
		return fmt.Errorf("processes: together they use %g of the device's memory and %g of its utilization, and can use no more than 1",
			memory, utilization)
	}
	return nil
}

func share(value float64) bool { return value >= 0 && value <= 1 }

// SetProcesses says which processes use the whole device with this UUID, or
// address where it has none, from now on; nil: they cannot be listed. It
// reports whether there is such a device, and what is wrong with the
// processes, if anything is; then nothing changes.
func (s *Source) SetProcesses(uuid string, processes []Process) (there bool, err error) {
	if err := checkProcesses(processes); err != nil {
		return false, fmt.Errorf("set the processes of %s: %w", uuid, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.devices {
		whole := &s.devices[i].units[0]
		if name(whole.identity) != uuid {
			continue
		}
		if len(s.devices[i].units) > 1 && processes != nil {
			return true, fmt.Errorf("set the processes of %s: it has partitions", uuid)
		}
		whole.processes, there = slices.Clone(processes), true
		s.processes[uuid] = whole.processes
	}
	return there, nil
}

// ListProcesses says while what the source lists processes: it asks at each
// read. Before this is called it never does. The function must not call the
// source.
func (s *Source) ListProcesses(while func() bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.listing = while
}

// list adds the processes of the unit to what has been read of it.
func (u *unit) list(o *device.Observation) {
	if u.processes == nil {
		return
	}
	memory, utilization := shown(*o, device.MemoryUsed), shown(*o, device.Utilization)
	o.Processes = make([]device.Process, len(u.processes))
	for i, p := range u.processes {
		o.Processes[i] = device.Process{
			PID: p.PID, Memory: part(p.Memory, memory), Utilization: part(p.Utilization, utilization), Proxied: p.Proxied,
		}
	}
}

// shown is the value of a quantity without details, or device.Unknown.
func shown(o device.Observation, q device.Quantity) float64 {
	for _, r := range o.Readings {
		if r.Quantity == q {
			return r.Value
		}
	}
	return device.Unknown
}

// part is a share of what a device shows, as far as that is known.
func part(share, whole float64) float64 {
	if whole == device.Unknown {
		return device.Unknown
	}
	return share * whole
}
