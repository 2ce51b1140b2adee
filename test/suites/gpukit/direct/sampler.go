package direct

import (
	"context"
	"fmt"
	"time"
)

// Sampler reads all devices again and again. It must be used by one goroutine.
type Sampler struct {
	// SkipGPM leaves out the metrics of GPM, whose counters may allow one reader
	// at a time.
	SkipGPM bool

	library *Library
	now     func() time.Time
	devices map[string]*state // by UUID
}

// state is what is kept of a device from one sample to the next.
type state struct {
	handle uintptr
	gpm    gpm
	newest int64 // timestamp of a process sample
	found  []ProcessSample
	seen   bool // in the present sample
}

// NewSampler returns a sampler over an opened library.
func NewSampler(l *Library, now func() time.Time) *Sampler {
	return &Sampler{library: l, now: now, devices: make(map[string]*state)}
}

// Close frees what the sampler has allocated in the library.
func (s *Sampler) Close() {
	for uuid, d := range s.devices {
		d.gpm.free(s.library)
		delete(s.devices, uuid)
	}
}

// Sample reads all devices. An error means that they cannot be counted; a device
// that cannot be read is left out.
func (s *Sampler) Sample() (Sample, error) {
	l := s.library
	sample := Sample{
		Time: s.now(), DriverVersion: systemTextOf(l, &l.driverVersion), NVMLVersion: systemTextOf(l, &l.nvmlVersion),
		Devices: []Device{},
	}
	var count uint32
	l.current.Store(&l.count.name)
	if code := l.count.function(&count); code != success {
		return Sample{}, fmt.Errorf("count the devices: %w", l.failure(l.count.name, code))
	}
	for _, d := range s.devices {
		d.seen = false
	}
	for index := range count {
		var handle uintptr
		l.current.Store(&l.handleByIndex.name)
		if code := l.handleByIndex.function(index, &handle); code == success {
			sample.Devices = append(sample.Devices, s.gpu(handle)...)
		}
	}
	for uuid, d := range s.devices {
		if !d.seen {
			d.gpm.free(l)
			delete(s.devices, uuid)
		}
	}
	return sample, nil
}

// gpu reads a GPU and its MIG devices.
func (s *Sampler) gpu(handle uintptr) []Device {
	q := &query{library: s.library, handle: handle, errors: make(map[string]int)}
	d, err := q.device(s.now())
	if err != nil {
		return nil
	}
	kept := s.stateOf(d.UUID, handle)
	if !s.SkipGPM {
		d.GPM = kept.gpm.measure(q, nil)
	}
	d.Processes = q.processes()
	q.whole(&d)
	kept.poll(q, s.now())
	d.ProcessSamples, kept.found = kept.found, nil
	if d.MIGMode == nil || *d.MIGMode == 0 {
		return []Device{d}
	}
	return append([]Device{d}, s.partitions(handle, d.UUID)...)
}

// partitions reads the MIG devices of a GPU.
func (s *Sampler) partitions(parent uintptr, uuid string) []Device {
	l := s.library
	q := &query{library: l, handle: parent, errors: make(map[string]int)}
	most := q.number(&l.migCount)
	if most == nil || l.migHandle.function == nil {
		return nil
	}
	var found []Device
	for index := range uint32(*most) {
		var handle uintptr
		l.current.Store(&l.migHandle.name)
		if l.migHandle.function(parent, index, &handle) != success {
			continue
		}
		mig := &query{library: l, handle: handle, errors: make(map[string]int)}
		d, err := mig.device(s.now())
		if err != nil {
			continue
		}
		d.ParentUUID = uuid
		d.GPUInstance, d.ComputeInstance = mig.number(&l.gpuInstance), mig.number(&l.computeInstance)
		if d.GPUInstance != nil && !s.SkipGPM {
			// GPM samples of an instance are taken with the GPU's handle.
			d.GPM = s.stateOf(d.UUID, handle).gpm.measure(&query{library: l, handle: parent, errors: mig.errors}, d.GPUInstance)
		}
		d.Processes = mig.processes()
		found = append(found, d)
	}
	return found
}

func (s *Sampler) stateOf(uuid string, handle uintptr) *state {
	kept := s.devices[uuid]
	if kept == nil {
		kept = &state{}
		s.devices[uuid] = kept
	}
	kept.handle, kept.seen = handle, true
	return kept
}

// poll asks for the process samples since the newest one. The first time it asks
// for the last second.
func (d *state) poll(q *query, now time.Time) {
	if d.newest == 0 {
		d.newest = now.Add(-time.Second).UnixMicro()
	}
	d.found = append(d.found, q.samples(d.newest)...)
	for _, sample := range d.found {
		d.newest = max(d.newest, sample.Timestamp)
	}
}

// Poll asks for new process samples of the GPUs of the last sample. They are part
// of the next one. The driver keeps only the newest sample of a process, so that
// its interval is visible only to those that ask often.
func (s *Sampler) Poll() {
	for _, d := range s.devices {
		if d.newest != 0 {
			d.poll(&query{library: s.library, handle: d.handle, errors: make(map[string]int)}, s.now())
		}
	}
}

func systemTextOf(l *Library, c *systemText) string {
	if c.function == nil {
		return ""
	}
	var buffer [96]byte
	l.current.Store(&c.name)
	if c.function(&buffer[0], uint32(len(buffer))) != success {
		return ""
	}
	return text(buffer[:])
}

// Run samples once each interval until the context ends, and asks for process
// samples each poll interval between them. The first sample is taken at once.
func (s *Sampler) Run(ctx context.Context, interval, poll time.Duration, report func(Sample) error) error {
	every := time.NewTicker(interval)
	defer every.Stop()
	polls := time.NewTicker(min(poll, interval))
	defer polls.Stop()
	for {
		sample, err := s.Sample()
		if err != nil {
			return err
		}
		if err := report(sample); err != nil {
			return err
		}
	waiting:
		for {
			select {
			case <-ctx.Done():
				return nil
			case <-polls.C:
				s.Poll()
			case <-every.C:
				if ctx.Err() != nil {
					return nil // both were ready
				}
				break waiting
			}
		}
	}
}
