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

// binding is the binding's connection, which is not exported.
//
// The binding's own form of dcgmEntitiesGetLatestValues makes two copies of 4
// KiB of each value, however short: in a sample of eight GPUs with seven MIG
// devices each that is 9 MB of garbage and five of six milliseconds. So this
// package makes this call itself, on the binding's connection, into memory that
// it reuses. If a version of the binding keeps its connection elsewhere,
// connect fails.
//
//go:linkname binding github.com/NVIDIA/go-dcgm/pkg/dcgm.handle
//nolint:gochecknoglobals // it is another package's
var binding struct{ connection C.uintptr_t }

// maxEntities is the number of entities that a group, or a request for values,
// may have in every version of DCGM 4.
const maxEntities = 64

// maxText is the maximum length of a text of DCGM (DCGM_MAX_STR_LENGTH).
const maxText = 256

// fieldQuery requests fields of entities. It makes one call for each part.
type fieldQuery struct{ parts []queryPart }

// queryPart requests the same fields of at most maxEntities entities of one
// kind.
type queryPart struct {
	entities []C.entity_pair
	fields   []C.uint16_t
}

func newFieldQuery(entities []entity, fields []uint16) fieldQuery {
	var q fieldQuery
	q.add(entities, fields)
	return q
}

// add adds the fields of entities to the query.
func (q *fieldQuery) add(entities []entity, fields []uint16) {
	if len(fields) == 0 {
		return
	}
	fieldIDs := make([]C.uint16_t, len(fields))
	for i, field := range fields {
		fieldIDs[i] = C.uint16_t(field)
	}
	for some := range slices.Chunk(entities, maxEntities) {
		pairs := make([]C.entity_pair, len(some))
		for i, e := range some {
			pairs[i] = C.entity_pair{kind: C.uint32_t(e.kind), id: C.uint32_t(e.id)}
		}
		q.parts = append(q.parts, queryPart{pairs, fieldIDs})
	}
}

// liveData makes an engine query the driver instead of returning the latest
// sample (DCGM_FV_FLAG_LIVE_DATA).
const liveData = 1

// valueBuffer is the memory into which the library writes values. It is reused.
type valueBuffer struct {
	values   *C.field_value
	capacity int
}

// reserve returns room for a number of values and marks all of them as not
// written.
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

// queryValues reads the newest values and passes each to handle, with the time
// of the call that returned it. Both pointers are valid only during the call of
// handle.
func (e *engine) queryValues(q *fieldQuery, flags uint, handle func(*value, *callTime)) error {
	var v value
	var a callTime
	for _, p := range q.parts {
		answers := e.buffer.reserve(len(p.entities) * len(p.fields))
		a.began = e.now().Elapsed
		code := status(C.call_dcgmEntitiesGetLatestValues(e.functions.latest, binding.connection, &p.entities[0], C.unsigned(len(p.entities)),
			&p.fields[0], C.unsigned(len(p.fields)), C.unsigned(flags), &answers[0]))
		a.ended = e.now()
		if code != statusOK {
			return fmt.Errorf("get the latest values: %w", code)
		}
		for i := range answers {
			if answers[i].field != 0 {
				v = decodeValue(&answers[i])
				handle(&v, &a)
			}
		}
	}
	return nil
}

// decodeValue decodes a value that the library has written.
func decodeValue(entry *C.field_value) value {
	v := value{
		entity: entity{entityKind(entry.kind), uint(entry.id)},
		field:  uint16(entry.field),
		kind:   byte(entry._type),
		status: status(entry.status),
		at:     int64(entry.at),
	}
	written := (*[len(entry.value)]byte)(unsafe.Pointer(&entry.value))
	copy(v.raw[:], written[:])
	if v.kind == kindString && v.status == statusOK {
		text, _, _ := bytes.Cut(written[:maxText], []byte{0})
		v.text = string(text)
	}
	return v
}
