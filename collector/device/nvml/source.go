//go:build cgo

package nvml

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/device"
)

// Source finds the GPUs that NVIDIA's library sees, and receives their errors.
type Source struct {
	options    Options
	connection *librarySession
	readers    map[string]*reader // by UUID, of every GPU ever seen: a few
	addresses  map[string]string  // their UUIDs, by PCI address
	unlisted   unlistedAddresses
}

// New returns a source over the library that the options name.
func New(o Options) *Source {
	o.Sysfs = cmp.Or(o.Sysfs, "/sys")
	if o.Library == "" {
		return NewOver(nvml.New(), o)
	}
	return NewOver(nvml.New(nvml.WithLibraryPath(o.Library)), o)
}

// NewOver returns a source over a library that is not yet initialized; the
// library of the options is not opened, nor is sysfs unless it is named.
func NewOver(library nvml.Interface, o Options) *Source {
	if o.Clock == nil {
		o.Clock = clock.System()
	}
	c := &librarySession{library: library, now: o.Clock, sysfs: o.Sysfs, unbind: newUnbindWatcher(library)}
	c.watcher = xidWatcher{library: library, counts: newXIDCounts(o.Clock), reconnect: func() { c.reconnectWanted.Store(true) }}
	return &Source{
		options:    o,
		connection: c,
		readers:    make(map[string]*reader),
		addresses:  make(map[string]string),
		unlisted:   make(unlistedAddresses),
	}
}

// Name is "nvml".
func (s *Source) Name() string { return "nvml" }

// XIDs returns the critical errors that were reported of each GPU, and of the
// MIG devices that the library named with them.
func (s *Source) XIDs() map[string][]device.XID { return s.connection.watcher.counts.report() }

// Received returns when a wait for XIDs has last returned, and why some GPUs are
// not watched.
func (s *Source) Received() (clock.Instant, error) { return s.connection.watcher.counts.state() }

// Changed signals that XIDs has changed.
func (s *Source) Changed() <-chan struct{} { return s.connection.watcher.counts.changed }

// KeepsOpen reports that the library keeps every GPU open while it is initialized.
func (s *Source) KeepsOpen() bool { return true }

// Unbinding signals that the driver is to be unbound from a GPU.
func (s *Source) Unbinding() <-chan struct{} { return s.connection.unbind.signal }

// Readers returns a reader for each GPU, its MIG devices included. GPUs that
// cannot be read are joined into the error beside the readers of the others.
// A GPU that is lost keeps its reader, also where the library does not list it
// any more.
func (s *Source) Readers(ctx context.Context) ([]device.Reader, error) {
	leave, err := s.connection.acquire(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	found, err := s.discover()
	readers := make([]device.Reader, len(found))
	for i, r := range found {
		readers[i] = r
	}
	return readers, err
}

// discover finds the GPUs that are there. One that cannot be identified may be
// there again once the library has been initialized again.
func (s *Source) discover() ([]*reader, error) {
	library := s.connection.library
	symbols := lookUpSymbols(library.Extensions())
	if missing := symbols.missing(); missing != "" {
		return nil, failure("find "+missing, nvml.ERROR_FUNCTION_NOT_FOUND)
	}
	count, ret := library.DeviceGetCount()
	if ret != nvml.SUCCESS {
		return nil, s.connection.fail("count GPUs", ret)
	}
	driver, ret := library.SystemGetDriverVersion()
	if ret != nvml.SUCCESS {
		driver = ""
	}
	s.connection.failed.Store(nil)
	s.connection.driver = cmp.Or(text(driver), s.connection.driver)
	findings := make(map[string]*discoveredGPU)
	var errs []error
	for i := range count {
		f := &discoveredGPU{driver: text(driver), symbols: symbols, connection: s.connection.number}
		uuid, err := s.identify(i, f)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		findings[uuid] = f
	}
	err := errors.Join(errs...)
	if ret := nvml.SUCCESS; len(findings) == 0 && connectionLost(err) && errors.As(err, &ret) {
		return nil, s.connection.fail("identify GPUs", ret)
	}
	if err != nil {
		s.connection.reconnectWanted.Store(true)
	}
	s.keepLost(findings, err == nil)
	found := s.updateReaders(findings)
	s.connection.watcher.watch(watched(found))
	s.connection.unbind.start(symbols)
	return found, err
}

// identify finds out which GPU has the index.
func (s *Source) identify(index int, f *discoveredGPU) (uuid string, err error) {
	gpu, ret := s.connection.library.DeviceGetHandleByIndex(index)
	if ret != nvml.SUCCESS {
		return "", fmt.Errorf("get a handle of GPU %d: %w", index, ret)
	}
	uuid, ret = gpu.GetUUID()
	if ret != nvml.SUCCESS {
		return "", fmt.Errorf("get the UUID of GPU %d: %w", index, ret)
	}
	f.gpu = gpu
	f.address = s.address(text(uuid), f)
	return text(uuid), nil
}

// address is the PCI address of a discovered GPU. It is read once in each
// connection: a call that hangs here would hang the whole source.
func (s *Source) address(uuid string, f *discoveredGPU) string {
	if r, ok := s.readers[uuid]; ok {
		if previous := r.discovered.Load(); previous.address != "" && previous.connection == f.connection {
			return previous.address
		}
	}
	pci, ret := f.gpu.GetPciInfo()
	if ret != nvml.SUCCESS {
		return ""
	}
	return device.PCIAddress(characters(pci.BusId[:]))
}

// updateReaders gives each reader what was discovered of its GPU, and creates the
// readers of new GPUs.
func (s *Source) updateReaders(findings map[string]*discoveredGPU) []*reader {
	for uuid, f := range findings {
		if f.address != "" {
			s.addresses[f.address] = uuid
		}
	}
	peers, others := maps.Clone(s.addresses), make(map[string]nvml.Device, len(findings))
	for uuid, f := range findings {
		if !f.missing {
			others[uuid] = f.gpu
		}
	}
	found := make([]*reader, 0, len(findings))
	for _, uuid := range slices.Sorted(maps.Keys(findings)) {
		r, ok := s.readers[uuid]
		if !ok {
			r = newReader(s.connection, uuid, s.options)
			s.readers[uuid] = r
		}
		f := findings[uuid]
		f.peers, f.others = peers, others
		r.discovered.Store(f)
		found = append(found, r)
	}
	return found
}

// keepLost handles the GPUs that were not discovered. A lost GPU stays until
// another driver is bound to it. Any other was removed in good order, if all
// listed GPUs were identified; else it may be one of the unidentified ones. If
// the driver has a GPU that is not listed, another connection is wanted, as it is
// anyway while a GPU could not be identified.
func (s *Source) keepLost(findings map[string]*discoveredGPU, all bool) {
	listed := make(map[string]bool)
	for _, f := range findings {
		listed[f.address] = true
	}
	for uuid, r := range s.readers {
		if _, ok := findings[uuid]; ok {
			continue
		}
		switch lost := r.lost.Load(); {
		case all && !lost, r.boundElsewhere():
			r.lost.Store(false)
			s.connection.watcher.counts.remove(uuid)
		case lost:
			f := *r.discovered.Load()
			f.connection, f.missing = s.connection.number, true
			findings[uuid] = &f
			s.connection.reconnectWanted.Store(true)
		}
	}
	if !all {
		return
	}
	bound, ok := boundGPUs(s.options.Sysfs)
	if ok && s.unlisted.update(bound, listed, s.connection.number) {
		s.connection.reconnectWanted.Store(true)
	}
}

// watched are the GPUs of the readers as the XID watcher takes them.
func watched(readers []*reader) []watchedGPU {
	gpus := make([]watchedGPU, len(readers))
	for i, r := range readers {
		f := r.discovered.Load()
		gpus[i] = watchedGPU{uuid: r.uuid, symbols: f.symbols, lost: &r.lost}
		if !f.missing {
			gpus[i].gpu = f.gpu
		}
	}
	return gpus
}

// Close ends the connection, unless a call into the library hangs.
func (s *Source) Close() error {
	c := s.connection
	if !c.calls.TryLock() {
		c.unbind.interrupt()
		c.watcher.stop()
		c.unbind.stop()
		return errors.New("close: a call into the library has not returned")
	}
	defer c.calls.Unlock()
	c.shutdown()
	c.watcher.counts.unwatchExcept(nil)
	return nil
}

// lookUpSymbols looks up every function that this package calls.
func lookUpSymbols(library nvml.ExtendedInterface) symbols {
	found := make(symbols)
	look := func(names ...string) {
		for _, name := range names {
			found[name] = library.LookupSymbol(name) == nil
		}
	}
	for _, versions := range core() {
		look(versions...)
	}
	for _, r := range append(wholeRows(true), migRows()...) {
		look(r.symbol)
	}
	look(migMode, migCount, migHandle, instanceID, computeID, instanceByID, instanceInfo, attributes)
	look(hardwareFunctions()...)
	look(supportedReasons, remotePCI, remoteType, p2pStatus, fabricInfo)
	look(gpmFunctions()...)
	look(processUtilization)
	for _, versions := range processLists() {
		look(versions...)
	}
	events, wait := eventFunctions()
	look(append(events, wait...)...)
	look(systemEventFunctions()...)
	return found
}
