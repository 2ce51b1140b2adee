package dcgm

import (
	"encoding/binary"
	"math"
	"strings"
)

// entityKind is a dcgm_field_entity_group_t.
type entityKind uint8

// The kinds of entities whose fields are read.
const (
	wholeGPU        entityKind = 1 // DCGM_FE_GPU
	gpuInstance     entityKind = 4 // DCGM_FE_GPU_I
	computeInstance entityKind = 5 // DCGM_FE_GPU_CI
)

// entity is a host engine's id of a GPU or an instance. The ids of instances
// are valid for one MIG configuration: after a change they may mean other
// instances.
type entity struct {
	kind entityKind
	id   uint
}

// value is a value that a host engine returned: a dcgmFieldValue_v2.
type value struct {
	entity entity
	field  uint16
	kind   byte // one of DCGM_FT_*; of no meaning unless the status is ok
	status status
	at     int64 // microseconds since 1970 by the engine's clock
	raw    [8]byte
	text   string // of a string
}

// The types of values (DCGM_FT_*).
const (
	kindDouble    = 'd'
	kindInteger   = 'i'
	kindString    = 's'
	kindTimestamp = 't'
)

// Blanks are what stands for a number that the engine does not have: from
// these on, one step for each reason, of which the second is "not supported".
const (
	blankInteger = math.MaxInt64 - 15
	blankDouble  = 1 << 47
	blankSteps   = 2 // from blank to not supported
)

// number returns the value as a number, and its outcome.
func (v *value) number() (float64, outcome) {
	if o := v.status.outcome(); o != present {
		return 0, o
	}
	switch v.kind {
	case kindInteger, kindTimestamp:
		n := int64(binary.NativeEndian.Uint64(v.raw[:]))
		switch {
		case n == blankInteger+blankSteps:
			return 0, unsupported
		case n >= blankInteger:
			return 0, absent
		}
		return float64(n), present
	case kindDouble:
		n := math.Float64frombits(binary.NativeEndian.Uint64(v.raw[:]))
		switch {
		case n == blankDouble+blankSteps:
			return 0, unsupported
		case n >= blankDouble, math.IsNaN(n), math.IsInf(n, 0):
			return 0, absent
		}
		return n, present
	default:
		return 0, unsupported
	}
}

// mask returns the value as a set of bits.
func (v *value) mask() (uint64, outcome) {
	_, o := v.number()
	bits := binary.NativeEndian.Uint64(v.raw[:])
	if o == present && (v.kind != kindInteger || int64(bits) < 0) {
		o = absent
	}
	if o != present {
		return 0, o
	}
	return bits, present
}

// string returns the value as text; "" if there is none. It is valid UTF-8.
func (v *value) string() string {
	if v.status != statusOK || v.kind != kindString {
		return ""
	}
	if strings.HasPrefix(v.text, "<<<") && strings.HasSuffix(v.text, ">>>") {
		return "" // a blank: <<<NULL>>>, <<<NOT_SUPPORTED>>> …
	}
	return strings.ToValidUTF8(v.text, "\uFFFD")
}
