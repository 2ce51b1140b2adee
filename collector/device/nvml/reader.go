//go:build cgo

package nvml

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/dra-exporter/dra-exporter/collector/device"
)

// reader reads one GPU with its MIG devices. What it remembers belongs to
// Read, of which there is one at a time; only found is shared.
type reader struct {
	uuid       string
	connection *connection // of the source
	found      atomic.Pointer[finding]

	taken      *finding // the finding that everything below goes back to
	identity   device.Device
	whole      *meter
	links      *links // of the GPU, for as long as it is known
	partitions []partition
}

// finding is what a look for GPUs has found of one. Each look makes a new
// one, and with it everything about the GPU is asked anew.
type finding struct {
	gpu        nvml.Device
	driver     string
	symbols    symbols
	connection uint64 // the one in which all this holds
}

func newReader(c *connection, uuid string) *reader {
	return &reader{uuid: uuid, connection: c, links: newLinks(), identity: device.Device{
		UUID: uuid, Vendor: "nvidia",
		Minor: device.Unknown, RenderMinor: device.Unknown, Placement: device.Unknown, GPUInstance: device.Unknown, ComputeInstance: device.Unknown,
	}}
}

// Key is the GPU's UUID.
func (r *reader) Key() string { return r.uuid }

var errReconnecting = errors.New("the GPU has not been found again since the library was initialized anew")

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
	if found != r.taken {
		r.take(found)
	}
	observations, err := r.read(tier)
	r.connection.note(err)
	return observations, err
}

// read reads what the present finding is about.
func (r *reader) read(tier device.Tier) ([]device.Observation, error) {
	observations := make([]device.Observation, 1, 1+len(r.partitions))
	observations[0].Device = r.identity
	errs := []error{r.whole.read(&observations[0], tier), r.enumerate()}
	for _, p := range r.partitions {
		o := device.Observation{Device: p.identity}
		errs = append(errs, p.meter.read(&o, tier))
		observations = append(observations, o)
	}
	return observations, errors.Join(errs...)
}

// take asks the GPU anew who it is. What it does not tell stays as it was.
func (r *reader) take(f *finding) {
	r.taken = f
	r.whole = newMeter(f.gpu, wholeRows(), f.symbols, r.links)
	r.links.recount()
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
	if pci, ret := f.gpu.GetPciInfo(); ret == nvml.SUCCESS {
		id.PCIBusID = pciAddress(characters(pci.BusId[:]))
	}
	if minor, ret := f.gpu.GetMinorNumber(); ret == nvml.SUCCESS {
		id.Minor = minor
		id.Nodes = []string{fmt.Sprintf("/dev/nvidia%d", minor)}
	}
}
