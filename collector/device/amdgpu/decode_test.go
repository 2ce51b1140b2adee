package amdgpu

import (
	"encoding/binary"
	"errors"
	"io/fs"
	"math"
	"testing"

	"github.com/dra-exporter/dra-exporter/collector/device/sysfs"
)

// table is a table of version format.revision with the energy at an offset,
// and every other bit set.
func table(format, revision byte, size, offset int, units uint64) []byte {
	t := make([]byte, size)
	for i := range t {
		t[i] = 0xff
	}
	binary.LittleEndian.PutUint16(t, uint16(size))
	t[2], t[3] = format, revision
	if offset >= 0 {
		binary.LittleEndian.PutUint64(t[offset:], units)
	}
	return t
}

// entries is a table of version 1.9 of entries of a type, an id and values.
func entries(list ...[]uint64) []byte {
	t := []byte{0, 0, 1, 9}
	t = binary.LittleEndian.AppendUint32(t, uint32(len(list)))
	for _, e := range list {
		kind, what, values := e[0], e[1], e[2:]
		t = binary.LittleEndian.AppendUint64(t, 3<<24|kind<<20|what<<10|uint64(len(values)))
		for _, value := range values {
			t = append(t, binary.LittleEndian.AppendUint64(nil, value)[:1<<(kind/2)]...)
		}
	}
	return t
}

func TestEnergyOf(t *testing.T) {
	const units = 65536 * 1000
	for _, test := range []struct {
		name   string
		table  []byte
		joules float64 // -1: absent, -2: an error
	}{
		{"1.4", table(1, 4, 200, 24, units), 1000},
		{"1.5", table(1, 5, 300, 88, units), 1000},
		{"1.6", table(1, 6, 200, 16, units), 1000},
		{"1.7", table(1, 7, 200, 24, units), 1000},
		{"1.8", table(1, 8, 200, 24, 1), 1.0 / 65536},
		{"1.8 that does not count energy", table(1, 8, 200, -1, 0), -1},
		{"1.8 cut off", table(1, 8, 200, 24, units)[:31], -2},
		{"1.3, in units that depend on the card", table(1, 3, 200, 24, units), -1},
		{"1.10, which is not known yet", table(1, 10, 200, 24, units), -1},
		{"2.4, of an APU", table(2, 4, 200, 24, units), -1},
		{"1.9", entries([]uint64{2, 0, 61}, []uint64{4, 99, 1, 2, 3}, []uint64{6, 7, units}, []uint64{2, 1, 5}), 1000},
		{"1.9 without energy", entries([]uint64{2, 0, 61}), -1},
		{"1.9 without anything", entries(), -1},
		{"1.9 that does not count energy", entries([]uint64{6, 7, math.MaxUint64}), -1},
		{"1.9 of an unknown type", entries([]uint64{8, 7}, []uint64{6, 7, units}), -2},
		{"1.9 cut off in a descriptor", entries([]uint64{6, 7, units})[:15], -2},
		{"1.9 cut off in a value", entries([]uint64{6, 7, units})[:20], -2},
		{"1.9 cut off before the number of entries", entries()[:6], -2},
		{"1.9 with energy of another type is not it", entries([]uint64{4, 7, 5}), -1},
		{"nothing", nil, -2},
	} {
		got, err := decodeEnergy(test.table)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			got = -1
		case err != nil:
			got = -2
		}
		if got != test.joules {
			t.Errorf("%s: %v (%v), want %v", test.name, got, err, test.joules)
		}
	}
}

func TestParseBlockCount(t *testing.T) {
	for _, test := range []struct {
		text         string
		want         blockCount
		absent, fail bool
	}{
		{"ue: 0\nce: 1\n", blockCount{0, 1}, false, false},
		{"ue: 2\nce: 3\nde: 4", blockCount{2, 3}, false, false},
		{"ce: 3\nue: 2", blockCount{2, 3}, false, false},
		{"Query currently inaccessible\n", blockCount{}, true, true},
		{"", blockCount{}, false, true},
		{"ue: 1", blockCount{}, false, true},
		{"ue: x\nce: 1", blockCount{}, false, true},
		{"ue 1\nce 2", blockCount{}, false, true},
	} {
		got, err := parseBlockCount(test.text)
		if got != test.want || sysfs.Absent(err) != test.absent || (err != nil) != test.fail {
			t.Errorf("%q is %v (%v), want %v", test.text, got, err, test.want)
		}
	}
}

func FuzzEnergyOf(f *testing.F) {
	f.Add(table(1, 8, 64, 24, 65536))
	f.Add(table(1, 5, 100, 88, 65536))
	f.Add(entries([]uint64{2, 0, 61}, []uint64{6, 7, 65536}))
	f.Add([]byte{0, 0, 1, 9, 0xff, 0xff, 0xff, 0x7f})
	f.Fuzz(func(t *testing.T, table []byte) {
		joules, err := decodeEnergy(table)
		if err == nil && (joules < 0 || math.IsNaN(joules) || joules > math.MaxUint64) {
			t.Errorf("%x is %v J", table, joules)
		}
	})
}

func FuzzParseBlockCount(f *testing.F) {
	f.Add("ue: 0\nce: 1\nde: 2\n")
	f.Add("Query currently inaccessible\n")
	f.Add(":::\n\n")
	f.Fuzz(func(t *testing.T, text string) {
		if count, err := parseBlockCount(text); err != nil && count != (blockCount{}) {
			t.Errorf("%q is %v and %v", text, count, err)
		}
	})
}
