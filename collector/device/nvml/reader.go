//go:build cgo

package nvml

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/device"
)

// reader reads one GPU with its MIG devices. What it remembers belongs to
// Read, of which there is one at a time; only found and lost are shared.
type reader struct {
	uuid       string
	connection *connection // of the source
	sysfs      string
	perLink    bool
	profiling  bool
	interval   time.Duration // between two fast reads
	found      atomic.Pointer[finding]
	lost       atomic.Bool // the last read, or an XID since, said so

	taken      *finding // the finding that everything below goes back to
	identity   device.Device
	whole      *meter
	activity   *activity // of the whole GPU; nil: not asked for
	processes  processes // of the whole GPU
	past       *past     // of the GPU, for as long as it is known
	enabled    bool      // MIG mode
	partitions []*partition
	room       int // for readings
}

// finding is what a look for GPUs has found of one. Each look makes a new
// one, and with it everything about the GPU is asked anew.
type finding struct {
	gpu        nvml.Device
	address    string            // on PCI; empty: not told
	peers      map[string]string // UUIDs of all GPUs that have been seen, by address
	driver     string
	symbols    symbols
	connection uint64 // the one in which all this holds
	missing    bool   // the GPU was lost, and has not been found again
}

func newReader(c *connection, uuid string, o Options) *reader {
	return &reader{
		uuid: uuid, connection: c, sysfs: o.Sysfs, perLink: o.Links, profiling: o.Profiling,
		interval: o.Interval, past: newPast(o.Interval), processes: processes{wanted: o.Processes},
		identity: device.Device{
			UUID: uuid, Vendor: "nvidia", Minor: device.Unknown, RenderMinor: device.Unknown,
			Placement: device.Unknown, GPUInstance: device.Unknown, ComputeInstance: device.Unknown,
		},
	}
}

// Key is the GPU's UUID.
func (r *reader) Key() string { return r.uuid }

var errReconnecting = errors.New("the GPU has not been found again since the library was initialized again")

// Read reads the GPU and its MIG devices. It waits while the library is being
// initialized anew.
func (r *reader) Read(ctx context.Context, tier device.Tier) ([]device.Observation, error) {
	if !r.connection.share(ctx) {
		return nil, errReconnecting
	}
	defer r.connection.calls.RUnlock()
	found := r.found.Load()
	if found.connection != r.connection.number {
		return nil, errReconnecting
	}
	if found.missing {
		return r.without(), fmt.Errorf("find %s again: %w", r.uuid, nvml.ERROR_GPU_IS_LOST)
	}
	if found != r.taken {
		r.take(found)
	}
	observations, err := r.read(tier)
	r.connection.note(err)
	return observations, err
}

// read reads what the present finding is about.
func (r *reader) read(tier device.Tier) ([]device.Observation, error) {
	now := r.connection.now()
	whole := device.Observation{Device: r.identity, Readings: make([]device.Reading, 0, r.room)}
	err := r.whole.read(&whole, now, tier)
	if fallen(err) {
		return r.without(), err
	}
	if r.activity != nil {
		err = errors.Join(err, r.activity.read(&whole, now))
	}
	err = errors.Join(err, r.divided(&whole))
	gone := fallen(err)
	observations := make([]device.Observation, 1, 1+len(r.partitions))
	for _, p := range r.partitions {
		o := device.Observation{Device: p.identity, Readings: make([]device.Reading, 0, p.room)}
		err = errors.Join(err, p.read(&o, now, tier))
		p.room = len(o.Readings)
		observations = append(observations, o)
	}
	if gone || len(whole.Readings) > 0 {
		r.lost.Store(gone)
		whole.Readings = append(whole.Readings, device.Reading{Quantity: device.Lost, Value: truth(gone)})
	}
	r.room = len(whole.Readings)
	observations[0] = whole
	return observations, err
}

// divided finds the MIG devices of the GPU, or, where it is known to have
// none, the processes that use it as a whole.
func (r *reader) divided(whole *device.Observation) error {
	if err := r.enumerate(); err != nil {
		return err
	}
	if r.enabled {
		r.processes.work.forget()
		return nil
	}
	return r.processes.read(whole, r.connection.now())
}

// read reads the MIG device.
func (p *partition) read(o *device.Observation, now clock.Instant, tier device.Tier) error {
	err := p.meter.read(o, now, tier)
	if p.activity != nil {
		err = errors.Join(err, p.activity.read(o, now))
	}
	return err
}

// without is what is observed of a GPU that is lost: that, and who it and its
// MIG devices are. One that another driver was bound to is not lost.
func (r *reader) without() []device.Observation {
	whole := device.Observation{Device: r.identity}
	if !r.unbound() {
		r.lost.Store(true)
		whole.Readings = []device.Reading{{Quantity: device.Lost, Value: 1}}
	}
	observations := []device.Observation{whole}
	for _, p := range r.partitions {
		observations = append(observations, device.Observation{Device: p.identity})
	}
	return observations
}

// unbound reports whether NVIDIA's kernel driver is known to have let go of
// the GPU.
func (r *reader) unbound() bool {
	bound, known := boundGPUs(r.sysfs)
	return known && r.found.Load().address != "" && !bound[r.found.Load().address]
}

// take asks the GPU anew who it is. What it does not tell stays as it was.
func (r *reader) take(f *finding) {
	r.taken = f
	r.past.links.recount()
	r.past.number = f.connection
	r.whole = r.meterOf(f)
	r.processes.take(f)
	if r.profiling && f.symbols.has(gpmFunctions()...) {
		if r.activity == nil {
			r.activity = &activity{connection: r.connection, instance: device.Unknown}
		}
		r.activity.gpu, r.activity.quiet = f.gpu, false
	}
	for i := range r.partitions {
		r.partitions[i].identified = false
	}
	id := &r.identity
	if f.driver != "" {
		id.DriverVersion = f.driver
	}
	if name, ret := f.gpu.GetName(); ret == nvml.SUCCESS {
		id.Model = text(name)
	}
	if f.address != "" {
		id.PCIBusID = f.address
	}
	if minor, ret := f.gpu.GetMinorNumber(); ret == nvml.SUCCESS {
		id.Minor = minor
		id.Nodes = []string{fmt.Sprintf("/dev/nvidia%d", minor)}
	}
}

// meterOf returns a meter of the whole GPU, which has not asked for anything.
func (r *reader) meterOf(f *finding) *meter {
	return newMeter(f.gpu, wholeRows(r.perLink), f, r.past)
}
