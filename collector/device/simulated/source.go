package simulated

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/device"
)

// Source shows the devices of a Config. It is safe for concurrent use.
type Source struct {
	now    clock.Clock
	origin clock.Instant

	mu        sync.Mutex
	faults    faults
	devices   []simulatedDevice
	loads     map[string]float64   // what SetLoad said, by UUID or address
	processes map[string][]Process // what SetProcesses said, likewise
	listing   func() bool          // while it says so processes are listed; nil: never
	changed   chan struct{}        // closed when faults change
	xids      xidState

	file file
}

// simulatedDevice is a whole device and its partitions, which share a fate.
type simulatedDevice struct {
	key      string
	units    []unit // the whole device first
	faults   faults
	reported []uint64 // by fault: how many of its reports are counted
}

// New returns a source whose time begins now.
func New(config Config, now clock.Clock) *Source {
	s := &Source{
		now: now, origin: now(), changed: make(chan struct{}),
		loads: make(map[string]float64), processes: make(map[string][]Process),
	}
	s.Replace(config)
	return s
}

// Name is "simulated".
func (s *Source) Name() string { return "simulated" }

// Replace puts another config in place of the present one. Counters of
// devices that stay go on, what SetLoad and SetProcesses said stays, and faults
// that are new are counted from now.
func (s *Source) Replace(config Config) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.elapsed()
	s.countXIDs()
	s.faults, _ = s.faults.replaced(config.Faults, now)
	old := make(map[string]simulatedDevice, len(s.devices))
	for _, d := range s.devices {
		old[d.key] = d
	}
	taken := make(map[string]int)
	s.devices = make([]simulatedDevice, 0, len(config.Devices))
	for _, d := range config.Devices {
		key := name(d.Identity)
		if taken[key]++; taken[key] > 1 {
			key = fmt.Sprintf("%s#%d", key, taken[key])
		}
		s.devices = append(s.devices, s.built(d, key, old[key], now))
	}
	s.xids.published = nil
	s.countXIDs()
	s.setTimer()
	s.wake()
}

// replaced keeps the origin of faults that stay the same, and reports whether
// they do.
func (f faults) replaced(list []Fault, now float64) (_ faults, same bool) {
	if slices.Equal(list, f.list) {
		return f, true
	}
	return faults{list, now}, false
}

// built makes a device out of its part of the config and its former self.
func (s *Source) built(d Device, key string, old simulatedDevice, now float64) simulatedDevice {
	built := simulatedDevice{key: key, reported: make([]uint64, len(d.Faults))}
	var same bool
	if built.faults, same = old.faults.replaced(d.Faults, now); same {
		built.reported = old.reported
	}
	for _, part := range append([]Device{d}, d.Partitions...) {
		u := newUnit(part, now, s.origin.Elapsed)
		for i := range old.units {
			if previous := &old.units[i]; previous.identity.UUID == part.Identity.UUID && previous.identity.PCIBusID == part.Identity.PCIBusID {
				previous.advance(now, old.faults)
				u.inherit(*previous)
			}
		}
		if load, ok := s.loads[name(part.Identity)]; ok {
			u.load = load
		}
		built.units = append(built.units, u)
	}
	if processes, ok := s.processes[name(d.Identity)]; ok && len(d.Partitions) == 0 {
		built.units[0].processes = processes
	}
	return built
}

// name is what SetLoad calls a device.
func name(d device.Device) string {
	if d.UUID != "" {
		return d.UUID
	}
	return d.PCIBusID
}

// SetLoad says how busy the device or partition with this UUID, or address
// where it has none, is from now on: 0 to 1. It reports whether there is one.
func (s *Source) SetLoad(uuid string, load float64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	now, there := s.elapsed(), false
	for i := range s.devices {
		d := &s.devices[i]
		for j := range d.units {
			if u := &d.units[j]; name(u.identity) == uuid {
				u.advance(now, d.faults)
				u.load, there = min(max(load, 0), 1), true
				s.loads[uuid] = u.load
			}
		}
	}
	return there
}

var (
	errSource = errors.New("simulated error of the source")
	errDevice = errors.New("simulated error of the device")
	errGone   = errors.New("the device is gone")
	errLost   = errors.New("the device is lost")
)

// Readers returns one reader for each whole device that has not disappeared,
// also beside an error that says what is wrong with the file.
func (s *Source) Readers(context.Context) ([]device.Reader, error) {
	wrong := s.reload()
	s.await("")
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.elapsed()
	if _, fails := s.faults.at(now, "error", ""); fails {
		return nil, errSource
	}
	var readers []device.Reader
	for _, d := range s.devices {
		if _, gone := d.faults.at(now, "disappear", ""); !gone {
			readers = append(readers, reader{s, d.key})
		}
	}
	return readers, wrong
}

// Close ends the listening; there is nothing else that a source without
// hardware holds.
func (s *Source) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.xids.close()
	return nil
}

// elapsed is the source's time in seconds.
func (s *Source) elapsed() float64 { return s.now().Since(s.origin).Seconds() }

// wake lets calls that hang look again whether they should.
func (s *Source) wake() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// await blocks for as long as the source hangs, or the device with the key.
func (s *Source) await(key string) {
	for {
		s.mu.Lock()
		now, changed := s.elapsed(), s.changed
		end, hangs := s.faults.at(now, "hang", "")
		if d := s.find(key); d != nil {
			if duration, also := d.faults.at(now, "hang", ""); also {
				end, hangs = max(end, duration), true
			}
		}
		s.mu.Unlock()
		if !hangs {
			return
		}
		s.linger(end-now, changed)
	}
}

// linger waits for some seconds, or until changed. Meanwhile a file is looked
// at: it may say that the hang is over.
func (s *Source) linger(seconds float64, changed <-chan struct{}) {
	if s.file.path != "" {
		seconds = min(seconds, lookInterval.Seconds())
	}
	if math.IsInf(seconds, 1) {
		<-changed
		return
	}
	timer := time.NewTimer(time.Duration(seconds*float64(time.Second)) + time.Millisecond)
	defer timer.Stop()
	select {
	case <-timer.C:
		// What is wrong with the file, Readers says.
		_ = s.reload()
	case <-changed:
	}
}

func (s *Source) find(key string) *simulatedDevice {
	for i := range s.devices {
		if s.devices[i].key == key {
			return &s.devices[i]
		}
	}
	return nil
}
