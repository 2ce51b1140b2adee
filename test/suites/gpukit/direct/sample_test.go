package direct

import (
	"bytes"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"
)

func TestDecode(t *testing.T) {
	at := time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)
	mask := uint64(math.MaxUint64)
	want := Sample{Time: at, DriverVersion: "580.65.06", Devices: []Device{{
		Time: at.Add(time.Millisecond), UUID: "GPU-1", Energy: finite(1.5), EventReasons: &mask,
		Memory: Memory{Used: finite(0)}, Throttled: map[string]float64{"sw_power_cap": 2},
		ProcessSamples: []ProcessSample{{PID: 7, Timestamp: 1795521678082554, SM: 0.5}},
	}}}
	var line bytes.Buffer
	if err := Encode(&line, want); err != nil {
		t.Fatal(err)
	}
	if strings.Count(line.String(), "\n") != 1 || strings.Contains(line.String(), "reserved_bytes") {
		t.Errorf("the line is %s", line.String())
	}
	got, err := Decode(line.Bytes())
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, not %+v (%v)", got, want, err)
	}
}

func TestDecodeWrong(t *testing.T) {
	for line, want := range map[string]string{
		``:               "unexpected end",
		`{"devices":[]}`: "no time",
		`{"time":"2026-11-24T12:00:00Z","devices":[{}]}`:                        "no UUID",
		`{"time":"2026-11-24T12:00:00Z","devices":[{"uuid":"a"},{"uuid":"a"}]}`: "no UUID of its own",
		`{"time":"2026-11-24T12:00:00Z","devices":[{"energy_joules":1e999}]}`:   "cannot unmarshal",
		`{"time":"2026-11-24T12:00:00Z"} {`:                                     "invalid character",
		strings.Repeat(" ", MaxLine+1):                                          "more than",
	} {
		if _, err := Decode([]byte(line)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60q: the error is %v, not %q", line, err, want)
		}
	}
	// A device without a time of its own has the sample's.
	s, err := Decode([]byte(`{"time":"2026-11-24T12:00:00Z","devices":[{"uuid":"a"}]}`))
	if err != nil || !s.Devices[0].Time.Equal(s.Time) {
		t.Errorf("%+v (%v)", s, err)
	}
}

// Whatever is decoded can be encoded and decoded again, with the same result.
func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"time":"2026-11-24T12:00:00Z","driver_version":"1","devices":[{"uuid":"GPU-1","memory":{"total_bytes":1e10},"gpm":{"sm":0.5},"processes":[{"pid":1,"kind":"compute"}]}]}`))
	f.Add([]byte(`{"time":"2026-11-24T12:00:00Z","devices":[{"uuid":"a","energy_joules":null,"errors":{"nvmlDeviceGetName":15}}]}`))
	f.Add([]byte(`{"devices":[{}]}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		one, err := Decode(line)
		if err != nil {
			return
		}
		var again bytes.Buffer
		if err := Encode(&again, one); err != nil {
			t.Skip("a year that JSON cannot have")
		}
		two, err := Decode(again.Bytes())
		if err != nil || len(two.Devices) != len(one.Devices) || !two.Time.Equal(one.Time) {
			t.Errorf("%s is decoded as %+v (%v)", again.Bytes(), two, err)
		}
	})
}
