//go:build cgo

package nvml

import (
	"context"
	"errors"
	"fmt"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/dra-exporter/dra-exporter/collector/device"
	"github.com/dra-exporter/dra-exporter/collector/source"
)

// Source finds the GPUs that NVIDIA's library sees.
type Source struct {
	connection *connection
	readers    map[string]*reader // by UUID, of every GPU ever seen: a few
}

// New returns a source over the library that the options name.
func New(o Options) *Source {
	if o.Library == "" {
		return NewOver(nvml.New(), o)
	}
	return NewOver(nvml.New(nvml.WithLibraryPath(o.Library)), o)
}

// NewOver returns a source over a library that is not yet initialized; the
// options' own is not asked for.
func NewOver(library nvml.Interface, _ Options) *Source {
	return &Source{connection: &connection{library: library}, readers: make(map[string]*reader)}
}

// Name is "nvml".
func (s *Source) Name() string { return "nvml" }

// Readers returns a reader for each GPU, its MIG devices included. GPUs that
// cannot be told are joined into the error beside the readers of the others.
func (s *Source) Readers(ctx context.Context) ([]device.Reader, error) {
	leave, err := s.connection.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	found, err := s.look()
	s.connection.note(err)
	return found, err
}

// look finds the GPUs that are there.
func (s *Source) look() ([]device.Reader, error) {
	library := s.connection.library
	symbols := lookUp(library.Extensions())
	if missing := symbols.missing(); missing != "" {
		return nil, failure("find "+missing, nvml.ERROR_FUNCTION_NOT_FOUND)
	}
	count, ret := library.DeviceGetCount()
	if ret != nvml.SUCCESS {
		s.connection.connected = false
		return nil, failure("count GPUs", ret)
	}
	driver, ret := library.SystemGetDriverVersion()
	if ret != nvml.SUCCESS {
		driver = ""
	}
	var found []device.Reader
	var errs []error
	for i := range count {
		r, err := s.identify(i, &finding{driver: text(driver), symbols: symbols, connection: s.connection.number})
		if err != nil {
			errs = append(errs, err)
			continue
		}
		found = append(found, r)
	}
	return found, errors.Join(errs...)
}

// identify finds the reader of the GPU with the index, or makes it, and hands
// it what was found.
func (s *Source) identify(index int, f *finding) (*reader, error) {
	gpu, ret := s.connection.library.DeviceGetHandleByIndex(index)
	if ret != nvml.SUCCESS {
		return nil, fmt.Errorf("get a handle of GPU %d: %w", index, ret)
	}
	uuid, ret := gpu.GetUUID()
	if ret != nvml.SUCCESS {
		return nil, fmt.Errorf("get the UUID of GPU %d: %w", index, ret)
	}
	f.gpu = gpu
	r, known := s.readers[uuid]
	if !known {
		r = newReader(s.connection, text(uuid))
		s.readers[uuid] = r
	}
	r.found.Store(f)
	return r, nil
}

// Close ends the connection, unless a call into the library hangs.
func (s *Source) Close() error {
	c := s.connection
	if !c.calls.TryLock() {
		return errors.New("close: a call into the library has not come back")
	}
	defer c.calls.Unlock()
	c.shutdown()
	return nil
}

// failure says why the library as a whole cannot be used, and what to do.
func failure(action string, ret nvml.Return) error {
	reason, remedy := source.ReasonOther, ""
	switch ret {
	case nvml.ERROR_LIBRARY_NOT_FOUND:
		reason = source.ReasonLibraryMissing
		remedy = ": mount the driver's libraries, or run with the RuntimeClass nvidia and NVIDIA_DRIVER_CAPABILITIES=utility"
	case nvml.ERROR_FUNCTION_NOT_FOUND, nvml.ERROR_LIB_RM_VERSION_MISMATCH:
		reason = source.ReasonUnsupported
		remedy = ": restart with the libraries of the driver that is loaded"
	case nvml.ERROR_NO_PERMISSION:
		reason = source.ReasonPermission
		remedy = ": give access to /dev/nvidiactl and /dev/nvidia*"
	case nvml.ERROR_DRIVER_NOT_LOADED, nvml.ERROR_UNINITIALIZED:
		reason = source.ReasonUnavailable
		remedy = ": load the driver's kernel module"
	}
	return &source.Failure{Reason: reason, Err: fmt.Errorf("%s: %w%s", action, ret, remedy)}
}
