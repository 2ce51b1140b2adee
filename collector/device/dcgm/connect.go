//go:build cgo

package dcgm

import (
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/NVIDIA/go-dcgm/pkg/dcgm"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/device"
	"github.com/dra-exporter/dra-exporter/collector/source"
)

// connectionInUse is whether the one connection that the binding can have is in
// use.
//
//nolint:gochecknoglobals // it guards the binding's own package-level variables
var connectionInUse atomic.Bool

// engine is a connection to a host engine, or an embedded one. It wraps the
// binding and returns this package's own types. Its methods must be called one
// at a time; each may block as long as the driver does.
type engine struct {
	library *library
	version string
	buffer  valueBuffer
	now     clock.Clock

	functions functions
}

// connect connects to a host engine, or starts an embedded one.
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

// endpoint converts the address to the arguments of the binding: the address,
// and "1" if it is the path of a unix socket, else "0". Connection strings
// would need DCGM 4.5.
func endpoint(hostEngine string) (address, socket string) {
	if path, ok := strings.CutPrefix(hostEngine, "unix://"); ok {
		return path, "1"
	}
	return strings.TrimPrefix(hostEngine, "tcp://"), "0"
}

// unreachable returns the error of a failed connection, with a remedy.
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

// checkVersion reads the engine's version and fails if it is not supported.
func (e *engine) checkVersion() error {
	if binding.connection == 0 {
		return errors.New("connect to the DCGM host engine: the library's binding stores its connection elsewhere than in v1.4611")
	}
	build, err := e.buildInfo()
	if err != nil {
		return &source.Failure{Reason: classifyError(err), Err: fmt.Errorf("ask the DCGM host engine for its version: %w", err)}
	}
	major, version := majorVersion(build)
	if major != 0 && major < oldestEngine {
		return &source.Failure{Reason: source.ReasonUnsupported, Err: fmt.Errorf(
			"the DCGM host engine has version %s: update it to %d.0 or later", version, oldestEngine)}
	}
	e.version = version
	return nil
}

// classifyError returns the reason of the source's status after a call has failed.
func classifyError(err error) source.Reason {
	switch reason := source.ReasonOf(err); {
	case errors.Is(err, statusVersionMismatch), errors.Is(err, statusFunctionNotFound):
		return source.ReasonUnsupported
	case reason == source.ReasonResourceExhausted:
		return reason
	default:
		return source.ReasonUnavailable
	}
}

// close closes the connection, and with it all groups and watches that were
// created through it. Errors are ignored: the engine may have ended.
func (e *engine) close() {
	_ = dcgm.Shutdown()
	e.buffer.free()
	connectionInUse.Store(false)
}

// statusCode returns the return code in an error of the binding, or
// DCGM_ST_GENERIC_ERROR.
func statusCode(err error) status {
	var failure *dcgm.Error
	if errors.As(err, &failure) {
		return status(failure.Code)
	}
	return -3 // DCGM_ST_GENERIC_ERROR
}

// withStatus wraps an error of the binding. Its return code, if it has one, is
// written as text.
func withStatus(action string, err error) error {
	if failure := new(*dcgm.Error); errors.As(err, failure) {
		return fmt.Errorf("%s: %w", action, statusCode(err))
	}
	return fmt.Errorf("%s: %w", action, err)
}

func groupPair(e entity) dcgm.GroupEntityPair {
	return dcgm.GroupEntityPair{EntityGroupId: dcgm.Field_Entity_Group(e.kind), EntityId: e.id}
}

// readIdentities reads the identities of entities from the driver. They need no
// watch, because they change only when the entities do.
func (e *engine) readIdentities(entities []entity) (map[entity]identity, error) {
	identities := make(map[entity]identity, len(entities))
	driver := ""
	q := newFieldQuery(entities, []uint16{driverVersion, gpuName, gpuUUID, gpuMinor, pciBusID, nvmlIndex, boardSerial, vbiosVersion})
	err := e.queryValues(&q, liveData, func(v *value, _ *callTime) {
		if v.field == driverVersion {
			driver = v.string()
			return
		}
		known, ok := identities[v.entity]
		if !ok {
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
		default:
			known.hardware = known.hardware.With(v.hardware())
		}
		identities[v.entity] = known
	})
	if err != nil {
		return nil, err
	}
	for e, identity := range identities {
		identity.driver = driver
		identities[e] = identity
	}
	e.readPlatforms(identities)
	return identities, nil
}

// readPlatforms adds where GPUs are in their chassis. An engine that does not know
// these fields may refuse the whole query; the identities are complete without them.
func (e *engine) readPlatforms(identities map[entity]identity) {
	var gpus []entity
	for subject := range identities {
		if subject.kind == wholeGPU {
			gpus = append(gpus, subject)
		}
	}
	found := make(map[entity]device.Hardware, len(gpus))
	q := newFieldQuery(gpus, []uint16{chassisSerial, chassisSlot, trayIndex, moduleID})
	err := e.queryValues(&q, liveData, func(v *value, _ *callTime) {
		found[v.entity] = found[v.entity].With(v.hardware())
	})
	if err != nil {
		return
	}
	for gpu, at := range found {
		if at.ChassisSerial == "" { // a slot of an unknown chassis has no meaning
			at.Slot, at.Tray = "", ""
		}
		known := identities[gpu]
		known.hardware = known.hardware.With(at)
		identities[gpu] = known
	}
}

// lost reports whether the engine considers a GPU lost.
func (e *engine) lost(gpu entity) bool {
	return e.library.has("dcgmGetGpuStatus") && dcgm.GetGPUStatus(gpu.id) == dcgm.EntityStatusLost
}

// Where a GPU is in its chassis, since Blackwell.
const (
	chassisSerial = 572 // DCGM_FI_DEV_PLATFORM_CHASSIS_SERIAL_NUMBER
	chassisSlot   = 573 // DCGM_FI_DEV_PLATFORM_CHASSIS_SLOT_NUMBER
	trayIndex     = 574 // DCGM_FI_DEV_PLATFORM_TRAY_INDEX
	moduleID      = 577 // DCGM_FI_DEV_PLATFORM_MODULE_ID
)

// hardware returns the part of the hardware that the value is.
func (v *value) hardware() (h device.Hardware) {
	text := v.string()
	if n, o := v.number(); o == present && n >= 0 {
		text = strconv.FormatFloat(n, 'f', -1, 64)
	}
	switch v.field {
	case boardSerial:
		h.Serial = text
	case vbiosVersion:
		h.VBIOS = text
	case nvmlIndex:
		h.Index = text
	case chassisSerial:
		h.ChassisSerial = text
	case chassisSlot:
		h.Slot = text
	case trayIndex:
		h.Tray = text
	case moduleID:
		if text != "0" { // also the answer for a GPU without a baseboard
			h.ModuleID = text
		}
	}
	return h
}
