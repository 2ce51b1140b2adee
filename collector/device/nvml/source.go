//go:build cgo

package nvml

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/dra-exporter/dra-exporter/collector/device"
	"github.com/dra-exporter/dra-exporter/collector/source"
)

// Source finds the GPUs that NVIDIA's library sees.
type Source struct {
	library nvml.Interface

	// calls is read-locked during every call into the library, and locked
	// while the connection to it is made or ended: the library must not be
	// shut down under a call. It is only ever tried, because a call that
	// hangs never lets it go.
	calls sync.RWMutex

	// What follows belongs to Readers and Close.
	connected   bool
	initialized bool
	readers     map[string]*reader // by UUID, of every GPU ever seen: a few
}

// New returns a source over the library at the path, or over the one that the
// system finds as libnvidia-ml.so.1 where the path is empty.
func New(path string) *Source {
	if path == "" {
		return NewOver(nvml.New())
	}
	return NewOver(nvml.New(nvml.WithLibraryPath(path)))
}

// NewOver returns a source over a library that is not yet initialized.
func NewOver(library nvml.Interface) *Source {
	return &Source{library: library, readers: make(map[string]*reader)}
}

// Name is "nvml".
func (s *Source) Name() string { return "nvml" }

// Readers returns a reader for each GPU, its MIG devices included. GPUs that
// cannot be told are joined into the error beside the readers of the others.
func (s *Source) Readers(context.Context) ([]device.Reader, error) {
	if err := s.connect(); err != nil {
		return nil, err
	}
	s.calls.RLock()
	defer s.calls.RUnlock()
	symbols := lookUp(s.library.Extensions())
	if missing := symbols.missing(); missing != "" {
		return nil, failure("find "+missing, nvml.ERROR_FUNCTION_NOT_FOUND)
	}
	count, ret := s.library.DeviceGetCount()
	if ret != nvml.SUCCESS {
		s.connected = false
		return nil, failure("count GPUs", ret)
	}
	driver, ret := s.library.SystemGetDriverVersion()
	if ret != nvml.SUCCESS {
		driver = ""
	}
	var found []device.Reader
	var errs []error
	for i := range count {
		r, err := s.identify(i, &finding{driver: text(driver), symbols: symbols})
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
	gpu, ret := s.library.DeviceGetHandleByIndex(index)
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
		r = newReader(&s.calls, text(uuid))
		s.readers[uuid] = r
	}
	r.found.Store(f)
	return r, nil
}

// connect initializes the library, anew where the connection was lost.
func (s *Source) connect() error {
	if s.connected {
		return nil
	}
	if !s.calls.TryLock() {
		return &source.Failure{
			Reason: source.ReasonTimeout,
			Err:    errors.New("connect anew: a call into the library has not come back"),
		}
	}
	defer s.calls.Unlock()
	s.shutdown()
	if ret := s.library.Init(); ret != nvml.SUCCESS {
		return failure("initialize the library", ret)
	}
	s.connected, s.initialized = true, true
	return nil
}

// shutdown ends the connection. That it fails changes nothing.
func (s *Source) shutdown() {
	if s.initialized {
		_ = s.library.Shutdown()
	}
	s.connected, s.initialized = false, false
}

// Close ends the connection, unless a call into the library hangs.
func (s *Source) Close() error {
	if !s.calls.TryLock() {
		return errors.New("close: a call into the library has not come back")
	}
	defer s.calls.Unlock()
	s.shutdown()
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
