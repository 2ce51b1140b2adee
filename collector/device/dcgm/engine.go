//go:build cgo

package dcgm

import (
	"errors"
	"fmt"
	"time"

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

// gpus are the engine's ids of the GPUs that are there.
func (e *engine) gpus() ([]uint, error) {
	ids, err := dcgm.GetEntityGroupEntities(dcgm.FE_GPU)
	if err != nil {
		return nil, coded("list GPUs", err)
	}
	return ids, nil
}

// hierarchy is every instance of every GPU.
func (e *engine) hierarchy() ([]instance, error) {
	if !e.library.has("dcgmGetGpuInstanceHierarchy") {
		return nil, nil
	}
	told, err := dcgm.GetGPUInstanceHierarchy()
	if err != nil {
		return nil, coded("list MIG instances", err)
	}
	list := make([]instance, 0, told.Count)
	for i := range min(told.Count, uint(len(told.EntityList))) {
		at := &told.EntityList[i]
		e := instance{entity: ours(at.Entity), parent: ours(at.Parent), gi: int(at.Info.NvmlInstanceId), ci: device.Unknown, slices: at.Info.NvmlProfileSlices}
		if e.entity.kind == computeInstance {
			e.ci = int(at.Info.NvmlComputeInstanceId)
		}
		list = append(list, e)
	}
	return list, nil
}

// ours is an entity of the binding.
func ours(pair dcgm.GroupEntityPair) entity {
	return entity{entityKind(pair.EntityGroupId), pair.EntityId}
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

// links counts the NVLinks of each GPU by their state.
func (e *engine) links() (map[entity]links, error) {
	if !e.library.has("dcgmGetNvLinkLinkStatus") {
		return nil, errNotThere
	}
	told, err := dcgm.GetNvLinkLinkStatus()
	if err != nil {
		return nil, coded("get the states of NVLinks", err)
	}
	counts := make(map[entity]links)
	for i := range told {
		if told[i].ParentType != dcgm.FE_GPU {
			continue
		}
		gpu := entity{wholeGPU, told[i].ParentId}
		count := counts[gpu]
		switch told[i].State {
		case dcgm.LS_UP:
			count.up++
		case dcgm.LS_DOWN:
			count.down++
		}
		counts[gpu] = count
	}
	return counts, nil
}

// xidsSince are the XIDs that the engine has kept of the entities of the
// groups, later than a time in microseconds.
func (e *engine) xidsSince(groups []dcgm.GroupHandle, fields dcgm.FieldHandle, since int64) (xids []value, err error) {
	if !e.library.has("dcgmGetValuesSince_v2") {
		return nil, errNotThere
	}
	for _, group := range groups {
		told, _, err := dcgm.GetValuesSince(group, fields, time.UnixMicro(since+1))
		if err != nil {
			return nil, coded("get the XIDs since the last", err)
		}
		for i := range told {
			xids = append(xids, eventOf(&told[i]))
		}
	}
	return xids, nil
}

// eventOf is a value of the binding.
func eventOf(told *dcgm.FieldValue_v2) value {
	return value{
		entity: entity{entityKind(told.EntityGroupId), told.EntityID},
		field:  uint16(told.FieldID),
		kind:   byte(told.FieldType),
		status: status(told.Status),
		at:     told.TS,
		raw:    [8]byte(told.Value[:8]),
	}
}
