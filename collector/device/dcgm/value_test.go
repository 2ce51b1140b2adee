package dcgm

import (
	"encoding/binary"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/device"
)

func integer(n int64) value {
	v := value{kind: kindInteger, at: 1}
	binary.NativeEndian.PutUint64(v.raw[:], uint64(n))
	return v
}

func double(n float64) value {
	v := integer(int64(math.Float64bits(n)))
	v.kind = kindDouble
	return v
}

func TestNumber(t *testing.T) {
	for name, test := range map[string]struct {
		value value
		want  float64
		what  outcome
	}{
		"an integer":               {integer(42), 42, present},
		"a negative integer":       {integer(-3), -3, present},
		"the largest integer":      {integer(0x7fffffffffffffef), 0x7fffffffffffffef, present},
		"a timestamp":              {value{kind: kindTimestamp, raw: integer(7).raw}, 7, present},
		"a blank integer":          {integer(0x7ffffffffffffff0), 0, absent},
		"an integer not found":     {integer(0x7ffffffffffffff1), 0, absent},
		"an integer not supported": {integer(0x7ffffffffffffff2), 0, unsupported},
		"an integer not permitted": {integer(0x7ffffffffffffff3), 0, absent},
		"a later kind of blank":    {integer(math.MaxInt64), 0, absent},
		"a double":                 {double(0.25), 0.25, present},
		"a blank double":           {double(140737488355328), 0, absent},
		"a double not supported":   {double(140737488355330), 0, unsupported},
		"a later blank double":     {double(140737488355399), 0, absent},
		"no number":                {double(math.NaN()), 0, absent},
		"minus infinity":           {double(math.Inf(-1)), 0, absent},
		"a text":                   {value{kind: kindString, text: "42"}, 0, unsupported},
		"a blob":                   {value{kind: 'b'}, 0, unsupported},
		"a status before a value":  {value{kind: kindInteger, status: statusGPULost}, 0, lost},
	} {
		if n, what := test.value.number(); n != test.want || what != test.what {
			t.Errorf("%s: %v, %v, want %v, %v", name, n, what, test.want, test.what)
		}
	}
}

func TestMask(t *testing.T) {
	high := integer(-1)
	for name, test := range map[string]struct {
		value value
		want  uint64
		what  outcome
	}{
		"bits":              {integer(0x48), 0x48, present},
		"none":              {integer(0), 0, present},
		"a blank":           {integer(blankInteger), 0, absent},
		"not supported":     {integer(blankInteger + 2), 0, unsupported},
		"a negative number": {high, 0, absent},
		"a double":          {double(8), 0, absent},
		"a failure":         {value{status: statusTimeout}, 0, failed},
	} {
		if n, what := test.value.mask(); n != test.want || what != test.what {
			t.Errorf("%s: %#x, %v, want %#x, %v", name, n, what, test.want, test.what)
		}
	}
}

func TestString(t *testing.T) {
	for text, want := range map[string]string{
		"NVIDIA H100": "NVIDIA H100", "": "", "<<<NULL>>>": "", "<<<NOT_SUPPORTED>>>": "", "<<<x": "<<<x", "a\xff": "a\uFFFD",
	} {
		v := value{kind: kindString, text: text}
		if got := v.string(); got != want {
			t.Errorf("%q is %q, want %q", text, got, want)
		}
	}
	v := value{kind: kindInteger, text: "1"}
	if got := v.string(); got != "" {
		t.Errorf("a number is the text %q", got)
	}
	v = value{kind: kindString, text: "1", status: statusNoData}
	if got := v.string(); got != "" {
		t.Errorf("no data is the text %q", got)
	}
}

// Every return code of dcgm_structs.h is a value, an absence, a lost GPU or an
// error.
func TestEveryStatus(t *testing.T) {
	want := map[outcome][]status{
		present:     {0},
		unsupported: {-6, -13, -20, -22, -32, -33, -36, -44},
		absent:      {-5, -9, -14, -15, -16, -34, -38, -45, -46, -54, -67},
		lost:        {-18, -19},
		failed: {
			-1, -2, -3, -4, -7, -8, -10, -11, -12, -17, -21, -23, -24, -25, -26, -27, -28, -29, -30, -31, -35, -37, -39,
			-40, -41, -42, -43, -47, -48, -49, -50, -51, -52, -53, -55, -56, -57, -58, -59, -60, -61, -62, -63, -64, -65, -66,
			-68, 1, math.MinInt32,
		},
	}
	seen := 0
	for what, codes := range want {
		for _, code := range codes {
			seen++
			if got := code.outcome(); got != what {
				t.Errorf("status %d is %v, want %v", code, got, what)
			}
			if code.Error() == "" {
				t.Errorf("status %d has no words", code)
			}
		}
	}
	if seen != 68+3 {
		t.Errorf("%d codes are tried", seen)
	}
}

// Whatever an engine returns, readings are numbers of known quantities with
// their details, integrals never decrease, and each value counts as at most one
// XID.
func FuzzValues(f *testing.F) {
	f.Add(uint16(gpuUtilization), byte('i'), int32(0), int64(1e15), uint64(55), "")
	f.Add(uint16(boardPower), byte('d'), int32(0), int64(1e15), math.Float64bits(70.5), "")
	f.Add(uint16(pcieTransmitRate), byte('i'), int32(0), int64(-5), uint64(1e9), "")
	f.Add(uint16(clocksEventReasons), byte('i'), int32(0), int64(1), uint64(0xff), "")
	f.Add(uint16(fabricStatus), byte('i'), int32(0), int64(1), uint64(6), "")
	f.Add(uint16(recoveryAction), byte('i'), int32(0), int64(1), uint64(1<<40), "")
	f.Add(uint16(xidError), byte('i'), int32(0), int64(1e15), uint64(79), "")
	f.Add(uint16(gpuUUID), byte('s'), int32(-14), int64(0), uint64(0), "<<<NULL>>>")
	f.Add(uint16(totalEnergy), byte('b'), int32(-18), int64(math.MaxInt64), uint64(math.MaxUint64), "x")
	f.Fuzz(func(t *testing.T, field uint16, kind byte, code int32, at int64, raw uint64, text string) {
		b := newConverter(Options{Profiling: true}.complete())
		gpu := entity{wholeGPU, 0}
		p := makePlan([]uint{0}, nil, map[entity]identity{gpu: {uuid: "GPU-a"}})
		b.applyPlan(p)
		e := newXIDCounts()
		e.watch(p)
		specs := device.Specs()
		var before []device.Reading
		for i := range int64(3) {
			v := value{entity: gpu, field: field, kind: kind, status: status(code), at: at + i*1e6, text: text}
			binary.NativeEndian.PutUint64(v.raw[:], raw)
			_ = v.string()
			b.grid.begin()
			b.grid.apply(&v, &callTime{})
			found := b.observe(&b.plan.targets[0], device.Slow, time.Duration(i)*time.Second)
			for _, r := range append(found.Readings, found.Slow...) {
				if r.Value == device.Implausible() {
					continue
				}
				if math.IsNaN(r.Value) || r.Value < 0 && r.Quantity != device.Temperature {
					t.Fatalf("field %d says %v", field, r)
				}
				if named := r.Details[0] != ""; named != (len(specs[r.Quantity].Details) > 0) {
					t.Fatalf("field %d says %v", field, r)
				}
				if j := slices.IndexFunc(before, func(o device.Reading) bool { return o.Quantity == r.Quantity && o.Details == r.Details }); j >= 0 {
					if specs[r.Quantity].Kind == device.Counter && r.Value < before[j].Value {
						t.Fatalf("field %d fell from %v to %v", field, before[j], r)
					}
				}
			}
			before = append(found.Readings, found.Slow...)
			if _, is := e.isNew(&v); is {
				e.record([]value{v})
			}
		}
		total := uint64(0)
		for _, x := range e.xids()["GPU-a"] {
			total += x.Count
		}
		if total > 2 {
			t.Fatalf("%d XIDs of three values, the first of which is old", total)
		}
	})
}

func FuzzTexts(f *testing.F) {
	for _, text := range []string{"NVIDIA H100 MIG 1g.10gb+me", "version:4.6.1;arch:x86_64", ":::", "g.gb", "<<<NULL>>>"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if p := profile(text); p != "" && (p[0] < '1' || p[0] > '9') {
			t.Errorf("%q is the profile %q", text, p)
		}
		_, _ = majorVersion(text)
	})
}
