//go:build cgo

package dcgm

/*
#include <stdint.h>

// The layouts and limits of dcgm_structs.h. An answer begins with its version,
// which has its size in it: a library with another layout refuses the call.
enum {
	MOST_LISTED = 1024, // DCGM_GROUP_MAX_ENTITIES_V2
	MOST_INSTANCES = 32 * 14, // DCGM_MAX_HIERARCHY_INFO
	MOST_LINKED = 32, // DCGM_MAX_NUM_DEVICES
	MOST_LINKS = 36, // DCGM_NVLINK_MAX_LINKS_PER_GPU
	MOST_SWITCHES = 12, // DCGM_MAX_NUM_SWITCHES
	MOST_SWITCH_LINKS = 256, // DCGM_NVLINK_MAX_LINKS_PER_NVSWITCH
	MOST_INCIDENTS = 1024, // DCGM_HEALTH_WATCH_MAX_INCIDENTS_V2
	MOST_EVENTS = 4096, // ours: a library calls back as often as it likes
};

struct answered_version { // dcgmVersionInfo_v2
	uint32_t version;
	char text[512];
};

struct answered_entity { // dcgmGroupEntityPair_t
	uint32_t kind;
	uint32_t id;
};

struct answered_instance { // dcgmMigHierarchyInfo_v2
	struct answered_entity entity;
	struct answered_entity parent;
	char gpu_uuid[128];
	uint32_t gpu_index;
	uint32_t gi;
	uint32_t ci;
	uint32_t profile;
	uint32_t slices;
};

struct answered_hierarchy { // dcgmMigHierarchy_v2
	uint32_t version;
	uint32_t count;
	struct answered_instance list[MOST_INSTANCES];
};

struct answered_links { // dcgmNvLinkStatus_v5
	uint32_t version;
	uint32_t count;
	struct {
		uint32_t id;
		uint32_t states[MOST_LINKS];
	} gpus[MOST_LINKED];
	uint32_t switch_count;
	struct {
		uint32_t id;
		uint32_t states[MOST_SWITCH_LINKS];
	} switches[MOST_SWITCHES];
};

struct answered_incident { // dcgmIncidentInfo_t
	uint32_t system;
	uint32_t result;
	char message[1024];
	uint32_t code;
	struct answered_entity entity;
};

struct answered_health { // dcgmHealthResponse_v5
	uint32_t version;
	uint32_t overall;
	uint32_t count;
	struct answered_incident list[MOST_INCIDENTS];
};

struct answered_event {
	struct answered_entity entity;
	uint16_t field;
	uint16_t type;
	int32_t status;
	int64_t at;
	unsigned char value[8];
};

struct answered_events {
	uint32_t count;
	uint32_t more; // there were more than fit
	struct answered_event list[MOST_EVENTS];
};

struct visited_value { // dcgmFieldValue_v1
	uint32_t version;
	uint16_t field;
	uint16_t type;
	int32_t status;
	int64_t at;
	unsigned char value[4096];
};

// keep_events is a dcgmFieldValueEntityEnumeration_f; what is negative ends the
// enumeration.
static int keep_events(uint32_t kind, uint32_t id, const struct visited_value *values, int count, void *into) {
	struct answered_events *events = into;
	for (int i = 0; values && i < count; i++) {
		if (events->count == MOST_EVENTS) {
			events->more = 1;
			return -1;
		}
		struct answered_event *event = &events->list[events->count++];
		event->entity.kind = kind;
		event->entity.id = id;
		event->field = values[i].field;
		event->type = values[i].type;
		event->status = values[i].status;
		event->at = values[i].at;
		__builtin_memcpy(event->value, values[i].value, sizeof event->value);
	}
	return 0;
}

// These are named after what they call, because a library that crashes leaves
// no more than their names in the log.
typedef int (*entities_function)(uintptr_t connection, uint32_t kind, uint32_t *ids, int *count, unsigned flags);
typedef int (*answer_function)(uintptr_t connection, void *answer);
typedef int (*health_function)(uintptr_t connection, uintptr_t group, void *answer);
typedef int (*since_function)(uintptr_t connection, uintptr_t group, uintptr_t fields, long long since, long long *next,
	int (*visit)(uint32_t, uint32_t, const struct visited_value *, int, void *), void *data);

static int call_dcgmGetEntityGroupEntities(void *function, uintptr_t connection, uint32_t kind, uint32_t *ids, int *count) {
	return ((entities_function)function)(connection, kind, ids, count, 0);
}

static int call_dcgmHostengineVersionInfo(void *function, uintptr_t connection, struct answered_version *answer) {
	return ((answer_function)function)(connection, answer);
}

static int call_dcgmGetGpuInstanceHierarchy(void *function, uintptr_t connection, struct answered_hierarchy *answer) {
	return ((answer_function)function)(connection, answer);
}

static int call_dcgmGetNvLinkLinkStatus(void *function, uintptr_t connection, struct answered_links *answer) {
	return ((answer_function)function)(connection, answer);
}

static int call_dcgmHealthCheck(void *function, uintptr_t connection, uintptr_t group, struct answered_health *answer) {
	return ((health_function)function)(connection, group, answer);
}

static int call_dcgmGetValuesSince(void *function, uintptr_t connection, uintptr_t group, uintptr_t fields, long long since, struct answered_events *events) {
	long long next;
	return ((since_function)function)(connection, group, fields, since, &next, keep_events, events);
}
*/
import "C"

import (
	"bytes"
	"errors"
	"fmt"
	"unsafe"

	"github.com/NVIDIA/go-dcgm/pkg/dcgm"

	"github.com/dra-exporter/dra-exporter/collector/device"
	"github.com/dra-exporter/dra-exporter/collector/source"
)

// functions are the library's functions that return lists and texts of their
// own; nil where the library lacks one.
//
// The binding does not check the length that such an answer states for itself:
// a count that is larger than the answer makes it panic or allocate gigabytes,
// and for a text without an end it reads the memory behind. So this package
// makes these calls itself, on the binding's connection.
type functions struct {
	version, entities, hierarchy, links, health, since unsafe.Pointer
	latest                                             unsafe.Pointer
}

func (l *library) functions() functions {
	return functions{
		version:   l.symbol("dcgmHostengineVersionInfo"),
		entities:  l.symbol("dcgmGetEntityGroupEntities"),
		hierarchy: l.symbol("dcgmGetGpuInstanceHierarchy"),
		links:     l.symbol("dcgmGetNvLinkLinkStatus"),
		health:    l.symbol("dcgmHealthCheck"),
		since:     l.symbol("dcgmGetValuesSince_v2"),
		latest:    l.symbol("dcgmEntitiesGetLatestValues"),
	}
}

// checkCount returns an error if the count of an answer exceeds the capacity of
// the answer.
func checkCount(subject string, count int64, most int) error {
	if count >= 0 && count <= int64(most) {
		return nil
	}
	return &source.Failure{Reason: source.ReasonResourceExhausted, Err: fmt.Errorf(
		"%s: DCGM's library answers with %d, and an answer has %d at most", subject, count, most)}
}

// structVersion returns the required version field of an answer.
func structVersion(size uintptr, version C.uint32_t) C.uint32_t {
	return C.uint32_t(size) | version<<24
}

// statusError returns the return code of a call as an error; nil for
// DCGM_ST_OK.
func statusError(code C.int) error {
	if code := status(code); code != statusOK {
		return code
	}
	return nil
}

// buildInfo returns the engine's build information.
func (e *engine) buildInfo() (string, error) {
	answer := new(C.struct_answered_version)
	answer.version = structVersion(unsafe.Sizeof(*answer), 2)
	if err := statusError(C.call_dcgmHostengineVersionInfo(e.functions.version, binding.connection, answer)); err != nil {
		return "", err
	}
	written := (*[len(answer.text)]byte)(unsafe.Pointer(&answer.text))
	text, _, _ := bytes.Cut(written[:], []byte{0})
	return string(text), nil
}

// gpus returns the engine's ids of the GPUs that are present.
func (e *engine) gpus() ([]uint, error) {
	var answer [C.MOST_LISTED]C.uint32_t
	count := C.int(len(answer))
	code := C.call_dcgmGetEntityGroupEntities(e.functions.entities, binding.connection, C.uint32_t(wholeGPU), &answer[0], &count)
	if err := statusError(code); err != nil {
		return nil, fmt.Errorf("list GPUs: %w", err)
	}
	if err := checkCount("list GPUs", int64(count), len(answer)); err != nil {
		return nil, err
	}
	ids := make([]uint, count)
	for i := range ids {
		ids[i] = uint(answer[i])
	}
	return ids, nil
}

// hierarchy returns all MIG instances of all GPUs.
func (e *engine) hierarchy() ([]instance, error) {
	if e.functions.hierarchy == nil {
		return nil, nil
	}
	answer := new(C.struct_answered_hierarchy)
	answer.version = structVersion(unsafe.Sizeof(*answer), 2)
	if err := statusError(C.call_dcgmGetGpuInstanceHierarchy(e.functions.hierarchy, binding.connection, answer)); err != nil {
		return nil, fmt.Errorf("list MIG instances: %w", err)
	}
	if err := checkCount("list MIG instances", int64(answer.count), len(answer.list)); err != nil {
		return nil, err
	}
	list := make([]instance, answer.count)
	for i := range list {
		entry := &answer.list[i]
		list[i] = instance{
			entity: decodeEntity(entry.entity), parent: decodeEntity(entry.parent),
			gi: int(entry.gi), ci: device.Unknown, slices: uint(entry.slices),
		}
		if list[i].entity.kind == computeInstance {
			list[i].ci = int(entry.ci)
		}
	}
	return list, nil
}

// decodeEntity converts an entity of the library.
func decodeEntity(entry C.struct_answered_entity) entity {
	return entity{entityKind(entry.kind), uint(entry.id)}
}

// States of a link (dcgmNvLinkLinkState_t).
const (
	linkDown = 2
	linkUp   = 3
)

// links counts the NVLinks of each GPU by their state.
func (e *engine) links() (map[entity]links, error) {
	if e.functions.links == nil {
		return nil, errFunctionMissing
	}
	answer := new(C.struct_answered_links)
	answer.version = structVersion(unsafe.Sizeof(*answer), 5)
	err := statusError(C.call_dcgmGetNvLinkLinkStatus(e.functions.links, binding.connection, answer))
	if errors.Is(err, statusNotSupported) {
		return make(map[entity]links), nil
	}
	if err != nil {
		return nil, fmt.Errorf("get the states of NVLinks: %w", err)
	}
	if err := checkCount("get the states of NVLinks: GPUs", int64(answer.count), len(answer.gpus)); err != nil {
		return nil, err
	}
	counts := make(map[entity]links)
	for i := range answer.gpus[:answer.count] {
		gpu := entity{wholeGPU, uint(answer.gpus[i].id)}
		count := counts[gpu]
		for _, state := range answer.gpus[i].states {
			switch state {
			case linkUp:
				count.up++
			case linkDown:
				count.down++
			}
		}
		counts[gpu] = count
	}
	return counts, nil
}

// incidents returns the incidents that a health check of a group finds.
func (e *engine) incidents(group dcgm.GroupHandle) ([]incident, error) {
	answer := new(C.struct_answered_health)
	answer.version = structVersion(unsafe.Sizeof(*answer), 5)
	code := C.call_dcgmHealthCheck(e.functions.health, binding.connection, C.uintptr_t(group.GetHandle()), answer)
	if err := statusError(code); err != nil {
		return nil, fmt.Errorf("check the GPUs' health: %w", err)
	}
	if err := checkCount("check the GPUs' health", int64(answer.count), len(answer.list)); err != nil {
		return nil, err
	}
	list := make([]incident, answer.count)
	for i := range list {
		entry := &answer.list[i]
		list[i] = incident{decodeEntity(entry.entity), uint(entry.system), int(entry.result), uint(entry.code)}
	}
	return list, nil
}

// xidsSince returns the XIDs that the engine has kept for the entities of the
// groups and that are later than start, in microseconds since 1970.
func (e *engine) xidsSince(groups []dcgm.GroupHandle, fields dcgm.FieldHandle, start int64) (xids []value, err error) {
	if e.functions.since == nil {
		return nil, errFunctionMissing
	}
	for _, group := range groups {
		answer := new(C.struct_answered_events)
		code := C.call_dcgmGetValuesSince(e.functions.since, binding.connection, C.uintptr_t(group.GetHandle()), C.uintptr_t(fields.GetHandle()), C.longlong(start+1), answer)
		if answer.more != 0 {
			return nil, &source.Failure{Reason: source.ReasonResourceExhausted, Err: fmt.Errorf(
				"get the XIDs since the last: there are more than %d", len(answer.list))}
		}
		if err := statusError(code); err != nil {
			return nil, fmt.Errorf("get the XIDs since the last: %w", err)
		}
		for i := range answer.list[:answer.count] {
			xids = append(xids, decodeEvent(&answer.list[i]))
		}
	}
	return xids, nil
}

// decodeEvent decodes a value that the library has passed to the callback.
func decodeEvent(entry *C.struct_answered_event) value {
	v := value{
		entity: decodeEntity(entry.entity),
		field:  uint16(entry.field),
		kind:   byte(entry._type),
		status: status(entry.status),
		at:     int64(entry.at),
	}
	copy(v.raw[:], (*[8]byte)(unsafe.Pointer(&entry.value))[:])
	return v
}
