package amdgpu

import (
	"encoding/binary"
	"fmt"
	"io/fs"
	"math"
)

// The file gpu_metrics is a table whose layout depends on the version in its
// header. Versions 1.4 to 1.8 and 1.9 are those of the MI300 series, which
// counts its energy in units of 2⁻¹⁶ J; in what units the tables of other
// cards count is not documented. From version 1.9 on each entry says itself
// what it is. A field that a card does not have has all bits set.

// joulesPerUnit is what one unit of the energy accumulator stands for.
const joulesPerUnit = 1.0 / (1 << 16)

// decodeEnergy returns the energy in joules in a table gpu_metrics. The error is
// fs.ErrNotExist if the table has none.
func energyOffset(revision byte) (offset int, known bool) {
	switch revision {
	case 4, 7, 8:
		return 24, true
	case 5:
		return 88, true
	case 6:
		return 16, true
	default:
		return 0, false
	}
}

// decodeEnergy returns the energy in joules that a table gpu_metrics contains. The
// error is fs.ErrNotExist where it contains none.
func decodeEnergy(table []byte) (float64, error) {
	const header = 4
	if len(table) < header {
		return 0, errShort(table)
	}
	format, revision := table[2], table[3]
	if format != 1 {
		return 0, fs.ErrNotExist
	}
	if revision == 9 {
		return energyAmong(table[header:])
	}
	offset, ok := energyOffset(revision)
	if !ok {
		return 0, fs.ErrNotExist
	}
	if len(table) < offset+8 {
		return 0, errShort(table)
	}
	return joules(binary.LittleEndian.Uint64(table[offset:]))
}

// energyAmong looks for the energy accumulator among the entries of a table
// of version 1.9: their number, then each a descriptor (the unit from bit 24
// on, the type from bit 20, what it is from bit 10, how many values from bit
// 0) and its values, without gaps.
func energyAmong(table []byte) (float64, error) {
	const energyAccumulator, unsigned64 = 7, 6
	if len(table) < 4 {
		return 0, errShort(table)
	}
	entries := int32(binary.LittleEndian.Uint32(table))
	table = table[4:]
	for range entries {
		if len(table) < 8 {
			return 0, errShort(table)
		}
		descriptor := binary.LittleEndian.Uint64(table)
		kind, id, values := descriptor>>20&0xf, descriptor>>10&0x3ff, int(descriptor&0x3ff)
		size, ok := fieldSize(kind)
		if !ok {
			return 0, fmt.Errorf("an entry of the unknown type %d", kind)
		}
		table = table[8:]
		if len(table) < size*values {
			return 0, errShort(table)
		}
		if id == energyAccumulator && kind == unsigned64 && values == 1 {
			return joules(binary.LittleEndian.Uint64(table))
		}
		table = table[size*values:]
	}
	return 0, fs.ErrNotExist
}

// fieldSize is the size of a value in bytes: types 0 to 7 are unsigned and signed
// integers of 8, 16, 32 and 64 bits.
func fieldSize(kind uint64) (size int, known bool) { return 1 << (kind / 2), kind < 8 }

func joules(units uint64) (float64, error) {
	if units == math.MaxUint64 {
		return 0, fs.ErrNotExist
	}
	return float64(units) * joulesPerUnit, nil
}

func errShort(table []byte) error {
	return fmt.Errorf("it ends too soon: %d bytes are left", len(table))
}
