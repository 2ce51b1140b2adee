package nvml

import (
	"encoding/binary"
	"math"
	"testing"
	"unicode/utf8"
)

func TestProfileOfName(t *testing.T) {
	for name, want := range map[string]string{
		"NVIDIA H100 80GB HBM3 MIG 1g.10gb":          "1g.10gb",
		"NVIDIA A100-SXM4-40GB MIG 1c.3g.20gb":       "1c.3g.20gb",
		"NVIDIA H100 80GB HBM3 MIG 1g.10gb+me":       "1g.10gb+me",
		"NVIDIA H100 80GB HBM3":                      "",
		"NVIDIA MIGHTY":                              "",
		"":                                           "",
		"NVIDIA RTX PRO 6000 Blackwell MIG 4g.96gb ": "4g.96gb",
	} {
		if got := profileOfName(name); got != want {
			t.Errorf("%q has the profile %q, want %q", name, got, want)
		}
	}
}

func TestProfileOfSize(t *testing.T) {
	const mib = 1 << 20
	for _, test := range []struct {
		compute, instance uint32
		memory, whole     uint64
		want              string
	}{
		{1, 1, 4864 * mib, 40536 * mib, "1g.5gb"},
		{1, 1, 9856 * mib, 81559 * mib, "1g.10gb"},
		{2, 2, 19968 * mib, 81559 * mib, "2g.20gb"},
		{3, 3, 40320 * mib, 81559 * mib, "3g.40gb"},
		{1, 3, 40320 * mib, 81559 * mib, "1c.3g.40gb"},
		{7, 7, 81079 * mib, 81559 * mib, "7g.80gb"},
		{1, 0, 1, 1, ""},
		{1, 1, 0, 1, ""},
		{1, 1, 1, 0, ""},
	} {
		if got := profileOfSize(test.compute, test.instance, test.memory, test.whole); got != test.want {
			t.Errorf("%d/%d slices and %d of %d bytes are %q, want %q",
				test.compute, test.instance, test.memory, test.whole, got, test.want)
		}
	}
}

// union puts a value into the bytes of an nvmlValue_t.
func union(bits uint64) (raw [8]byte) {
	binary.NativeEndian.PutUint64(raw[:], bits)
	return raw
}

func TestNumber(t *testing.T) {
	var short, halfword [8]byte
	binary.NativeEndian.PutUint32(short[:], math.MaxUint32)
	binary.NativeEndian.PutUint16(halfword[:], 65000)
	for _, test := range []struct {
		valueType uint32
		raw       [8]byte
		want      float64
		known     bool
	}{
		{0, union(math.Float64bits(0.5)), 0.5, true},
		{0, union(math.Float64bits(math.NaN())), math.NaN(), false},
		{1, short, math.MaxUint32, true},
		{2, union(1 << 40), 1 << 40, true},
		{3, union(1 << 63), 1 << 63, true},
		{4, union(math.MaxUint64), -1, true},
		{5, short, -1, true},
		{6, halfword, 65000, true},
		{7, union(1), 0, false},
	} {
		got, known := number(test.valueType, test.raw)
		if known != test.known || known && got != test.want {
			t.Errorf("type %d: %g %t, want %g %t", test.valueType, got, known, test.want, test.known)
		}
	}
}

func TestCharacters(t *testing.T) {
	if got := characters([]int8{'a', -1, 'b', 0, 'c'}); got != "a\uFFFDb" {
		t.Errorf("characters are %q", got)
	}
	if got := characters([]int8{'a', 'b'}); got != "ab" {
		t.Errorf("characters without an end are %q", got)
	}
}

func FuzzDecode(f *testing.F) {
	f.Add("MIG", uint32(3), uint64(7))
	f.Add("NVIDIA H100 MIG 1g.10gb", uint32(0), uint64(math.MaxUint64))
	f.Fuzz(func(t *testing.T, s string, valueType uint32, bits uint64) {
		if !utf8.ValidString(profileOfName(text(s))) {
			t.Errorf("the profile of %q is not UTF-8", s)
		}
		if value, known := number(valueType, union(bits)); known && (math.IsNaN(value) || math.IsInf(value, 0)) {
			t.Errorf("type %d of %x is %g", valueType, bits, value)
		}
	})
}
