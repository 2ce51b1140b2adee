//go:build cgo

package dcgm

import (
	"errors"
	"fmt"

	"github.com/NVIDIA/go-dcgm/pkg/dcgm"

	"github.com/dra-exporter/dra-exporter/collector/device"
)

// codeOf is the return code in an error of the binding, if it has one.
func codeOf(err error) status {
	var failure *dcgm.Error
	if errors.As(err, &failure) {
		return status(failure.Code)
	}
	return -3 // DCGM_ST_GENERIC_ERROR
}

// coded is an error of the binding with its code in words, where it has one.
func coded(action string, err error) error {
	if failure := new(*dcgm.Error); errors.As(err, failure) {
		return fmt.Errorf("%s: %w", action, codeOf(err))
	}
	return fmt.Errorf("%s: %w", action, err)
}

func theirs(e entity) dcgm.GroupEntityPair {
	return dcgm.GroupEntityPair{EntityGroupId: dcgm.Field_Entity_Group(e.kind), EntityId: e.id}
}

// identify asks who the entities are: live, because that changes with them
// alone and needs no watch.
func (e *engine) identify(entities []entity) (map[entity]identity, error) {
	who := make(map[entity]identity, len(entities))
	driver := ""
	q := newQuestion(entities, []uint16{driverVersion, gpuName, gpuUUID, gpuMinor, pciBusID})
	err := e.ask(&q, liveData, func(v *value, _ *asking) {
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
