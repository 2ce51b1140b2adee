//go:build cgo

package dcgm

/*
#include <stdint.h>
#include <stdlib.h>

// What dcgm_structs.h calls dcgmGroupEntityPair_t and dcgmFieldValue_v2.
typedef struct {
	uint32_t kind;
	uint32_t id;
} entity_pair;

typedef struct {
	uint32_t version;
	uint32_t kind;
	uint32_t id;
	uint16_t field;
	uint16_t type;
	int32_t status;
	uint32_t unused;
	int64_t at;
	unsigned char value[4096];
} field_value;

typedef int (*latest_function)(uintptr_t connection, entity_pair *entities, unsigned entity_count,
	uint16_t *fields, unsigned field_count, unsigned flags, field_value *values);

static int call_dcgmEntitiesGetLatestValues(void *function, uintptr_t connection, entity_pair *entities, unsigned entity_count,
	uint16_t *fields, unsigned field_count, unsigned flags, field_value *values) {
	return ((latest_function)function)(connection, entities, entity_count, fields, field_count, flags, values);
}
*/
import "C"

import (
	"bytes"
	"fmt"
	"slices"
	"unsafe"
)

// binding is the binding's connection, which it keeps to itself.
//
// The binding's own form of dcgmEntitiesGetLatestValues makes two copies of
// 4 KiB of each value, however short: in a sample of eight GPUs with seven MIG
// devices each that is 9 MB of garbage and five of six milliseconds. So this
// one call is made here, on the binding's connection, into memory that is used
// again. A version of the binding that keeps its connection elsewhere makes
// connect fail.
//
//go:linkname binding github.com/NVIDIA/go-dcgm/pkg/dcgm.handle
//nolint:gochecknoglobals // it is another package's
var binding struct{ connection C.uintptr_t }

// maxEntities is how many entities a group, or a request for values, may have
// in every version of DCGM 4.
const maxEntities = 64

// maxText is how long a text of DCGM can be (DCGM_MAX_STR_LENGTH).
const maxText = 256

// query asks fields of several entities of a kind, in as many calls as it
// has parts.
type query struct{ parts []queryPart }

// queryPart asks the same fields of at most mostEntities.
type queryPart struct {
	entities []C.entity_pair
	fields   []C.uint16_t
}

func newQuery(entities []entity, fields []uint16) query {
	var q query
	q.add(entities, fields)
	return q
}

// add asks also these entities, these fields.
func (q *query) add(entities []entity, fields []uint16) {
	if len(fields) == 0 {
		return
	}
	asked := make([]C.uint16_t, len(fields))
	for i, field := range fields {
		asked[i] = C.uint16_t(field)
	}
	for some := range slices.Chunk(entities, maxEntities) {
		pairs := make([]C.entity_pair, len(some))
		for i, e := range some {
			pairs[i] = C.entity_pair{kind: C.uint32_t(e.kind), id: C.uint32_t(e.id)}
		}
		q.parts = append(q.parts, queryPart{pairs, asked})
	}
}

// liveData has an engine ask the driver, instead of telling the last sample
// (DCGM_FV_FLAG_LIVE_DATA).
const liveData = 1

// valueBuffer is where the library writes values.
type valueBuffer struct {
	values   *C.field_value
	capacity int
}

// reserve makes room for so many values, of which none is told yet.
func (p *valueBuffer) reserve(values int) []C.field_value {
	if values > p.capacity {
		p.free()
		p.values, p.capacity = (*C.field_value)(C.malloc(C.size_t(values)*C.sizeof_field_value)), values
	}
	all := unsafe.Slice(p.values, values)
	for i := range all {
		all[i].field = 0
	}
	return all
}

func (p *valueBuffer) free() {
	C.free(unsafe.Pointer(p.values))
	p.values, p.capacity = nil, 0
}

// queryValues asks for the newest values and hands on each, with when it asked for it.
// What it hands on is good for the call alone.
func (e *engine) queryValues(q *query, flags uint, take func(*value, *callTime)) error {
	var v value
	var a callTime
	for _, p := range q.parts {
		told := e.buffer.reserve(len(p.entities) * len(p.fields))
		a.began = e.now().Elapsed
		code := status(C.call_dcgmEntitiesGetLatestValues(e.functions.latest, binding.connection, &p.entities[0], C.unsigned(len(p.entities)),
			&p.fields[0], C.unsigned(len(p.fields)), C.unsigned(flags), &told[0]))
		a.ended = e.now()
		if code != statusOK {
			return fmt.Errorf("get the latest values: %w", code)
		}
		for i := range told {
			if told[i].field != 0 {
				v = valueOf(&told[i])
				take(&v, &a)
			}
		}
	}
	return nil
}

// valueOf is a value that the library has written.
func valueOf(told *C.field_value) value {
	v := value{
		entity: entity{entityKind(told.kind), uint(told.id)},
		field:  uint16(told.field),
		kind:   byte(told._type),
		status: status(told.status),
		at:     int64(told.at),
	}
	written := (*[len(told.value)]byte)(unsafe.Pointer(&told.value))
	copy(v.raw[:], written[:])
	if v.kind == kindString && v.status == statusOK {
		text, _, _ := bytes.Cut(written[:maxText], []byte{0})
		v.text = string(text)
	}
	return v
}
