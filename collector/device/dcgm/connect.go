//go:build cgo

package dcgm

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"sync/atomic"

	"github.com/NVIDIA/go-dcgm/pkg/dcgm"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/device"
	"github.com/dra-exporter/dra-exporter/collector/source"
)

// connectionInUse says whether the one connection that the binding can have is in use.
//
//nolint:gochecknoglobals // it guards the binding's own package-level variables
var connectionInUse atomic.Bool

// engine is a connection to a host engine, or an embedded one. It speaks to
// the binding; what it returns are this package's own types. Its methods are
// called one at a time, and may take as long as the driver does.
type engine struct {
	library *library
	version string
	buffer  valueBuffer
	now     clock.Clock

	functions functions
}

// connect makes the connection.
func connect(o Options) (*engine, error) {
	l, err := openLibrary(o.Library)
	if err != nil {
		return nil, err
	}
	if !connectionInUse.CompareAndSwap(false, true) {
		return nil, &source.Failure{
			Reason: source.ReasonOther,
			Err:    errors.New("connect to a DCGM host engine: this process already has a connection, and the library's binding allows only one"),
		}
	}
	if o.HostEngine == "" {
		_, err = dcgm.Init(dcgm.Embedded)
	} else {
		address, socket := endpoint(o.HostEngine)
		_, err = dcgm.Init(dcgm.Standalone, address, socket)
	}
	if err != nil {
		connectionInUse.Store(false)
		return nil, unreachable(o.HostEngine, err)
	}
	e := &engine{library: l, functions: l.functions(), now: o.Clock}
	if err := e.checkVersion(); err != nil {
		e.close()
		return nil, err
	}
	return e, nil
}

// endpoint is the address as the binding takes it: with the flag that says
// whether it is a unix socket's path. Connection strings of the binding's own
// would need DCGM 4.5.
func endpoint(hostEngine string) (address, socket string) {
	if path, is := strings.CutPrefix(hostEngine, "unix://"); is {
		return path, "1"
	}
	return strings.TrimPrefix(hostEngine, "tcp://"), "0"
}

// unreachable says why there is no connection, and what to do.
func unreachable(hostEngine string, err error) error {
	if hostEngine == "" {
		return &source.Failure{Reason: source.ReasonUnavailable, Err: fmt.Errorf(
			"start an embedded DCGM engine: %w: it needs the driver's libraries and devices; run with the RuntimeClass nvidia, or set --dcgm.host-engine to a running host engine", err)}
	}
	remedy := "start nv-hostengine there, or correct --dcgm.host-engine"
	if _, _, split := net.SplitHostPort(strings.TrimPrefix(hostEngine, "tcp://")); split != nil && !strings.HasPrefix(hostEngine, "unix://") {
		remedy = "--dcgm.host-engine is host:port or unix:///path"
	}
	return &source.Failure{Reason: source.ReasonUnavailable, Err: fmt.Errorf(
		"connect to the DCGM host engine at %s: %w: %s", hostEngine, err, remedy)}
}

// oldestEngine is the first major version whose requests are those of the
// library.
const oldestEngine = 4

// checkVersion asks the engine for its version, and so whether the two understand
// each other.
func (e *engine) checkVersion() error {
	if binding.connection == 0 {
		return errors.New("connect to the DCGM host engine: the library's binding stores its connection elsewhere than in v1.4611")
	}
	build, err := e.buildInfo()
	if err != nil {
		return &source.Failure{Reason: reasonOf(err), Err: fmt.Errorf("ask the DCGM host engine for its version: %w", err)}
	}
	major, version := majorVersion(build)
	if major != 0 && major < oldestEngine {
		return &source.Failure{Reason: source.ReasonUnsupported, Err: fmt.Errorf(
			"the DCGM host engine has version %s: update it to %d.0 or later", version, oldestEngine)}
	}
	e.version = version
	return nil
}

// reasonOf is why nothing can be read any more after a call has failed.
func reasonOf(err error) source.Reason {
	switch reason := source.ReasonOf(err); {
	case errors.Is(err, statusVersionMismatch), errors.Is(err, statusFunctionNotFound):
		return source.ReasonUnsupported
	case reason == source.ReasonResourceExhausted:
		return reason
	default:
		return source.ReasonUnavailable
	}
}

// close ends the connection, and with it all groups and watches that were made
// through it. That it fails, because the engine is gone, changes nothing.
func (e *engine) close() {
	_ = dcgm.Shutdown()
	e.buffer.free()
	connectionInUse.Store(false)
}

// codeOf is the return code in an error of the binding, if it has one.
func codeOf(err error) status {
	var failure *dcgm.Error
	if errors.As(err, &failure) {
		return status(failure.Code)
	}
	return -3 // DCGM_ST_GENERIC_ERROR
}

// withStatus is an error of the binding with its code in words, where it has one.
func withStatus(action string, err error) error {
	if failure := new(*dcgm.Error); errors.As(err, failure) {
		return fmt.Errorf("%s: %w", action, codeOf(err))
	}
	return fmt.Errorf("%s: %w", action, err)
}

func groupPair(e entity) dcgm.GroupEntityPair {
	return dcgm.GroupEntityPair{EntityGroupId: dcgm.Field_Entity_Group(e.kind), EntityId: e.id}
}

// readIdentities asks who the entities are: live, because that changes with them
// alone and needs no watch.
func (e *engine) readIdentities(entities []entity) (map[entity]identity, error) {
	who := make(map[entity]identity, len(entities))
	driver := ""
	q := newQuery(entities, []uint16{driverVersion, gpuName, gpuUUID, gpuMinor, pciBusID})
	err := e.queryValues(&q, liveData, func(v *value, _ *callTime) {
		if v.field == driverVersion {
			driver = v.string()
			return
		}
		known, there := who[v.entity]
		if !there {
			known.minor = device.Unknown
		}
		switch v.field {
		case gpuName:
			known.name = v.string()
		case gpuUUID:
			known.uuid = v.string()
		case pciBusID:
			known.pci = v.string()
		case gpuMinor:
			if n, o := v.number(); o == present {
				known.minor = int(n)
			}
		}
		who[v.entity] = known
	})
	if err != nil {
		return nil, err
	}
	for of, known := range who {
		known.driver = driver
		who[of] = known
	}
	return who, nil
}

// lost reports whether the engine says that a GPU is gone.
func (e *engine) lost(gpu entity) bool {
	return e.library.has("dcgmGetGpuStatus") && dcgm.GetGPUStatus(gpu.id) == dcgm.EntityStatusLost
}
